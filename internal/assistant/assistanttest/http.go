package assistanttest

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/option"
)

// HTTPHarness builds assistants over a streaming HTTP API for ExerciseHTTP.
type HTTPHarness struct {
	// New returns an assistant that waits 10 minutes for the first byte of an answer, and 90
	// seconds for each one after it. It sends its requests to url with client, unless that is
	// nil.
	New  func(tb testing.TB, url string, client *http.Client) assistant.Assistant
	Turn assistant.Turn

	Hello     string // the stream of an answer up to its first text
	Yes       string // the whole stream of the answer "yes"
	KeepAlive string // what the API sends so that the stream is not taken for dead
}

// ExerciseHTTP runs the part of the contract that is about the connection to an
// API: who may be silent, and for how long. Its subtests are parallel; those with
// a clock fake it.
func ExerciseHTTP(t *testing.T, h HTTPHarness) {
	for name, test := range map[string]func(*testing.T){
		"UnreachableServer":          h.unreachable,
		"SilenceEndsTheTurn":         h.silence,
		"FirstByteMayTakeLong":       h.slowStart,
		"FirstByteMayNotTakeForever": h.noStart,
		"SlowListenerIsNoSilence":    h.slowListener,
		"KeepAlivesKeepTheTurnAlive": h.keepAlives,
		"EndlessLineIsRefused":       h.endlessLine,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (h HTTPHarness) unreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	err := Collect(h.New(t, server.URL+"/secret-word", nil).Run(t.Context(), h.Turn)).Err
	if !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "secret-word") {
		t.Errorf("error %v of kind %q", err, fault.KindOf(err))
	}
}

// ask runs a turn whose answer write sends, in a bubble with a clock of its own.
// It returns how long that took.
func (h HTTPHarness) ask(t *testing.T, write func(ctx context.Context, w io.Writer), check func(t *testing.T, got Result, took time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		got := Collect(h.New(t, "http://127.0.0.1", Pipe(write)).Run(t.Context(), h.Turn))
		check(t, got, time.Since(from))
	})
}

func (h HTTPHarness) silence(t *testing.T) {
	h.ask(t, func(ctx context.Context, w io.Writer) {
		_, _ = io.WriteString(w, h.Hello)
		<-ctx.Done()
	}, func(t *testing.T, got Result, took time.Duration) {
		if !fault.Is(got.Err, fault.Unavailable) || !strings.Contains(fault.Public(got.Err), "sent nothing for") || len(got.Messages) != 0 {
			t.Errorf("turn: %+v", got)
		}
		if took != 90*time.Second {
			t.Errorf("gave up after %v, want 90s", took)
		}
	})
}

// slowStart is a server that loads a large model, or reads a long conversation, before it
// says anything.
func (h HTTPHarness) slowStart(t *testing.T) {
	h.ask(t, func(ctx context.Context, w io.Writer) {
		select {
		case <-time.After(9 * time.Minute):
			_, _ = io.WriteString(w, h.Yes)
		case <-ctx.Done():
		}
	}, func(t *testing.T, got Result, _ time.Duration) {
		if got.Err != nil || got.Text != "yes" {
			t.Errorf("turn: %+v", got)
		}
	})
}

func (h HTTPHarness) noStart(t *testing.T) {
	h.ask(t, func(ctx context.Context, _ io.Writer) { <-ctx.Done() }, func(t *testing.T, got Result, took time.Duration) {
		if !fault.Is(got.Err, fault.Unavailable) || !strings.Contains(fault.Public(got.Err), "sent nothing for 10m") || took != 10*time.Minute {
			t.Errorf("after %v: %+v", took, got)
		}
	})
}

func (h HTTPHarness) slowListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := h.New(t, "http://127.0.0.1", Pipe(func(_ context.Context, w io.Writer) { _, _ = io.WriteString(w, h.Yes) }))
		heard := false
		for event, err := range a.Run(t.Context(), h.Turn) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := event.(assistant.TextDelta); ok {
				heard = true
				<-time.After(10 * time.Minute)
			}
		}
		if !heard {
			t.Error("there was nothing to listen to")
		}
	})
}

func (h HTTPHarness) keepAlives(t *testing.T) {
	h.ask(t, func(ctx context.Context, w io.Writer) {
		for range 20 {
			select {
			case <-time.After(80 * time.Second):
			case <-ctx.Done():
				return
			}
			_, _ = io.WriteString(w, h.KeepAlive)
		}
		_, _ = io.WriteString(w, h.Yes)
	}, func(t *testing.T, got Result, _ time.Duration) {
		if got.Err != nil || got.Text != "yes" {
			t.Errorf("turn: %+v", got)
		}
	})
}

func (h HTTPHarness) endlessLine(t *testing.T) {
	h.ask(t, func(ctx context.Context, w io.Writer) {
		piece := []byte("data: " + strings.Repeat("x", 1<<20))
		for ctx.Err() == nil {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}, func(t *testing.T, got Result, _ time.Duration) {
		if !fault.Is(got.Err, fault.Unavailable) {
			t.Errorf("error %v", got.Err)
		}
	})
}

// Once returns a model as an assistant that asks it once for each turn.
func Once(m assistant.Model) assistant.Assistant { return once{m} }

// Result is what a turn or a request came to.
type Result struct {
	Text, Thoughts string
	Messages       []messages.Message
	Finished       *assistant.Finished
	Used           assistant.Usage // as UsageUpdated said last
	Err            error
}

// Collect ranges over the events of a turn or of a request.
func Collect(events iter.Seq2[assistant.Event, error]) (r Result) {
	for event, err := range events {
		if err != nil {
			r.Err = err
			continue
		}
		switch e := event.(type) {
		case assistant.TextDelta:
			r.Text += e.Text
		case assistant.ThoughtDelta:
			r.Thoughts += e.Text
		case assistant.MessageDone:
			r.Messages = append(r.Messages, e.Message)
		case assistant.Finished:
			r.Finished = &e
		case assistant.UsageUpdated:
			r.Used = e.Usage
		case assistant.Resumable, assistant.ToolStarted, assistant.ToolFinished, assistant.PlanUpdated, assistant.Notice, assistant.FileMade:
		}
	}
	return r
}

// Failure is what an error of a turn has to be.
type Failure struct {
	Kind     fault.Kind
	Public   string // part of the public text
	Wait     time.Duration
	Overflow bool
	Limit    int // of the overflow, in tokens

	// Secret is the address of the request, which may hold one: no error repeats
	// it.
	Secret string
}

// Check reports where err differs.
func (f Failure) Check(t testing.TB, err error) {
	t.Helper()
	if fault.KindOf(err) != f.Kind || !strings.Contains(fault.Public(err), f.Public) {
		t.Fatalf("error of kind %q, public %q, want %q, %q: %v", fault.KindOf(err), fault.Public(err), f.Kind, f.Public, err)
	}
	if strings.Contains(err.Error(), f.Secret) {
		t.Errorf("the error repeats the address, which may hold a secret: %v", err)
	}
	e, _ := errors.AsType[*fault.Error](err)
	if e != nil && e.RetryAfter != f.Wait {
		t.Errorf("retry after %v, want %v", e.RetryAfter, f.Wait)
	}
	o, overflow := errors.AsType[*assistant.OverflowError](err)
	if overflow != f.Overflow || overflow && o.Limit != f.Limit {
		t.Errorf("overflow %v (%+v), want %v with limit %d", overflow, o, f.Overflow, f.Limit)
	}
}

// Parse gives options the texts that are set for them, and the others their defaults.
func Parse(t *testing.T, options []option.Option, values map[string]string) {
	t.Helper()
	for _, o := range options {
		text, ok := values[o.Name]
		if !ok {
			text = o.Default
		}
		if text == "" {
			continue
		}
		if err := o.Parse(text); err != nil {
			t.Fatalf("%s=%s: %v", o.Name, text, err)
		}
	}
}

// CheckOption reports unless err is fault.Invalid, names the option and does not
// hold "secret-word", which a test put into the options.
func CheckOption(t testing.TB, err error, option string) {
	t.Helper()
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), option) {
		t.Fatalf("error %v, want one that names %s", err, option)
	}
	if strings.Contains(err.Error(), "secret-word") {
		t.Errorf("the error repeats a secret: %v", err)
	}
}

// Fails answers with a status and headers, each a name and a value.
func Fails(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Page answers 200 with a document of a kind.
func Page(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

// Pipe returns a client whose answers are what write writes, without a network,
// so that time can be faked. The context of write ends with the request.
func Pipe(write func(ctx context.Context, w io.Writer)) *http.Client {
	return &http.Client{Transport: pipeTransport{write}}
}

type pipeTransport struct {
	write func(ctx context.Context, w io.Writer)
}

// RoundTrip implements http.RoundTripper.
func (p pipeTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	go func() {
		stop := context.AfterFunc(req.Context(), func() { _ = w.CloseWithError(context.Cause(req.Context())) })
		defer stop()
		p.write(req.Context(), w)
		_ = w.Close()
	}()
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: r, Request: req,
	}, nil
}
