//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
)

// Of what waits in a conversation everybody there sees what it is, and has the buttons that
// they may press.
func TestOnlyWhoMayDecideHasButtons(t *testing.T) {
	t.Parallel()
	dan, eve := signin.Account{Platform: "telegram", ID: "44"}, signin.Account{Platform: "telegram", ID: "45"}
	const allow, always, deny, run, approve, reject = "Allow once<", "Always allow this<", "Don&#39;t run<", "Approve and run<", "Approve<", "Reject<"
	all := []string{allow, always, deny, run, approve, reject}
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.roles[dan], w.roles[eve] = sessions.User, sessions.Reader
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for _, a := range []signin.Account{dan, eve} { // they were there, too
				in := messages.Inbound{Event: messages.EventID("by " + a.ID), Kind: messages.KindMessage, Conversation: s.conversation.Key, Sender: messages.Sender{ID: a.ID}, Text: "hi"}
				if _, err := tx.Inbox().InsertEntry(ctx, &sessions.Entry{ConversationID: s.conversation.ID, SessionID: s.session.ID, State: sessions.EntryDone, In: in}); err != nil {
					return err
				}
			}
			return nil
		})
		at, planAt := "/approvals/"+s.question.Name(), "/approvals/"+s.plan.Name()
		check := func(when string, want map[signin.Account][]string) {
			t.Helper()
			for who, buttons := range want {
				b := w.as(who)
				page := b.get(at) + b.get(planAt)
				for _, button := range all {
					if got := strings.Contains(page, button); got != slices.Contains(buttons, button) {
						t.Errorf("%s, %s has the button %q: %v", when, who, button, got)
					}
				}
			}
		}
		check("one decides", map[signin.Account][]string{ann: all, bob: all, dan: {deny}, eve: nil})
		w.config.SecondApprover = true
		w.pages = pages.New(w.config)
		check("another one decides", map[signin.Account][]string{ann: all, bob: {deny, run, approve, reject}, dan: {allow, always, deny}, eve: nil})
		w.do(func(ctx context.Context, tx *store.Tx) error { // dan is bob, with another account
			_, err := tx.Persons().JoinPeople(ctx, memory.Account{Name: bob.String()}, memory.Account{Name: dan.String()})
			return err
		})
		check("another person decides", map[signin.Account][]string{ann: all, bob: {deny, run, approve, reject}, dan: {deny}, eve: nil})
		if strings.Contains(w.as(dan).get("/approvals"), allow) {
			t.Error("who asked may allow it with another account")
		}
		w.later(s.plan.ExpiresAt.Sub(w.now))
		check("the time is over", map[signin.Account][]string{ann: nil, bob: nil})
	})
}

// How long is left is rounded, not cut: somebody who looks at once reads of what was given.
func TestHowLongAnApprovalIsOpen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b := w.as(ann)
		a := s.question
		a.CallID, a.ExpiresAt = "c3", w.now.Add(24*time.Hour)
		w.do(func(ctx context.Context, tx *store.Tx) error { return tx.Questions().InsertApproval(ctx, &a) })
		for _, c := range []struct {
			later time.Duration
			want  string
		}{
			{3 * time.Second, "in 24 hours"}, {40 * time.Minute, "in 23 hours"}, {21*time.Hour + 20*time.Minute - 3*time.Second, "in 2 hours"}, {20 * time.Minute, "in 100 minutes"},
			{40 * time.Minute, "in 1 hour"}, {3 * time.Second, "in 1 hour"}, {time.Minute, "in 59 minutes"}, {57*time.Minute + 27*time.Second, "in 2 minutes"}, {time.Minute, "in less than a minute"},
		} {
			w.later(c.later)
			wants(t, b.get("/approvals/"+a.Name()), "expires "+c.want+"<")
		}
	})
}

// What does not fit on the page is counted there, of what somebody sees.
func TestThePageSaysThatMoreWaits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill() // with one of each
		ask := func(n int) {
			w.do(func(ctx context.Context, tx *store.Tx) error {
				for range n {
					a := s.question
					a.CallID = uuid.NewString()
					if err := tx.Questions().InsertApproval(ctx, &a); err != nil {
						return err
					}
				}
				return nil
			})
		}
		owner, member, other := w.as(ann), w.as(bob), w.as(cat)
		ask(49)
		for _, b := range []*browser{owner, member} {
			if page := b.get("/approvals") + b.get("/"); strings.Contains(page, "for a decision.") || !strings.Contains(page, "◆51") {
				t.Error("where all are shown, more are said to wait")
			}
		}
		ask(1)
		wants(t, owner.get("/approvals"), "1 more waits for a decision.")
		ask(1)
		for _, b := range []*browser{owner, member} {
			wants(t, b.get("/approvals"), "2 more wait for a decision.")
			wants(t, b.get("/"), "2 more wait for a decision.", "◆53")
		}
		if page := other.get("/approvals"); !strings.Contains(page, "Nothing is waiting for a decision") || strings.Contains(page, "more wait") {
			t.Error("somebody reads how much waits elsewhere")
		}
	})
}
