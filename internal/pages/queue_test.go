//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/wording"
)

// deadEnds adds a turn that failed and an answer that was given up.
func (w *world) deadEnds(s settled) (turn sessions.Entry, answer messages.Delivery) {
	w.t.Helper()
	turn = sessions.Entry{ConversationID: s.conversation.ID, In: messages.Inbound{
		Event: "2", Kind: messages.KindMessage, Conversation: s.conversation.Key, Sender: messages.Sender{ID: "42", Name: evil}, Text: evil}}
	failed, why := sessions.EntryFailed, evil
	w.do(func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Inbox().InsertEntry(ctx, &turn); err != nil {
			return err
		}
		if err := tx.Inbox().UpdateEntry(ctx, turn.ID, sessions.EntryUpdate{State: &failed, Error: &why}); err != nil {
			return err
		}
		answer = messages.Delivery{ConversationID: s.conversation.ID, EventID: turn.ID, Text: evil, State: messages.DeliveryFailed, Error: evil, FileName: evilName}
		waits := messages.Delivery{ConversationID: s.conversation.ID, EventID: turn.ID, Text: evil, Attempts: 1, NextAt: w.now.Add(time.Hour), Error: evil}
		if err := tx.Deliveries().AddDelivery(ctx, &answer); err != nil {
			return err
		}
		return tx.Deliveries().AddDelivery(ctx, &waits)
	})
	return turn, answer
}

func TestQueueShowsWhatWaitsAndWhatFailed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner := w.as(ann)
		wants(t, owner.get("/queue"), "Nothing is running.", "Nothing is waiting.", "Nothing is parked.", "Nothing is on its way.", "No standing tasks.", "No failed turns.", "Every answer was delivered.", `data-live="/events?topic=all"`)
		s := w.fill()
		w.deadEnds(s)
		page := owner.get("/queue")
		wants(t, page, "◐", "tries again in 1 hour", "Failed turns (1)", "Answers that were not delivered (1)", "Send again", "<title>✖2 Queue")
		next := w.now.Add(3 * time.Hour)
		w.do(func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.People().Halt(ctx, "telegram/1", evil); err != nil {
				return err
			}
			if err := tx.People().SaveIdentity(ctx, sessions.Identity{Platform: "telegram", UserID: "1", Name: "Ann Example"}); err != nil {
				return err
			}
			last := sessions.Entry{ConversationID: s.conversation.ID, In: messages.Inbound{Event: "last", Kind: messages.KindMessage, Conversation: s.conversation.Key, Sender: messages.Sender{ID: "42"}}}
			if _, err := tx.Inbox().InsertEntry(ctx, &last); err != nil {
				return err
			}
			done, why := sessions.EntryDone, sessions.Paused+"no money"
			task := sessions.Schedule{AgentID: s.profile, ConversationID: s.conversation.ID, CreatedBy: "telegram/1", CreatedAt: w.now, NextAt: next}
			if err := errors.Join(tx.Inbox().UpdateEntry(ctx, last.ID, sessions.EntryUpdate{State: &done, Error: &why}), tx.Tasks().SaveSchedule(ctx, &task)); err != nil {
				return err
			}
			if _, err := tx.Tasks().AdvanceSchedule(ctx, task, w.now, next, last.ID); err != nil {
				return err
			}
			return tx.Inbox().UpdateEntry(ctx, s.entry, sessions.EntryUpdate{NextAt: &next})
		})
		page = owner.get("/queue")
		wants(t, page, "parked", "tries again in 3 hours", "Retry now", "Halted by Ann Example", "paused: the daily budget was used up")
		wants(t, w.as(ann).get("/"), "Halted by Ann Example")
		wants(t, w.as(bob).get("/"), "Halted by Ann Example", "tries again in 3 hours, at "+wording.Moment(next))
		clean(t, "/queue", page)
		if r := w.as(bob).send("GET", "/queue", nil); r.Code != http.StatusForbidden || strings.Contains(r.Body.String(), "href=\"/queue\"") {
			t.Errorf("a member sees the queue: %d\n%s", r.Code, r.Body)
		}
	})
}

// TestADamagedMessageIsShownAsOne, and the pages that list it show the rest.
func TestADamagedMessageIsShownAsOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.deadEnds(s)
		w.do(func(ctx context.Context, tx *store.Tx) error {
			return storetest.Exec(ctx, tx, `UPDATE inbound_events SET data = '{"text":'`)
		})
		owner := w.as(ann)
		for _, at := range []string{"/", "/queue", "/sessions/" + s.session.ID + "?tab=events", "/sessions/" + s.session.ID} {
			page := owner.get(at)
			if !strings.HasSuffix(at, s.session.ID) {
				wants(t, page, "A message that is damaged in the database")
			}
			clean(t, at, page)
		}
		page := owner.get("/queue")
		wants(t, page, "Failed turns (1)", ">Drop<")
		if strings.Contains(page, ">Retry<") || strings.Contains(page, "by telegram/ ") {
			t.Error("a message that nobody can read can be retried, or has a sender:\n" + page)
		}
	})
}

func TestDeadEndsAreRetriedAndDropped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		turn, answer := w.deadEnds(s)
		owner := w.as(ann)
		for path, form := range map[string]url.Values{
			"/queue/turn":     {"id": {turn.ID}, "do": {"drop"}},
			"/queue/delivery": {"id": {string(answer.ID)}, "do": {"drop"}},
			"/queue/schedule": {"conversation": {s.conversation.ID}},
		} {
			if r := w.as(bob).post(path, form); r.Code != http.StatusForbidden {
				t.Errorf("POST %s by a member: %d", path, r.Code)
			}
		}
		for what, want := range map[string]string{"retry": command.TurnButton(s.conversation.ID, turn.Seq, command.Retry), "stop": command.StopButton(s.conversation.ID, turn.Seq),
			"now": command.TurnButton(s.conversation.ID, turn.Seq, command.RetryNow)} {
			w.took = nil
			owner.follow(owner.post("/queue/turn", url.Values{"id": {turn.ID}, "do": {what}}))
			if len(w.took) != 1 || w.took[0].Action != want || w.took[0].Kind != messages.KindAction || w.took[0].Conversation != s.conversation.Key || w.took[0].Actor() != "console/local" {
				t.Errorf("%s: %+v", what, w.took)
			}
		}
		w.took = nil
		owner.follow(owner.post("/queue/schedule", url.Values{"conversation": {s.conversation.ID}}))
		if len(w.took) != 1 || w.took[0].Text != "/schedule off" {
			t.Errorf("the engine was given %+v", w.took)
		}
		wants(t, owner.follow(owner.post("/queue/delivery", url.Values{"id": {string(answer.ID)}, "do": {"retry"}})), "Sending it again.")
		w.do(func(ctx context.Context, tx *store.Tx) error {
			d, err := tx.Deliveries().Delivery(ctx, answer.ID)
			if d.State != messages.DeliveryPending {
				t.Errorf("the answer: %+v", d)
			}
			return err
		})
		if len(w.rang) != 1 || w.rang[0] != s.conversation.ID {
			t.Errorf("rang for %v", w.rang)
		}
		wants(t, owner.follow(owner.post("/queue/turn", url.Values{"id": {turn.ID}, "do": {"drop"}})), "Dropped the failed turn.", "No failed turns.")
		for name, r := range map[string]struct {
			path string
			form url.Values
			want int
		}{
			"dropped already":  {"/queue/turn", url.Values{"id": {turn.ID}, "do": {"drop"}}, http.StatusConflict},
			"sent already":     {"/queue/delivery", url.Values{"id": {string(answer.ID)}, "do": {"drop"}}, http.StatusConflict},
			"no such turn":     {"/queue/turn", url.Values{"id": {"x"}, "do": {"drop"}}, http.StatusBadRequest},
			"nothing to do":    {"/queue/turn", url.Values{"id": {turn.ID}}, http.StatusBadRequest},
			"nothing to do 2":  {"/queue/delivery", url.Values{"id": {string(answer.ID)}}, http.StatusBadRequest},
			"no such delivery": {"/queue/delivery", url.Values{"id": {"x"}, "do": {"retry"}}, http.StatusConflict},
		} {
			if got := owner.post(r.path, r.form); got.Code != r.want {
				t.Errorf("%s: %d, want %d", name, got.Code, r.want)
			}
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			var actions []string
			rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Limit: 100})
			for _, row := range rows {
				if strings.HasPrefix(row.Action, "turn.") || strings.HasPrefix(row.Action, "delivery.") {
					actions = append(actions, row.Actor+" "+row.Action)
				}
			}
			if got := strings.Join(actions, ", "); got != "console/local delivery.retry, console/local turn.drop" && got != "console/local turn.drop, console/local delivery.retry" {
				t.Errorf("the audit log: %s", got)
			}
			return err
		})
	})
}

// Each dead end is on one page of its list, whatever page of the other one is shown.
func TestDeadEndsComeInWindows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		const many = 51 // two pages and one
		s := w.fill()
		failed := sessions.EntryFailed
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for i := range many {
				e := sessions.Entry{ConversationID: s.conversation.ID, In: messages.Inbound{Event: messages.EventID(fmt.Sprintf("n%d", i)), Kind: messages.KindMessage,
					Conversation: s.conversation.Key, Sender: messages.Sender{ID: "42"}, Text: fmt.Sprintf("turn%d.", i)}}
				if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
					return err
				}
				if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: &failed}); err != nil {
					return err
				}
				d := messages.Delivery{ConversationID: s.conversation.ID, EventID: e.ID, Text: fmt.Sprintf("answer%d.", i), State: messages.DeliveryFailed}
				if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
					return err
				}
			}
			return nil
		})
		next := regexp.MustCompile(`href="(/queue\?[^"#]*)#failed-(turns|answers)"`)
		for list, shown := range map[string]*regexp.Regexp{"turns": regexp.MustCompile(`turn\d+\.`), "answers": regexp.MustCompile(`answer\d+\.`)} {
			seen := map[string]int{}
			b, path, others := w.as(ann), "/queue", 0
			for range 5 {
				page := b.get(path)
				for _, name := range shown.FindAllString(page, -1) {
					seen[name]++
				}
				path = ""
				for _, m := range next.FindAllStringSubmatch(page, -1) {
					if to := strings.ReplaceAll(m[1], "&amp;", "&"); m[2] == list {
						path = to
					} else if strings.Contains(to, list+"=") {
						others++ // it stays where it is in this list
					}
				}
				if path == "" {
					break
				}
			}
			for name, n := range seen {
				if n != 1 {
					t.Errorf("%s is shown %d times", name, n)
				}
			}
			if len(seen) != many || path != "" || others != 2 {
				t.Errorf("%d %s on all pages, want %d; more: %q; links of the other list that stay: %d, want 2", len(seen), list, many, path, others)
			}
		}
	})
}
