package chat_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/commit"

	"remote-agent/internal/chat"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/recollect"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

const runID = "01900000-0000-7000-8000-0000000000%02x"

// memories shows a store through the port of package recollect.
func memories(s *store.Store) recollect.Storage {
	return store.Through[recollect.Tx]{Store: s, As: func(tx *store.Tx) recollect.Tx { return tx.Memories() }}
}

// desk has the commands about memory, and short ways to give them.
type desk struct {
	*chat.Handler
	t    *testing.T
	db   *store.Store
	skip atomic.Int64 // how far its clock is ahead
	runs int
}

func setupMemory(t *testing.T, change ...func(*recollect.Config)) *desk {
	t.Helper()
	d := &desk{t: t, db: storetest.SQLite(t)(t)}
	now := func() time.Time { return time.Now().Add(time.Duration(d.skip.Load())) }
	config := recollect.Config{
		Storage: memories(d.db), Log: storetest.Log(t), Now: now,
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") },
	}
	for _, f := range change {
		f(&config)
	}
	service := recollect.New(config)
	t.Cleanup(service.Close)
	handler, err := chat.New(chat.Config{Storage: d.db, Memory: service, Now: now, Log: storetest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	d.Handler = handler
	return d
}

func entry(user, text string, private bool) sessions.Entry {
	return sessions.Entry{In: messages.Inbound{
		Conversation: messages.ConversationKey{Platform: "test", ID: "c"}, Sender: messages.Sender{ID: messages.UserID(user)}, Text: text, Private: private,
	}}
}

// gives runs a command of a person in a private chat, as a new message.
func (d *desk) gives(user, text string) (string, error) {
	d.runs++
	e := entry(user, text, true)
	e.ID = fmt.Sprintf(runID, d.runs)
	return d.run(e)
}

func (d *desk) run(e sessions.Entry) (string, error) {
	d.t.Helper()
	r, err := d.handle(e, sessions.Conversation{})
	return r.Text, err
}

func (d *desk) handle(e sessions.Entry, conv sessions.Conversation) (command.Reply, error) {
	d.t.Helper()
	call, _ := command.Parse(e.In.Text)
	c, ok := d.Find(call.Name)
	if !ok {
		d.t.Fatalf("no command: %q", e.In.Text)
	}
	return c.Run(d.t.Context(), command.Request{Entry: e, Call: call, Conv: conv})
}

func (d *desk) says(user, text string, parts ...string) {
	d.t.Helper()
	got, err := d.gives(user, text)
	for _, p := range parts {
		if err != nil || !strings.Contains(got, p) {
			d.t.Errorf("%s answers %q, %v; want %q in it", text, got, err, p)
		}
	}
}

func TestMemoryCommands(t *testing.T) {
	t.Parallel()
	d := setupMemory(t)
	d.says("ann", "/memory", "No memories about you yet (memory is on)")
	d.says("ann", "/remember I like *green* tea", "memory 1")
	d.says("ann", "/remember i like *green* TEA.", "Already saved as memory 1") // the new spelling is kept
	d.says("ann", "/remember I do not like *green* tea", "Updated memory 1, which said something different")
	d.says("ann", "/memory", `I do not like \*green\* tea`, "(from you, just now)", "before:")
	d.says("ann", "/remember I really do not like *green* tea", "Updated memory 1. `/memory` shows what it said before")
	d.says("ann", "/memory edit 1 I dr\u200bink cocoa\U000E0069\U000E0067", "Updated memory 1")
	d.says("ann", "/memory cocoa", "I drink cocoa (") // what nobody sees is not kept
	d.says("ann", "/memory whisky", "No matching memories")
	d.says("ann", "/memory 1", "No matching memories")
	d.says("bob", "/memory", "No memories")
	for text, kind := range map[string]fault.Kind{
		"/remember": fault.Invalid, "/remember \u200b\u2060": fault.Invalid, "/remember my password is hunter2": fault.Invalid, "/remember " + strings.Repeat("x", 3000): fault.Invalid,
		"/forget": fault.Invalid, "/forget cocoa": fault.Invalid, "/forget -1": fault.Invalid, "/forget 7": fault.NotFound,
		"/memory edit": fault.Invalid, "/memory edit 1": fault.Invalid, "/memory edit 9 x": fault.NotFound, "/memory edit 1 hunter2": fault.Invalid,
	} {
		if got, err := d.gives("ann", text); !fault.Is(err, kind) {
			t.Errorf("%.30s: %q, %v; want %s", text, got, err, kind)
		}
	}
	if got, err := d.gives("bob", "/forget 1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Bob forgets Ann's memory: %q, %v", got, err)
	}
	d.says("ann", "/forget all", "(1)", "/forget all yes")
	d.says("ann", "/memory", "cocoa")
	d.says("ann", "/forget all yes", "all 1")
	d.says("ann", "/forget all yes", "No memories")
}

// Where something was learned is told for as long as it is known: also when the words
// that it was learned from are past RETENTION_RAW, and not when their conversation is gone.
func TestWhereSomethingWasLearnedIsTold(t *testing.T) {
	t.Parallel()
	d := setupMemory(t)
	e := entry("ann", "please keep it short", true)
	e.In.Event, e.In.Kind, e.In.Raw, e.AcceptedAt = "e", messages.KindMessage, []byte("{}"), time.Now()
	err := d.db.InTx(t.Context(), func(tx *store.Tx) error {
		conv, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), e.In.Conversation, "demo")
		if err != nil {
			return err
		}
		e.ConversationID = conv.ID
		if _, err := tx.Inbox().InsertEntry(t.Context(), &e); err != nil {
			return err
		}
		if err := tx.Inbox().UpdateEntry(t.Context(), e.ID, sessions.EntryUpdate{State: new(sessions.EntryDone)}); err != nil {
			return err
		}
		_, err = tx.Memories().UpsertFact(t.Context(), memory.Fact{Scope: memory.Scope{Person: "test/ann"}, RunID: e.ID, Text: "prefers short answers", Origin: memory.Learned})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	on := " on " + e.AcceptedAt.UTC().Format(time.DateOnly)
	d.says("ann", "/memory", "prefers short answers", "learned from what you wrote in your private chat on test"+on)
	if _, _, err := d.db.Prune(t.Context(), store.ExpiringBodies, time.Now().Add(time.Hour), store.PrunePlace{}, 10); err != nil {
		t.Fatal(err)
	}
	d.says("ann", "/memory", "prefers short answers", "learned from what you wrote in `test/c`"+on)
	if err := d.db.InTx(t.Context(), func(tx *store.Tx) error { return tx.Conversations().DeleteConversation(t.Context(), e.ConversationID) }); err != nil {
		t.Fatal(err)
	}
	d.says("ann", "/memory", "prefers short answers (learned, just now")
}

// A command may run again after a crash, with the same entry.
func TestRememberHasItsEffectOnce(t *testing.T) {
	t.Parallel()
	d := setupMemory(t)
	e := entry("ann", "/remember I like tea", true)
	e.ID = fmt.Sprintf(runID, 1)
	first, err := d.run(e)
	again, err2 := d.run(e)
	if err != nil || err2 != nil || first != again {
		t.Errorf("%q, %v, then %q, %v", first, err, again, err2)
	}
	d.says("ann", "/memory", "Memories about you: 1", "(from you, just now)")
}

func TestListsArePrivate(t *testing.T) {
	t.Parallel()
	d := setupMemory(t)
	d.says("ann", "/remember I am a canary", "memory 1")
	for text, want := range map[string]bool{"/memory": false, "/memory canary": false, "/memory here": true, "/memory here canary": true} {
		got, err := d.run(entry("ann", text, false))
		if err != nil || strings.Contains(got, "a canary") != want {
			t.Errorf("%s where others read: %q, %v", text, got, err)
		}
	}
}

func TestPagesOfTheList(t *testing.T) {
	t.Parallel()
	d := setupMemory(t)
	for i := range 22 {
		d.says("ann", fmt.Sprintf("/remember thing%d", i), "memory")
	}
	d.says("ann", "/memory", "Memories about you: 22", "thing21", "thing2 ", "Older ones: `/memory 3`")
	got, err := d.gives("ann", "/memory 3")
	if err != nil || !strings.Contains(got, "thing1 ") || strings.Contains(got, "thing2 ") || strings.Contains(got, "Older") {
		t.Errorf("the second page: %q, %v", got, err)
	}
}

// Who has nothing stored yet, but has said something to learn from, is not asked first.
func TestForgettingAllDropsWhatIsStillToBeLearned(t *testing.T) {
	t.Parallel()
	d := setupMemory(t)
	e := entry("ann", "I live in Berlin", true)
	err := d.db.InTx(t.Context(), func(tx *store.Tx) error {
		conv, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), e.In.Conversation, "scripted")
		if err != nil {
			return err
		}
		e.ConversationID, e.State, e.In.Event = conv.ID, sessions.EntryDone, "1"
		if _, err := tx.Inbox().InsertEntry(t.Context(), &e); err != nil {
			return err
		}
		return storetest.Apply(t.Context(), tx, conv.ID, commit.Changes{Lessons: []commit.Lesson{{Entry: e.ID, Account: "test/ann", Due: time.Now()}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	d.says("ann", "/forget all", "No memories about you")
	err = d.db.InRead(t.Context(), func(tx *store.Tx) error {
		h, err := tx.Persons().Holdings(t.Context(), "test/ann")
		if h.Lessons != 0 {
			t.Errorf("%d messages are still to be learned from", h.Lessons)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
