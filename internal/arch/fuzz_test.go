package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// Every fuzz target has a corpus in the repository, so that what fuzzing found
// interesting once is run by everybody.
func TestEveryFuzzTargetHasACorpus(t *testing.T) {
	t.Parallel()
	files, most := 0, int64(16<<10) // bytes of one input
	for _, top := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(path string, entry os.DirEntry, err error) error {
			if matched, _ := filepath.Match("*_test.go", filepath.Base(path)); err != nil || !matched || filepath.Base(filepath.Dir(path)) == "arch" {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, target := range fuzzTarget.FindAllSubmatch(source, -1) {
				files++
				dir := filepath.Join(filepath.Dir(path), "testdata", "fuzz", string(target[1]))
				corpus, err := os.ReadDir(dir)
				if err != nil || len(corpus) == 0 {
					t.Errorf("there is no corpus in %s: put in a few small inputs that .ci/fuzz found, or your own", dir)
				}
				for _, input := range corpus {
					if info, err := input.Info(); err != nil || info.Size() > most {
						t.Errorf("%s in %s is larger than %d bytes", input.Name(), dir, most)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 40 {
		t.Errorf("only %d fuzz targets found", files)
	}
}
