package platformtest

import (
	"context"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// Exercise runs the contract suite.
func Exercise(t *testing.T, h Harness) {
	t.Helper()
	t.Run("RunReturnsOnCancel", func(t *testing.T) { runReturnsOnCancel(t, h) })
	for _, f := range []Failure{RefusedCredentials, RateLimit, ServerError, ChatGone, NoAnswer} {
		t.Run("ClassifiesA"+strings.ReplaceAll(string(f), " ", ""), func(t *testing.T) { classifies(t, h.rig(t), f) })
	}
	for _, f := range []Failure{RateLimit, ServerError, NoAnswer} {
		t.Run("ClassifiesAnEditWithA"+strings.ReplaceAll(string(f), " ", ""), func(t *testing.T) { classifiesEdits(t, h.rig(t), f) })
	}
	for name, test := range map[string]func(*testing.T, Rig){
		"AcceptedBeforeAcknowledged":  acceptedBeforeAcknowledged,
		"RefusedEventIsNotAcked":      refusedEventIsNotAcked,
		"MalformedEventDoesNotBlock":  malformedEventDoesNotBlock,
		"OrderIsKept":                 orderIsKept,
		"SendPostsOneMessage":         sendPostsOneMessage,
		"LongestTextArrives":          longestTextArrives,
		"HearsNotItself":              hearsNotItself,
		"IsSilentAfterARateLimit":     isSilent,
		"CheckSaysWhoTheBotIs":        checkSaysWho,
		"RefusesStrangers":            refusesStrangers,
		"EditReplacesAndIsIdempotent": editReplaces,
		"AgainPostsNothingTwice":      againPostsNothingTwice,
		"CanceledContextIsHonored":    canceledContext,
		"CapabilitiesAreUsable":       capabilities,
		"DeleteTakesBack":             deleteTakesBack,
		"FileIsPostedOnce":            fileIsPostedOnce,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, h.rig(t))
		})
	}
}

func acceptedBeforeAcknowledged(t *testing.T, r Rig) {
	r.needs(t, r.Deliver != nil && r.Acknowledged != nil, "acknowledgment")
	sink := &Sink{}
	sink.BeforeAccept = func(events []messages.Inbound) error {
		for _, e := range events {
			// An adapter may deliver once more what is stored: two of its goroutines
			// may look for what is not taken at the same time.
			if r.Acknowledged(e.Event) && !sink.has(e.Event)() {
				t.Errorf("event %s was acknowledged before it was stored", e.Event)
			}
		}
		return nil
	}
	r.start(t, sink)
	id := r.Deliver("hello")
	sink.await(t, "accepting the event", sink.has(id))
	eventually(t, "acknowledging the event", func() bool { return r.Acknowledged(id) })
	e := sink.Events()[0]
	if e.Conversation != r.Conversation || e.Text != "hello" || e.Kind != messages.KindMessage || e.Sender.ID == "" || e.Message == "" {
		t.Errorf("accepted %+v, want a message \"hello\" in %s with sender and message id", e, r.Conversation)
	}
	if e.SentAt.IsZero() || len(e.Raw) == 0 {
		t.Errorf("the event lacks its time (%v) or its raw form (%d bytes)", e.SentAt, len(e.Raw))
	}
	if r.Kind == nil {
		return
	}
	if err := r.Kind.CheckID(e.Conversation.ID); err != nil {
		t.Errorf("the kind knows no conversation %q: %v", e.Conversation.ID, err)
	}
	if people := r.Kind.People(); !people.Form.MatchString(string(e.Sender.ID)) || people.FormText == "" {
		t.Errorf("the sender %q does not have the form of people: %q", e.Sender.ID, people.FormText)
	}
}

func refusedEventIsNotAcked(t *testing.T, r Rig) {
	r.needs(t, r.Deliver != nil && r.Acknowledged != nil, "acknowledgment")
	refuse := make(chan messages.EventID, 64)
	var back atomic.Bool
	sink := &Sink{BeforeAccept: func(events []messages.Inbound) error {
		if back.Load() {
			return nil
		}
		for _, e := range events {
			select {
			case refuse <- e.Event:
			default: // that is often enough
			}
		}
		return fault.New(fault.Unavailable, "the database is away")
	}}
	r.start(t, sink)
	id := r.Deliver("hello")
	for try := range 2 {
		select {
		case got := <-refuse:
			if got != id {
				t.Errorf("delivered with event id %s, want %s", got, id)
			}
			if r.Acknowledged(id) {
				t.Error("an event that was not stored is acknowledged")
			}
		case <-time.After(wait):
			t.Fatal("an event that was not stored is not delivered again")
		}
		back.Store(try > 0)
		if r.Redeliver != nil {
			r.Redeliver()
		}
	}
	sink.await(t, "accepting the event in the end", sink.has(id))
	eventually(t, "acknowledging the event", func() bool { return r.Acknowledged(id) })
	if n := len(sink.Events()); n != 1 {
		t.Errorf("%d events for one delivery", n)
	}
}

func malformedEventDoesNotBlock(t *testing.T, r Rig) {
	r.needs(t, r.Malformed != nil && r.Deliver != nil, "malformed events")
	sink := &Sink{}
	r.start(t, sink)
	r.Malformed()
	id := r.Deliver("after")
	sink.await(t, "accepting what comes after a malformed event", sink.has(id))
	sink.await(t, "keeping the malformed event", func() bool { return len(sink.Kept()) == 1 })
	raw := sink.Kept()[0]
	if len(raw.Raw) == 0 || raw.Reason == "" || raw.Platform != r.Adapter.Platform() {
		t.Errorf("kept %+v, want the raw event with a reason", raw)
	}
}

func orderIsKept(t *testing.T, r Rig) {
	r.needs(t, r.Deliver != nil, "delivery")
	sink := &Sink{}
	r.start(t, sink)
	var want, got []messages.EventID
	for range 20 {
		want = append(want, r.Deliver("hello"))
	}
	sink.await(t, "accepting all events", func() bool { return len(sink.Events()) == len(want) })
	for _, e := range sink.Events() {
		got = append(got, e.Event)
	}
	if !slices.Equal(got, want) {
		t.Errorf("events arrived as %v, want %v", got, want)
	}
}

func sendPostsOneMessage(t *testing.T, r Rig) {
	r.needs(t, r.Posts != nil, "view of posts")
	ref, err := r.send(t.Context(), "hello")
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	if ref.Conversation != r.Conversation || ref.Message == "" {
		t.Errorf("Send returned %+v", ref)
	}
	posts := r.Posts()
	if len(posts) != 1 || posts[ref.Message] != "hello" {
		t.Errorf("the conversation shows %v, want \"hello\" as %s", posts, ref.Message)
	}
}

// longestTextArrives sends as much as the capabilities promise.
func longestTextArrives(t *testing.T, r Rig) {
	r.needs(t, r.Posts != nil, "view of posts")
	c := r.Adapter.Capabilities()
	measure := c.Measure
	if measure == nil {
		measure = utf8.RuneCountInString
	}
	n := sort.Search(c.MaxText, func(n int) bool { return measure(strings.Repeat("a", n+1)) > c.MaxText })
	text := strings.Repeat("a", n)
	ref, err := r.send(t.Context(), text)
	if err != nil {
		t.Fatalf("Send of %d characters, with a limit of %d: %v", n, c.MaxText, err)
	}
	if posts := r.Posts(); len(posts) != 1 || posts[ref.Message] != text {
		t.Errorf("%d characters became %d messages, that of %s with %d bytes", n, len(posts), ref.Message, len(posts[ref.Message]))
	}
}

// hearsNotItself: an event that tells of what the bot posted is nobody's message.
func hearsNotItself(t *testing.T, r Rig) {
	r.needs(t, r.Deliver != nil, "delivery")
	sink := &Sink{}
	r.start(t, sink)
	if _, err := r.send(t.Context(), "hello"); err != nil {
		t.Fatalf("Send: %v", err)
	}
	id := r.Deliver("after")
	sink.await(t, "accepting what comes after a message of the bot", sink.has(id))
	if all := sink.Events(); len(all) != 1 {
		t.Errorf("accepted %+v, want what the person said only", all)
	}
}

// isSilent: what the platform asked to wait is waited, and not tried in between.
func isSilent(t *testing.T, r Rig) {
	r.needs(t, r.Fail != nil && r.Posts != nil && r.Fail(RateLimit), string(RateLimit))
	_, first := r.send(t.Context(), "hello")
	_, again := r.send(t.Context(), "hello")
	_, optional := r.Adapter.Send(t.Context(), messages.Outbound{Delivery: "d-2", Conversation: r.Conversation, Text: "hello", Optional: true})
	for _, err := range []error{first, again, optional} {
		if after, _ := fault.Retry(err); !fault.Is(err, fault.RateLimited) || after <= 0 || after > RateLimitWait {
			t.Errorf("Send while the platform wants silence: %v, retry after %v", err, after)
		}
	}
	if posts := r.Posts(); len(posts) != 0 {
		t.Errorf("posted %v although the platform wants silence", posts)
	}
}

// checkSaysWho: the account is the one that events come with.
func checkSaysWho(t *testing.T, r Rig) {
	checker, ok := r.Adapter.(platform.Checker)
	r.needs(t, ok, "account to ask for")
	me, err := checker.Check(t.Context())
	if err != nil || me.ID == "" || me.Name == "" {
		t.Fatalf("Check: %+v, %v, want an id and a name", me, err)
	}
	if r.Deliver != nil {
		sink := &Sink{}
		r.start(t, sink)
		sink.await(t, "accepting the event", sink.has(r.Deliver("hello")))
		if got := sink.Events()[0].Account; got != me.ID { // events of two accounts may have the same id
			t.Errorf("the event is of the account %q, want %q", got, me.ID)
		}
	}
}

// againPostsNothingTwice sends once more what has arrived although no answer
// told so.
func againPostsNothingTwice(t *testing.T, r Rig) {
	AgainPostsOnce(t, r, "0198c0de-0000-7000-8000-000000000001")
	// An id of tomorrow is one that was made before the clock was set back.
	AgainPostsOnce(t, r, DeliveryMadeAt(time.Now().Add(24*time.Hour)))
}

// DeliveryMadeAt returns an id that was made when the clock showed at.
func DeliveryMadeAt(at time.Time) messages.DeliveryID {
	id := uuid.Must(uuid.NewV7())
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli())<<16) //nolint:gosec // not before 1970
	copy(id[:6], ms[:6])
	return messages.DeliveryID(id.String())
}

// AgainPostsOnce sends what arrives without an answer that tells so, and sends it twice
// more. There must be one post.
func AgainPostsOnce(t *testing.T, r Rig, delivery messages.DeliveryID) {
	t.Helper()
	r.needs(t, r.Adapter.Capabilities().IdempotentSend, "idempotent send")
	r.needs(t, r.Posts != nil && r.Fail != nil && r.Fail(NoAnswer), "lost answer")
	before := len(r.Posts())
	out := messages.Outbound{Delivery: delivery, Conversation: r.Conversation, Text: "hello " + string(delivery)}
	if _, err := r.Adapter.Send(t.Context(), out); !fault.Uncertain(err) {
		t.Fatalf("Send without an answer: %v is not uncertain", err)
	}
	out.Again = true
	for range 2 {
		ref, err := r.Adapter.Send(t.Context(), out)
		if err != nil {
			t.Fatalf("Send again: %v", err)
		}
		if posts := r.Posts(); len(posts) != before+1 || posts[ref.Message] != out.Text {
			t.Errorf("the conversation shows %v, want %q as %s once", posts, out.Text, ref.Message)
		}
	}
}

func editReplaces(t *testing.T, r Rig) {
	editor, ok := r.Adapter.(platform.Editor)
	r.needs(t, ok && r.Posts != nil, "editing")
	ref, err := r.send(t.Context(), "one")
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	for range 2 {
		if err := editor.Edit(t.Context(), platform.Edit{Ref: ref, Text: "two"}); err != nil {
			t.Fatalf("Edit: %v", err)
		}
	}
	if posts := r.Posts(); len(posts) != 1 || posts[ref.Message] != "two" {
		t.Errorf("the conversation shows %v, want \"two\" as %s", posts, ref.Message)
	}
	if r.Fail != nil && r.Fail(MessageGone) {
		err := editor.Edit(t.Context(), platform.Edit{Ref: ref, Text: "three"})
		r.checkError(t, MessageGone, err)
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("editing a deleted message: %v is %q, want %q", err, fault.KindOf(err), fault.NotFound)
		}
	}
}

// deleteTakesBack: what is deleted is gone, and once more is no error.
func deleteTakesBack(t *testing.T, r Rig) {
	deleter, ok := r.Adapter.(platform.Deleter)
	r.needs(t, ok && r.Posts != nil, "messages that can be taken back")
	ref, err := r.send(t.Context(), "gone soon")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := deleter.Delete(t.Context(), ref); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if got := r.Posts(); len(got) != 0 {
		t.Errorf("there is %q", got)
	}
	if err := deleter.Delete(t.Context(), messages.Ref{Conversation: ref.Conversation, Message: "no such"}); err != nil && !fault.Is(err, fault.NotFound) {
		t.Errorf("Delete of what is no message: %v", err)
	}
}

// fileIsPostedOnce: a file that may have been posted is not posted again. Either it is
// found, or its message was there first and becomes the file.
func fileIsPostedOnce(t *testing.T, r Rig) {
	filer, ok := r.Adapter.(platform.Filer)
	r.needs(t, ok && r.Posts != nil, "files")
	f := platform.File{
		Delivery: messages.DeliveryID(uuid.Must(uuid.NewV7()).String()), Conversation: r.Conversation, Name: "answer-1.md", Data: []byte("All of it."), Caption: "Here.",
	}
	editor, edits := filer.(platform.FileEditor)
	if !edits {
		for _, f.Again = range []bool{false, true} {
			if _, err := filer.SendFile(t.Context(), f); err != nil {
				t.Fatalf("SendFile: %v", err)
			}
		}
	} else {
		ref, err := r.send(t.Context(), platform.Placeholder)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := editor.EditFile(t.Context(), ref, f); err != nil {
				t.Fatalf("EditFile: %v", err)
			}
		}
		gone := messages.Ref{Conversation: ref.Conversation, Message: "999999"}
		if err := editor.EditFile(t.Context(), gone, f); !fault.Is(err, fault.NotFound) {
			t.Errorf("EditFile of no message: %v", err)
		}
	}
	if got := r.Posts(); len(got) != 1 {
		t.Errorf("there is %q, want one message with the file", got)
	}
}

func classifies(t *testing.T, r Rig, f Failure) {
	want := map[Failure]fault.Kind{
		RefusedCredentials: fault.Unauthorized, RateLimit: fault.RateLimited, ServerError: fault.Unavailable,
		ChatGone: fault.Gone, NoAnswer: fault.Unavailable,
	}[f]
	r.needs(t, r.Fail != nil && r.Fail(f), string(f))
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	_, err := r.send(ctx, "hello")
	r.checkError(t, f, err)
	if kind := fault.KindOf(err); kind != want {
		t.Errorf("Send: %v is %q, want %q", err, kind, want)
	}
	// What may have been posted must not be posted again blindly, nor without
	// Outbound.Again, which is set because of it.
	if got := fault.Uncertain(err); got != (f == NoAnswer) {
		t.Errorf("Send: %v: uncertain is %v, want %v", err, got, f == NoAnswer)
	}
	after, _ := fault.Retry(err)
	if f == RateLimit && (after > RateLimitWait || after < RateLimitWait-time.Second) {
		t.Errorf("Send: retry after %v, want %v", after, RateLimitWait)
	}
}

// classifiesEdits: an edit is never uncertain, because the same one again does no harm.
func classifiesEdits(t *testing.T, r Rig, f Failure) {
	editor, ok := r.Adapter.(platform.Editor)
	r.needs(t, ok, "editing")
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	ref, err := r.send(ctx, "one")
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	r.needs(t, r.Fail != nil && r.Fail(f), string(f))
	err = editor.Edit(ctx, platform.Edit{Ref: ref, Text: "two"})
	r.checkError(t, f, err)
	want := fault.Unavailable
	if f == RateLimit {
		want = fault.RateLimited
	}
	if fault.KindOf(err) != want || fault.Uncertain(err) {
		t.Errorf("Edit: %v is %q, uncertain %v, want %q and certain", err, fault.KindOf(err), fault.Uncertain(err), want)
	}
}

func canceledContext(t *testing.T, r Rig) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.send(ctx, "hello")
	if kind := fault.KindOf(err); kind != fault.Canceled {
		t.Errorf("Send with a canceled context: %v is %q, want %q", err, kind, fault.Canceled)
	}
	if r.Posts != nil && len(r.Posts()) != 0 {
		t.Errorf("Send with a canceled context posted %v", r.Posts())
	}
}

func runReturnsOnCancel(t *testing.T, h Harness) {
	before := goleak.IgnoreCurrent()
	r := h.New(t)
	sink := &Sink{}
	stop := r.start(t, sink)
	if r.Deliver != nil {
		id := r.Deliver("hello")
		sink.await(t, "accepting an event", sink.has(id))
	}
	stop()
	if r.Close != nil {
		r.Close()
		goleak.VerifyNone(t, before)
	}
}

func capabilities(t *testing.T, r Rig) {
	c := r.Adapter.Capabilities()
	if r.Adapter.Platform() == "" || r.Adapter.Platform() != r.Conversation.Platform {
		t.Errorf("Platform is %q, conversations are on %q", r.Adapter.Platform(), r.Conversation.Platform)
	}
	if k := r.Kind; k != nil && (k.Platform() != r.Adapter.Platform() || k.Accounts() != string(k.Platform()) || k.CheckID("") == nil) {
		t.Errorf("the kind is of %q with accounts of %q, or an empty id is one of a conversation", k.Platform(), k.Accounts())
	}
	if c.MaxText < platform.MinSplit {
		t.Errorf("MaxText is %d", c.MaxText)
	}
	if c.Place == "" || c.Format == "" {
		t.Errorf("assistants are not told where they are: %q, %q", c.Place, c.Format)
	}
	measure := c.Measure
	if measure == nil {
		return
	}
	for _, s := range []string{"", "a", "\xff", "```", "> > >", "|a|\n|-|", "[a](b", strings.Repeat("*", 5000)} {
		if n := measure(s); n < 0 {
			t.Errorf("Measure(%q) is %d", s, n)
		}
	}
	if measure("hello world") < len("hello world") {
		t.Error("Measure of plain text is shorter than the text")
	}
}
