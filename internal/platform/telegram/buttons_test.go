package telegram_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	emulator "remote-agent/internal/emulator/telegram"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/telegram"
	"remote-agent/internal/waittest"
)

var choice = []messages.Button{
	{ID: "y1", Label: "Approve", Style: messages.ButtonPrimary},
	{ID: "n1", Label: "Reject", Style: messages.ButtonDanger},
	{ID: "r1", Label: "Revise"}, {ID: "s1", Label: "Show"},
}

func TestButtonsComeAndGo(t *testing.T) {
	t.Parallel()
	b := open(t)
	shown := func() [][]emulator.Button { return b.server.ChatView(ann).Last().Keyboard() }
	want := [][]emulator.Button{
		{{Text: "Approve", Data: "y1", Style: "primary"}, {Text: "Reject", Data: "n1", Style: "danger"}, {Text: "Revise", Data: "r1"}},
		{{Text: "Show", Data: "s1"}},
	}
	ref, err := b.Send(t.Context(), messages.Outbound{Conversation: key(ann), Text: "plan", Buttons: choice})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, shown()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	for i, edit := range []platform.Edit{
		{Text: "plan"}, // the same text: only the keyboard changes
		{Text: "plan", Buttons: choice},
		{Text: "plan", Buttons: choice},
		{Text: "revising", Progress: true},
		{Text: "plan", Buttons: choice, Progress: true},
		{Text: "approved"},
	} {
		edit.Ref = ref
		if err := b.Edit(t.Context(), edit); err != nil {
			t.Fatal(err)
		}
		if edit.Buttons == nil {
			if got := shown(); got != nil {
				t.Errorf("edit %d: still shows %v", i, got)
			}
		} else if diff := cmp.Diff(want, shown()); diff != "" {
			t.Errorf("edit %d (-want +got):\n%s", i, diff)
		}
	}
	bad := []messages.Button{{ID: strings.Repeat("x", 65), Label: "x"}}
	if _, err := b.Send(t.Context(), messages.Outbound{Conversation: key(ann), Text: "x", Buttons: bad}); !fault.Is(err, fault.Invalid) {
		t.Errorf("Send: %v", err)
	}
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "x", Buttons: bad}); !fault.Is(err, fault.Invalid) {
		t.Errorf("Edit: %v", err)
	}
	if !b.Capabilities().Buttons {
		t.Error("the capabilities do not tell")
	}
}

// A message that Telegram refuses to format keeps its buttons.
func TestButtonsStayUnderPlainText(t *testing.T) {
	t.Parallel()
	b := open(t)
	refuse := emulator.Refuse(400, "Bad Request: can't parse entities: whatever")
	b.server.Inject("sendMessage", refuse)
	b.server.Inject("editMessageText", refuse)
	ref, err := b.Send(t.Context(), messages.Outbound{Conversation: key(ann), Text: "**b**", Buttons: choice})
	if err != nil {
		t.Fatal(err)
	}
	if k := b.server.ChatView(ann).Last().Keyboard(); len(k) != 2 {
		t.Errorf("shows %v", k)
	}
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "**c**", Buttons: choice}); err != nil {
		t.Fatal(err)
	}
	if m := b.server.ChatView(ann).Last(); m.Text != "c" || len(m.Keyboard()) != 2 {
		t.Errorf("shows %+v", m)
	}
}

// pressed lets Ann press a button of a new message and returns the event.
func (b bundle) pressed(t *testing.T) messages.Inbound {
	t.Helper()
	ref, err := b.Send(t.Context(), messages.Outbound{Conversation: key(ann), Text: "plan", Buttons: choice})
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(string(ref.Message))
	if err != nil {
		t.Fatal(err)
	}
	have := len(b.sink.Events())
	sent := b.server.Person(ann).Presses(id, "y1")
	b.await(t, have+1)
	in := b.sink.Events()[have]
	if in.Kind != messages.KindAction || in.Action != "y1" || in.Message != ref.Message || in.Event != messages.EventID(strconv.FormatInt(sent.UpdateID, 10)) {
		t.Fatalf("received %+v", in)
	}
	return in
}

// answers waits for n answers to presses.
func (b bundle) answers(t *testing.T, n int) []emulator.CallbackAnswer {
	t.Helper()
	ctx := waittest.Context(t.Context(), t)
	if err := b.server.WaitFor(ctx, func() bool { return len(b.server.Ledger().Answers) >= n }); err != nil {
		t.Fatalf("%d answers", len(b.server.Ledger().Answers))
	}
	return b.server.Ledger().Answers
}

func TestWhisperAnswersAPress(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"Toast": {"Approved by **you**.", "Approved by you."},
		"Alert": {strings.Repeat("a", 61), strings.Repeat("a", 61)},
		"Long":  {strings.Repeat("a", 300), strings.Repeat("a", 199) + "…"},
		"Empty": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.run(t)
			in := b.pressed(t)
			if err := b.Whisper(t.Context(), in, tt.text); err != nil {
				t.Fatal(err)
			}
			want := []emulator.CallbackAnswer{{QueryID: in.Trigger, Text: tt.want, Alert: len(tt.text) > 60}}
			if diff := cmp.Diff(want, b.answers(t, 1)); diff != "" {
				t.Errorf("answered (-want +got):\n%s", diff)
			}
			if err := b.Whisper(t.Context(), in, "again"); err != nil {
				t.Errorf("a second answer, which is too old: %v", err)
			}
		})
	}
}

func TestPressesAreAnsweredEvenIfNobodyWhispers(t *testing.T) {
	t.Parallel()
	for name, webhook := range map[string]bool{"Polling": false, "Webhook": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bundle
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b.Webhook(b.sink).ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			b = open(t, func(c *telegram.Config) {
				if webhook {
					c.Webhook, c.WebhookSecret, c.PublicURL = true, secret, front.URL
				}
			})
			started := time.Now()
			// The first comes without its message and is ignored, but its client
			// waits as well.
			b.server.Person(ann).Presses(99, "y1")
			b.run(t)
			b.pressed(t)
			for _, a := range b.answers(t, 2) {
				if a.Text != "" || a.Alert {
					t.Errorf("answered %+v", a)
				}
			}
			if d := time.Since(started); d < 2*time.Second {
				t.Errorf("answered after %v, before anybody could whisper", d)
			}
		})
	}
}

func TestFailedWhisperIsFollowedByAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.run(t)
	in := b.pressed(t)
	b.server.Inject("answerCallbackQuery", emulator.ServerError(502))
	if err := b.Whisper(t.Context(), in, "hello"); !fault.Is(err, fault.Unavailable) || fault.Uncertain(err) {
		t.Errorf("error %v", err)
	}
	if got := b.answers(t, 1); got[0].QueryID != in.Trigger || got[0].Text != "" {
		t.Errorf("answered %+v", got)
	}
}

// A press whose event is not stored comes again; only then it is answered.
func TestPressIsAnsweredAfterItIsStored(t *testing.T) {
	t.Parallel()
	b := open(t)
	failures := 1
	b.sink.BeforeAccept = func([]messages.Inbound) error {
		if n := len(b.server.Ledger().Answers); n != 0 {
			t.Errorf("%d answers before the event was stored", n)
		}
		if failures > 0 {
			failures--
			return fault.New(fault.Unavailable, "no")
		}
		return nil
	}
	b.run(t)
	in := b.pressed(t)
	if got := b.answers(t, 1); len(got) != 1 || got[0].QueryID != in.Trigger {
		t.Errorf("answered %+v", got)
	}
}

// The orchestrator may whisper before Accept has returned.
func TestWhisperDuringAccept(t *testing.T) {
	t.Parallel()
	b := open(t)
	silent := false
	b.sink.BeforeAccept = func(events []messages.Inbound) error {
		if silent {
			return nil
		}
		silent = true
		return b.Whisper(t.Context(), events[0], "fast")
	}
	b.run(t)
	first := b.pressed(t)
	second := b.pressed(t) // its empty answer comes after one to the first would
	got, want := b.answers(t, 2), []emulator.CallbackAnswer{{QueryID: first.Trigger, Text: "fast"}, {QueryID: second.Trigger}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answered (-want +got):\n%s", diff)
	}
	if n := b.server.Count("answerCallbackQuery"); n > 2 {
		t.Errorf("answered %d times", n)
	}
}

func TestWhisperIsUnsupportedForTheRest(t *testing.T) {
	t.Parallel()
	b := open(t)
	action := messages.Inbound{Conversation: key(ann), Kind: messages.KindAction, Trigger: "1", Private: true}
	for name, change := range map[string]func(*messages.Inbound){
		"Message":       func(in *messages.Inbound) { in.Kind = messages.KindMessage },
		"NoTrigger":     func(in *messages.Inbound) { in.Trigger = "" },
		"OtherPlatform": func(in *messages.Inbound) { in.Conversation.Platform = "slack" },
	} {
		in := action
		change(&in)
		if err := b.Whisper(t.Context(), in, "x"); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(b.server.Calls()); n != 0 {
		t.Errorf("%d calls", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Whisper(ctx, action, "x"); !fault.Is(err, fault.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
