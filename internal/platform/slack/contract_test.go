package slack_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/emulator/platformapi"
	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/platform/slack"
	"remote-agent/internal/waittest"
)

// world is an adapter that receives from the emulator.
type world struct {
	*slack.Adapter
	server *emulator.Server
	sink   *platformtest.Sink
	mount  func(http.Handler)
	close  func()

	mu      sync.Mutex // guards engaged
	engaged map[string]bool
}

// transport is one of the two ways to receive.
type transport string

const (
	overSocket transport = "socket"
	overHTTP   transport = "http"
)

// eachTransport runs a test over both.
func eachTransport(t *testing.T, test func(t *testing.T, how transport)) {
	t.Helper()
	for _, how := range []transport{overSocket, overHTTP} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			test(t, how)
		})
	}
}

func newWorld(t *testing.T, how transport, change ...func(*emulator.Options, *slack.Config)) *world {
	t.Helper()
	retries := make([]time.Duration, 8)
	for i := range retries {
		retries[i] = time.Millisecond
	}
	w := &world{sink: &platformtest.Sink{}, engaged: map[string]bool{}}
	opts := emulator.Options{
		Team:     emulator.Team{ID: "T1", BotToken: botToken, BotUserID: "UBOT", BotID: "BBOT"},
		AppToken: appToken, SigningSecret: secret, Retries: retries,
	}
	var cfg slack.Config
	for _, c := range change {
		c(&opts, &cfg)
	}
	w.server = emulator.New(opts)
	if err := w.server.Start(); err != nil {
		t.Fatal(err)
	}
	w.server.AddChannel(emulator.Channel{ID: "DU1"})
	cfg.BotToken, cfg.APIURL, cfg.Log = botToken, w.server.APIURL(), testLog(t)
	cfg.Engaged = func(_ context.Context, k messages.ConversationKey) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.engaged[k.ID], nil
	}
	w.close = w.server.Close
	if how == overSocket {
		cfg.AppToken = appToken
		w.server.UseSocketMode()
	} else {
		cfg.SigningSecret = secret
		w.overHTTP(t)
	}
	var err error
	if w.Adapter, err = slack.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.close()
		w.CloseIdle()
	})
	return w
}

// overHTTP makes the emulator deliver to a server that mount fills.
func (w *world) overHTTP(t *testing.T) {
	t.Helper()
	var handler atomic.Pointer[http.Handler]
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if h := handler.Load(); h != nil {
			(*h).ServeHTTP(rw, r)
			return
		}
		rw.WriteHeader(http.StatusServiceUnavailable)
	}))
	w.mount = func(h http.Handler) { handler.Store(&h) }
	w.server.UseHTTP(emulator.Endpoints{
		Events: front.URL + "/webhooks/slack/events", Commands: front.URL + "/webhooks/slack/commands", Interactions: front.URL + "/webhooks/slack/interactions",
	})
	w.close = func() { w.server.Close(); front.Close() }
}

// run starts the adapter for a test.
func (w *world) run(t *testing.T) {
	t.Helper()
	if w.mount != nil {
		w.mount(w.Webhook(w.sink))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, w.sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// settled waits until the bot has heard of what a person did.
func (w *world) settled(t *testing.T, sent emulator.Sent) emulator.Sent {
	t.Helper()
	ctx := waittest.Context(t.Context(), t)
	if err := w.server.WaitSettled(ctx, sent); err != nil {
		t.Fatalf("%v: %+v", err, w.server.Pending())
	}
	return sent
}

func (w *world) engage(ids ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.engaged[id] = true
	}
}

func TestContract(t *testing.T) { // not parallel: it counts goroutines
	for _, how := range []transport{overSocket, overHTTP} {
		t.Run(string(how), func(t *testing.T) {
			platformtest.Exercise(t, platformtest.Harness{New: func(t *testing.T) platformtest.Rig {
				t.Helper()
				return rig(t, newWorld(t, how))
			}})
		})
	}
}

func rig(t *testing.T, w *world) platformtest.Rig {
	t.Helper()
	ann := w.server.User("U012AB3CD").In("DU1")
	deliveries := map[messages.EventID][]string{}
	var mu sync.Mutex
	var before emulator.Sent
	inject := func(f emulator.Fault, methods ...string) bool {
		for _, m := range methods {
			w.server.Inject(m, f)
		}
		return true
	}
	both := []string{"chat.postMessage", "chat.update"}
	return platformtest.Rig{
		Adapter:      w.Adapter,
		Kind:         slack.Kind(),
		Conversation: key("T1/DU1"),
		Secrets:      []string{botToken, appToken, secret},
		Mount:        w.mount,
		Deliver: func(text string) messages.EventID {
			w.settled(t, before) // Slack promises no order between gestures
			before = ann.Says(text)
			id := messages.EventID("msg:DU1:" + before.TS)
			mu.Lock()
			defer mu.Unlock()
			deliveries[id] = before.Deliveries
			return id
		},
		Malformed: func() { w.server.DeliverRaw(emulator.Events, []byte(`{"type":"event_callback","event":[]}`)) },
		Acknowledged: func(id messages.EventID) bool {
			mu.Lock()
			ids := deliveries[id]
			mu.Unlock()
			return len(ids) > 0 && w.server.Acknowledged(ids...)
		},
		Posts: func() map[messages.MessageID]string {
			posts := map[messages.MessageID]string{}
			for _, m := range w.server.Channel("DU1").FromBot() {
				posts[messages.MessageID(m.TS)] = m.Plain
			}
			return posts
		},
		Fail: func(f platformtest.Failure) bool {
			w.server.ClearFaults()
			switch f {
			case platformtest.RefusedCredentials:
				return inject(emulator.Refuse("invalid_auth"), "chat.postMessage")
			case platformtest.RateLimit:
				return inject(emulator.RateLimited(platformtest.RateLimitWait), both...)
			case platformtest.ServerError:
				return inject(emulator.ServerError(503), both...)
			case platformtest.ChatGone:
				return inject(emulator.Refuse("is_archived"), "chat.postMessage")
			case platformtest.MessageGone:
				return inject(emulator.Refuse("message_not_found"), "chat.update")
			case platformtest.NoAnswer:
				return inject(emulator.Fault{End: platformapi.After}, both...)
			default:
				return false
			}
		},
		Close: w.close,
	}
}

// A mention comes as two events, in any order, lost or doubled or with another
// timestamp: it is one event.
func TestGesturesAreOneEvent(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, how transport) {
		t.Helper()
		w := newWorld(t, how)
		w.run(t)
		mention, message := emulator.Copy{Type: "app_mention"}, emulator.Copy{Type: "message"}
		lost := func(c emulator.Copy) emulator.Copy { c.Lost = 2; return c }
		want := 0
		for _, copies := range [][]emulator.Copy{
			{mention, message}, {message, mention}, {mention}, {message}, {message, message}, {lost(mention), message},
			{lost(message), lost(mention)}, {mention, mention, message, message}, {lost(mention)}, {message, {Type: "message", NewTS: true}},
			{message, {Type: "message", NewID: true}},
		} {
			for _, atOnce := range []bool{false, true} {
				ann := w.server.User("U1").In("C1").Delivered(copies...)
				if atOnce {
					ann = ann.AtOnce()
				}
				w.settled(t, ann.Mentions(fmt.Sprint("gesture ", want)))
				want++
			}
		}
		seen := map[string]int{}
		for _, e := range w.sink.Events() {
			seen[e.Text]++
		}
		for i := range want {
			if n := seen[fmt.Sprint("gesture ", i)]; n != 1 {
				t.Errorf("gesture %d is %d events", i, n)
			}
		}
		if lost := w.server.Lost(); len(lost) != 0 {
			t.Errorf("never acknowledged: %v", lost)
		}
	})
}

func TestThreadsWithoutMention(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, how transport) {
		t.Helper()
		w := newWorld(t, how)
		w.run(t)
		ann, bob := w.server.User("U1").In("C1"), w.server.User("U2").In("C1")
		root := w.settled(t, ann.Mentions("look at this"))
		w.engage("T1/C1/" + root.TS)
		other := w.settled(t, bob.Says("lunch?"))
		w.settled(t, bob.InThread(other.TS).Says("not for the bot"))
		w.settled(t, bob.InThread(root.TS).Says("and that"))
		w.settled(t, bob.InThread(root.TS).Broadcasts("for all"))
		w.settled(t, bob.InThread(root.TS).Shares("", emulator.File{Name: "a.txt"}))
		w.settled(t, ann.Joins())
		w.settled(t, bob.InThread(root.TS).AsBot("B7").Says("beep"))
		w.settled(t, ann.InThread(root.TS).Says("stop"))
		var texts []string
		for _, e := range w.sink.Events() {
			if e.Conversation.ID != "T1/C1/"+root.TS {
				t.Errorf("%q is in %s", e.Text, e.Conversation)
			}
			texts = append(texts, e.Text)
		}
		if got := strings.Join(texts, "|"); got != "look at this|and that|for all||/stop" {
			t.Errorf("heard %s", got)
		}
		if kept := w.sink.Kept(); len(kept) != 0 {
			t.Errorf("kept %+v", kept)
		}
	})
}

// From a slash command to a button and a dialog, as people do it.
func TestFromSlashCommandToDialog(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, how transport) {
		t.Helper()
		w := newWorld(t, how)
		w.run(t)
		ann := w.server.User("U1").In("C1")
		w.settled(t, ann.Slash("/agent", "why is it red? <!channel>"))
		asked := w.sink.Events()[0]
		root, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: asked.Conversation, Text: asked.Opening})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := w.Send(t.Context(), messages.Outbound{
			Delivery: "d-2", Conversation: root.Conversation, Text: "Shall I? <@U2> <!here>",
			Buttons: []messages.Button{{ID: "b-edit", Label: "Edit"}, {ID: "b-no", Label: "No", Style: messages.ButtonDanger}},
		})
		if err != nil {
			t.Fatal(err)
		}
		thread := w.server.Thread("C1", string(root.Message))
		if len(thread.FromBot()) != 2 || !strings.HasPrefix(thread.Root.Plain, "<@U1> asked: why is it red?") && !strings.Contains(thread.Root.Plain, "asked: why is it red?") {
			t.Errorf("the thread shows %q", thread.Texts())
		}
		for _, m := range thread.FromBot() {
			for _, ping := range m.Pings {
				if ping != "@U1" {
					t.Errorf("%q notifies %s", m.Plain, ping)
				}
			}
			if m.UnfurlLinks == nil || *m.UnfurlLinks || m.UnfurlMedia == nil || *m.UnfurlMedia {
				t.Errorf("%q shows previews", m.Plain)
			}
		}
		w.settled(t, ann.InThread(string(root.Message)).Clicks(string(answer.Message), "b-edit"))
		events := w.sink.Events()
		press := events[len(events)-1]
		if press.Kind != messages.KindAction || press.Action != "b-edit" || press.Conversation != root.Conversation || press.Message != answer.Message {
			t.Fatalf("pressed %+v", press)
		}
		if err := w.OpenDialog(t.Context(), press, platform.Dialog{Trigger: press.Trigger, ID: "dialog-1", Title: "Plan", Label: "Plan", Text: "1. x", Submit: "Approve"}); err != nil {
			t.Fatal(err)
		}
		views := w.server.Views("U1")
		if len(views) != 1 {
			t.Fatalf("%d dialogs", len(views))
		}
		w.settled(t, ann.Submits(views[0].ID, map[string]string{"text": "2. y"}))
		events = w.sink.Events()
		if sent := events[len(events)-1]; sent.Action != "dialog-1" || sent.Text != "2. y" || sent.Conversation != root.Conversation {
			t.Errorf("sent %+v", sent)
		}
		if err := w.Whisper(t.Context(), press, "only you"); err != nil {
			t.Error(err)
		}
		if seen := w.server.Channel("C1").SeenBy("U1"); len(seen) != 1 || seen[0].Plain != "only you" {
			t.Errorf("whispered %+v", seen)
		}
		if err := w.Edit(t.Context(), platform.Edit{Ref: answer, Text: "Settled."}); err != nil {
			t.Error(err)
		}
		if m := w.server.Channel("C1").Message(string(answer.Message)); m.Plain != "Settled." || len(m.Buttons()) != 0 {
			t.Errorf("after the edit: %q with %v", m.Plain, m.Buttons())
		}
	})
}

func TestStatusMarksAndContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overSocket)
	w.run(t)
	ann, bob := w.server.User("U1").In("C1"), w.server.User("U2").In("C1")
	w.server.AddUser(emulator.User{ID: "U2", Name: "bob"})
	root := w.settled(t, bob.Says("it is red"))
	w.settled(t, bob.InThread(root.TS).Says("since noon"))
	mention := w.settled(t, ann.InThread(root.TS).Mentions("why?"))
	in := w.sink.Events()[0]
	quotes, err := w.Context(t.Context(), in)
	if err != nil || len(quotes) != 2 || quotes[0].Text != "it is red" || quotes[1].Text != "since noon" || quotes[0].Author != "bob" {
		t.Errorf("Context: %+v, %v", quotes, err)
	}
	if err := w.Typing(t.Context(), in.Conversation); err != nil {
		t.Error(err)
	}
	if s := w.server.Thread("C1", root.TS).Status; s == "" {
		t.Error("no status is shown")
	}
	ref := messages.Ref{Conversation: in.Conversation, Message: in.Message}
	for _, m := range []platform.Mark{platform.MarkQueued, platform.MarkSeen} {
		if err := w.Mark(t.Context(), ref, m); err != nil {
			t.Error(err)
		}
	}
	if got := w.server.Channel("C1").Message(mention.TS).ReactionsOf("UBOT"); len(got) != 1 || got[0] != "eyes" {
		t.Errorf("reactions: %v", got)
	}
	if err := w.Mark(t.Context(), ref, platform.MarkNone); err != nil {
		t.Error(err)
	}
	if got := w.server.Channel("C1").Message(mention.TS).ReactionsOf("UBOT"); len(got) != 0 {
		t.Errorf("reactions: %v", got)
	}
	if v := w.server.Violations(); len(v) != 0 {
		t.Errorf("violations: %+v", v)
	}
}

// Whatever breaks after the post, the message is there once.
func TestEveryAmbiguousPostIsFound(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]emulator.Fault{
		"connection broken": {End: platformapi.After}, "answer cut": {End: platformapi.Short}, "JSON cut": {End: platformapi.Truncated},
		"garbage": {End: platformapi.Garbage}, "internal error": emulator.FailAfter("internal_error"), "fatal error": emulator.FailAfter("fatal_error"),
		"gateway": emulator.ServerErrorAfter(502), "server error": emulator.ServerErrorAfter(500),
	} {
		for _, id := range []string{"T1/DU1", "T1/C1/thread", "T1/C1/new-abc"} {
			t.Run(name+" in "+id, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, overHTTP)
				root := w.server.User("U1").In("C1").Says("root")
				w.server.User("U1").Says("hi")
				w.server.Inject("chat.postMessage", f)
				out := messages.Outbound{Delivery: "d-1", Conversation: key(strings.Replace(id, "thread", root.TS, 1)), Text: "hello"}
				if _, err := w.Send(t.Context(), out); !fault.Uncertain(err) {
					t.Fatalf("Send: %v is not uncertain", err)
				}
				out.Again = true
				ref, err := w.Send(t.Context(), out)
				if err != nil {
					t.Fatal(err)
				}
				channel, _, _ := strings.Cut(strings.TrimPrefix(id, "T1/"), "/")
				posted := w.server.Channel(channel).FromBot()
				if len(posted) != 1 || messages.MessageID(posted[0].TS) != ref.Message || posted[0].MetadataField("delivery") != "d-1" {
					t.Errorf("posted %+v", posted)
				}
			})
		}
	}
}

func TestSocketsAreReplacedWithoutLoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overSocket)
	w.run(t)
	ann := w.server.User("U1")
	all := []emulator.Sent{w.settled(t, ann.Says("first"))}
	for i := range 59 {
		all = append(all, ann.Says(fmt.Sprint(i)))
		switch i % 20 {
		case 5:
			w.server.Disconnect("refresh_requested")
		case 15:
			w.server.CutConnections()
		case 10, 19:
			w.settled(t, all[len(all)-1]) // so that there is a connection again
		}
	}
	for _, sent := range all {
		w.settled(t, sent)
	}
	if n, lost := len(w.sink.Events()), w.server.Lost(); n != 60 || len(lost) != 0 {
		t.Errorf("%d events of 60, lost %v", n, lost)
	}
	if n := w.server.ConnectionsOpened(); n < 4 {
		t.Errorf("%d connections were opened", n)
	}
}

func TestExternalPeopleOverBoth(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, how transport) {
		t.Helper()
		w := newWorld(t, how)
		w.run(t)
		w.server.AddChannel(emulator.Channel{ID: "C9", Shared: true})
		w.settled(t, w.server.User("U8").In("C9").From("T8").Mentions("hi"))
		w.settled(t, w.server.User("U1").In("C9").Mentions("hi"))
		all := w.sink.Events()
		if len(all) != 2 || !all[0].Sender.External || all[1].Sender.External {
			t.Errorf("heard %+v", all)
		}
	})
}
