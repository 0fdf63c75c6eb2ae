package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/platform/web"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

var bob = messages.Sender{ID: "42", Platform: "telegram"}

// failing is a database whose next change fails, or whose answer is lost.
type failing struct {
	web.Board

	mu    sync.Mutex
	fails platformtest.Failure
}

func (f *failing) Post(ctx context.Context, p messages.Posted) (messages.MessageID, error) {
	f.mu.Lock()
	kind := f.fails
	f.fails = ""
	f.mu.Unlock()
	switch kind {
	case platformtest.ServerError:
		return "", fault.New(fault.Unavailable, "the database is away")
	case platformtest.NoAnswer:
		if _, err := f.Board.Post(ctx, p); err != nil {
			return "", err
		}
		return "", &fault.Error{Kind: fault.Unavailable, Uncertain: true}
	case platformtest.ChatGone:
		p.Chat = "gone"
	case platformtest.RefusedCredentials, platformtest.RateLimit, platformtest.MessageGone:
	}
	return f.Board.Post(ctx, p)
}

func (f *failing) Repost(ctx context.Context, p messages.Posted) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.fails {
	case platformtest.MessageGone:
		p.ID = "gone"
	case platformtest.ServerError, platformtest.NoAnswer: // nobody else can have changed it
		return fault.New(fault.Unavailable, "the database is away")
	case platformtest.RefusedCredentials, platformtest.RateLimit, platformtest.ChatGone:
	}
	return f.Board.Repost(ctx, p)
}

// said says something without passing it on, as when the process ends in between.
func said(tb testing.TB, s *store.Store, id, event string) {
	tb.Helper()
	if err := s.Say(context.Background(), messages.Posted{Chat: "c1", ID: messages.MessageID(id), Author: "telegram/42", Text: "hello"}, []byte(event)); err != nil {
		tb.Error(err)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t testing.TB) func(testing.TB) *store.Store{"SQLite": storetest.SQLite, "Postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			platformtest.Exercise(t, platformtest.Harness{New: func(t *testing.T) platformtest.Rig { return rig(t, open(t)(t)) }}) //nolint:thelper // it makes one for each test
		})
	}
}

func rig(t *testing.T, s *store.Store) platformtest.Rig {
	t.Helper()
	board := &failing{Board: s}
	a := web.New(board, slog.New(slog.DiscardHandler))
	said(t, s, "first", "{}")
	if err := s.Took(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	var n int
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	return platformtest.Rig{
		Adapter: a, Conversation: messages.ConversationKey{Platform: web.Name, ID: "c1"},
		Deliver: func(text string) messages.EventID {
			n++
			id := fmt.Sprint("said", n)
			if err := a.Say(waittest.Context(context.Background(), t), web.Said{Chat: "c1", ID: id, From: bob, Text: text}); err != nil {
				t.Error(err)
			}
			return messages.EventID(id)
		},
		Redeliver: func() {
			work.Go(func() { // somebody says something else, and the rest is passed on with it
				_ = a.Say(context.Background(), web.Said{Chat: "c1", ID: "said1", From: bob, Text: "hello"})
			})
		},
		Malformed: func() { said(t, s, "broken", `{"event":`) },
		Acknowledged: func(id messages.EventID) bool {
			waits := false
			err := s.Untaken(context.Background(), "c1", "", 100, func(_ string, untaken messages.MessageID, _ []byte) {
				waits = waits || messages.EventID(untaken) == id
			})
			return err == nil && !waits
		},
		Posts: func() map[messages.MessageID]string {
			shown := make(map[messages.MessageID]string)
			err := s.InRead(context.Background(), func(tx *store.Tx) error {
				list, err := tx.Board().Posted(context.Background(), "c1", 1000)
				for _, p := range list {
					if p.Delivery != "" {
						shown[p.ID] = p.Text
					}
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			return shown
		},
		Fail: func(f platformtest.Failure) bool {
			if f == platformtest.RefusedCredentials || f == platformtest.RateLimit {
				return false
			}
			board.mu.Lock()
			defer board.mu.Unlock()
			board.fails = f
			return true
		},
	}
}

// What was said before a restart is passed on after it, with its files, and said again it
// is one message.
func TestWhatWasSaidSurvives(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	ctx := waittest.Context(t.Context(), t)
	a := web.New(s, slog.New(slog.DiscardHandler))
	refuse := &platformtest.Sink{BeforeAccept: func([]messages.Inbound) error { return fault.New(fault.Unavailable, "no") }}
	run := func(a *web.Adapter, sink platform.Sink) (stop func()) {
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, sink) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stop := run(a, refuse)
	say := web.Said{Chat: "c1", ID: "m1", From: bob, Text: "look", Files: []messages.PostedFile{{Name: "a.txt", MediaType: "text/plain", Data: []byte("content")}}}
	for range 2 {
		if err := a.Say(ctx, say); err != nil {
			t.Fatal(err)
		}
	}
	stranger := say
	stranger.ID, stranger.From.ID = "m2", "43"
	if err := a.Say(ctx, stranger); !fault.Is(err, fault.NotFound) {
		t.Errorf("somebody else says something there: %v", err)
	}
	stop()

	a = web.New(s, slog.New(slog.DiscardHandler))
	taken := &platformtest.Sink{}
	stop = run(a, taken)
	if err := taken.Wait(ctx, func() bool { return len(taken.Events()) == 1 }); err != nil {
		t.Fatal(err)
	}
	in := taken.Events()[0]
	if in.Actor() != "telegram/42" || !in.Private || len(in.Attachments) != 1 {
		t.Errorf("passed on %+v", in)
	}
	body, err := a.Fetch(ctx, in.Attachments[0])
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(body); string(data) != "content" || err != nil {
		t.Errorf("fetched %q, %v", data, err)
	}
	in.Attachments[0].Source = "c2/m1-0"
	if _, err := a.Fetch(ctx, in.Attachments[0]); !fault.Is(err, fault.NotFound) {
		t.Errorf("a file of another conversation: %v", err)
	}
	stop()
}

// refusing is a sink that does not take what is said in some conversations.
func refusing(chats ...string) *platformtest.Sink {
	return &platformtest.Sink{BeforeAccept: func(events []messages.Inbound) error {
		if slices.Contains(chats, events[0].Conversation.ID) {
			return fault.New(fault.Unavailable, "no")
		}
		return nil
	}}
}

// A conversation whose messages cannot be taken holds up no other, however many they
// are; its own come in their order when they can.
func TestOneBadConversationHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	ctx := waittest.Context(t.Context(), t)
	for _, chat := range []string{"a", "b", "c"} {
		for i := range map[string]int{"a": 250, "b": 230, "c": 3}[chat] {
			id := fmt.Sprintf("%s-%03d", chat, i)
			event := fmt.Sprintf(`{"Event":%q,"Message":%q,"Kind":"message","Conversation":{"Platform":"web","ID":%q}}`, id, id, chat)
			p := messages.Posted{Chat: chat, ID: messages.MessageID(id), Author: "telegram/42", Text: "hello"}
			if err := s.Say(ctx, p, []byte(event)); err != nil {
				t.Fatal(err)
			}
		}
	}
	waits := func() (ids []messages.MessageID) {
		err := s.Untaken(ctx, "", "", 1000, func(_ string, id messages.MessageID, _ []byte) { ids = append(ids, id) })
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	once := func(sink *platformtest.Sink, taken int) (came []messages.EventID) {
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- web.New(s, slog.New(slog.DiscardHandler)).Run(ctx, sink) }()
		err := sink.Wait(ctx, func() bool { return len(sink.Events()) >= taken })
		cancel()
		if err := errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		for _, e := range sink.Events() {
			came = append(came, e.Event)
		}
		return came
	}
	if came := once(refusing("a"), 233); !slices.IsSorted(came) || came[0] != "b-000" || came[232] != "c-002" {
		t.Errorf("there came %v", came)
	}
	if ids := waits(); ids[0] != "a-000" || len(ids) < 250 || len(ids) > 251 { // the last one may have been taken without a note
		t.Errorf("there wait %d: %v", len(ids), ids)
	}
	if came := once(refusing(), 250); !slices.IsSorted(came) || came[0] != "a-000" || came[249] != "a-249" {
		t.Errorf("there came %v", came)
	}
}

// TestPicturesAreShownAsSuch: pages show what is a picture, whatever it is called, and give
// everything else as text.
func TestPicturesAreShownAsSuch(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	said(t, s, "first", "{}")
	a := web.New(s, slog.New(slog.DiscardHandler))
	for name, data := range map[string]string{"a.png": "\x89PNG\r\n\x1a\n", "b.png": "<svg><script/></svg>", "c.md": "# Hello"} {
		if _, err := a.SendFile(t.Context(), platform.File{
			Delivery: messages.DeliveryID(name), Conversation: messages.ConversationKey{Platform: web.Name, ID: "c1"}, Name: name, Data: []byte(data),
		}); err != nil {
			t.Fatal(err)
		}
	}
	err := s.InRead(t.Context(), func(tx *store.Tx) error {
		list, err := tx.Board().Posted(t.Context(), "c1", 10)
		kinds := make(map[string]string)
		for _, p := range list {
			for _, f := range p.Files {
				kinds[f.Name] = f.MediaType
			}
		}
		const text = "text/plain; charset=utf-8"
		if want := map[string]string{"a.png": "image/png", "b.png": text, "c.md": text}; !maps.Equal(kinds, want) {
			t.Errorf("the files are %v, want %v", kinds, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
