package terminal

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const everything = "# Title\n\nSome **bold**, *light*, `code` and a [link](https://x.example/a).\nSecond line.\n\n" +
	"- one that is so long that it goes on in a second line of the list\n  - inner\n- [x] done\n\n10. ten\n11. eleven\n\n" +
	"> quoted text that is long enough to be wrapped at the width of the terminal\n\n```go\nfunc main() {\n\tprintln(\"a line of code that is longer than the terminal is wide\")\n}\n```\n\n" +
	"| name | size |\n|---|--:|\n| a.go | 12 |\n| long-name.go | 3 |\n\n---\n\n日本語の文章は単語の間に空白がないので、どこでも折り返すことができます。 &amp; \\*stars\\*"

func rendered(t *testing.T, source string, columns int, styled bool) string {
	t.Helper()
	var b strings.Builder
	for _, r := range newMarkdown(styled).rows(source, columns) {
		if r.columns > columns {
			t.Errorf("%d columns: %q", r.columns, r.text)
		}
		b.WriteString(r.text + "\n")
	}
	return b.String()
}

func TestMarkdownAt50Columns(t *testing.T) {
	t.Parallel()
	want := `Title
─────

Some bold, light, ` + "`code`" + ` and a link
(https://x.example/a).
Second line.

• one that is so long that it goes on in a second
  line of the list
  • inner
☑ done

10. ten
11. eleven

│ quoted text that is long enough to be wrapped at
│ the width of the terminal

  func main() {
      println("a line of code that is longer than
  the terminal is wide")
  }

name          size
──────────────────
a.go            12
long-name.go     3

────────────────────────────────────────

日本語の文章は単語の間に空白がないので、どこでも折
り返すことができます。 & *stars*
`
	if diff := cmp.Diff(want, rendered(t, everything, 50, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStylesAreOnlyThereIfWanted(t *testing.T) {
	t.Parallel()
	if got := rendered(t, everything, 60, false); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	got := rendered(t, "**bold** and `code`", 60, true)
	if want := "\x1b[1mbold\x1b[0m and \x1b[36mcode\x1b[0m\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestATableThatIsTooWideIsAList(t *testing.T) {
	t.Parallel()
	got := rendered(t, "| file | why |\n|---|---|\n| a.go | because it is long |\n| b.go | x |", 20, false)
	want := "file: a.go\nwhy: because it is\n  long\n\nfile: b.go\nwhy: x\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A row of a table is padded to the width of the first, and an address that is defined
// once is shown wherever it is used: what makes much of little is text.
func TestBombsTakeLittle(t *testing.T) {
	m := newMarkdown(true)
	for name, source := range map[string]string{
		"table":   strings.Repeat("|a", 4000) + "\n" + strings.Repeat("|-", 4000) + "\n" + strings.Repeat("|\n", 4000),
		"address": "[a]: https://example.com/" + strings.Repeat("b", 10_000) + "\n\n" + strings.Repeat("[a] ", 3000),
		"lists":   strings.Repeat("1. ", 300) + "a\n" + strings.Repeat("b\n", 8000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m.rows(source, 80)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
			t.Errorf("%s: %d bytes take %d MB", name, len(source), took)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add(everything, 50, true)
	f.Add(strings.Repeat("> ", 40)+"deep", 20, false)
	f.Add(strings.Repeat("- ", 12)+"deep and long enough to be wrapped", 12, false)
	f.Add("a\u200db \x1b[2J\u202e", 3, true)
	f.Fuzz(func(t *testing.T, source string, columns int, styled bool) {
		columns = max(min(columns, 200), minColumns)
		got := rendered(t, strings.ToValidUTF8(source, "?"), columns, styled)
		for _, c := range codes {
			got = strings.ReplaceAll(got, "\x1b["+c.code+"m", "")
		}
		if !styled && strings.ContainsAny(got, "\x1b\x07\r\t\u009b\u202e") {
			t.Errorf("control character in %q", got)
		}
	})
}

func BenchmarkMarkdown(b *testing.B) {
	m := newMarkdown(true)
	source := strings.Repeat(everything+"\n\n", 10)
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		m.rows(source, 80)
	}
}
