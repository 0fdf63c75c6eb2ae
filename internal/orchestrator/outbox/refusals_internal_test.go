package outbox

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// TestAReminderOutlivesARepeatedTransaction: the closure that stores a stranger's message may
// run twice, and its second run finds the same.
func TestAReminderOutlivesARepeatedTransaction(t *testing.T) {
	t.Parallel()
	const p = messages.Platform("telegram")
	o := &Outbox{refusals: map[messages.Platform]*refusals{p: newRefusals()}}
	in := messages.Inbound{Event: "1"}
	in.Conversation.Platform, in.Sender.ID = p, "7"
	for run := range 2 {
		if !o.AnswerAgain(in, true, time.Hour) {
			t.Errorf("run %d: nothing is said", run+1)
		}
	}
	in.Event = "2"
	if o.AnswerAgain(in, true, time.Hour) {
		t.Error("the next message of the hour is answered, too")
	}
}

// TestWhoIsToldThatTooManyWrite: each person once an hour, for a message, and of many as many as
// there are places.
func TestWhoIsToldThatTooManyWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const p = messages.Platform("github")
		o := &Outbox{refusals: map[messages.Platform]*refusals{p: newRefusals()}}
		told := func(who messages.UserID, kind messages.InboundKind) bool {
			in := messages.Inbound{Kind: kind, Sender: messages.Sender{ID: who}}
			in.Conversation.Platform = p
			o.RefuseBusy(in)
			select {
			case <-o.refusals[p].queue:
				return true
			default:
				return false
			}
		}
		for _, step := range []struct {
			after time.Duration
			who   messages.UserID
			kind  messages.InboundKind
			told  bool
		}{
			{0, "ann", messages.KindEdit, false},
			{0, "ann", messages.KindMessage, true},
			{time.Hour - time.Second, "ann", messages.KindMessage, false},
			{0, "bob", messages.KindMessage, true},
			{time.Second, "ann", messages.KindMessage, true},
		} {
			time.Sleep(step.after)
			if got := told(step.who, step.kind); got != step.told {
				t.Errorf("%v later %s is told for a %s: %v", step.after, step.who, step.kind, got)
			}
		}
		time.Sleep(time.Hour)
		n := 0
		for i := range 20 {
			if told(messages.UserID(fmt.Sprint(i)), messages.KindMessage) {
				n++
			}
		}
		if n != refuseBurst {
			t.Errorf("%d of 20 are told at once", n)
		}
	})
}

// refused is a database that knows whom somebody refused.
type refused struct {
	port.Tx
	sessions.PeopleStore
	who map[messages.UserID]sessions.Identity
}

func (r refused) People() sessions.PeopleStore { return r }
func (r refused) Identity(_ context.Context, _ messages.Platform, id messages.UserID) (sessions.Identity, bool, error) {
	i, ok := r.who[id]
	return i, ok, nil
}

func (r refused) SaveIdentity(_ context.Context, i sessions.Identity) error {
	r.who[i.UserID] = i
	return nil
}

// TestWhoIsToldNo: each stranger once a day, while there are places; whoever has one already needs
// no other one, and whoever finds none is told when they write again.
func TestWhoIsToldNo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const p = messages.Platform("telegram")
		o := &Outbox{refusals: map[messages.Platform]*refusals{p: newRefusals()}}
		tx := refused{who: map[messages.UserID]sessions.Identity{"reader": {UserID: "reader", Platform: p, Role: sessions.Reader}}}
		due := func(who messages.UserID, takes bool) bool {
			in := messages.Inbound{Sender: messages.Sender{ID: who, Name: "Now " + string(who)}}
			in.Conversation.Platform = p
			is, err := o.RefusalDue(t.Context(), tx, in, takes)
			if err != nil {
				t.Fatal(err)
			}
			return is
		}
		for i := range refuseBurst {
			if !due(messages.UserID(fmt.Sprint(i)), true) {
				t.Errorf("number %d is not told", i)
			}
		}
		for _, step := range []struct {
			after time.Duration
			who   messages.UserID
			takes bool
			want  bool
		}{
			{0, "late", true, false},
			{0, "reader", false, true}, // has a place
			{0, "0", false, false},     // was told
			{refuseEvery, "late", true, true},
			{toldEvery - refuseEvery - time.Second, "0", true, false},
			{time.Second, "0", true, true},
		} {
			time.Sleep(step.after)
			if got := due(step.who, step.takes); got != step.want {
				t.Errorf("%v later %s is told: %v", step.after, step.who, got)
			}
		}
		if i := tx.who["reader"]; i.Role != sessions.Reader || i.Name != "Now reader" {
			t.Errorf("the reader became %+v", i)
		}
	})
}
