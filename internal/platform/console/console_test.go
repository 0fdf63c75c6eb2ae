package console_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/redact"
	"remote-agent/internal/waittest"
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

func send(t *testing.T, a *console.Adapter, to messages.ConversationKey, id, text string) messages.Ref {
	t.Helper()
	ref, err := a.Send(t.Context(), messages.Outbound{Delivery: messages.DeliveryID(id), Conversation: to, Text: text})
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

// outcome ends a message of the person, as the orchestrator does.
func outcome(t *testing.T, a *console.Adapter, in messages.Inbound, mark platform.Mark) {
	t.Helper()
	if err := a.Mark(t.Context(), messages.Ref{Conversation: in.Conversation, Message: in.Message}, mark); err != nil {
		t.Fatal(err)
	}
}

// answering returns an adapter whose messages are answered by respond, and its sink.
func answering(t *testing.T, config console.Config, respond func(a *console.Adapter, in messages.Inbound)) (*console.Adapter, *sink) {
	t.Helper()
	a := console.New(config)
	return a, &sink{respond: func(in messages.Inbound) { respond(a, in) }}
}

func idle(context.Context, messages.ConversationKey) (bool, []string, error) { return true, nil, nil }

func TestPipedLinesBecomeMessages(t *testing.T) {
	t.Parallel()
	var out, rest bytes.Buffer
	pipe := console.Pipe{In: strings.NewReader("hi\r\n\n  there \xff\nlast"), Out: &out, Errors: &rest, Conversation: console.Local}
	a, s := answering(t, console.Config{State: idle, Chat: pipe.Run}, func(a *console.Adapter, in messages.Inbound) {
		ref := send(t, a, in.Conversation, string(in.Event), "…")
		edit(t, a, ref, "ans", true)
		edit(t, a, ref, "answer to "+in.Text, false)
		edit(t, a, ref, "answer to "+in.Text, false)
		outcome(t, a, in, platform.MarkDone)
	})
	if err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+q", s.texts()), `["hi" "there \ufffd" "last"]`; got != want {
		t.Errorf("texts = %s, want %s", got, want)
	}
	if got, want := out.String(), "answer to hi\nanswer to there \uFFFD\nanswer to last\n"; got != want {
		t.Errorf("output = %q, want %q", got, want)
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

// The one who pipes may be at a terminal: nothing that an answer says steers it.
func TestPipedAnswersSteerNoTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	pipe := console.Pipe{In: strings.NewReader("hi"), Out: &out, Errors: io.Discard, Conversation: console.Local}
	a, s := answering(t, console.Config{State: idle, Chat: pipe.Run}, func(a *console.Adapter, in messages.Inbound) {
		send(t, a, in.Conversation, string(in.Event), "\x1b]0;title\x07a\x1b[2Jnswer")
		outcome(t, a, in, platform.MarkDone)
	})
	if err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") || !strings.HasSuffix(out.String(), "nswer\n") {
		t.Errorf("output = %q", out.String())
	}
}

// What takes the place of a text that is on the screen is shown behind it; the same text
// again is the same message.
func TestAnEditOfWhatWasShown(t *testing.T) {
	t.Parallel()
	a := console.New(console.Config{})
	w, err := a.Watch(t.Context(), console.Local)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // nothing is read any more
	ref := send(t, a, console.Conversation, "1", "one")
	for _, tt := range []struct{ text, want string }{{"one", string(ref.Message)}, {"two", string(ref.Message) + "+"}} {
		if tt.text == "one" {
			next(t, w) // as it was sent
		}
		edit(t, a, ref, tt.text, false)
		if e := next(t, w); e.Message != tt.want || e.Text != tt.text {
			t.Errorf("shown %+v, want message %s", e, tt.want)
		}
	}
}

func next(t *testing.T, w console.Watcher) console.Event {
	t.Helper()
	e, err := w.Next(waittest.Context(t.Context(), t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEndWaitsForTheAnswers(t *testing.T) {
	t.Parallel()
	release, asked := make(chan struct{}), make(chan struct{})
	state := func(context.Context, messages.ConversationKey) (bool, []string, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		select {
		case <-release:
			return true, nil, nil
		default:
			return false, nil, nil
		}
	}
	pipe := console.Pipe{In: strings.NewReader("hi\n"), Out: io.Discard, Errors: io.Discard, Conversation: console.Local}
	var work sync.WaitGroup
	a, s := answering(t, console.Config{State: state, Chat: pipe.Run}, func(a *console.Adapter, in messages.Inbound) {
		work.Go(func() {
			<-release
			outcome(t, a, in, platform.MarkDone)
		})
	})
	done := make(chan error, 1)
	go func() { done <- a.Run(t.Context(), s) }()
	<-asked
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
	work.Wait()
}

// A pipe may bring more than may wait: a message beyond that is refused, so it is not said
// before others have their outcome.
func TestPipeWaitsWhenItIsFarAhead(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var waiting []messages.Inbound
	most := 0
	var a *console.Adapter
	state := func(context.Context, messages.ConversationKey) (bool, []string, error) {
		mu.Lock()
		defer mu.Unlock()
		most = max(most, len(waiting))
		for _, in := range waiting {
			outcome(t, a, in, platform.MarkDone)
		}
		waiting = nil
		return true, nil, nil
	}
	pipe := console.Pipe{In: strings.NewReader(strings.Repeat("hi\n", 45)), Out: io.Discard, Errors: io.Discard, Conversation: console.Local}
	var s *sink
	a, s = answering(t, console.Config{State: state, Chat: pipe.Run}, func(_ *console.Adapter, in messages.Inbound) {
		mu.Lock()
		defer mu.Unlock()
		waiting = append(waiting, in)
	})
	if err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if n := len(s.texts()); n != 45 || most > 10 {
		t.Errorf("%d messages said, %d of them waited at once", n, most)
	}
}

// A script learns that a message was not answered.
func TestPipeTellsThatATurnFailed(t *testing.T) {
	t.Parallel()
	pipe := console.Pipe{In: strings.NewReader("one\ntwo\n"), Out: io.Discard, Errors: io.Discard, Conversation: console.Local}
	a, s := answering(t, console.Config{State: idle, Chat: pipe.Run}, func(a *console.Adapter, in messages.Inbound) {
		mark := platform.MarkDone
		if in.Text == "one" {
			mark = platform.MarkFailed
		}
		outcome(t, a, in, mark)
	})
	if err := a.Run(t.Context(), s); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Run: %v", err)
	}
}

func TestEndNamesTheQuestionThatNobodyCanAnswer(t *testing.T) {
	t.Parallel()
	var rest bytes.Buffer
	state := func(context.Context, messages.ConversationKey) (bool, []string, error) {
		return true, []string{"a-2"}, nil
	}
	pipe := console.Pipe{In: strings.NewReader("hi\n"), Out: io.Discard, Errors: &rest, Conversation: console.Local}
	a := console.New(console.Config{State: state, Chat: pipe.Run})
	if err := a.Run(t.Context(), &sink{}); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), "/approve a-2") || rest.Len() > 0 {
		t.Errorf("told %q, %v", rest.String(), err)
	}
}

func TestEmptyInputKeepsRunning(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := console.New(console.Config{Chat: console.Pipe{In: strings.NewReader("\n"), Out: io.Discard, Errors: io.Discard}.Run})
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

func TestTooLongLineIsSkipped(t *testing.T) {
	t.Parallel()
	var rest bytes.Buffer
	in := strings.Repeat("x", 3<<20) + "\nshort\n"
	pipe := console.Pipe{In: strings.NewReader(in), Out: io.Discard, Errors: &rest, Conversation: console.Local}
	a, s := answering(t, console.Config{State: idle, Chat: pipe.Run}, func(a *console.Adapter, in messages.Inbound) { outcome(t, a, in, platform.MarkDone) })
	if err := a.Run(t.Context(), s); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a script does not learn that a line was left out: %v", err)
	}
	if got := s.texts(); len(got) != 1 || got[0] != "short" {
		t.Errorf("%d texts", len(got))
	}
	if !strings.Contains(rest.String(), "too long") {
		t.Errorf("told %q", rest.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBrokenOutputIsAnError(t *testing.T) {
	t.Parallel()
	pipe := console.Pipe{In: strings.NewReader("hi\n"), Out: brokenWriter{}, Errors: io.Discard, Conversation: console.Local}
	a, s := answering(t, console.Config{State: idle, Chat: pipe.Run}, func(a *console.Adapter, in messages.Inbound) {
		send(t, a, in.Conversation, "1", "x")
		outcome(t, a, in, platform.MarkDone)
	})
	if err := a.Run(t.Context(), s); !fault.Is(err, fault.Gone) {
		t.Errorf("Run: %v", err)
	}
}

// ask asks a question of an adapter that answers through respond.
func ask(t *testing.T, config console.Config, respond func(a *console.Adapter, in messages.Inbound)) (out, rest string, err error) {
	t.Helper()
	var answer, told bytes.Buffer
	var asked error
	config.Chat = func(ctx context.Context, b console.Backend) error {
		asked = console.Question{Text: "review this", Conversation: "q", Out: &answer, Errors: &told}.Ask(ctx, b)
		return nil
	}
	a, s := answering(t, config, respond)
	if err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return answer.String(), told.String(), asked
}

func TestQuestionWritesOnlyTheAnswer(t *testing.T) {
	t.Parallel()
	out, rest, err := ask(t, console.Config{State: idle}, func(a *console.Adapter, in messages.Inbound) {
		ref := send(t, a, in.Conversation, "1", "…")
		edit(t, a, ref, "loo", true)
		edit(t, a, ref, "**looks** good\n", false)
		outcome(t, a, in, platform.MarkDone)
	})
	if out != "**looks** good\n" || rest != "" || err != nil {
		t.Errorf("out %q, rest %q, %v", out, rest, err)
	}
}

// An outcome may be known before the answer is: it is put on the message while the answer
// is still on its way.
func TestAnAnswerBehindItsOutcome(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked, answered := 0, false
	var a *console.Adapter
	state := func(context.Context, messages.ConversationKey) (bool, []string, error) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked == 2 {
			send(t, a, messages.ConversationKey{Platform: console.Name, ID: "q"}, "1", "late")
			answered = true
		}
		return answered, nil, nil
	}
	var answer bytes.Buffer
	var err error
	chat := func(ctx context.Context, b console.Backend) error {
		err = console.Question{Text: "hi", Conversation: "q", Out: &answer, Errors: io.Discard}.Ask(ctx, b)
		return nil
	}
	var s *sink
	a, s = answering(t, console.Config{State: state, Chat: chat}, func(a *console.Adapter, in messages.Inbound) { outcome(t, a, in, platform.MarkDone) })
	if runErr := a.Run(t.Context(), s); runErr != nil || err != nil || answer.String() != "late\n" {
		t.Errorf("answered %q, %v, %v", answer.String(), err, runErr)
	}
}

// TestQuestionSendsNoFileThatAQuotationNames asks about a patch of somebody else.
func TestQuestionSendsNoFileThatAQuotationNames(t *testing.T) {
	t.Parallel()
	own, secret := filepath.Join(t.TempDir(), "own.png"), filepath.Join(t.TempDir(), "secret.txt")
	for _, name := range []string{own, secret} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got messages.Inbound
	var asked error
	a, s := answering(t, console.Config{State: idle, Chat: func(ctx context.Context, b console.Backend) error {
		asked = console.Question{Text: "review @" + own, Quoted: "+ see @" + secret, Conversation: "q", Out: io.Discard, Errors: io.Discard}.Ask(ctx, b)
		return nil
	}}, func(a *console.Adapter, in messages.Inbound) {
		got = in
		send(t, a, in.Conversation, "1", "fine")
		outcome(t, a, in, platform.MarkDone)
	})
	if err := a.Run(t.Context(), s); err != nil || asked != nil {
		t.Fatal(err, asked)
	}
	if len(got.Attachments) != 1 || got.Attachments[0].Name != "own.png" || !strings.HasSuffix(got.Text, "\n\n+ see @"+secret) {
		t.Errorf("sent were %+v with %q", got.Attachments, got.Text)
	}
}

// That the bot is halted is told while the question waits, and is no part of the answer.
func TestAQuestionTellsThatTheBotIsHalted(t *testing.T) {
	t.Parallel()
	out, rest, err := ask(t, console.Config{State: idle}, func(a *console.Adapter, in messages.Inbound) {
		ref := send(t, a, in.Conversation, "0", platform.Placeholder)
		if err := a.Edit(t.Context(), platform.Edit{Ref: ref, Text: "⏸ The bot is halted.", Aside: true}); err != nil {
			t.Error(err)
		}
		send(t, a, in.Conversation, "1", "fine")
		outcome(t, a, in, platform.MarkDone)
	})
	if out != "fine\n" || rest != "⏸ The bot is halted.\n" || err != nil {
		t.Errorf("out %q, rest %q, %v", out, rest, err)
	}
}

func TestFailedQuestionIsNoAnswer(t *testing.T) {
	t.Parallel()
	out, rest, err := ask(t, console.Config{State: idle}, func(a *console.Adapter, in messages.Inbound) {
		send(t, a, in.Conversation, "1", "The model key was rejected.")
		outcome(t, a, in, platform.MarkFailed)
	})
	if out != "" || rest != "The model key was rejected.\n" || err == nil {
		t.Errorf("out %q, rest %q, %v", out, rest, err)
	}
}

func TestQuestionThatNeedsADecision(t *testing.T) {
	t.Parallel()
	state := func(context.Context, messages.ConversationKey) (bool, []string, error) {
		return true, []string{"a-7"}, nil
	}
	out, _, err := ask(t, console.Config{State: state}, func(*console.Adapter, messages.Inbound) {})
	if out != "" || !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), "bot chat -c q, then /approve a-7") {
		t.Errorf("out %q, %v", out, err)
	}
}

func TestCanceledQuestionStopsTheTurn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var asked error
	a, s := answering(t, console.Config{
		State: func(context.Context, messages.ConversationKey) (bool, []string, error) { return false, nil, nil },
		Chat: func(ctx context.Context, b console.Backend) error {
			asked = console.Question{Text: "slow", Conversation: "q", Out: io.Discard, Errors: io.Discard}.Ask(ctx, b)
			return nil
		},
	}, func(_ *console.Adapter, in messages.Inbound) {
		if in.Text == "slow" {
			cancel()
		}
	})
	if err := a.Run(ctx, s); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.texts()); got != "[slow /stop]" || !fault.Is(asked, fault.Canceled) {
		t.Errorf("said %s, %v", got, asked)
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	c := console.New(console.Config{}).Capabilities()
	if c.IdempotentSend || !c.Streaming || c.CommandPrefix != "/" || c.MaxText < 1000 || c.EditInterval <= 0 {
		t.Errorf("capabilities = %+v", c)
	}
}

func TestIndentationIsSaid(t *testing.T) {
	t.Parallel()
	a, s := answering(t, console.Config{State: idle, Chat: func(ctx context.Context, b console.Backend) error {
		_, err := b.Say(ctx, console.Local, console.Message{Text: "  - one\n  - two\n"})
		asked := console.Question{Quoted: "  - three", Conversation: "q", Out: io.Discard, Errors: io.Discard}.Ask(ctx, b)
		return errors.Join(err, asked)
	}}, func(a *console.Adapter, in messages.Inbound) {
		send(t, a, in.Conversation, string(in.Message), "seen")
		outcome(t, a, in, platform.MarkDone)
	})
	if err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+q", s.texts()), `["  - one\n  - two" "  - three"]`; got != want {
		t.Errorf("said %s, want %s", got, want)
	}
}

func TestSaysWhyNothingIsTaken(t *testing.T) {
	t.Parallel()
	var said error
	a := console.New(console.Config{Chat: func(ctx context.Context, b console.Backend) error {
		_, said = b.Say(ctx, console.Local, console.Message{Text: "hi"})
		return nil
	}})
	if err := a.Run(t.Context(), &sink{err: fault.Wrap(errors.New("disk hunter2"), fault.Unavailable, "insert")}); err != nil {
		t.Fatal(err)
	}
	if text := fault.Public(said); text == "" || strings.Contains(text, "hunter2") {
		t.Errorf("said %q", text)
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	keep := console.Keeps(redact.New("configured-secret-1"))
	for text, want := range map[string]bool{
		"hello": true, "/plan a link between x and y": true, "/linked": true, "link": false,
		"/link ABCDEF": false, "start ABCDEF": false, " /START abc": false,
		"/link@acme_bot ABCDEF": false, "/link\tABCDEF": false, "/start\nABCDEF": false, "\u00a0/Link@x\u2003ABCDEF": false,
		"start the tests again": true, "link a to b": true, "": true, "/": true, "use configured-secret-1": false,
		"my key is ghp_" + strings.Repeat("a1B2", 9): false,
	} {
		if got := keep(text); got != want {
			t.Errorf("keep(%q) = %v", text, got)
		}
	}
}
