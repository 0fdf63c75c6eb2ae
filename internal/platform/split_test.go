package platform_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/platform"
)

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

func TestSplit(t *testing.T) {
	t.Parallel()
	para := func(c string, n int) string { return strings.TrimSpace(strings.Repeat(c, n)) }
	tests := map[string]struct {
		in    string
		limit int
		want  []string
	}{
		"Empty":           {"", 64, nil},
		"Blank":           {" \n\t\n ", 64, nil},
		"Short":           {"hello", 64, []string{"hello"}},
		"KeepsInnerLines": {"a\n\nb", 64, []string{"a\n\nb"}},
		"BetweenBlocks": {
			para("one ", 10) + "\n\n" + para("two ", 10), 64,
			[]string{para("one ", 10), para("two ", 10)},
		},
		"BeforeHeading": {
			para("one ", 10) + "\n## Two\n" + para("two ", 10), 64,
			[]string{para("one ", 10), "## Two\n" + para("two ", 10)},
		},
		"BetweenListItems": {
			"- " + para("one ", 10) + "\n- " + para("two ", 10), 64,
			[]string{"- " + para("one ", 10), "- " + para("two ", 10)},
		},
		"BetweenSentences": {
			para("one ", 10) + ". " + para("two ", 12) + ".", 64,
			[]string{para("one ", 10) + ".", para("two ", 12) + "."},
		},
		"WholeCodeBlockStaysWhole": {
			para("one ", 12) + "\n\n```go\n" + para("x\n", 10) + "\n```", 64,
			[]string{para("one ", 12), "```go\n" + para("x\n", 10) + "\n```"},
		},
		"TableHasItsHeadAgain": {
			"| a | b |\n|---|:-:|\n" + para("| x | y |\n", 18), 100,
			[]string{
				"| a | b |\n|---|:-:|\n" + para("| x | y |\n", 8),
				"| a | b |\n|---|:-:|\n" + para("| x | y |\n", 8),
				"| a | b |\n|---|:-:|\n" + para("| x | y |\n", 2),
			},
		},
		"NoPartEndsWithATablesHead": {
			para("one ", 10) + "\na | b\n--- | ---\n" + para("xxxxxx | yyyyyy\n", 3), 64,
			[]string{para("one ", 10), "a | b\n--- | ---\n" + para("xxxxxx | yyyyyy\n", 3)},
		},
		"TextBehindATable": {
			"a | b\n-|-\n" + para("1 | 2\n", 7) + "\n\n" + para("one ", 10), 64,
			[]string{"a | b\n-|-\n" + para("1 | 2\n", 7), para("one ", 10)},
		},
		"LongHeadIsNotRepeated": {
			"| " + para("title ", 6) + " |\n|---|\n" + para("| x |\n", 8), 64,
			[]string{"| " + para("title ", 6) + " |\n|---|\n" + para("| x |\n", 3), para("| x |\n", 5)},
		},
		"RuleIsNoTable": {
			para("one\n", 8) + "\n---\n" + para("two\n", 8), 64,
			[]string{para("one\n", 8) + "\n---\n" + para("two\n", 7), "two"},
		},
		"CodeBlockIsReopened": {
			"```go\n" + para("0123456789\n", 8) + "\n```\nend", 64,
			[]string{
				"```go\n" + para("0123456789\n", 5) + "\n```",
				"```go\n" + para("0123456789\n", 3) + "\n```\nend",
			},
		},
		"CodeBlockInListLosesItsIndent": {
			"1. do\n   ```sh\n" + strings.Repeat("   0123456789\n", 6) + "   ```\n2. end", 64,
			[]string{
				"1. do\n   ```sh\n   " + para("0123456789\n   ", 3) + "\n   ```",
				"```sh\n" + para("0123456789\n", 3) + "\n```\n2. end",
			},
		},
		"QuotedCodeBlock": {
			"> ```\n" + strings.Repeat("> 0123456789\n", 6) + "> ```\n", 64,
			[]string{
				"> ```\n" + para("> 0123456789\n", 4) + "\n> ```",
				"> ```\n" + para("> 0123456789\n", 2) + "\n> ```",
			},
		},
		"CodeKeepsItsIndent": {
			"```\n" + para("0123456789\n", 4) + "\n    indented code\n```", 64,
			[]string{"```\n" + para("0123456789\n", 4) + "\n```", "```\n    indented code\n```"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := platform.Split(tt.in, tt.limit, nil)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Split (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSplitKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	for name, char := range map[string]string{
		"Surrogates": "😀", "Family": "👨‍👩‍👧‍👦", "Flag": "🇩🇪", "Combining": "e\u0301\u0323", "Keycap": "1\ufe0f\u20e3", "Skin": "👍🏽", "Hangul": "각",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, part := range platform.Split("x"+strings.Repeat(char, 300), 64, utf16Len) {
				if i == 0 {
					part = strings.TrimPrefix(part, "x")
				}
				if strings.ReplaceAll(part, char, "") != "" {
					t.Errorf("part %d cuts a character: %q", i, part)
				}
			}
		})
	}
}

func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// checkSplit checks what holds for any text.
func checkSplit(t interface{ Fatalf(string, ...any) }, in string, limit int, measure func(string) int) []string {
	parts := platform.Split(in, limit, measure)
	open, body, end := platform.SplitAdded(in, limit, measure)
	if len(parts) != len(body) {
		t.Fatalf("Split is not deterministic")
	}
	if measure == nil {
		measure = utf8.RuneCountInString
	}
	for i, p := range parts {
		if strings.TrimSpace(p) == "" {
			t.Fatalf("part %d of %q is blank", i, in)
		}
		if n := measure(p); n > max(limit, platform.MinSplit) {
			t.Fatalf("part %d of %q measures %d > %d: %q", i, in, n, limit, p)
		}
		if utf8.ValidString(in) && !utf8.ValidString(p) {
			t.Fatalf("part %d of %q is cut in a code point", i, in)
		}
		if extra := strings.Trim(squeeze(open[i]), ">`~"); strings.ContainsAny(extra, "\n") {
			t.Fatalf("part %d of %q begins with more than a fence: %q", i, in, open[i])
		}
		if strings.Trim(squeeze(end[i]), ">`~") != "" {
			t.Fatalf("part %d of %q ends with more than a fence: %q", i, in, end[i])
		}
	}
	// The closing fence of a block may have been replaced by an added one.
	noFence := func(s string) string { return strings.NewReplacer("`", "", "~", "", ">", "").Replace(squeeze(s)) }
	if got, want := noFence(strings.Join(body, " ")), noFence(in); got != want {
		t.Fatalf("text of %q changed:\n got %q\nwant %q", in, got, want)
	}
	return parts
}

// openFences counts the code blocks that part leaves open, with rules simple
// enough to be obviously right for the generated documents.
func openFences(part string) int {
	open := ""
	for l := range strings.Lines(part) {
		l = strings.TrimLeft(strings.TrimSpace(l), "> ")
		l = strings.TrimPrefix(l, "- ")
		switch {
		case open == "" && (strings.HasPrefix(l, "```") || strings.HasPrefix(l, "~~~")):
			open = l[:len(l)-len(strings.TrimLeft(l, l[:1]))]
		case open != "" && strings.HasPrefix(l, open) && strings.Trim(l, open[:1]) == "":
			open = ""
		}
	}
	if open == "" {
		return 0
	}
	return 1
}

func documents() *rapid.Generator[string] {
	word := rapid.SampledFrom([]string{"word", "ä", "😀", "👨‍👩‍👧", "**bold**", "`code`", "[a](https://example.com)", "end.", "e\u0301", "|", "longlonglonglonglonglonglong", "🇩🇪🇫🇷"})
	words := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 1, 60).Draw(t, "words"), rapid.SampledFrom([]string{" ", "", "\n"}).Draw(t, "glue"))
	})
	indent := func(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }
	code := rapid.Custom(func(t *rapid.T) string {
		mark := rapid.SampledFrom([]string{"```", "````", "~~~"}).Draw(t, "mark")
		info := rapid.SampledFrom([]string{"", "go", "python title=x"}).Draw(t, "info")
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"x := 1", "", "    indented()", "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"}), 1, 40).Draw(t, "lines")
		return mark + info + "\n" + strings.Join(lines, "\n") + "\n" + mark
	})
	block := rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			return "## " + strings.ReplaceAll(words.Draw(t, "heading"), "\n", " ")
		case 1:
			return code.Draw(t, "code")
		case 2:
			return indent(code.Draw(t, "code"), "> ")
		case 3:
			return "- item\n\n" + indent(code.Draw(t, "code"), "  ")
		case 4:
			return "- " + strings.ReplaceAll(words.Draw(t, "a"), "\n", " ") + "\n  - " + strings.ReplaceAll(words.Draw(t, "b"), "\n", " ")
		case 5:
			return indent(words.Draw(t, "quote"), "> ")
		case 6:
			rows := rapid.SliceOfN(rapid.SampledFrom([]string{"| x | y |", "x | y", "| | |", "| " + strings.Repeat("cell ", 30) + "| y |"}), 0, 20).Draw(t, "rows")
			return rapid.SampledFrom([]string{"", "words\n"}).Draw(t, "before") + "| a | b |\n|---|:--|\n" + strings.Join(rows, "\n")
		default:
			return words.Draw(t, "para")
		}
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(block, 0, 12).Draw(t, "blocks"), "\n\n")
	})
}

func TestSplitProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := documents().Draw(t, "document")
		limit := rapid.IntRange(64, 400).Draw(t, "limit")
		measure := rapid.SampledFrom([]func(string) int{nil, utf16Len}).Draw(t, "measure")
		for i, p := range checkSplit(t, in, limit, measure) {
			if openFences(p) != 0 {
				t.Fatalf("part %d leaves a code block open: %q", i, p)
			}
		}
	})
}

// A megabyte is split with a cost in proportion, whatever its shape: the sum of
// what is measured is counted, because time is not a stable thing to test.
func TestSplitIsLinear(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	shapes := map[string]string{
		"OneLine":   strings.Repeat("x", size),
		"Words":     strings.Repeat("word ", size/5),
		"Lines":     strings.Repeat("x\n", size/2),
		"Blocks":    strings.Repeat("a\n\n", size/3),
		"OneFence":  "```go\n" + strings.Repeat("x := 1\n", size/7),
		"Fences":    strings.Repeat("```\nx\n```\n", size/10),
		"Combining": "e" + strings.Repeat("\u0301", size/2),
		"Blank":     strings.Repeat("\n", size),
		"Quote":     strings.Repeat("> q\n", size/4),
		"Quotes":    strings.Repeat(">", size),
		"Ticks":     strings.Repeat("`", size),
		"List":      strings.Repeat("    - x\n", size/8),
	}
	for name, in := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			total := 0
			start := time.Now()
			parts := platform.Split(in, 4096, func(s string) int {
				total += len(s)
				return utf16Len(s)
			})
			t.Logf("%d parts, measured %.1f times the text, %v", len(parts), float64(total)/size, time.Since(start))
			if len(parts) > size/1000 {
				t.Errorf("%d parts", len(parts))
			}
			if total > 40*size {
				t.Errorf("measured %d bytes for a text of %d", total, size)
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "a", "```go\nx\n```", "> ```\n> x", "- ```\n  x\n\n    y\n  ```", "~~~~ `\nx\n~~~", strings.Repeat("wörd ", 100), strings.Repeat("😀\u200d", 90), "\xff\xfe" + strings.Repeat("\r\n", 80) + "x", "1. a\n   1. b\n\n      ```\n" + strings.Repeat("      c\n", 60)} {
		f.Add(s, 64)
	}
	f.Fuzz(func(t *testing.T, in string, limit int) {
		limit = 64 + max(limit, -limit, 0)%512
		checkSplit(t, in, limit, utf16Len)
		checkSplit(t, in, limit, nil)
	})
}
