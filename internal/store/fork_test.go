//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// said is a session of a conversation with a message for each text, from a person
// and an assistant in turn.
func (b bundle) said(t *testing.T, conversation string, texts ...string) (s sessions.Session) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{
			ConversationID: conversation, Assistant: "demo", AgentName: "coder", Model: "m1", SystemPrompt: "be good", Config: []byte(`{"mode":"edit"}`), UserPrompt: "hi",
		})
		if err != nil {
			return err
		}
		for i, text := range texts {
			role := []messages.Role{messages.RoleUser, messages.RoleAssistant}[i%2]
			if _, err := tx.Messages().AppendMessages(ctx, s.ID, "", messages.NewText(role, text)); err != nil {
				return err
			}
		}
		return nil
	})
	return s
}

// texts returns what a session holds, oldest first.
func (b bundle) texts(t *testing.T, session string) (all []string) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		all = nil
		list, err := tx.Messages().MessagesBefore(ctx, session, 1<<62, 100)
		for _, m := range list {
			all = append([]string{m.PlainText()}, all...)
		}
		return err
	})
	return all
}

func (b bundle) fork(t *testing.T, f sessions.Fork) (done sessions.Forked, err error) {
	t.Helper()
	err = b.try(t, func(ctx context.Context, tx *store.Tx) (err error) {
		done, err = tx.Sessions().ForkSession(ctx, f)
		return err
	})
	return done, err
}

func TestForkSession(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		home, beside := b.conversation(t, "home"), b.conversation(t, "beside")
		from := b.said(t, home.ID, "one", "first", "two", "second")
		for _, f := range []sessions.Fork{{From: from.ID, N: -1}, {From: from.ID, N: 5}} {
			_, err := b.fork(t, f)
			wantKind(t, err, fault.Invalid)
		}
		_, err := b.fork(t, sessions.Fork{From: home.ID})
		wantKind(t, err, fault.NotFound)

		t.Log("into a conversation of its own: the first one stays as it is")
		aside, err := b.fork(t, sessions.Fork{From: from.ID, N: 2, Into: beside.ID})
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.fork(t, sessions.Fork{From: from.ID, N: 2, Into: beside.ID})
		if err != nil || again.Session.ID != aside.Session.ID || !again.Again || aside.Again {
			t.Errorf("asked again it is %+v, %v", again, err)
		}
		s := aside.Session
		if s.ConversationID != beside.ID || s.ParentID != from.ID || !s.Active || s.LastSeq != 2 || s.Metadata.Forked() != 2 || s.SystemPrompt != "be good" || s.AgentName != "coder" {
			t.Errorf("the fork is %+v", s)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if now, ok, err := tx.Sessions().ActiveSession(ctx, home.ID); err != nil || !ok || now.ID != from.ID || now.Status != from.Status {
				t.Errorf("the session that was forked is %+v, %v", now, err)
			}
			return nil
		})

		t.Log("in the same conversation")
		here, err := b.fork(t, sessions.Fork{From: from.ID})
		if err != nil || here.Taken != 4 || here.Of != 4 {
			t.Fatalf("%+v, %v", here, err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Messages().AppendMessages(ctx, here.Session.ID, "", messages.NewText(messages.RoleUser, "three")); err != nil {
				return err
			}
			ended, err := tx.Sessions().Session(ctx, from.ID)
			if err != nil || ended.Active || ended.Metadata[sessions.MetaEndReason] != "fork" {
				t.Errorf("the session before is %+v, %v", ended, err)
			}
			return err
		})
		next, err := b.fork(t, sessions.Fork{From: from.ID})
		if err != nil || next.Again || next.Session.ID == here.Session.ID {
			t.Errorf("after something was said in it, it is forked again as %+v, %v", next, err)
		}
		for id, want := range map[string][]string{
			from.ID: {"one", "first", "two", "second"}, aside.Session.ID: {"one", "first"}, here.Session.ID: {"one", "first", "two", "second", "three"},
		} {
			if diff := cmp.Diff(want, b.texts(t, id)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for session, want := range map[string]string{"": next.Session.ID, from.ID: next.Session.ID, here.Session.ID: next.Session.ID, next.Session.ID: ""} {
				s, ok, err := tx.Sessions().ForkAfter(ctx, home.ID, session)
				if err != nil || s.ID != want || ok != (want != "") {
					return fmt.Errorf("the fork after %q is %q, want %q: %w", session, s.ID, want, err)
				}
			}
			return nil
		})
	})
}

func TestForkRefusesWhatIsAtWorkOrEmpty(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		empty := b.said(t, c.ID)
		_, err := b.fork(t, sessions.Fork{From: empty.ID})
		wantKind(t, err, fault.Unsupported)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Messages().AppendMessages(ctx, empty.ID, "", messages.NewText(messages.RoleUser, "one")); err != nil {
				return err
			}
			e := sessions.Entry{ConversationID: c.ID, Lane: sessions.LaneTurn, State: sessions.EntryWaiting, In: messages.Inbound{
				Account: "bot", Event: "1", Kind: messages.KindMessage, Conversation: c.Key, Message: "1", Text: "more",
			}}
			_, err := tx.Inbox().InsertEntry(ctx, &e)
			return err
		})
		_, err = b.fork(t, sessions.Fork{From: empty.ID})
		wantKind(t, err, fault.Conflict)
	})
}

func TestControlBefore(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c, other := b.conversation(t, "chat"), b.conversation(t, "other")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for i, lane := range []sessions.Lane{sessions.LaneControl, sessions.LaneTurn, sessions.LaneControl, sessions.LaneControl} {
				for _, in := range []sessions.Conversation{c, other} {
					e := sessions.Entry{ConversationID: in.ID, Lane: lane, State: sessions.EntryWaiting, In: messages.Inbound{
						Account: "bot", Event: messages.EventID(fmt.Sprint(in.Key.ID, i)), Kind: messages.KindMessage, Conversation: in.Key, Text: fmt.Sprint("/new ", i),
					}}
					if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
						return err
					}
					if done := sessions.EntryDone; i == 2 && in.ID == c.ID {
						if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: &done}); err != nil {
							return err
						}
					}
				}
			}
			return nil
		})
		for before, want := range map[int64][]string{1: nil, 2: {"/new 0"}, 4: {"/new 0"}, 5: {"/new 0", "/new 3"}} {
			var got []string
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got = nil
				list, err := tx.Inbox().ControlBefore(ctx, c.ID, before)
				for _, e := range list {
					got = append(got, e.In.Text)
				}
				return err
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("before %d (-want +got):\n%s", before, diff)
			}
		}
	})
}

// A session that has a parent because it goes on from it is no fork.
func TestASessionWithAParentIsNotAFork(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "c")
		first := b.session(t, c.ID)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Sessions().DeactivateSession(ctx, first.ID, "new"); err != nil {
				return err
			}
			if _, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo", ParentID: first.ID}); err != nil {
				return err
			}
			s, ok, err := tx.Sessions().ForkAfter(ctx, c.ID, "")
			if ok {
				t.Errorf("%s is taken for a fork", s.ID)
			}
			return err
		})
	})
}

// What a fork copied was said by whom it was said in the session before, also in a fork of
// a fork, and by nobody who said something else in that place since.
func TestAForkKnowsWhoSaidWhatItCopied(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		home := b.conversation(t, "home")
		from, people := b.said(t, home.ID), map[string]string{}
		say := func(session, event, name, text string) {
			e := b.accept(t, "home", event, func(e *sessions.Entry) { e.In.Sender = messages.Sender{ID: messages.UserID(name), Name: name} })
			people[e.ID] = name
			b.say(t, session, e.ID, textOf(messages.RoleUser, text), textOf(messages.RoleAssistant, "answer"))
			done := sessions.EntryDone
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: &done, SessionID: &session})
			})
		}
		who := func(session string, before int64) (all []string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Pages().TranscriptPage(ctx, session, before, 100)
				if err != nil {
					return err
				}
				senders, err := tx.Pages().Senders(ctx, list)
				all = nil
				for _, m := range list {
					if m.Role == messages.RoleUser {
						all = append(all, senders[m.RunID].Sender.Name+": "+m.PlainText())
					}
				}
				return err
			})
			return all
		}
		fork := func(session string, n int) string {
			t.Helper()
			done, err := b.fork(t, sessions.Fork{From: session, N: n})
			if err != nil {
				t.Fatal(err)
			}
			return done.Session.ID
		}
		wants := func(session string, before int64, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, who(session, before)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		say(from.ID, "1", "Ann", "one")
		say(from.ID, "2", "Bob", "two")
		say(from.ID, "3", "Cat", "three")
		first := fork(from.ID, 4)
		say(first, "4", "Cat", "four")
		second := fork(first, 0)
		wants(first, 0, "Ann: one", "Bob: two", "Cat: four")
		wants(second, 0, "Ann: one", "Bob: two", "Cat: four")
		wants(second, 4, "Ann: one", "Bob: two")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE agent_messages SET undone = TRUE WHERE session_id = $1 AND seq >= 3`, from.ID)
		})
		b.say(t, from.ID, "", textOf(messages.RoleUser, "instead"))
		wants(second, 0, "Ann: one", ": two", "Cat: four")
		if n := b.counted(t, "agent_messages WHERE run_id <> '' AND content = 'one'"); n != 1 {
			t.Errorf("%d messages belong to the first run", n)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Care().RemoveSession(ctx, from.ID)
			return err
		})
		wants(second, 0, ": one", ": two", "Cat: four")
	})
}
