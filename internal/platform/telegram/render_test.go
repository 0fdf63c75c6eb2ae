package telegram

import (
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/platform"
)

type ent = models.MessageEntity

func TestRender(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		text string
		ents []ent
	}{
		"Plain":        {"hello", "hello", nil},
		"Empty":        {"", emptyText, nil},
		"OnlySpace":    {" \n\n", emptyText, nil},
		"Paragraphs":   {"a\n\n\n\nb", "a\n\nb", nil},
		"LineBreak":    {"a\nb", "a\nb", nil},
		"Bold":         {"a **b** c", "a b c", []ent{{Type: "bold", Offset: 2, Length: 1}}},
		"AfterEmoji":   {"😀 *b*", "😀 b", []ent{{Type: "italic", Offset: 3, Length: 1}}},
		"Nested":       {"**a *b* c**", "a b c", []ent{{Type: "bold", Offset: 0, Length: 5}, {Type: "italic", Offset: 2, Length: 1}}},
		"CodeInBold":   {"**a `b` c**", "a b c", []ent{{Type: "bold", Offset: 0, Length: 1}, {Type: "code", Offset: 2, Length: 1}, {Type: "bold", Offset: 4, Length: 1}}},
		"Strike":       {"~~x~~", "x", []ent{{Type: "strikethrough", Offset: 0, Length: 1}}},
		"Heading":      {"# T\ntext", "T\n\ntext", []ent{{Type: "bold", Offset: 0, Length: 1}}},
		"Fence":        {"```go\na\tb\n```", "a    b", []ent{{Type: "pre", Offset: 0, Length: 6, Language: "go"}}},
		"FenceIndent":  {"```\n  a\n```", "  a", []ent{{Type: "pre", Offset: 0, Length: 3}}},
		"Link":         {"[a](https://example.com/x)", "a", []ent{{Type: "text_link", Offset: 0, Length: 1, URL: "https://example.com/x"}}},
		"NoLabel":      {"[](https://example.com)", "https://example.com", []ent{{Type: "text_link", Offset: 0, Length: 19, URL: "https://example.com"}}},
		"CodeLink":     {"[`a`](https://example.com)", "a", []ent{{Type: "text_link", Offset: 0, Length: 1, URL: "https://example.com"}}},
		"Mention":      {"[a](tg://user?id=1)", "a (tg://user?id=1)", []ent{{Type: "code", Offset: 3, Length: 14}}},
		"Script":       {"[a](javascript:alert)", "a (javascript:alert)", []ent{{Type: "code", Offset: 3, Length: 16}}},
		"Localhost":    {"[a](http://localhost:1)", "a (http://localhost:1)", nil},
		"Mail":         {"[a](mailto:a@example.com)", "a (a@example.com)", nil},
		"Image":        {"![a](https://example.com/i.png)", "a (https://example.com/i.png)", nil},
		"HTML":         {"a <b>b</b>", "a <b>b</b>", nil},
		"HTMLBlock":    {"<div>\nx\n</div>\n\ny", "<div>\nx\n</div>\n\ny", nil},
		"List":         {"- a\n- b\n  - c\n", "• a\n• b\n  • c", nil},
		"Ordered":      {"3. a\n4. b", "3. a\n4. b", nil},
		"Loose":        {"- a\n\n- b", "• a\n\n• b", nil},
		"Tasks":        {"- [x] a\n- [ ] b", "☑ a\n☐ b", nil},
		"CodeInList":   {"1. a\n   ```\n   x\n   ```\n2. b", "1. a\nx\n2. b", []ent{{Type: "pre", Offset: 5, Length: 1}}},
		"Quote":        {"> a\n> b\n\nc", "a\nb\n\nc", []ent{{Type: "blockquote", Offset: 0, Length: 3}}},
		"QuoteInQuote": {"> a\n> > b", "a\n\n> b", []ent{{Type: "blockquote", Offset: 0, Length: 6}}},
		"Table":        {"|a|bb|\n|-|-:|\n|ccc|d|", "a   | bb\n----+---\nccc |  d", []ent{{Type: "pre", Offset: 0, Length: 26}}},
		"LinksInTable": {
			"|a|b|\n|-|-|\n|[#1](https://e.com/1)|x|\n|[**y**](https://e.com/2) [z](tg://z)|x|\n\nc",
			"a            | b\n-------------+--\n#1           | x\ny z (tg://z) | x\n#1 · y\n\nc",
			[]ent{
				{Type: "pre", Offset: 0, Length: 67},
				{Type: "text_link", Offset: 68, Length: 2, URL: "https://e.com/1"},
				{Type: "text_link", Offset: 73, Length: 1, URL: "https://e.com/2"}, {Type: "bold", Offset: 73, Length: 1},
			},
		},
		"Escapes": {`\*a\* &lt; \&lt; &copy &#128512;`, "*a* < &lt; &copy 😀", nil},
		"Rule":    {"a\n\n---\n\nb", "a\n\n———\n\nb", nil},
		"Control": {"a\x00b\r\nc\u202ed", "a b\ncd", nil},
		"Trims":   {"**a** \n\n&nbsp;", "a", []ent{{Type: "bold", Offset: 0, Length: 1}}},
	}
	r := newRenderer()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.render(tt.in)
			if diff := cmp.Diff(tt.text, got.text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.ents, got.entities); diff != "" {
				t.Errorf("entities (-want +got):\n%s", diff)
			}
			checkRendered(t, tt.in, got)
		})
	}
}

// checkRendered checks what Telegram demands of any text and its entities.
func checkRendered(t interface{ Fatalf(string, ...any) }, in string, r rendered) {
	units := utf16.Encode([]rune(r.text))
	if len(units) != r.length {
		t.Fatalf("%q: length %d, want %d", in, r.length, len(units))
	}
	if strings.TrimSpace(r.text) == "" {
		t.Fatalf("%q: nothing to see", in)
	}
	last := []rune(r.text)[len([]rune(r.text))-1]
	if unicode.IsSpace(last) {
		t.Fatalf("%q: white space at the end of %q", in, r.text)
	}
	if first := []rune(r.text)[0]; unicode.IsSpace(first) && (len(r.entities) == 0 || r.entities[0].Offset != 0) {
		t.Fatalf("%q: white space at the start of %q", in, r.text)
	}
	if len(r.entities) > maxEntities {
		t.Fatalf("%q: %d entities", in, len(r.entities))
	}
	for i, e := range r.entities {
		end := e.Offset + e.Length
		if e.Offset < 0 || e.Length <= 0 || end > len(units) {
			t.Fatalf("%q: entity %+v is out of range", in, e)
		}
		for _, at := range []int{e.Offset, end} {
			if at < len(units) && units[at] >= 0xDC00 && units[at] <= 0xDFFF {
				t.Fatalf("%q: entity %+v cuts a surrogate pair", in, e)
			}
		}
		if e.Type == models.MessageEntityTypeTextLink && !linkable(e.URL) {
			t.Fatalf("%q: link to %q", in, e.URL)
		}
		for _, f := range r.entities[i+1:] {
			checkNesting(t, in, e, f)
		}
	}
}

func checkNesting(t interface{ Fatalf(string, ...any) }, in string, e, f ent) {
	if f.Offset < e.Offset {
		t.Fatalf("%q: entities are not in order", in)
	}
	if f.Offset >= e.Offset+e.Length {
		return
	}
	if f.Offset+f.Length > e.Offset+e.Length {
		t.Fatalf("%q: entities overlap: %+v %+v", in, e, f)
	}
	group := func(e ent) string {
		switch e.Type {
		case models.MessageEntityTypeCode, models.MessageEntityTypePre:
			return "code"
		case models.MessageEntityTypeBlockquote:
			return "quote"
		case models.MessageEntityTypeTextLink:
			return "link"
		default:
			return "style"
		}
	}
	outer, inner := group(e), group(f)
	if outer == "code" || inner == "code" && outer != "quote" || inner == "quote" && outer != "style" || e.Type == f.Type {
		t.Fatalf("%q: %s in %s", in, f.Type, e.Type)
	}
}

func TestRenderProperties(t *testing.T) {
	t.Parallel()
	r := newRenderer()
	token := rapid.SampledFrom([]string{"a", "😀", "é", "*", "**", "***", "_", "~~", "`", "```", "\n", "\n\n", "> ", "- ", "1. ", "    ", "# ", "[", "](https://e.com)", "](tg://user?id=1)", "![", "|", "|-|-|", "<b>", "<!--", "&amp;", `\`, " ", "\t", "\u200d", "[x] ", "&nbsp;", "&#10;"})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(token, 0, 60).Draw(t, "tokens"), "")
		checkRendered(t, in, r.render(in))
	})
}

// Whatever is split with Measure is accepted by the adapter.
func TestSplitPartsFitAfterRendering(t *testing.T) {
	t.Parallel()
	r := newRenderer()
	in := strings.Repeat("## T\n\n| a | bbbbbbbbbbbbbbb |\n|---|---|\n| 1 | 2 |\n\n**bold `code`** and [l](https://example.com)\n\n```go\nx := 1\n```\n\n", 400)
	parts := platform.Split(in, maxText, r.measure)
	for i, p := range parts {
		got := r.render(p)
		if got.length > maxText {
			t.Errorf("part %d has %d units", i, got.length)
		}
		checkRendered(t, p, got)
	}
	if len(parts) < 4 || len(parts) > 40 {
		t.Errorf("%d parts", len(parts))
	}
}

// Telegram shows a hundred entities: what is bold may go, but not where a link leads.
func TestLinksAndBlocksOfCodeGoBeforeTheLookOfText(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("**b** `c` ", 60) + "[l](https://example.com/1) [l](https://example.com/2)\n\n```go\nx\n```"
	got := newRenderer().render(in)
	checkRendered(t, in, got)
	kinds := map[models.MessageEntityType]int{}
	for _, e := range got.entities {
		kinds[e.Type]++
	}
	if len(got.entities) != maxEntities || kinds[models.MessageEntityTypeTextLink] != 2 || kinds[models.MessageEntityTypePre] != 1 {
		t.Errorf("%d entities: %v", len(got.entities), kinds)
	}
}

// Where a link leads is written behind it once there can be no more entities.
func TestTheAddressOfEachLinkIsShown(t *testing.T) {
	t.Parallel()
	in := "```\nx\n```\n" + strings.Repeat("[l](https://example.com) ", 101) + "**b**"
	got := newRenderer().render(in)
	checkRendered(t, in, got)
	if len(got.entities) != maxEntities || !strings.HasSuffix(got.text, "l l (https://example.com) l (https://example.com) b") {
		t.Errorf("%d entities: …%s", len(got.entities), got.text[len(got.text)-80:])
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{"", "**a", "> ```\n> x", "| a |\n|--|\n| `b|` |", "[a](https://e.com \"t\")", "- [ ] *x*\n  1. y", "<!-- x", "&#x0;&#xD83D;", "*a **b* c**", "***a** b*", "[![a](b)](https://e.com)", "\xf0\x9f", "~~*a~~*"} {
		f.Add(s)
	}
	r := newRenderer()
	f.Fuzz(func(t *testing.T, in string) { checkRendered(t, in, r.render(in)) })
}

// The parser's cost grows with the square of the nesting of one line, so what
// goes deeper than anyone writes is text.
func TestDeepNestingIsText(t *testing.T) {
	t.Parallel()
	r := newRenderer()
	for _, unit := range []string{">", "> ", "- ", "1. ", "> - "} {
		in := strings.Repeat(unit, 4000/len(unit)) + "end"
		got := r.render(in)
		checkRendered(t, in[:20], got)
		if !strings.HasSuffix(got.text, "end") || strings.Contains(got.text, `\`) {
			t.Errorf("%q: %q", unit, got.text[max(len(got.text)-20, 0):])
		}
	}
}

// A row of a table is padded to the width of the first, and an address that is defined
// once is shown wherever it is used: what makes much of little is text.
func TestBombsTakeLittle(t *testing.T) {
	r := newRenderer()
	for name, source := range map[string]string{
		"table":   strings.Repeat("|a", 4000) + "\n" + strings.Repeat("|-", 4000) + "\n" + strings.Repeat("|\n", 4000),
		"address": "[a]: https://example.com/" + strings.Repeat("b", 10_000) + "\n\n" + strings.Repeat("[a] ", 3000),
		"lists":   strings.Repeat("1. ", 300) + "a\n" + strings.Repeat("b\n", 8000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.render(source)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 40 {
			t.Errorf("%s: %d bytes take %d MB", name, len(source), took)
		}
	}
}
