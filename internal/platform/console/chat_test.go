package console_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/terminal"
	"remote-agent/internal/waittest"
)

// backend is the other side of a chat, as slow as a test wants it.
type backend struct {
	say   func(ctx context.Context, m console.Message) error
	state func(ctx context.Context) (console.State, error)

	mu     sync.Mutex // guards what follows
	said   []console.Message
	events chan console.Event
}

func (b *backend) Say(ctx context.Context, _ string, m console.Message) (messages.MessageID, error) {
	if b.say != nil {
		if err := b.say(ctx, m); err != nil {
			return "", err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, m)
	id := messages.MessageID("m-" + m.Text)
	b.events <- console.Event{Message: string(id), Mark: platform.MarkDone}
	return id, nil
}

func (b *backend) texts() (texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.said {
		texts = append(texts, m.Text)
	}
	return texts
}

func (b *backend) State(ctx context.Context, _ string) (console.State, error) {
	if b.state == nil {
		return console.State{}, nil
	}
	return b.state(ctx)
}

func (b *backend) Commands(context.Context) ([]string, error) { return []string{"help", "stop"}, nil }

func (b *backend) Watch(context.Context, string) (console.Watcher, error) { return b, nil }

func (b *backend) Next(ctx context.Context) (console.Event, error) {
	select {
	case e := <-b.events:
		return e, nil
	case <-ctx.Done():
		return console.Event{}, ctx.Err()
	}
}

func (b *backend) Close() error { return nil }

// screen is a terminal that a test reads.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) shows(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.buf.String(), text)
}

// chatting is a chat that a test types at.
type chatting struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *screen
	done chan error
}

func chatWith(t *testing.T, b *backend) *chatting {
	t.Helper()
	b.events = make(chan console.Event, 100)
	in, w := io.Pipe()
	c := &chatting{t: t, in: w, out: &screen{}, done: make(chan error, 1)}
	chat := console.Chat{Conversation: console.Local, Greeting: "Hello.",
		Terminal: terminal.Config{In: in, Out: c.out, Prompt: "you> ", Size: func() (int, int) { return 100, 30 }}}
	go func() { c.done <- chat.Run(t.Context(), b) }()
	t.Cleanup(func() { _ = w.Close() })
	waittest.Until(t, "the greeting", func() bool { return c.out.shows("Hello.") })
	return c
}

// types presses keys. It fails if nobody takes them.
func (c *chatting) types(keys string) {
	c.t.Helper()
	taken := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c.in, keys)
		taken <- err
	}()
	select {
	case err := <-taken:
		if err != nil {
			c.t.Fatal(err)
		}
	case <-waittest.Late(c.t):
		c.t.Fatalf("%q is not taken", keys)
	}
}

func (c *chatting) sees(text string) {
	c.t.Helper()
	waittest.Until(c.t, text, func() bool { return c.out.shows(text) })
}

func (c *chatting) ends() {
	c.t.Helper()
	select {
	case err := <-c.done:
		if err != nil {
			c.t.Error(err)
		}
	case <-waittest.Late(c.t):
		c.t.Fatal("the chat goes on")
	}
}

const ctrlC, ctrlD = "\x03", "\x04"

// hangs waits until it is told to stop, as a call to a machine that is gone does.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestCtrlCTwiceLeavesWhateverTheOtherSideDoes(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*backend{
		"takes no message": {say: func(ctx context.Context, _ console.Message) error { return hangs(ctx) }},
		"tells no state":   {state: func(ctx context.Context) (console.State, error) { return console.State{}, hangs(ctx) }},
		"does not stop": {
			state: func(context.Context) (console.State, error) { return console.State{Busy: true}, nil },
			say: func(ctx context.Context, m console.Message) error {
				if m.Text == "/stop" {
					return hangs(ctx)
				}
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := chatWith(t, b)
			c.types("one\r")
			c.types("two\r")
			c.types(ctrlC)
			c.types(ctrlC)
			c.ends()
			if name == "takes no message" && !c.out.shows("your last 2 messages may not have been sent") {
				t.Error("nobody is told of what was not sent")
			}
		})
	}
}

func TestMessagesGoInTheOrderTheyWereTyped(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	b := &backend{say: func(_ context.Context, m console.Message) error {
		if m.Text == "one" {
			<-first
		}
		return nil
	}}
	c := chatWith(t, b)
	c.types("one\r")
	c.types("two\rthree\r" + ctrlD) // the end waits for all
	c.sees("Waiting for the answer.")
	close(first)
	c.ends()
	if got := b.texts(); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("sent %q", got)
	}
}

func TestCtrlCStopsTheTurnAndSaysSo(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	busy := true
	b := &backend{}
	b.state = func(context.Context) (console.State, error) {
		mu.Lock()
		defer mu.Unlock()
		return console.State{Busy: busy}, nil
	}
	c := chatWith(t, b)
	c.sees("Working")
	c.types("half typed" + ctrlC)
	c.sees("Stopping. Press Ctrl-C again to quit.")
	waittest.Until(t, "/stop", func() bool { return slices.Equal(b.texts(), []string{"/stop"}) })
	mu.Lock()
	busy = false
	mu.Unlock()
	c.types("\r")
	waittest.Until(t, "what was typed meanwhile", func() bool { return slices.Equal(b.texts(), []string{"/stop", "half typed"}) })
	c.types(ctrlD)
	c.ends()
}

// What is asked for on the screen works also after something else was typed.
func TestCtrlCAgainQuitsWhileTheTurnStops(t *testing.T) {
	t.Parallel()
	b := &backend{}
	b.state = func(context.Context) (console.State, error) { return console.State{Busy: true}, nil }
	c := chatWith(t, b)
	c.sees("Working")
	c.types(ctrlC)
	c.sees("Stopping. Press Ctrl-C again to quit.")
	waittest.Until(t, "/stop", func() bool { return slices.Equal(b.texts(), []string{"/stop"}) })
	c.types("and another thing" + ctrlC)
	c.ends()
}

// A file goes with a message if the person has named it, and not because a text that
// they pasted does.
func TestFilesOfAMessage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	own, secret := filepath.Join(folder, "own file.png"), filepath.Join(folder, "secret")
	for name, n := range map[string]int{own: 239_600, secret: 1} {
		if err := os.WriteFile(name, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paste := func(text string) string { return "\x1b[200~" + text + "\x1b[201~" }
	for name, tc := range map[string]struct {
		keys, says string
		want       []string
	}{
		"typed":             {`see @"` + own + `" please`, "Sent with it: own file.png, 240 kB", []string{own}},
		"dropped":           {"see " + paste(strings.ReplaceAll(own, " ", `\ `)), "Sent with it: own file.png, 240 kB", []string{own}},
		"a mention pasted":  {"see " + paste("@"+secret), "Sent with it: secret, 1 byte", []string{secret}},
		"in pasted lines":   {paste("a patch\n@"+secret+"\n") + "what is it", "secret was not sent, because its name", nil},
		"in a pasted line":  {"review: " + paste("see @"+secret+" now"), "secret was not sent, because its name", nil},
		"half of it pasted": {"see @" + paste(secret+"\nand more"), "secret was not sent, because its name", nil},
		"below pasted ones": {paste("a\nb\n") + "@" + secret, "Sent with it: secret, 1 byte", []string{secret}},
		"not there":         {"see @" + folder + "/none", "There is no file " + folder + "/none; it was sent as text.", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{}
			c := chatWith(t, b)
			c.types(tc.keys)
			c.types("\r" + ctrlD)
			c.ends()
			var got []string
			for _, f := range b.said[0].Files {
				got = append(got, f.Source)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("sent %q", got)
			}
			c.out.mu.Lock()
			defer c.out.mu.Unlock()
			if folded := strings.Join(strings.Fields(c.out.buf.String()), " "); !strings.Contains(folded, tc.says) {
				t.Errorf("%q is not on the screen: %q", tc.says, folded)
			}
		})
	}
}

// Whoever can make a file here must not reach the screen with its name.
func TestCompletionOffersNoNameThatMovesTheCursor(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "sub folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fine.png", "fi\x1b]0;owned\x07.png", "fi\x9b31m", "fi\u202ex", "fi\r", "fi\nx", "sub folder/deep.png"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Skipf("%q is no name here: %v", name, err)
		}
	}
	b := &backend{}
	c := chatWith(t, b)
	c.types("@" + folder + "/f\t")
	c.types("\r@" + folder + "/s\t\t")
	c.types("\r" + ctrlD)
	c.ends()
	want := []string{"@" + folder + "/fine.png", `@"` + folder + `/sub folder/deep.png"`}
	got := b.texts()
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("completed to %q, not %q", got, want)
	}
	if c.out.shows("owned") || c.out.shows("31m") {
		t.Error("a name reached the screen")
	}
}

// From another process an answer comes on another connection than the word that all is
// done, and may be slower.
func TestAnAnswerThatIsStillOnItsWay(t *testing.T) {
	t.Parallel()
	b := &backend{events: make(chan console.Event, 10)}
	asked := 0
	b.state = func(context.Context) (console.State, error) {
		if len(b.events) == 0 { // the outcome has arrived
			asked++
		}
		if asked == 5 {
			b.events <- console.Event{Message: "a", Text: "late", Final: true, Number: 7}
		}
		return console.State{Shown: 7}, nil
	}
	var out bytes.Buffer
	err := console.Question{Text: "hi", Conversation: "q", Out: &out, Errors: io.Discard}.Ask(t.Context(), b)
	if out.String() != "late\n" || err != nil {
		t.Errorf("answered %q, %v", out.String(), err)
	}
}

// An answer that grows faster than it can be laid out is complete in the end, and in time.
func TestALongAnswerThatGrows(t *testing.T) {
	t.Parallel()
	a := console.New(console.Config{})
	out := &screen{}
	in, w := io.Pipe()
	chat := console.Chat{Conversation: console.Local, Terminal: terminal.Config{In: in, Out: out, Prompt: "you> "}, Greeting: "Hello."}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- chat.Run(ctx, a) }()
	waittest.Until(t, "the greeting", func() bool { return out.shows("Hello.") })
	ref := send(t, a, console.Conversation, "1", platform.Placeholder)
	text := strings.Repeat("A line with **bold** words.\n\n", 1500)
	for n := 0; n < len(text); n += len(text) / 50 {
		edit(t, a, ref, text[:n], true)
	}
	edit(t, a, ref, text+"The end.", false)
	waittest.Until(t, "the end", func() bool { return out.shows("The end.") })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = w.Close()
}
