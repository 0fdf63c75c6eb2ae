package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/security.md says which test shows that something holds: each of the 44
// points has its row, and each test is there.
func TestSecurityTableNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`(?m)^\| S\d+ \|`).FindAll(text, -1)); n != 44 {
		t.Errorf("%d rows, want 44", n)
	}
	exists := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, top := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(source, -1) {
				exists[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(text, -1) {
		if name := string(m[1]); !exists[name] {
			t.Errorf("docs/security.md names %s, which is not there", name)
		}
	}
}
