package console_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/waittest"
)

// reached serves an adapter to a client, as a daemon does.
func reached(t *testing.T, a *console.Adapter, s platform.Sink) (console.Client, *httptest.Server) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, s) }()
	server := httptest.NewServer(console.Handler(a))
	client := &http.Client{Transport: toServer{server, &http.Transport{}}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return console.Client{HTTP: client}, server
}

// toServer sends every request to a test's server, as the local socket does.
type toServer struct {
	server *httptest.Server
	*http.Transport
}

func (s toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = s.server.Listener.Addr().String()
	return s.Transport.RoundTrip(r)
}

func TestAQuestionToAnotherProcess(t *testing.T) {
	t.Parallel()
	a, s := answering(t, console.Config{State: idle}, func(a *console.Adapter, in messages.Inbound) {
		ref := send(t, a, in.Conversation, string(in.Event), "…")
		edit(t, a, ref, "gro", true)
		edit(t, a, ref, "answer to "+in.Text, false)
		outcome(t, a, in, platform.MarkDone)
	})
	client, _ := reached(t, a, s)
	var out bytes.Buffer
	err := console.Question{Text: "hi", Conversation: "q", Out: &out, Errors: io.Discard}.Ask(waittest.Context(t.Context(), t), client)
	if out.String() != "answer to hi\n" || err != nil {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestWhatAnotherProcessIsTold(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(file, []byte("png"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := console.New(console.Config{
		Commands: func() []string { return []string{"help", "stop"} },
		State: func(_ context.Context, key messages.ConversationKey) (bool, []string, error) {
			return key.ID == "other", []string{"a-" + key.ID}, nil
		},
	})
	s := &sink{}
	client, _ := reached(t, a, s)
	ctx := waittest.Context(t.Context(), t)
	if names, err := client.Commands(ctx); fmt.Sprint(names) != "[help stop]" || err != nil {
		t.Errorf("%v, %v", names, err)
	}
	if state, err := client.State(ctx, "local"); !state.Busy || fmt.Sprint(state.Questions) != "[a-local]" || state.Shown != 0 || err != nil {
		t.Errorf("%v, %v", state, err)
	}
	id, err := client.Say(ctx, "local", console.Message{Text: " see @a ", Files: []messages.Attachment{{Name: "wrong", Source: file}}})
	if err != nil || len(s.events) != 1 || s.events[0].Message != id || s.events[0].Text != " see @a" {
		t.Fatalf("%v, %v", s.events, err)
	}
	if got := s.events[0].Attachments; len(got) != 1 || got[0] != (messages.Attachment{Name: "a.png", MediaType: "image/png", Size: 3, Source: file}) {
		t.Errorf("%+v", got)
	}
	body, err := a.Fetch(ctx, s.events[0].Attachments[0])
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close() //nolint:errcheck // only read
	if text, err := io.ReadAll(body); string(text) != "png" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// The longest text arrives, however long its JSON is.
func TestALongTextOfCharactersThatAreEscaped(t *testing.T) {
	t.Parallel()
	s := &sink{}
	client, _ := reached(t, console.New(console.Config{}), s)
	text := "<" + strings.Repeat("\u2028<\x01", 1<<20/5-1) + ">" // each character is six bytes in JSON, or nearly
	if _, err := client.Say(waittest.Context(t.Context(), t), "local", console.Message{Text: text}); err != nil {
		t.Fatal(err)
	}
	if got := s.texts(); len(got) != 1 || got[0] != text {
		t.Errorf("%d texts", len(got))
	}
}

// What is wrong with a request is said, and changes nothing.
func TestBadRequests(t *testing.T) { //nolint:tparallel // see below
	t.Parallel()
	s := &sink{}
	_, server := reached(t, console.New(console.Config{}), s)
	for name, tc := range map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"garbage":            {"local/messages", "\x00{", 400, "not a message in JSON"},
		"unknown field":      {"local/messages", `{"text":"a","sender":"telegram/1"}`, 400, "sender"},
		"no text":            {"local/messages", `{"text":" \n"}`, 400, "no text"},
		"too long":           {"local/messages", `{"text":"` + strings.Repeat("x", 1<<20+1) + `"}`, 400, "at most 1 MiB"},
		"oversize":           {"local/messages", `{"text":"` + strings.Repeat("x", 8<<20) + `"}`, 400, "too long"},
		"name":               {"..%2Fx/messages", `{"text":"a"}`, 400, "not a valid conversation name"},
		"long name":          {strings.Repeat("x", 101) + "/messages", `{"text":"a"}`, 400, "not a valid conversation name"},
		"relative file":      {"local/messages", `{"text":"a","files":[{"name":"b","source":"b"}]}`, 400, "not absolute"},
		"file out of reach":  {"local/messages", `{"text":"a","files":[{"name":"b","source":"/nowhere/b"}]}`, 404, "/nowhere/b"},
		"files without end":  {"local/messages", `{"text":"a","files":[{}` + strings.Repeat(",{}", 100) + `]}`, 400, "101 files"},
		"path of no request": {"local/nothing", `{}`, 404, ""},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // the server ends with the test
			r, err := http.Post(server.URL+"/console/"+tc.path, "application/json", strings.NewReader(tc.body)) //nolint:noctx // local
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close() //nolint:errcheck // only read
			text, _ := io.ReadAll(r.Body)
			if r.StatusCode != tc.status || !strings.Contains(string(text), tc.says) {
				t.Errorf("%s: %s", r.Status, text)
			}
		})
	}
	if len(s.texts()) > 0 {
		t.Errorf("accepted %q", s.texts())
	}
	http.DefaultClient.CloseIdleConnections()
}

// A client that goes away in the middle of an answer leaves no watcher behind, and
// nobody else notices.
func TestAClientGoesAwayInTheMiddle(t *testing.T) {
	t.Parallel()
	a := console.New(console.Config{State: idle})
	client, _ := reached(t, a, &sink{})
	ctx := waittest.Context(t.Context(), t)
	stays, err := client.Watch(ctx, "q")
	if err != nil {
		t.Fatal(err)
	}
	leaves, err := client.Watch(ctx, "q")
	if err != nil {
		t.Fatal(err)
	}
	ref := send(t, a, messages.ConversationKey{Platform: console.Name, ID: "q"}, "1", "…")
	edit(t, a, ref, "half", true)
	if e, err := leaves.Next(ctx); e.Text != "half" || err != nil {
		t.Errorf("%v, %v", e, err)
	}
	if err := leaves.Close(); err != nil {
		t.Error(err)
	}
	edit(t, a, ref, "whole", false)
	for {
		e, err := stays.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if e.Final {
			if e.Text != "whole" {
				t.Errorf("%v", e)
			}
			break
		}
	}
	if err := stays.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheBotStopsInTheMiddle(t *testing.T) {
	t.Parallel()
	a, s := answering(t, console.Config{State: func(context.Context, messages.ConversationKey) (bool, []string, error) { return false, nil, nil }},
		func(a *console.Adapter, in messages.Inbound) {
			ref := send(t, a, in.Conversation, "1", "…")
			edit(t, a, ref, "half", true)
		})
	client, server := reached(t, a, s)
	watching, err := client.Watch(t.Context(), "q")
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Close() //nolint:errcheck // the test is over
	var out bytes.Buffer
	asked := make(chan error, 1)
	ctx := waittest.Context(t.Context(), t)
	go func() {
		asked <- console.Question{Text: "hi", Conversation: "q", Out: &out, Errors: io.Discard}.Ask(ctx, client)
	}()
	if _, err := watching.Next(ctx); err != nil { // the answer has begun
		t.Fatal(err)
	}
	server.CloseClientConnections()
	server.Listener.Close() //nolint:errcheck // it is closed again
	if err := <-asked; !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err), "The bot stopped. Accepted messages are saved") {
		t.Errorf("%v", err)
	}
	if out.Len() > 0 {
		t.Errorf("half an answer is no answer: %q", out.String())
	}
}
