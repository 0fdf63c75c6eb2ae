package console_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/console"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink records what was accepted and answers through respond.
type sink struct {
	mu      sync.Mutex
	events  []messages.Inbound
	err     error
	respond func(messages.Inbound)
}

func (s *sink) Accept(_ context.Context, events ...messages.Inbound) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.events = append(s.events, events...)
	for _, e := range events {
		if s.respond != nil {
			s.respond(e)
		}
	}
	return nil
}

func (s *sink) Keep(context.Context, messages.RawEvent) error { return nil }

func (s *sink) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.events {
		out = append(out, e.Text)
	}
	return out
}

func send(t *testing.T, a *console.Adapter, id, text string) messages.Ref {
	t.Helper()
	ref, err := a.Send(t.Context(), messages.Outbound{Delivery: messages.DeliveryID(id), Conversation: console.Conversation, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func edit(t *testing.T, a *console.Adapter, ref messages.Ref, text string, progress bool) {
	t.Helper()
	if err := a.Edit(t.Context(), platform.Edit{Ref: ref, Text: text, Progress: progress}); err != nil {
		t.Fatal(err)
	}
}

func TestPipedLinesBecomeMessages(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &sink{}
	idle := false
	a := console.New(console.Config{
		In: strings.NewReader("hi\r\n\n  there \xff\nlast"), Out: &out,
		Idle: func(context.Context) error { idle = true; return nil },
	})
	s.respond = func(in messages.Inbound) {
		ref := send(t, a, string(in.Event), "…")
		edit(t, a, ref, "ans", true)
		edit(t, a, ref, "answer to "+in.Text, false)
	}
	if err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+q", s.texts()), `["hi" "there \ufffd" "last"]`; got != want {
		t.Errorf("texts = %s, want %s", got, want)
	}
	if got, want := out.String(), "answer to hi\nanswer to there \uFFFD\nanswer to last\n"; got != want {
		t.Errorf("output = %q, want %q", got, want)
	}
	if !idle {
		t.Error("Run did not wait for the answers")
	}
	<-a.Ended()

	seen := map[messages.EventID]bool{}
	for _, e := range s.events {
		if seen[e.Event] || e.Event == "" || e.Message == "" {
			t.Errorf("event id %q", e.Event)
		}
		seen[e.Event] = true
		if e.Conversation != console.Conversation || e.Sender.ID != console.Sender || !e.Private || e.Kind != messages.KindMessage || e.SentAt.IsZero() {
			t.Errorf("event = %+v", e)
		}
	}
}

func TestEndWaitsForIdle(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	entered := make(chan struct{})
	a := console.New(console.Config{In: strings.NewReader("hi\n"), Out: io.Discard, Idle: func(context.Context) error {
		close(entered)
		<-release
		return nil
	}})
	done := make(chan error, 1)
	go func() { done <- a.Run(t.Context(), &sink{}) }()
	<-entered
	select {
	case <-a.Ended():
		t.Error("ended before the answers were shown")
	case <-done:
		t.Error("Run returned before the answers were shown")
	default:
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-a.Ended()
}

func TestEmptyInputWithoutATerminalKeepsRunning(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := console.New(console.Config{In: strings.NewReader("\n"), Out: io.Discard})
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, &sink{}) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	select {
	case <-a.Ended():
		t.Error("ended")
	default:
	}
}

func TestRunReturnsWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	in, w := io.Pipe()
	defer func() { _ = w.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	a := console.New(console.Config{In: in, Out: io.Discard, Terminal: true})
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, &sink{}) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLineThatIsNotTakenIsSaid(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := console.New(console.Config{In: strings.NewReader("hi\n"), Out: &out, Terminal: true})
	s := &sink{err: fault.Wrap(errors.New("disk hunter2"), fault.Unavailable, "insert")}
	if err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "That was not taken: The service does not answer right now.") || strings.Contains(got, "hunter2") {
		t.Errorf("output = %q", got)
	}
}

func TestTooLongLineIsSkipped(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &sink{}
	in := strings.Repeat("x", 3<<20) + "\nshort\n"
	a := console.New(console.Config{In: strings.NewReader(in), Out: &out})
	if err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := s.texts(); len(got) != 1 || got[0] != "short" {
		t.Errorf("%d texts", len(got))
	}
	if !strings.Contains(out.String(), "too long") {
		t.Errorf("output = %q", out.String())
	}
}

const (
	prompt = "you> "
	wipe   = "\r\x1b[K"
)

// player is the orchestrator's part in TestScreen.
type player struct {
	t *testing.T
	a *console.Adapter
}

func (p player) send(id, text string) messages.Ref {
	p.t.Helper()
	return send(p.t, p.a, id, text)
}

func (p player) edit(ref messages.Ref, text string, progress bool) {
	p.t.Helper()
	edit(p.t, p.a, ref, text, progress)
}

// TestScreen plays what the orchestrator does and compares the whole output of
// a terminal.
func TestScreen(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		play func(p player)
		want string
	}{
		"answer grows in place": {
			func(p player) {
				ref := p.send("1", "…")
				p.edit(ref, "Hel ▌", true)
				p.edit(ref, "Hello\n\nwor…", true)
				p.edit(ref, "Hello\n\nworld", false)
			},
			"Hello\n\nworld\n" + prompt,
		},
		"final text only": {
			func(p player) {
				ref := p.send("1", platform.Placeholder)
				p.edit(ref, "Hello", false)
				p.edit(ref, "Hello", false)
				p.edit(ref, "late", true)
			},
			"Hello\n" + prompt,
		},
		"send without edit": {
			func(p player) {
				p.send("1", "Hello")
				p.send("1", "Hello")
			},
			"Hello\n" + prompt,
		},
		"notice, then answer": {
			func(p player) {
				ref := p.send("1", "Waiting for a free slot")
				p.edit(ref, "Wai", true)
				p.edit(ref, "Waiting is over", false)
			},
			"Waiting for a free slot\n" + prompt + wipe + "Waiting is over\n" + prompt,
		},
		"short status is replaced": {
			func(p player) {
				ref := p.send("1", "…")
				p.edit(ref, "reading README.md", true)
				p.edit(ref, "running tests", true)
				p.edit(ref, "Done.", false)
			},
			"reading README.md" + wipe + "running tests" + wipe + "Done.\n" + prompt,
		},
		"long text that changes waits for its end": {
			func(p player) {
				ref := p.send("1", "…")
				p.edit(ref, "line 1\nline 2", true)
				p.edit(ref, "other", true)
				p.edit(ref, "other text", false)
			},
			"line 1\nline 2\nother text\n" + prompt,
		},
		"another message in between": {
			func(p player) {
				slow := p.send("1", "…")
				p.edit(slow, "one two", true)
				p.send("2", "status: running")
				p.edit(slow, "one two three", true)
				p.edit(slow, "one two three", false)
			},
			"one two\nstatus: running\n" + prompt + wipe + "three\n" + prompt,
		},
		"control characters": {
			func(p player) {
				ref := p.send("1", "…")
				p.edit(ref, "a\x1b[2J\x07b\r\n\u009b31m\u202ec", false)
			},
			"a[2Jb\n31mc\n" + prompt,
		},
		"message of an earlier process": {
			func(p player) {
				p.edit(messages.Ref{Conversation: console.Conversation, Message: "old"}, "Hello", false)
			},
			"Hello\n" + prompt,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			tc.play(player{t, console.New(console.Config{Out: &out, Terminal: true})})
			if got := out.String(); got != tc.want {
				t.Errorf("output\n%q, want\n%q", got, tc.want)
			}
		})
	}
}

func TestPromptAndTyping(t *testing.T) {
	t.Parallel()
	in, w := io.Pipe()
	var out bytes.Buffer
	s := &sink{}
	a := console.New(console.Config{In: in, Out: &out, Terminal: true})
	s.respond = func(e messages.Inbound) { send(t, a, string(e.Event), "answer") }
	done := make(chan error, 1)
	go func() { done <- a.Run(t.Context(), s) }()
	for _, l := range []string{"hi\n", "\n"} {
		if _, err := io.WriteString(w, l); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// The echo of what is typed is the terminal's and not in the output.
	want := prompt + "answer\n" + prompt + prompt + "\n"
	if got := out.String(); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBrokenOutputIsGone(t *testing.T) {
	t.Parallel()
	a := console.New(console.Config{Out: brokenWriter{}})
	if _, err := a.Send(t.Context(), messages.Outbound{Text: "x"}); !fault.Is(err, fault.Gone) {
		t.Errorf("Send: %v", err)
	}
	if err := a.Edit(t.Context(), platform.Edit{Ref: messages.Ref{Message: "1"}, Text: "x"}); !fault.Is(err, fault.Gone) {
		t.Errorf("Edit: %v", err)
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	c := console.New(console.Config{Terminal: true}).Capabilities()
	if c.IdempotentSend || !c.Streaming || c.CommandPrefix != "/" || c.MaxText < 1000 || c.EditInterval <= 0 {
		t.Errorf("capabilities = %+v", c)
	}
	if console.New(console.Config{}).Capabilities().Streaming {
		t.Error("streams without a terminal")
	}
}

// FuzzScreen checks that no text can bring a control character on the screen
// besides the adapter's own, and that a growing text ends up whole.
func FuzzScreen(f *testing.F) {
	f.Add("Hello world", 5)
	f.Add("a\x1b[31mb\r\x9bc", 3)
	f.Add("…▌", 1)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		var out bytes.Buffer
		a := console.New(console.Config{Out: &out, Terminal: true})
		ref := send(t, a, "1", "…")
		if cut > 0 && cut < len(text) && utf8.ValidString(text[:cut]) {
			edit(t, a, ref, text[:cut], true)
		}
		edit(t, a, ref, text, false)
		got := strings.ReplaceAll(out.String(), wipe, "")
		if strings.ContainsAny(got, "\x00\x07\x08\x0b\x1b\r\x7f\u009b\u202e") {
			t.Errorf("control character in %q", got)
		}
	})
}
