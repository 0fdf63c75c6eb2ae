package terminal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// typist is a terminal that is typed at without a reader: keys arrive at once.
type typist struct {
	*Terminal

	glass     *glass
	submitted []string
	pasted    []Range // of the last one
	interrupt func(second bool) bool
	over      bool
}

func typing(t *testing.T, columns, rows int, config Config) *typist {
	t.Helper()
	p := &typist{glass: newGlass(t, columns, rows), interrupt: func(bool) bool { return false }}
	config.Out, config.Size = p.glass, p.glass.size
	if config.Prompt == "" {
		config.Prompt = "you> "
	}
	p.Terminal = New(config)
	p.begin()
	return p
}

func (p *typist) keys(s string) {
	h := Handler{
		Submit: func(_ context.Context, in Input) {
			p.submitted, p.pasted = append(p.submitted, in.Text), in.Pasted
		},
		Interrupt: func(_ context.Context, second bool) bool { return p.interrupt(second) },
	}
	for _, e := range p.decoder.feed([]byte(s)) {
		p.over = p.over || !p.handle(context.Background(), h, e)
	}
}

func (p *typist) sees(t *testing.T, want string) {
	t.Helper()
	if diff := cmp.Diff(want, p.glass.text()); diff != "" {
		t.Errorf("screen (-want +got):\n%s", diff)
	}
}

const (
	keyLeft, keyRight, keyUp, keyDown = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B"

	pasteOn, pasteOff = "\x1b[200~", "\x1b[201~"
)

func TestEditing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ keys, want string }{
		"insert in the middle": {"helo" + keyLeft + "l", "hello"},
		"wide characters":      {"日本語" + keyLeft + "\x7f", "日語"},
		"emoji of parts":       {"a👨‍👩‍👧b" + keyLeft + "\x7f", "ab"},
		"accent of its own":    {"e\u0301x" + keyLeft + "\x7f", "x"},
		"home and end":         {"bc\x01a\x05d", "abcd"},
		"word left, kill":      {"one two" + "\x1bb" + "\x0b", "one "},
		"kill word, yank":      {"one two\x17\x19\x19", "one twotwo"},
		"kill to start":        {"one two\x1bb\x15", "two"},
		"delete":               {"abc\x01\x1b[3~", "bc"},
		"ctrl-d deletes":       {"abc\x01\x04", "bc"},
		"backslash":            {"one\\\rtwo", "one\ntwo"},
		"two backslashes":      {`a\\`, `a\\`},
		"alt-enter":            {"one\x1b\rtwo", "one\ntwo"},
		"up within the text":   {"one\x1b\rtwo" + keyUp + "X", "oneX\ntwo"},
		"unknown sequence":     {"a\x1b[99;5~b\x1bOPc", "abc"},
		"cut off sequence":     {"a\x1b[\x01b", "ba"},
		"control in a paste":   {pasteOn + "a\x1b[31m\x07b\x03" + pasteOff, "a[31mb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := typing(t, 80, 24, Config{})
			p.keys(tc.keys + "\x05\r")
			if len(p.submitted) != 1 || p.submitted[0] != tc.want {
				t.Errorf("submitted %q, want %q", p.submitted, tc.want)
			}
		})
	}
}

func TestFivePastedLinesAreOneMessage(t *testing.T) {
	t.Parallel()
	p := typing(t, 60, 24, Config{})
	p.keys(pasteOn + "1\r2\r\n3\n4\r5" + pasteOff)
	if p.submitted != nil {
		t.Fatalf("submitted %q by itself", p.submitted)
	}
	p.keys("\r")
	if len(p.submitted) != 1 || p.submitted[0] != "1\n2\n3\n4\n5" {
		t.Errorf("submitted %q", p.submitted)
	}
	p.sees(t, "you> 1\n     2\n     3\n     4\n     5\nyou> ▏\n")
}

func TestWhatWasPastedIsKnown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keys, text string
		want       []Range
	}{
		"typed":           {"abc", "abc", nil},
		"a paste":         {"a" + pasteOn + "BC" + pasteOff + "d", "aBCd", []Range{{1, 3}}},
		"typed before":    {pasteOn + "BC" + pasteOff + "\x01a", "aBC", []Range{{1, 3}}},
		"typed in it":     {pasteOn + "BC" + pasteOff + keyLeft + "x", "BxC", []Range{{0, 1}, {2, 3}}},
		"deleted in part": {"a" + pasteOn + "BCD" + pasteOff + "e" + keyLeft + "\x7f", "aBCe", []Range{{1, 3}}},
		"deleted":         {"a" + pasteOn + "B" + pasteOff + "\x7fc", "ac", nil},
		"killed and back": {"a " + pasteOn + "BC" + pasteOff + "\x17x\x19", "a xBC", []Range{{3, 5}}},
		"named as own":    {"see " + pasteOn + "/own" + pasteOff, "see @/own", nil},
		"from a file":     {keyUp, "B\nC", []Range{{0, 3}}},
		"a draft":         {pasteOn + "BC" + pasteOff + keyUp + keyDown + keyDown, "BC", []Range{{0, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := typing(t, 80, 24, Config{History: &History{entries: []string{"B\nC"}}, Pasted: func(text string) (string, bool) {
				if text == "/own" {
					return "@" + text, true
				}
				return text, false
			}})
			p.keys(tc.keys + "\r")
			if diff := cmp.Diff(tc.want, p.pasted); diff != "" || len(p.submitted) != 1 || p.submitted[0] != tc.text {
				t.Errorf("%q, %s", p.submitted, diff)
			}
		})
	}
}

// Pasted texts are in capitals here, and what is typed in small letters: however both are
// edited, capitals are known as pasted.
func TestNothingThatWasPastedCountsAsTyped(t *testing.T) {
	t.Parallel()
	keys := rapid.SampledFrom([]string{"a", "b ", pasteOn + "AB C" + pasteOff, pasteOn + "D" + pasteOff, keyLeft, keyRight, keyUp, keyDown,
		"\x7f", "\x1b[3~", "\x1b\r", "\x01", "\x05", "\x0b", "\x15", "\x17", "\x1bd", "\x19"})
	rapid.Check(t, func(rt *rapid.T) {
		p := typing(t, 80, 24, Config{})
		for _, k := range rapid.SliceOfN(keys, 0, 60).Draw(rt, "keys") {
			p.keys(k)
		}
		in := Input{Text: p.line.text, Pasted: p.line.pasted}
		for at, r := range in.Text {
			if r >= 'A' && r <= 'Z' && !in.IsPasted(at, at+1) {
				rt.Fatalf("%q at %d counts as typed in %q: %v", r, at, in.Text, in.Pasted)
			}
		}
		for _, r := range in.Pasted {
			if r.From >= r.To || r.From < 0 || r.To > len(in.Text) {
				rt.Fatalf("%v in %q", in.Pasted, in.Text)
			}
		}
	})
}

func TestALongPasteIsWhole(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("x", 6003), strings.Repeat("日本", 3000) + "end"} {
		p := typing(t, 60, 24, Config{})
		p.keys(pasteOn[:3])
		for rest := pasteOn[3:] + text + pasteOff; rest != ""; { // as reads of a terminal cut it
			n := min(len(rest), 1021)
			p.keys(rest[:n])
			rest = rest[n:]
		}
		p.keys("\r")
		if len(p.submitted) != 1 || p.submitted[0] != text {
			t.Errorf("%d messages", len(p.submitted))
		}
		if !strings.Contains(p.glass.text(), "more lines") {
			t.Error("the screen is filled with what was pasted")
		}
	}
	p := typing(t, 60, 24, Config{}) // as keys, from a terminal without bracketed paste
	p.keys(strings.Repeat("x", 6003) + "\r")
	if len(p.submitted) != 1 || len(p.submitted[0]) != 6003 {
		t.Errorf("%d messages", len(p.submitted))
	}
}

func TestAPasteThatIsTooLongIsSaid(t *testing.T) {
	t.Parallel()
	p := typing(t, 60, 24, Config{})
	p.keys("a" + pasteOn + strings.Repeat("x", MaxText+1) + pasteOff + "b\r")
	if len(p.submitted) != 1 || p.submitted[0] != "ab" || !strings.Contains(p.glass.text(), "too long") {
		t.Errorf("submitted %q; screen %q", p.submitted, p.glass.text())
	}
}

func TestTypingStaysBelowWhatStreams(t *testing.T) {
	t.Parallel()
	p := typing(t, 24, 8, Config{})
	p.keys("half")
	show := func(id, text string, final bool) {
		t.Helper()
		if err := p.Show(id, text, final); err != nil {
			t.Fatal(err)
		}
	}
	p.Status("Working")
	show("1", "An **answer** that is wrapp", false)
	p.sees(t, "An answer that is wrapp\nWorking\nyou> half▏\n")
	p.keys(" typed")
	show("1", "An **answer** that is wrapped at words ▌", false)
	p.sees(t, "An answer that is\nwrapped at words\nWorking\nyou> half typed▏\n")
	p.Note("A note.")
	p.sees(t, "A note.\nAn answer that is\nwrapped at words\nWorking\nyou> half typed▏\n")
	show("1", "An **answer** that is wrapped at words.", true)
	p.Status("")
	show("1", "late", false)
	p.sees(t, "A note.\nAn answer that is\nwrapped at words.\n\nyou> half typed▏\n")
	_, _ = p.Write([]byte("a log"))
	_, _ = p.Write([]byte(" line\nanother"))
	p.sees(t, "A note.\nAn answer that is\nwrapped at words.\n\na log line\nyou> half typed▏\n")
}

// An answer that is taller than the terminal scrolls away while it grows, and is whole
// in the end.
func TestALongAnswerScrollsAway(t *testing.T) {
	t.Parallel()
	p := typing(t, 30, 8, Config{})
	text := ""
	for i := range 40 {
		text += fmt.Sprintf("- item %d\n", i)
		if err := p.Show("1", text, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Show("1", text, true); err != nil {
		t.Fatal(err)
	}
	p.sees(t, strings.ReplaceAll(text, "- ", "• ")+"\nyou> ▏\n")
}

func TestAnAnswerThatChangesAfterItScrolledIsShownAnew(t *testing.T) {
	t.Parallel()
	p := typing(t, 30, 5, Config{})
	for _, s := range []string{"a\nb\nc\nd\ne", "other"} {
		if err := p.Show("1", s, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Show("1", "other text", true); err != nil {
		t.Fatal(err)
	}
	p.sees(t, "a\nb\nother text\n\nyou> ▏\n")
}

func TestHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	open := func() *History {
		h, err := OpenHistory(path, func(s string) bool { return !strings.Contains(s, "secret") })
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	p := typing(t, 60, 24, Config{History: open()})
	p.keys("one\rtwo\x1b\rlines\r/link secret\r hidden\r")
	p = typing(t, 60, 24, Config{History: open()})
	p.keys("draft" + keyUp + keyUp + "!\r") // the second one moves within the text
	p.keys("dra" + keyUp + keyDown + keyDown + "ft\r")
	if diff := cmp.Diff([]string{"two!\nlines", "draft"}, p.submitted); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	raw, err := os.ReadFile(path) //nolint:gosec // made above
	if err != nil || bytes.Contains(raw, []byte("secret")) || bytes.Contains(raw, []byte("hidden")) {
		t.Errorf("the file has %q, %v", raw, err)
	}
}

func TestSearchInTheHistory(t *testing.T) {
	t.Parallel()
	history := func() *History {
		return &History{entries: []string{"git diff", "run the tests", "git status", "hello"}}
	}
	for name, tc := range map[string]struct{ keys, screen string }{
		"newest":           {"\x12git", "search: git> git status▏\n"},
		"further back":     {"\x12git\x12", "search: git> git diff▏\n"},
		"nothing":          {"\x12gitx", "not found: gitx> ▏\n"},
		"one letter less":  {"\x12gitx\x7f", "search: git> git status▏\n"},
		"given up":         {"draft\x12git\x07", "you> draft▏\n"},
		"dropped":          {"draft\x12git\x03", "you> ▏\n"},
		"taken and edited": {"\x12run\x01we ", "you> we ▏run the tests\n"},
		"and older":        {"\x12run\x10", "you> git diff▏\n"},
		"back to a draft":  {"draft\x12hell\x0e", "you> draft▏\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := typing(t, 60, 24, Config{History: history()})
			p.keys(tc.keys)
			p.sees(t, tc.screen)
		})
	}
	p := typing(t, 60, 24, Config{History: history()})
	p.keys("\x12tests\r\x12hello\r")
	if diff := cmp.Diff([]string{"run the tests", "hello"}, p.submitted); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryIsBoundedAndForgivesAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	var b strings.Builder
	for i := range 2*maxHistory + 2 {
		fmt.Fprintf(&b, "\"text %d\"\n", i)
	}
	b.WriteString("{broken\n\"a\\u001b[31mb\"\n")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := OpenHistory(path, nil)
	if err != nil || len(h.entries) != maxHistory || h.entries[maxHistory-1] != "a[31mb" {
		t.Errorf("%d entries, %v", len(h.entries), err)
	}
	if h, err = OpenHistory(path, nil); err != nil || len(h.entries) != maxHistory {
		t.Errorf("%d entries after it was rewritten, %v", len(h.entries), err)
	}
}

// A file that has grown too large is shortened, at a start and while it is written.
func TestHistoryIsShortened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	long := strings.Repeat("x", maxHistoryEntry-10)
	h, err := OpenHistory(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	largest := int64(0)
	for i := range 400 { // 6.5 MB
		if err := h.Add(fmt.Sprint(i, long)); err != nil {
			t.Fatal(err)
		}
		largest = max(largest, size())
	}
	if largest > 2*maxHistoryFile+maxHistoryEntry+10 {
		t.Errorf("%d bytes while it is written", largest)
	}
	again, err := OpenHistory(path, nil)
	if n := len(again.entries); err != nil || size() > maxHistoryFile || n < 10 || again.entries[n-1] != fmt.Sprint(399, long) {
		t.Errorf("%d bytes, %d entries, %v", size(), n, err)
	}
}

// What may not be kept any more leaves the file.
func TestHistoryForgetsWhatMayNotBeKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(path, []byte("\"one\"\n\"a secret\"\n\"two\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := OpenHistory(path, func(s string) bool { return !strings.Contains(s, "secret") })
	if diff := cmp.Diff([]string{"one", "two"}, h.entries); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if raw, err := os.ReadFile(path); string(raw) != "\"one\"\n\"two\"\n" || err != nil { //nolint:gosec // made above
		t.Errorf("the file has %q, %v", raw, err)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	p := typing(t, 60, 24, Config{Complete: func(before string) (int, []string) {
		var found []string
		for _, c := range []string{"/start", "/status", "/stop"} {
			if strings.HasPrefix(c, before) {
				found = append(found, c)
			}
		}
		return 0, found
	}})
	p.keys("/s\t")
	p.sees(t, "you> /st▏\n")
	p.keys("\t")
	p.sees(t, "/start  /status  /stop\nyou> /st▏\n")
	p.keys("o\t")
	p.sees(t, "/start  /status  /stop\nyou> /stop ▏\n")
}

func TestCtrlC(t *testing.T) {
	t.Parallel()
	p := typing(t, 60, 24, Config{})
	p.keys("typed\x03")
	p.sees(t, "you> ▏\n")
	var seconds []bool
	p.interrupt = func(second bool) bool {
		seconds = append(seconds, second)
		return second
	}
	p.interrupted = p.interrupted.Add(-again)
	p.keys("\x03")
	p.sees(t, "Press Ctrl-C again to quit.\nyou> ▏\n")
	p.keys("\x03a\x03")
	if fmt.Sprint(seconds) != "[false true false]" {
		t.Errorf("second: %v", seconds)
	}
	p.keys("\x04")
	if !p.over {
		t.Error("Ctrl-D on an empty line does not end the input")
	}
}

// Whatever is typed at whatever size, the screen shows the end of what is there, with
// the cursor in it, and is left clean.
func TestTheScreenIsWhatWasTyped(t *testing.T) {
	t.Parallel()
	keys := rapid.SampledFrom([]string{"a", "é", "日", "👍🏽", " ", "word ", keyLeft, keyRight, keyUp, keyDown, "\x7f", "\x1b\r", "\x01", "\x05", "\x0b", "\x17"})
	rapid.Check(t, func(rt *rapid.T) {
		columns := rapid.IntRange(12, 40).Draw(rt, "columns")
		p := typing(t, columns, 60, Config{})
		for _, k := range rapid.SliceOfN(keys, 0, 60).Draw(rt, "keys") {
			p.keys(k)
		}
		l := p.line.layOut(row{"you> ", 5}, columns-1, 30)
		var want strings.Builder
		for i, r := range l.rows {
			text := r.text
			if i == l.row {
				at := 0
				for left := l.column; at < len(text) && left > 0; {
					cluster, n := next(text[at:])
					at, left = at+len(cluster), left-n
				}
				text = text[:at] + "▏" + text[at:]
			}
			want.WriteString(strings.TrimRight(text, " ") + "\n")
		}
		if got := p.glass.text(); got != want.String() {
			rt.Fatalf("screen\n%s\nwant\n%s", got, want.String())
		}
	})
}

func TestANarrowerTerminalIsPaintedAnew(t *testing.T) {
	t.Parallel()
	p := typing(t, 40, 24, Config{})
	p.keys(strings.Repeat("x", 50))
	p.glass.mu.Lock() // a terminal that does not break lines anew when it becomes wider
	p.glass.columns = 60
	p.glass.mu.Unlock()
	p.keys("y")
	p.sees(t, "you> "+strings.Repeat("x", 50)+"y▏\n")
}

func TestPlainTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var got []string
	in := "hi\r\none\\\ntwo\n" + strings.Repeat("x", 4095) + "\nend"
	p := New(Config{In: strings.NewReader(in), Out: &out, Plain: true, Styled: true, Prompt: "you> "})
	err := p.Run(t.Context(), Handler{Submit: func(_ context.Context, in Input) {
		text := in.Text
		got = append(got, text)
		_ = p.Show(text, "*grow", false)
		_ = p.Show(text, "**answer** to\x1b[2J "+text, true)
		p.Status("Working")
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hi", "one\ntwo", "end"}, got); diff != "" {
		t.Error(diff)
	}
	if s := out.String(); strings.Contains(s, "\x1b") || !strings.Contains(s, "answer to[2J one\ntwo\n") || !strings.Contains(s, "was not sent") {
		t.Errorf("output %q", s)
	}
}

// A terminal that makes a signal of Ctrl-C has the same two steps as any other.
func TestCtrlCOnAPlainTerminal(t *testing.T) {
	t.Parallel()
	in, w := io.Pipe()
	var out bytes.Buffer
	pressed := make(chan bool, 1)
	var press func()
	released := false
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	p := New(Config{In: in, Out: &out, Plain: true, Prompt: "you> ", Signals: func(handle func()) func() {
		press = handle
		close(ready)
		return func() { released = true }
	}})
	done := make(chan error, 1)
	go func() {
		done <- p.Run(ctx, Handler{Interrupt: func(_ context.Context, second bool) bool {
			pressed <- second
			return second
		}})
	}()
	<-ready
	for _, want := range []bool{false, true} {
		press()
		if second := <-pressed; second != want {
			t.Errorf("second: %v, want %v", second, want)
		}
	}
	cancel()
	if err := <-done; err != nil || !released {
		t.Errorf("%v, released: %v", err, released)
	}
	_ = w.Close()
	if out.String() != "you> \nPress Ctrl-C again to quit.\nyou> \n" {
		t.Errorf("output %q", out.String())
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	got := Fold(Config{Size: func() (int, int) { return 24, 10 }}, "  key  one two three four five\nsix seven eight nine ten\n\nend", 7)
	want := "  key  one two three\n       four five\nsix seven eight nine\nten\n\nend"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestURLsAreOnOneLine: one that is broken over two cannot be opened with a click.
func TestURLsAreOnOneLine(t *testing.T) {
	t.Parallel()
	url := "http://127.0.0.1:8080/sign-in?k=" + strings.Repeat("A", 26) // 58 columns
	long := "https://bot.example.com/some/path/sign-in?k=" + strings.Repeat("B", 60)
	config := Config{Size: func() (int, int) { return 60, 10 }}
	text := "  web       " + url + "\n            signs you in once\n  further   see " + long + " for more\n"
	want := "  web\n" + url + "\n            signs you in once\n  further   see\n" + long + "\n            for more\n"
	if got := Fold(config, text, 12); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Render(config, "See <"+long+"> or `"+long+"`."); !strings.Contains(got, "\n"+long) || strings.Count(got, long) != 2 {
		t.Errorf("%q", got)
	}
	if got := Fold(config, strings.Repeat("x", 70)+"\n", 0); got != strings.Repeat("x", 59)+"\n"+strings.Repeat("x", 11)+"\n" {
		t.Errorf("a word that is no URL: %q", got)
	}
	if got := Fold(config, "a://"+strings.Repeat("x", 2000), 0); strings.Index(got, "\n") != 500 {
		t.Errorf("a URL of 2,000 characters: %q", got)
	}
}

// TestALongURLStreams: what is painted around a line that the terminal breaks stays in place.
func TestALongURLStreams(t *testing.T) {
	t.Parallel()
	p := typing(t, 20, 8, Config{})
	url := "https://example.com/" + strings.Repeat("u", 30)
	for _, text := range []string{"Look at", "Look at " + url, "Look at " + url + " and", "Look at " + url + " and wait"} {
		if err := p.Show("m", text, false); err != nil {
			t.Fatal(err)
		}
	}
	shown := "Look at\nhttps://example.com/\n" + strings.Repeat("u", 20) + "\n" + strings.Repeat("u", 10)
	p.sees(t, shown+"\nand wait\nyou> ▏\n")
	if err := p.Show("m", "Look at "+url+"\nand wait\nfor\nmore\nof\nit", true); err != nil {
		t.Fatal(err)
	}
	p.sees(t, shown+"\nand wait\nfor\nmore\nof\nit\n\nyou> ▏\n")
}

func TestRunEndsWithItsInputAndContext(t *testing.T) {
	t.Parallel()
	in, w := io.Pipe()
	g := newGlass(t, 60, 24)
	ctx, cancel := context.WithCancel(t.Context())
	p := New(Config{In: in, Out: g, Size: g.size, Prompt: "you> "})
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, Handler{}) }()
	if _, err := io.WriteString(w, "x"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = w.Close()
	if g.modes["?2004"] || g.text() != "▏\n" {
		t.Errorf("left behind: %q, %v", g.text(), g.modes)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\x1b[D\x1b[200~x\x1b[201~\r"))
	f.Add([]byte("\x1b\x1b[1;5C\x1bO\xff\xfe日"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, parts := typing(t, 20, 10, Config{}), typing(t, 20, 10, Config{})
		whole.keys(string(in))
		for i := range in {
			parts.keys(string(in[i : i+1]))
		}
		if whole.line.text != parts.line.text && len(whole.submitted) == len(parts.submitted) && len(in) < maxSequence {
			t.Errorf("%q in one read, %q in many", whole.line.text, parts.line.text)
		}
		if strings.ContainsAny(whole.line.text, "\x1b\x07\r\u009b\u202e") {
			t.Errorf("control character in %q", whole.line.text)
		}
	})
}
