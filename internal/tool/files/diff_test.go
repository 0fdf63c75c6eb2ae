package files

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"remote-agent/internal/waittest"
)

// apply makes the new text of the old one and a diff, and checks each line and
// number of the diff on the way.
func apply(before, unified string) (string, error) {
	if unified == "" {
		return before, nil
	}
	old, out := lines(before), []string{}
	at := 0
	rows := strings.SplitAfter(unified, "\n")[2:]
	var oldLeft, newLeft int
	for i, row := range rows {
		switch {
		case row == "":
		case strings.HasPrefix(row, "@@"):
			if oldLeft != 0 || newLeft != 0 {
				return "", fmt.Errorf("a hunk is %d and %d lines short", oldLeft, newLeft)
			}
			var o, n string
			if _, err := fmt.Sscanf(row, "@@ -%s +%s @@", &o, &n); err != nil {
				return "", err
			}
			oldStart, oldCount := parseSpan(o)
			newStart, newCount := parseSpan(n)
			for at < oldStart {
				out = append(out, old[at])
				at++
			}
			if newStart != len(out) {
				return "", fmt.Errorf("hunk %q starts at new line %d", row, len(out))
			}
			oldLeft, newLeft = oldCount, newCount
		case row[0] == '\\':
		default:
			text := row[1:]
			if i+1 < len(rows) && strings.HasPrefix(rows[i+1], `\`) {
				text = strings.TrimSuffix(text, "\n")
			}
			if row[0] != '+' {
				if at >= len(old) || old[at] != text {
					return "", fmt.Errorf("old line %d is not %q", at, text)
				}
				at++
				oldLeft--
			}
			if row[0] != '-' {
				out = append(out, text)
				newLeft--
			}
		}
	}
	return strings.Join(append(out, old[at:]...), ""), nil
}

// parseSpan returns how many lines stand before a hunk, and how many it has.
func parseSpan(s string) (start, count int) {
	count = 1
	if _, err := fmt.Sscanf(s, "%d,%d", &start, &count); err != nil {
		_, _ = fmt.Sscanf(s, "%d", &start)
	}
	if count > 0 {
		start--
	}
	return start, count
}

func TestDiff(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "d\n", "\n"}), 0, 40).Draw(t, "lines"), "")
		if rapid.Bool().Draw(t, "end") {
			return s + "end"
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		c := diff("f", "f", before, after)
		got, err := apply(before, c.unified)
		if err != nil || got != after {
			t.Fatalf("%v: %q becomes %q, want %q by\n%s", err, before, got, after, c.unified)
		}
		if len(lines(after))-len(lines(before)) != c.added-c.removed {
			t.Fatalf("%s does not fit %q and %q", c.note(), before, after)
		}
	})
}

// TestDiffIsShort compares the size with the best one, found slowly.
func TestDiffIsShort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n"}), 0, 12)
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		common := make([][]int, len(a)+1) // longest common subsequence of suffixes
		for i := range common {
			common[i] = make([]int, len(b)+1)
		}
		for i := range slices.Backward(a) {
			for j := range slices.Backward(b) {
				common[i][j] = max(common[i+1][j], common[i][j+1])
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				}
			}
		}
		c := diff("f", "f", strings.Join(a, ""), strings.Join(b, ""))
		if want := len(a) + len(b) - 2*common[0][0]; c.added+c.removed != want {
			t.Fatalf("%q to %q takes %s, but %d is enough", a, b, c.note(), want)
		}
	})
}

// TestDiffForGit lets git apply diffs.
func TestDiffForGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	many := strings.Repeat("x\n", 30)
	for i, tt := range []struct{ before, after string }{
		{"a\nb\nc\n", "a\nB\nc\n"}, {"a", "a\n"}, {"a\n", "b"}, {many + "a\n" + many, "start\n" + many + "b\n" + many + "end\n"}, {"a\r\nb\r\n", "a\r\nc\r\n"}, {"", "new\n"},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, "f")
		old := "f"
		if tt.before == "" {
			old = ""
		} else if err := os.WriteFile(name, []byte(tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), git, "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff(old, "f", tt.before, tt.after).unified)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("case %d: %v: %s", i, err, out)
			continue
		}
		if got, _ := os.ReadFile(name); string(got) != tt.after {
			t.Errorf("case %d: git makes %q", i, got)
		}
	}
}

// TestDiffOfStrangers bounds the work for large files that have nothing in
// common.
func TestDiffOfStrangers(t *testing.T) {
	t.Parallel()
	var a, b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&a, "a%d\n", i)
		fmt.Fprintf(&b, "b%d\n", i)
	}
	start := time.Now()
	c := diff("f", "f", a.String(), b.String())
	if c.added != 200_000 || c.removed != 200_000 {
		t.Errorf("the diff is %s", c.note())
	}
	if took := time.Since(start); waittest.TooLong(took, 5*time.Second) {
		t.Errorf("it took %s", took)
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*.go", "**/a", "a/**", "[!a-z]", "{a,b}", `\*`, "[]]", "a**b", "[[:alpha:]]", "é?"} {
		f.Add(s, "a/b.go")
	}
	f.Fuzz(func(_ *testing.T, glob, p string) {
		if fits, err := filter(glob); err == nil {
			fits(p)
		}
		if r, ok := parseIgnore(glob); ok {
			r.pattern.MatchString(p)
		}
	})
}
