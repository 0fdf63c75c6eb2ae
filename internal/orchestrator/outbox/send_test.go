package outbox

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// opener is a platform where the first message opens a thread of its own.
type opener struct{ platform.Editor }

func (opener) Platform() messages.Platform         { return "p" }
func (opener) Capabilities() platform.Capabilities { return platform.Capabilities{} }
func (opener) Run(context.Context, platform.Sink) error {
	return nil
}

func (opener) Send(context.Context, messages.Outbound) (messages.Ref, error) {
	return messages.Ref{Conversation: messages.ConversationKey{Platform: "p", ID: "thread"}, Message: "m"}, nil
}

// TestPlaceRecordsTheMoveWithTheMessage sees to it that a crash leaves no
// conversation whose message is known under a key that its platform does not.
func TestPlaceRecordsTheMoveWithTheMessage(t *testing.T) {
	t.Parallel()
	o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": opener{}}, Log: slog.New(slog.DiscardHandler)})
	from := messages.ConversationKey{Platform: "p", ID: "new-1"}
	records := 0
	record := func(_ context.Context, d messages.Delivery, moved *Move) error {
		records++
		if d.Message != "m" || d.State != messages.DeliveryPlaced || moved == nil || moved.From != from || moved.To != "thread" {
			t.Errorf("recorded %+v with %+v", d, moved)
		}
		return nil
	}
	now, err := o.Place(t.Context(), from, &messages.Delivery{ID: "d"}, record)
	if err != nil || now.ID != "thread" || records != 1 {
		t.Errorf("Place = %v, %v after %d records", now, err, records)
	}
	stays := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": &keeper{}}, Log: slog.New(slog.DiscardHandler)})
	now, err = stays.Place(t.Context(), from, &messages.Delivery{ID: "d"}, func(_ context.Context, _ messages.Delivery, moved *Move) error {
		if moved != nil {
			t.Errorf("a platform that does not say where a message is moved its conversation to %q", moved.To)
		}
		return nil
	})
	if now != from || err != nil {
		t.Errorf("Place = %v, %v", now, err)
	}
	broken := errors.New("no database")
	now, err = o.Place(t.Context(), from, &messages.Delivery{ID: "d"}, func(context.Context, messages.Delivery, *Move) error { return broken })
	if now != from || err == nil {
		t.Errorf("Place = %v, %v without a record", now, err)
	}
}

// keeper is a platform that keeps what it is asked for, and fails with an error if it has one.
type keeper struct {
	platform.Editor
	caps  platform.Capabilities
	err   error
	asked []string
}

func (k *keeper) Capabilities() platform.Capabilities { return k.caps }

func (k *keeper) Send(_ context.Context, out messages.Outbound) (messages.Ref, error) {
	k.asked = append(k.asked, "send "+out.Text)
	return messages.Ref{Message: "m"}, k.err
}

func (k *keeper) Edit(_ context.Context, e platform.Edit) error {
	k.asked = append(k.asked, "edit "+e.Text)
	return k.err
}

// TestWhatOnePersonSeesIsNeverEdited, because no platform can: a message that may have been sent
// is looked up, where that is possible, and stays as it is.
func TestWhatOnePersonSeesIsNeverEdited(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		only  messages.UserID
		asked []string
	}{
		"Everybody": {"", []string{"send hello", "edit hello"}},
		"OnePerson": {"42", []string{"send hello"}},
	} {
		k := &keeper{caps: platform.Capabilities{IdempotentSend: true}}
		o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": k}, Log: slog.New(slog.DiscardHandler)})
		d := messages.Delivery{ID: "d", Text: "hello", Final: true, State: messages.DeliverySending, OnlyFor: tt.only}
		_, done, err := o.Send(t.Context(), messages.ConversationKey{Platform: "p", ID: "c"}, &d, func(context.Context, messages.Delivery, *Move) error { return nil })
		if diff := cmp.Diff(tt.asked, k.asked); diff != "" || !done || err != nil {
			t.Errorf("%s: %v, %v (-want +got):\n%s", name, done, err, diff)
		}
	}
}

// fileless is a platform that takes no files.
type fileless struct {
	*keeper
	err error
}

func (f fileless) SendFile(context.Context, platform.File) (messages.Ref, error) {
	return messages.Ref{}, f.err
}

// TestAFileThatIsRefusedIsTold: the code of an answer that is posted as a file is nowhere else, and
// nobody misses a file that they do not know of. Where nothing can be posted, nothing is.
func TestAFileThatIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		d     messages.Delivery
		err   error
		asked []string
	}{
		"Code": {
			messages.Delivery{FileName: "code.sh"}, fault.New(fault.Invalid, "blocked_file_type"),
			[]string{"send ⚠ `code.sh` cannot be posted as a file. `/full` posts the answer as text."},
		},
		"OfACommand": {
			messages.Delivery{FileName: "changes.patch", Control: true}, fault.New(fault.Forbidden, "files:write"),
			[]string{"send ⚠ `changes.patch` cannot be posted as a file."},
		},
		"CodeOnceMore": {
			messages.Delivery{FileName: "code.sh", Text: "⚠ `code.sh` cannot be posted as a file. `/full` posts the answer as text."}, fault.New(fault.Invalid, "blocked_file_type"),
			[]string{"send ⚠ `code.sh` cannot be posted as a file. `/full` posts the answer as text."},
		},
		"Gone": {messages.Delivery{FileName: "code.sh"}, fault.New(fault.Gone, "is_archived"), nil},
	} {
		k := &keeper{caps: platform.Capabilities{IdempotentSend: true, CommandPrefix: "/"}}
		o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": fileless{k, tt.err}}, Log: slog.New(slog.DiscardHandler)})
		tt.d.ID, tt.d.Final, tt.d.State = "d", true, messages.DeliveryPending
		_, done, err := o.Send(t.Context(), messages.ConversationKey{Platform: "p", ID: "c"}, &tt.d, func(context.Context, messages.Delivery, *Move) error { return nil })
		if diff := cmp.Diff(tt.asked, k.asked); diff != "" || !done || err != nil {
			t.Errorf("%s: %v, %v (-want +got):\n%s", name, done, err, diff)
		}
	}
}

// TestWhatBecomesOfADeliveryThatFailed: what may have happened is looked for, what surely has not
// begins anew, and a limit of the platform's is no try.
func TestWhatBecomesOfADeliveryThatFailed(t *testing.T) {
	t.Parallel()
	uncertain := &fault.Error{Kind: fault.Unavailable, Uncertain: true}
	for name, tt := range map[string]struct {
		err      error
		there    messages.MessageID
		state    messages.DeliveryState
		attempts int
	}{
		"NotSent":       {fault.New(fault.Unavailable, "no"), "", messages.DeliveryPending, 1},
		"MaybeSent":     {uncertain, "", messages.DeliverySending, 1},
		"NotEdited":     {fault.New(fault.Unavailable, "no"), "m", messages.DeliverySending, 1}, // as it was
		"MaybeEdited":   {uncertain, "m", messages.DeliveryPlaced, 1},
		"Limited":       {fault.New(fault.RateLimited, "slower"), "", messages.DeliveryPending, 0},
		"NotAuthorized": {fault.New(fault.Unauthorized, "no"), "", messages.DeliverySending, 1},
	} {
		o := New(Config{Log: slog.New(slog.DiscardHandler)})
		d := messages.Delivery{ID: "d", Text: "hello", Message: tt.there, State: messages.DeliverySending}
		again, err := o.afterFailure(t.Context(), messages.ConversationKey{Platform: "p"}, &d, tt.err, nil)
		if again || err != nil || d.State != tt.state || d.Attempts != tt.attempts || !d.NextAt.After(time.Now()) {
			t.Errorf("%s: %v, %v, %+v", name, again, err, d)
		}
	}
}

// written is a database that writes an audit log, or fails to.
type written struct {
	port.Storage
	port.Tx
	err   error
	audit []sessions.AuditEntry
}

func (w *written) InTx(_ context.Context, fn func(tx port.Tx) error) error { return fn(w) }

func (w *written) Audit(_ context.Context, e sessions.AuditEntry) error {
	w.audit = append(w.audit, e)
	return w.err
}

// TestCommentsAreWrittenDownFirst, with who asked for them: what cannot be is not posted.
func TestCommentsAreWrittenDownFirst(t *testing.T) {
	t.Parallel()
	broken := errors.New("no database")
	for name, tt := range map[string]struct {
		comments bool
		asker    messages.UserID
		err      error
		by       string // empty: nothing is written
		sent     int
	}{
		"OfAPerson":      {true, "42", nil, "p/42", 1},
		"OfItself":       {true, "", nil, "system", 1},
		"NoDatabase":     {true, "42", broken, "p/42", 0},
		"WhereTheyChat":  {false, "42", nil, "", 1},
		"ChatNoDatabase": {false, "42", broken, "", 1},
	} {
		k, db := &keeper{caps: platform.Capabilities{Comments: tt.comments}}, &written{err: tt.err}
		o := New(Config{Storage: db, Adapters: map[messages.Platform]platform.Adapter{"p": k}, Log: slog.New(slog.DiscardHandler)})
		_, err := o.post(t.Context(), k, "c1", messages.Outbound{
			Delivery: "d", Conversation: messages.ConversationKey{Platform: "p", ID: "c"}, Text: "hello", Asker: messages.Sender{ID: tt.asker},
		})
		if len(k.asked) != tt.sent || (err == nil) != (tt.sent == 1) {
			t.Errorf("%s: asked %q, %v", name, k.asked, err)
		}
		if (tt.by == "") != (len(db.audit) == 0) {
			t.Errorf("%s: written down: %+v", name, db.audit)
		}
		for _, e := range db.audit {
			if e.Actor != tt.by || e.Action != "comment.post" || e.Effect != "comment:d" || e.ConversationID != "c1" {
				t.Errorf("%s: written down: %+v", name, e)
			}
		}
	}
}

// TestWhatOnePersonMayHaveSeenIsNotShownForEver: nobody can look up whether it is there, so
// each try may show it once more.
func TestWhatOnePersonMayHaveSeenIsNotShownForEver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		only    messages.UserID
		err     *fault.Error
		givesUp bool
	}{
		"OnePerson":  {"42", &fault.Error{Kind: fault.Unavailable, Uncertain: true}, true},
		"NeverThere": {"42", &fault.Error{Kind: fault.Unavailable}, false},
		"Everybody":  {"", &fault.Error{Kind: fault.Unavailable, Uncertain: true}, false},
	} {
		k := &keeper{caps: platform.Capabilities{IdempotentSend: true}, err: tt.err}
		o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": k}, Log: slog.New(slog.DiscardHandler)})
		d := messages.Delivery{ID: "d", Text: "hello", Final: true, State: messages.DeliveryPending, OnlyFor: tt.only}
		tries, over := 0, false
		for ; tries < 20 && !over; tries++ {
			var err error
			_, over, err = o.Send(t.Context(), messages.ConversationKey{Platform: "p", ID: "c"}, &d, func(context.Context, messages.Delivery, *Move) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		if over != tt.givesUp || over && (tries != maxWhispers || d.State != messages.DeliveryFailed) {
			t.Errorf("%s: given up: %v, after %d tries, in the state %q", name, over, tries, d.State)
		}
	}
}
