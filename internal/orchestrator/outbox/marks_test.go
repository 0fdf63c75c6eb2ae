package outbox

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// marked is a platform whose marks tell how turns ended, and that can take messages away.
type marked struct {
	platform.Adapter
	marks []platform.Mark
	taken []messages.MessageID
}

func (*marked) Capabilities() platform.Capabilities { return platform.Capabilities{OutcomeMarks: true} }

func (m *marked) Mark(_ context.Context, _ messages.Ref, mark platform.Mark) error {
	m.marks = append(m.marks, mark)
	return nil
}

func (m *marked) Delete(_ context.Context, ref messages.Ref) error {
	m.taken = append(m.taken, ref.Message)
	return nil
}

// entries is a database with one entry.
type entries struct {
	port.Storage
	port.Tx
	sessions.InboxStore
	entry sessions.Entry
}

func (e entries) InRead(_ context.Context, fn func(tx port.Tx) error) error { return fn(e) }
func (e entries) Inbox() sessions.InboxStore                                { return e }
func (e entries) Entry(context.Context, string) (sessions.Entry, error)     { return e.entry, nil }

// TestMarkOfWhatIsAnswered tells how the turn ended, and that it failed if nobody sees its answer.
func TestMarkOfWhatIsAnswered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entry    sessions.EntryState
		delivery messages.DeliveryState
		want     platform.Mark // empty: as it is
		later    platform.Mark // what another process, which was late, puts there
	}{
		"Done":          {sessions.EntryDone, messages.DeliverySent, platform.MarkDone, platform.MarkDone},
		"Failed":        {sessions.EntryFailed, messages.DeliverySent, platform.MarkFailed, platform.MarkFailed},
		"Stopped":       {sessions.EntryStopped, messages.DeliverySent, platform.MarkFailed, platform.MarkFailed},
		"NobodySeesIt":  {sessions.EntryDone, messages.DeliveryFailed, platform.MarkFailed, platform.MarkDone},
		"NotOverYet":    {sessions.EntryRunning, messages.DeliverySent, "", ""},
		"HasNotBegunAt": {sessions.EntryWaiting, messages.DeliverySent, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, group := new(marked), new(background.Group)
				cancel := group.Open(t.Context())
				defer cancel(nil)
				entry := sessions.Entry{ID: "e", State: tt.entry, In: messages.Inbound{Conversation: messages.ConversationKey{Platform: "p", ID: "c"}, Message: "m"}}
				o := New(Config{
					Storage: entries{entry: entry}, Adapters: map[messages.Platform]platform.Adapter{"p": m}, Background: group, Log: slog.New(slog.DiscardHandler),
				})
				want := func(mark platform.Mark, what string) {
					t.Helper()
					synctest.Wait()
					if len(m.marks) > 1 || (len(m.marks) == 1) != (mark != "") || mark != "" && m.marks[0] != mark {
						t.Errorf("%s: %q, want %q", what, m.marks, mark)
					}
					m.marks = nil
				}
				o.MarkAnswered(t.Context(), "p", messages.Delivery{ID: "d", EventID: "e", State: tt.delivery})
				want(tt.want, "with its answer")
				o.lookAgain(t.Context(), entry)
				want(tt.later, "when it is looked at again")
			})
		})
	}
}

// TestWhatIsNotThereIsNotTakenBack: a platform is not asked to delete a message without an id.
func TestWhatIsNotThereIsNotTakenBack(t *testing.T) {
	t.Parallel()
	m := new(marked)
	o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": m}, Log: slog.New(slog.DiscardHandler)})
	for _, id := range []messages.MessageID{"", "m"} {
		o.TakeBack(t.Context(), messages.Ref{Conversation: messages.ConversationKey{Platform: "p"}, Message: id})
	}
	if len(m.taken) != 1 || m.taken[0] != "m" {
		t.Errorf("taken back: %q", m.taken)
	}
}

// lane is a database with the messages that a conversation has to answer, and what is sent of them.
type lane struct {
	recorded
	sessions.InboxStore
	head    sessions.EntryState // of the first
	waiting []sessions.Entry
}

func (l *lane) Inbox() sessions.InboxStore { return l }

func (l *lane) WaitingEntries(context.Context, string, int64, int) ([]sessions.Entry, error) {
	return l.waiting, nil
}

func (l *lane) NextEntry(context.Context, string) (sessions.Entry, bool, error) {
	return sessions.Entry{Seq: 1, State: l.head}, l.head != "", nil
}

// TestPlaceInTheQueue: each message that will be answered before is counted once, whether it is
// being answered or waits itself.
func TestPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		head    sessions.EntryState
		waiting []int64
		text    string
	}{
		"Alone":       {sessions.EntryWaiting, []int64{3}, "Queued."},
		"OneRuns":     {sessions.EntryRunning, []int64{3}, "Queued: 1 message has to be answered before it."},
		"OneWaits":    {sessions.EntryWaiting, []int64{1, 3}, "Queued: 1 message has to be answered before it."},
		"Both":        {sessions.EntryRunning, []int64{2, 3}, "Queued: 2 messages have to be answered before it."},
		"OneIsBehind": {sessions.EntryRunning, []int64{3, 4}, "Queued: 1 message has to be answered before it."},
	} {
		db := &lane{head: tt.head}
		for _, seq := range tt.waiting {
			db.waiting = append(db.waiting, sessions.Entry{Seq: seq, State: sessions.EntryWaiting})
		}
		o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": new(sender)}})
		entry := sessions.Entry{ID: "e", Seq: 3, In: messages.Inbound{Conversation: messages.ConversationKey{Platform: "p"}}}
		if err := o.AddWaiting(t.Context(), db, entry); err != nil || len(db.all) != 1 || db.all[0].Text != tt.text {
			t.Errorf("%s: %v, %+v", name, err, db.all)
		}
	}
}

// TestBeginningOfWhatIsGivenUpIsTakenBack: nobody waits for the rest of it. What cannot be sent
// because its chat is gone, or was sent anew often enough, is given up, too.
func TestBeginningOfWhatIsGivenUpIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind  fault.Kind
		d     messages.Delivery
		taken int
	}{
		"Refused":      {fault.Forbidden, messages.Delivery{State: messages.DeliverySending}, 0},
		"EditRefused":  {fault.Forbidden, messages.Delivery{State: messages.DeliveryPlaced, Message: "m"}, 1},
		"NoChat":       {fault.NotFound, messages.Delivery{State: messages.DeliverySending}, 0},
		"TooManyTimes": {fault.NotFound, messages.Delivery{State: messages.DeliveryPlaced, Message: "m", Attempts: maxEditTries - 1}, 1},
	} {
		m := new(marked)
		o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": m}, Log: slog.New(slog.DiscardHandler)})
		again, err := o.afterFailure(t.Context(), messages.ConversationKey{Platform: "p"}, &tt.d, fault.New(tt.kind, "no"), func(context.Context, messages.Delivery, *Move) error { return nil })
		if again || err != nil || tt.d.State != messages.DeliveryFailed || len(m.taken) != tt.taken {
			t.Errorf("%s: %v, %v, %+v; taken back: %q", name, again, err, tt.d, m.taken)
		}
	}
}
