package markup_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"remote-agent/internal/markup"
)

func parse(source string) ast.Node {
	return goldmark.New(goldmark.WithExtensions(
		extension.Table, extension.Strikethrough, extension.TaskList, extension.Footnote,
	)).Parser().Parse(text.NewReader([]byte(source)))
}

// stairs returns size bytes of lines, of which each has more indentation than the one before.
func stairs(size, step int, line string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i += step {
		b.WriteString(strings.Repeat(" ", i) + line + "\n")
	}
	return b.String()
}

func fill(size int, unit string) string { return strings.Repeat(unit, size/len(unit)) }

// bombs are texts of about size bytes that cost a parser much more than others.
func bombs(size int) map[string]string {
	third := size / 3
	return map[string]string{
		"table":            fill(third, "|a") + "\n" + fill(third, "|-") + "\n" + fill(third, "|\n"),
		"table in a quote": "> " + fill(third, "|a") + "\n>  " + fill(third, "-|") + "-\n" + fill(third, "> a\n"),
		"table in a list":  "- " + fill(third, "|a") + "\n\t" + fill(third, "|:-:") + "\n" + fill(third, "|\n"),
		"second table":     "|a|\n|-|\n|b|\n\n" + fill(third, "|a") + "\n" + fill(third, "|-") + "\n" + fill(third, "x\n"),
		"odd blank lines":  fill(third, "|a") + "\n" + fill(third, "|-") + "\n    >\n\f\n\v\n\u00a0\n" + fill(third, "|\n"),
		"bars in code":     "|a|b|\n|-|-|\n" + fill(size, "|`\\|`|b|\n"),
		"quotes":           fill(size, ">") + "end",
		"wide quotes":      fill(size, "> ") + "end",
		"bullets":          fill(size, "- ") + "end",
		"bullets and tabs": fill(size, "*\t") + "end",
		"numbers":          fill(size, "1. ") + "end",
		"mixed":            fill(size, "> 1) + ") + "end",
		"footnotes":        fill(size, "[^a]: ") + "end",
		"stairs":           stairs(size, 2, "- a"),
		"steep stairs":     stairs(size, 64, fill(64, "- ")+"a"),
		"definitions":      fill(size, "[a]: b\n"),
		"a long address":   "[a]: /" + fill(size/2, "b") + "\n\n" + fill(size/2, "[a]"),
		"one with spaces":  "> [a]:\n> </" + fill(size/2, "b ") + ">\n\n" + fill(size/2, "[a]"),
		"links":            fill(size, "[]("),
		"angle links":      fill(size, "[a](<b"),
		"brackets":         fill(size/2, "[") + fill(size/2, "]"),
		"pictures":         fill(size/2, "![") + fill(size/2, "](b)"),
	}
}

// cost returns what of memory a text takes: its tree, and the addresses of all its links.
func cost(source string) (bytes uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var addresses []string
	_ = ast.Walk(parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, is := n.(*ast.Link); is && entering {
			addresses = append(addresses, string(link.Destination))
		}
		return ast.WalkContinue, nil
	})
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(addresses)
	return after.TotalAlloc - before.TotalAlloc
}

// TestEmphasisThatNeverClosesIsBounded: the parser's time for it grows with the square of
// the text, of which no time is measured here, but what makes it grow is counted.
func TestEmphasisThatNeverClosesIsBounded(t *testing.T) {
	for _, unit := range []string{"*a_ ", "**a~~ ", "_a* ", "~~a*\n", "é*é_ "} {
		source := strings.Repeat(unit, 50_000)
		bounded := markup.Bounded(source)
		if open, closed := strings.Count(source, unit[1:]), strings.Count(bounded, unit[1:]); closed > open/10 {
			t.Errorf("%d of %d %q can still close", closed, open, unit)
		}
		if strings.ReplaceAll(bounded, `\`, "") != source {
			t.Errorf("%q: something else than a backslash was added", unit)
		}
		if markup.Bounded(bounded) != bounded {
			t.Errorf("%q: doing it again changes it", unit)
		}
	}
}

func TestBombsCostLittle(t *testing.T) {
	const size, most = 64 << 10, 40 << 20
	for name, source := range bombs(size) {
		t.Run(name, func(t *testing.T) {
			bounded := markup.Bounded(source)
			if got := cost(bounded); got > most {
				t.Errorf("%d bytes take %d MB", len(source), got>>20)
			}
			if bounded == source {
				t.Error("the text is as it was")
			}
			if again := markup.Bounded(bounded); again != bounded {
				t.Error("doing it again changes it")
			}
			if strings.ReplaceAll(bounded, `\`, "") != strings.ReplaceAll(source, `\`, "") {
				t.Error("something else than a backslash was added")
			}
			if got := depth(parse(bounded)); got > 70 && name != "pictures" {
				t.Errorf("%d levels", got)
			}
		})
	}
}

func depth(n ast.Node) int {
	deepest := 0
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		deepest = max(deepest, depth(c))
	}
	return deepest + 1
}

// What people write stays as it is.
func TestBoundedLeavesTextsAlone(t *testing.T) {
	long := strings.Repeat("-", 100)
	for name, source := range map[string]string{
		"empty":          "",
		"prose":          strings.Repeat("A word, *another*, and [a link](https://example.com/page).\n", 2000),
		"rules":          long + "\n" + strings.Repeat("- ", 100) + "\n" + strings.Repeat("* ", 100) + "\n" + strings.Repeat("*", 100),
		"ruled heading":  "Title\n" + long + "\n\n```\n" + long + "\n+" + strings.Repeat("=", 90) + "\n```",
		"large table":    "|a|b|c|d|\n|-|-|-|-|\n" + strings.Repeat("|1|2|3|4|\n", 3000),
		"tables":         strings.Repeat("|a|b|\n|-|:-:|\n|1|2|\n\n", 2000),
		"a deep list":    stairs(800, 2, "- item"),
		"a long thread":  strings.Repeat("> ", 20) + "the first mail\n",
		"a log":          strings.Repeat("[INFO]: 2026-01-01 started [pid 12] - ok\n", 900),
		"emphasis":       strings.Repeat("| **a** | _b_ | ~~c~~ |\n", 1000) + strings.Repeat("\nSome *words* of a paragraph.\n", 5000),
		"C":              "```c\n" + strings.Repeat("\tchar *p = *q, a_b_c = _x * y; f(char* z);\n", 1000) + "```",
		"versions":       strings.Repeat("1.", 300) + "0",
		"JSON":           strings.Repeat(`{"a": [[1, 2], [3, [4]]]},`, 3000),
		"code":           "```go\n" + strings.Repeat("\t\t\t\t\tx[i] = y[(i - 1)] // > 3\n", 1000) + "```",
		"many footnotes": strings.Repeat("a[^1] ", 3000) + "\n\n[^1]: note",
	} {
		if diff := cmp.Diff(source, markup.Bounded(source)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The marks of what goes too far are shown, and nothing is lost.
func TestWhatGoesTooFarIsPlain(t *testing.T) {
	for _, test := range []struct{ source, want string }{
		{strings.Repeat(">", 34) + "end", strings.Repeat(">", 32) + `\>>end`},
		{strings.Repeat("1. ", 22) + "end", strings.Repeat("1. ", 21) + `1\. end`},
		{strings.Repeat(" ", 64) + "- end", strings.Repeat(" ", 64) + `\- end`},
		{strings.Repeat("[^a]: ", 12) + "end", strings.Repeat("[^a]: ", 10) + `[^a]\: [^a]: end`},
		{strings.Repeat("[a](", 201), strings.Repeat("[a](", 200) + `[a]\(`},
		{"|" + strings.Repeat("a|", 400) + "\n> |" + strings.Repeat("-|", 400) + "\n" + strings.Repeat("b\n", 60), "|" + strings.Repeat("a|", 400) + "\n> \\|" + strings.Repeat("-|", 400) + "\n" + strings.Repeat("b\n", 60)},
	} {
		if diff := cmp.Diff(test.want, markup.Bounded(test.source)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func FuzzBounded(f *testing.F) {
	for _, bomb := range bombs(600) {
		f.Add(bomb)
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, s := range []string{source, strings.Repeat(source, min(200, 16_000/(len(source)+1)+1))} {
			bounded := markup.Bounded(s)
			if again := markup.Bounded(bounded); again != bounded {
				t.Errorf("doing it again changes %q", s)
			}
			if got, most := cost(bounded), uint64(len(s))*2000+8<<20; got > most {
				t.Errorf("%d bytes take %d of memory: %q", len(s), got, s)
			}
		}
	})
}

func BenchmarkBomb(b *testing.B) {
	for name, source := range bombs(64 << 10) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parse(markup.Bounded(source))
			}
		})
	}
}

func ExampleBounded() {
	fmt.Println(markup.Bounded(strings.Repeat(">", 33) + " deep"))
	// Output: >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>\> deep
}
