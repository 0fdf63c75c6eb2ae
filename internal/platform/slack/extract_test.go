package slack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/slack"
)

// code returns n lines of code.
func code(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func indented(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by)
}

func TestLongCodeBecomesAFile(t *testing.T) {
	t.Parallel()
	a := setup(t)
	long := code(61)
	wide := strings.Repeat("x", 3600)
	for name, tc := range map[string]struct {
		in, out string
		files   []platform.FilePart
	}{
		"no code":        {"hello", "hello", nil},
		"short code":     {"a\n```go\n" + code(60) + "```\nb", "a\n```go\n" + code(60) + "```\nb", nil},
		"inline":         {"a ``` b\n" + long, "a ``` b\n" + long, nil},
		"by language":    {"See:\n\n```go\n" + long + "```\n\nDone.", "See:\n\n📄 `code.go` (61 lines) is attached.\n\nDone.", []platform.FilePart{{Name: "code.go", Data: []byte(long)}}},
		"few long lines": {"```python\n" + wide + "\n```", "📄 `code.py` (1 line) is attached.", []platform.FilePart{{Name: "code.py", Data: []byte(wide + "\n")}}},
		"by title":       {"```go title=\"cmd/bot/main.go\"\n" + long + "```", "📄 `main.go` (61 lines) is attached.", []platform.FilePart{{Name: "main.go", Data: []byte(long)}}},
		"by info":        {"~~~internal/a.rs\n" + long + "~~~", "📄 `a.rs` (61 lines) is attached.", []platform.FilePart{{Name: "a.rs", Data: []byte(long)}}},
		"by caption":     {"**`web/app.tsx`**:\n```tsx\n" + long + "```", "**`web/app.tsx`**:\n📄 `app.tsx` (61 lines) is attached.", []platform.FilePart{{Name: "app.tsx", Data: []byte(long)}}},
		"unclosed":       {"x\n````\n```\n" + long + "```", "x\n📄 `code.txt` (63 lines) is attached.", []platform.FilePart{{Name: "code.txt", Data: []byte("```\n" + long + "```\n")}}},
		"in a list":      {"- x\n\n  ```sh\n" + indented(long, "  ") + "\n  ```\n- y", "- x\n\n  📄 `code.sh` (61 lines) is attached.\n- y", []platform.FilePart{{Name: "code.sh", Data: []byte(long)}}},
		"twice": {
			"```go\n" + long + "```\nand\n```go\n" + long + "```\n```diff\n" + long + "```",
			"📄 `code.go` (61 lines) is attached.\nand\n📄 `code-2.go` (61 lines) is attached.\n📄 `changes.diff` (61 lines) is attached.",
			[]platform.FilePart{{Name: "code.go", Data: []byte(long)}, {Name: "code-2.go", Data: []byte(long)}, {Name: "changes.diff", Data: []byte(long)}},
		},
		"strange language": {"```../../etc/passwd`x\n" + long + "```", "```../../etc/passwd`x\n" + long + "```", nil},
		"a path":           {"~~~../../etc/passwd\n" + long + "~~~", "📄 `code.txt` (61 lines) is attached.", []platform.FilePart{{Name: "code.txt", Data: []byte(long)}}},
	} {
		text, files := a.Extract(tc.in)
		if text != tc.out {
			t.Errorf("%s: the text is %q, want %q", name, text, tc.out)
		}
		if d := cmp.Diff(tc.files, files); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	many := strings.Repeat("```\n"+long+"```\n", 12)
	if text, files := a.Extract(many); len(files) != 10 || strings.Count(text, "```") != 4 {
		t.Errorf("%d files, and the text %q", len(files), text)
	}
}

// A file of an answer is posted under its name, in the thread.
func TestExtractedFilesArePosted(t *testing.T) {
	t.Parallel()
	w := asked(t, overHTTP)
	text, files := w.Extract("Here.\n```go\n" + code(100) + "```")
	if _, err := w.Send(t.Context(), messages.Outbound{Delivery: newDelivery(), Conversation: w.key, Text: text}); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, err := w.SendFile(t.Context(), platform.File{Delivery: newDelivery(), Conversation: w.key, Name: f.Name, Data: f.Data}); err != nil {
			t.Fatal(err)
		}
	}
	shown := w.server.Thread("C1", w.root).FromBot()
	if len(shown) != 2 || !strings.Contains(shown[0].Plain, "code.go") || len(shown[1].Files) != 1 {
		t.Fatalf("the thread shows %+v", shown)
	}
	if d := cmp.Diff(emulator.File{Name: "code.go", Data: files[0].Data}.Data, shown[1].Files[0].Data); d != "" || shown[1].Files[0].Name != "code.go" {
		t.Errorf("%s: %s", shown[1].Files[0].Name, d)
	}
}

// FuzzExtract checks that nothing of a text is lost.
func FuzzExtract(f *testing.F) {
	long := code(70)
	for _, s := range []string{"", "```\n", "```go\n" + long + "```\nx", "- a\n  ~~~\n" + long, "``` `\n" + long + "```", "```\n```\n" + long, "> ```\n> " + long} {
		f.Add(s)
	}
	a, err := slack.New(slack.Config{BotToken: botToken, SigningSecret: secret})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in string) {
		text, files := a.Extract(in)
		if len(files) == 0 {
			if text != in {
				t.Errorf("%q became %q", in, text)
			}
			return
		}
		seen := map[string]bool{}
		rest := in
		for _, file := range files {
			if seen[file.Name] || file.Name == "" || strings.ContainsAny(file.Name, "/\\` \n") {
				t.Errorf("a file is called %q", file.Name)
			}
			seen[file.Name] = true
			if !strings.Contains(text, "`"+file.Name+"`") {
				t.Errorf("%q does not name %q", text, file.Name)
			}
			for l := range strings.Lines(string(file.Data)) {
				l = strings.TrimSuffix(l, "\n")
				i := strings.Index(rest, l)
				if i < 0 {
					t.Fatalf("%q is not of the text %q", l, rest)
				}
				rest = rest[i+len(l):]
			}
		}
	})
}
