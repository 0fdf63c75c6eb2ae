//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/waittest"
)

// stream is a page that waits for events.
type stream struct {
	t     testing.TB
	leave context.CancelFunc
	ended chan struct{}

	mu   sync.Mutex
	head http.Header
	code int
	body strings.Builder
}

func (s *stream) Header() http.Header { return s.head }
func (s *stream) Flush()              {}

func (s *stream) WriteHeader(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}

func (s *stream) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body.Write(data)
}

func (s *stream) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body.String()
}

func (s *stream) events() int { return strings.Count(s.text(), "event: ") }

func (s *stream) waits(what string, done func() bool) {
	s.t.Helper()
	waittest.Until(s.t, what, done)
}

func (s *stream) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// listen asks for events until the test ends. It returns once the stream has begun, or was
// refused.
func (b *browser) listen(target string, header ...string) *stream {
	b.t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	s := &stream{t: b.t, leave: leave, ended: make(chan struct{}), head: http.Header{}}
	r := httptest.NewRequestWithContext(ctx, "GET", target, nil)
	r.Host, r.RemoteAddr = b.host, "192.0.2.1:1000"
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	go func() {
		defer close(s.ended)
		b.pages.ServeHTTP(s, r)
	}()
	b.t.Cleanup(func() {
		leave()
		<-s.ended
	})
	s.waits("the stream begins", func() bool { return s.over() || s.text() != "" })
	return s
}

// said has bob say something in a chat, or carol in hers.
func (w *world) said(chat, event string, by messages.UserID) sessions.Conversation {
	w.t.Helper()
	var conv sessions.Conversation
	w.do(func(ctx context.Context, tx *store.Tx) error {
		key := messages.ConversationKey{Platform: "telegram", ID: chat}
		var err error
		if conv, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, "demo"); err != nil {
			return err
		}
		_, err = tx.Inbox().InsertEntry(ctx, &sessions.Entry{ConversationID: conv.ID, In: messages.Inbound{
			Event: messages.EventID(event), Kind: messages.KindMessage, Conversation: key, Sender: messages.Sender{ID: by}, Text: "hello"}})
		return err
	})
	return conv
}

var liveAddress = regexp.MustCompile(`data-live="(/events[^"]*)" data-at="([^"]+)"`)

func TestAnOpenPageLearnsThatItChanged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		owner := w.as(ann)
		page := owner.get("/sessions/" + s.session.ID)
		at := liveAddress.FindStringSubmatch(page)
		if at == nil || strings.Contains(owner.get("/sessions/"+s.session.ID+"?before=2"), "data-live") {
			t.Fatal("the page does not say how to learn of changes, or does of what cannot change")
		}
		w.said(s.conversation.Key.ID, "between", "42") // before the stream began
		here := owner.listen(at[1] + "&after=" + at[2])
		here.waits("what came before the stream is told", func() bool { return here.events() == 1 })
		if kind := here.head.Get("Content-Type"); kind != "text/event-stream" || here.head.Get("Cache-Control") != "no-store" {
			t.Errorf("headers %v", here.head)
		}
		id := regexp.MustCompile(`id: (\S+)`).FindStringSubmatch(here.text())[1]
		here.leave()
		w.said(s.conversation.Key.ID, "away", "42")
		back := owner.listen(at[1]+"&after="+at[2], "Last-Event-ID", id)
		back.waits("what came meanwhile is told", func() bool { return back.events() == 1 })
		if strings.Contains(back.text(), "alert") || strings.Contains(back.text(), "hello") {
			t.Errorf("an event tells what was said: %s", back.text())
		}

		var end context.CancelFunc
		owner.ctx, end = context.WithTimeout(t.Context(), 10*time.Second)
		defer end()
		if r := owner.send("HEAD", at[1], nil); r.Code != http.StatusOK || r.Header().Get("Content-Type") != "text/event-stream" || r.Body.Len() > 0 {
			t.Errorf("who asks for the head of a stream gets the stream: %d %v\n%s", r.Code, r.Header(), r.Body)
		}

		owner.header.Set("Bot-Part", "main")
		owner.cookies["bot_said"] = &http.Cookie{Name: "bot_said", Value: "U2VudA"}
		part := owner.get("/sessions/" + s.session.ID)
		wants(t, part, "<title>", `<main id="main"`, "data-live")
		if strings.Contains(part, "<header") || strings.Contains(part, "<html") || strings.Contains(part, "Sent") || owner.cookies["bot_said"] == nil {
			t.Errorf("more than a part:\n%s", part)
		}
		clean(t, "the part of a page", part)
	})
}

// Members learn of their own conversations, and of nothing else.
func TestNobodyLearnsOfWhatTheyDoNotSee(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.said("theirs", "1", "7")
		member := w.as(bob)
		all := member.listen("/events?topic=all")
		own := member.listen("/events?topic=session/" + s.session.ID)
		owner := w.as(ann).listen("/events?topic=all")
		w.said("theirs", "2", "7")
		owner.waits("the owner learns of it", func() bool { return owner.events() == 1 })
		w.said(s.conversation.Key.ID, "mine", "42")
		own.waits("a member learns of their own", func() bool { return own.events() == 1 })
		all.waits("a member learns of their own among all", func() bool { return all.events() == 1 })

		dora := w.as(cat) // who has written nowhere
		for _, topic := range []string{"session/" + s.session.ID, "session/0198c2d1-7a3b-7c4d-8e5f-000000000000", "session/x", "else", "", "session/"} {
			if r := dora.send("GET", "/events?topic="+topic, nil); r.Code < 400 {
				t.Errorf("%q: %d", topic, r.Code)
			}
		}
		if r := w.browser().send("GET", "/events?topic=all", nil); r.Code != http.StatusUnauthorized {
			t.Errorf("nobody listens: %d", r.Code)
		}
	})
}

func TestAStreamEndsWithWhatAllowsIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner, member := w.as(ann), w.as(bob)
		first := member.listen("/events?topic=all")
		member.post("/sign-out", map[string][]string{})
		first.waits("it ends at sign-out", first.over)

		member = w.as(bob)
		second := member.listen("/events?topic=all")
		id := regexp.MustCompile(`name="id" value="([a-z0-9]+)"`).FindStringSubmatch(owner.get("/account"))
		owner.follow(owner.post("/account/end", map[string][]string{"id": id[1:]}))
		second.waits("it ends when an owner revokes the session", second.over)

		member = w.as(bob)
		third := member.listen("/events?topic=all")
		w.mu.Lock()
		w.roles[bob] = sessions.Stranger
		w.mu.Unlock()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			return tx.People().SetRole(ctx, sessions.Identity{Platform: bob.Platform, UserID: bob.ID}, "console/local", true)
		})
		third.waits("it ends with the right to look", third.over)

		w.mu.Lock()
		w.roles[bob] = sessions.User
		w.mu.Unlock()
		mine := messages.Posted{Chat: "mine", ID: "m1", Author: bob.String(), Text: "hi"}
		if err := errors.Join(w.Say(t.Context(), mine, []byte("{}")), w.Took(t.Context(), mine.ID)); err != nil {
			t.Fatal(err)
		}
		all, own := owner.listen("/events?topic=all"), w.as(bob).listen("/events?topic=chat/mine")
		w.mu.Lock()
		w.roles[ann] = sessions.User
		w.mu.Unlock()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Board().RemoveChat(ctx, bob.String(), "mine"); err != nil {
				return err
			}
			return tx.People().SetRole(ctx, sessions.Identity{Platform: ann.Platform, UserID: ann.ID, Role: sessions.User}, "console/local", true)
		})
		all.waits("it ends for whoever was an owner and saw all", all.over)
		own.waits("it ends with the conversation", own.over)
		if n := w.config.Changes.Streams(); n != 0 {
			t.Errorf("%d streams are left", n)
		}
	})
}

func TestStreamsHaveALimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner := w.as(ann)
		for range 3 {
			owner.listen("/events?topic=all")
		}
		for range 1000 / 20 {
			if r := owner.send("GET", "/events?topic=all", nil); r.Code != http.StatusServiceUnavailable || r.Header().Get("Retry-After") == "" {
				t.Fatalf("one browser has more than its share: %d", r.Code)
			}
		}
		other := w.as(ann)
		other.listen("/events?topic=all")
		other.listen("/events?topic=all")
		if r := w.as(bob).send("GET", "/events?topic=all", nil); r.Code != http.StatusServiceUnavailable {
			t.Errorf("more than there may be: %d", r.Code)
		}
		w.config.Changes.Close()
		if r := owner.send("GET", "/events?topic=all", nil); r.Code != http.StatusServiceUnavailable {
			t.Errorf("after the end: %d", r.Code)
		}
	})
}
