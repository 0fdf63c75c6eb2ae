package command_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
)

const conversation, other = "01980000-0000-7000-8000-00000000000a", "01980000-0000-7000-8000-00000000000b"

// A button of a turn is one of its own conversation, and names its turn.
func TestButtonsOfTurns(t *testing.T) {
	t.Parallel()
	for _, seq := range []int64{0, 1, 42} {
		id := command.TurnButton(conversation, seq, command.RetryNow)
		if got, what, ok := command.TurnPressed(id, conversation); got != seq || what != command.RetryNow || !ok {
			t.Errorf("%s is %d %q %v", id, got, what, ok)
		}
		if got, what, ok := command.TurnPressed(id, other); got != 0 || what != "" || !ok {
			t.Errorf("%s, elsewhere, is %d %q %v", id, got, what, ok)
		}
		if _, ok := command.StopPressed(id, conversation); ok {
			t.Errorf("%s stops", id)
		}
		id = command.StopButton(conversation, seq)
		if got, ok := command.StopPressed(id, conversation); got != seq || !ok {
			t.Errorf("%s is %d %v", id, got, ok)
		}
		if got, ok := command.StopPressed(id, other); got != 0 || !ok {
			t.Errorf("%s, elsewhere, is %d %v", id, got, ok)
		}
		if _, _, ok := command.TurnPressed(id, conversation); ok {
			t.Errorf("%s tries again", id)
		}
	}
	tail := conversation[len(conversation)-12:]
	for _, id := range []string{"turn-" + tail, "turn-" + tail + "--1-retry", "turn-" + tail + "-x-retry", "turn-" + tail[1:] + "-7-retry", "turn-"} {
		if got, what, ok := command.TurnPressed(id, conversation); got != 0 || what != "" || !ok {
			t.Errorf("%s is %d %q %v", id, got, what, ok)
		}
	}
	for _, id := range []string{"stop-" + tail, "stop-" + tail + "--1", "stop-" + tail + "-x", "stop-" + tail[1:] + "-7", "stop-"} {
		if got, ok := command.StopPressed(id, conversation); got != 0 || !ok {
			t.Errorf("%s is %d %v", id, got, ok)
		}
	}
	for _, id := range []string{"", "x", "deadbeef"} {
		_, _, turn := command.TurnPressed(id, conversation)
		if _, stop := command.StopPressed(id, conversation); stop || turn {
			t.Errorf("%q is a button of a turn", id)
		}
	}
}

// saved keeps buttons.
type saved []command.Button

func (s *saved) SaveButton(_ context.Context, b command.Button) error {
	*s = append(*s, b)
	return nil
}

// What is shown of a plan tells how to decide; its buttons are bound to what is shown.
func TestShowPlan(t *testing.T) {
	t.Parallel()
	p := plan.Plan{
		Number: 9, Version: 2, ConversationID: conversation, Text: "1. Do it.", SHA256: plan.Sum("1. Do it."),
		ExpiresAt: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
	}
	var none saved
	text, buttons, err := command.ShowPlan(t.Context(), &none, p, "@bot ", "", false)
	if err != nil || buttons != nil || len(none) != 0 {
		t.Fatalf("without buttons: %v, %v, %v", buttons, none, err)
	}
	for _, want := range []string{"1. Do it.\n", "Plan p-9, version 2", "`@bot execute p-9`", "`@bot edit p-9 <text>`", "`@bot reject p-9`"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	if strings.Contains(text, "[Open]") {
		t.Errorf("%q links to pages that there are not", text)
	}
	var kept saved
	text, buttons, err = command.ShowPlan(t.Context(), &kept, p, "/", "https://bot.example", true)
	if err != nil || !strings.HasSuffix(text, " [Open](https://bot.example/approvals/p-9)") {
		t.Fatalf("%q, %v", text, err)
	}
	var decisions []string
	for i, b := range kept {
		decisions = append(decisions, b.Decision)
		if b.ID != buttons[i].ID || b.ConversationID != p.ConversationID || b.On != command.OnPlan || b.Number != 9 || b.SHA256 != p.SHA256 || !b.ExpiresAt.Equal(p.ExpiresAt) {
			t.Errorf("%+v is shown as %+v", b, buttons[i])
		}
	}
	if !slices.Equal(decisions, []string{"execute", "approve", "edit", "reject"}) || buttons[0].Style != messages.ButtonPrimary {
		t.Errorf("the buttons are %q, %+v", decisions, buttons)
	}
}
