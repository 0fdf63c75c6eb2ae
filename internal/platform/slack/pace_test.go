package slack_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/platform/slack"
)

// inProcess answers calls without a network, so that time can be a test's own.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// timeless is an adapter that runs in a bubble, with an emulator that has Slack's
// limits and ends streams as Slack does.
type timeless struct {
	*slack.Adapter
	server *emulator.Server
}

// newTimeless must be called in a bubble. The function that it returns ends Run.
func newTimeless(t *testing.T) (timeless, func()) {
	t.Helper()
	server := emulator.New(emulator.Options{
		Team:   emulator.Team{ID: "T1", BotToken: botToken, BotUserID: "UBOT", BotID: "BBOT"},
		NoEcho: true, Limits: emulator.PublishedLimits(), StreamIdle: 30 * time.Second, StreamMax: 5 * time.Minute, KeepEdits: -1,
	})
	server.AddUser(emulator.User{ID: "U1"})
	a, err := slack.New(slack.Config{
		BotToken: botToken, SigningSecret: secret, Streaming: true, Surroundings: platform.Surroundings{Log: testLog(t)},
		Transport: inProcess{server.Handler()},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Run(ctx, &platformtest.Sink{}); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
	return timeless{a, server}, func() {
		cancel()
		running.Wait()
		server.Close()
	}
}

// begin opens a thread in a channel and posts the placeholder of a turn there.
func (w timeless) begin(t *testing.T, channel string) messages.Ref {
	t.Helper()
	w.server.AddChannel(emulator.Channel{ID: channel})
	root, err := w.Send(t.Context(), messages.Outbound{Delivery: newDelivery(), Conversation: key("T1/" + channel + "/new-x"), Text: "<@U1> asked: why?"})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := w.Send(t.Context(), messages.Outbound{Delivery: newDelivery(), Conversation: root.Conversation, Text: platform.Placeholder})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func (w timeless) message(ref messages.Ref) emulator.Message {
	return w.server.Channel(strings.Split(ref.Conversation.ID, "/")[1]).Message(string(ref.Message))
}

func (w timeless) check(t *testing.T) {
	t.Helper()
	for i, v := range w.server.Violations() {
		if t.Errorf("%s: %s: %s", v.Method, v.Rule, v.Detail); i == 5 {
			return
		}
	}
}

// A stream that has nothing to show is kept alive, and closed before Slack would
// end it. What comes after that is edited in.
func TestStreamsAreKeptAlive(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "so far "} {
		synctest.Test(t, func(t *testing.T) {
			w, end := newTimeless(t)
			defer end()
			ref := w.begin(t, "C1")
			if text != "" {
				if err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: text, Progress: true}); err != nil {
					t.Fatal(err)
				}
			}
			begin := time.Now()
			for time.Since(begin) < 10*time.Minute {
				m := w.message(ref)
				switch age := time.Since(begin); {
				case m.Stream == emulator.StreamKilled:
					t.Fatalf("Slack ended it after %v", age)
				case age < 4*time.Minute-time.Second && m.Stream != emulator.Streaming, age > 4*time.Minute+2*time.Second && m.Stream != emulator.StreamDone:
					t.Fatalf("after %v it is %s", age, m.Stream)
				}
				time.Sleep(5*time.Second + 7*time.Millisecond)
			}
			if err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: text + "and on", Progress: true}); err != nil {
				t.Error(err)
			}
			if err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: text + "and on to the end"}); err != nil {
				t.Error(err)
			}
			if m := w.message(ref); m.Plain != text+"and on to the end" {
				t.Errorf("the answer is %q", m.Plain)
			}
			w.check(t)
		})
	}
}

// If a stream cannot be kept alive it is closed while that is possible.
func TestStreamsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, end := newTimeless(t)
		defer end()
		ref := w.begin(t, "C1")
		w.server.InjectFunc(func(c emulator.Call) emulator.Fault {
			if c.Method == "chat.appendStream" {
				return emulator.RateLimited(time.Minute)
			}
			return emulator.Fault{}
		})
		time.Sleep(time.Minute)
		if m := w.message(ref); m.Stream != emulator.StreamDone {
			t.Errorf("it is %s", m.Stream)
		}
	})
}

// 200 threads are written to at once, for eight minutes. Some have streams and the
// others are edited. Every call is within its method's limit, nobody waits for
// more than twice the fair share of the method between two turns, Slack ends no
// stream, and in the end every thread has its whole answer within a short time.
func TestManyThreadsAtOnce(t *testing.T) { // not parallel: it would make others late
	synctest.Test(t, func(t *testing.T) {
		const threads, lasts = 200, 8 * time.Minute
		w, end := newTimeless(t)
		defer end()
		type waits struct{ streamed, edited time.Duration }
		longest := make([]waits, threads)
		late := make([]time.Duration, threads)
		var all sync.WaitGroup
		for i := range threads {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Millisecond)
				ref := w.begin(t, fmt.Sprintf("C%d", i))
				begin, last := time.Now(), time.Now()
				wasStream := false
				text := fmt.Sprintf("thread %d says:", i)
				for n := 0; time.Since(begin) < lasts; n++ {
					text += fmt.Sprintf(" word%d", n)
					err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: text + " ", Progress: true})
					waited := &longest[i].edited
					if isStream := w.message(ref).Stream == emulator.Streaming; isStream {
						waited, wasStream = &longest[i].streamed, true
					} else if wasStream { // its time was over: it stands in line from here on
						last, wasStream = time.Now(), false
					}
					*waited = max(*waited, time.Since(last))
					switch {
					case err == nil:
						last = time.Now()
					case !fault.Is(err, fault.RateLimited):
						t.Errorf("thread %d: %v", i, err)
					}
					time.Sleep(3 * time.Second)
				}
				asked := time.Now()
				if err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: text}); err != nil {
					t.Errorf("thread %d: %v", i, err)
				}
				late[i] = time.Since(asked)
				if m := w.message(ref); m.Plain != text || m.Stream != "" && m.Stream != emulator.StreamDone {
					t.Errorf("thread %d shows %q, %s", i, m.Plain, m.Stream)
				}
			})
		}
		all.Wait()
		w.check(t)
		var most waits
		streams, slowest := 0, time.Duration(0)
		for i, l := range longest {
			most.streamed, most.edited, slowest = max(most.streamed, l.streamed), max(most.edited, l.edited), max(slowest, late[i])
			if l.streamed > 0 {
				streams++
			}
		}
		t.Logf("%d streams; %v between two appends, %v between two edits, %v for the last text", streams, most.streamed, most.edited, slowest)
		if streams < 5 {
			t.Errorf("%d threads were streamed to", streams)
		}
		const edits, appends = 50, 100
		if share := threads * time.Minute / edits; most.edited > 2*share {
			t.Errorf("one waited %v for an edit, a fair share is %v", most.edited, share)
		}
		if share := time.Duration(streams) * time.Minute / appends; most.streamed > 2*max(share, 3*time.Second) {
			t.Errorf("one waited %v for more of its stream, a fair share is %v", most.streamed, share)
		}
		if limit := threads * time.Minute / edits * 2; slowest > limit {
			t.Errorf("a last text took %v", slowest)
		}
	})
}
