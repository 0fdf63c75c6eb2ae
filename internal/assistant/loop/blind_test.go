package loop_test

import (
	"strings"
	"testing"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// TestFileThatTheModelCannotRead: what is wrong with one file must not end every turn of the
// conversation that has it, nor keep the model from other files.
func TestFileThatTheModelCannotRead(t *testing.T) {
	t.Parallel()
	refused := assistant.Unreadable(fault.New(fault.Invalid, "The PDF specified was not valid."))
	m := &model{script: func(_ int, r assistant.Request) answer {
		for _, b := range r.Array[0].Blocks {
			if a, ok := b.(messages.Attachment); ok && a.Data == "broken" {
				return answer{err: refused}
			}
		}
		return text("Read.")
	}}
	a := loop.New(m, loop.Config{})
	with := func(data string, more ...messages.Message) assistant.Turn {
		tn := turn(nil, more...)
		tn.Array[0].Blocks = append(tn.Array[0].Blocks, messages.Attachment{Name: "a.pdf", MediaType: "application/pdf", Data: data})
		return tn
	}
	next := []messages.Message{messages.NewText(messages.RoleAssistant, "Read."), messages.NewText(messages.RoleUser, "And now?")}
	for name, tt := range map[string]struct {
		turn   assistant.Turn
		notice bool
	}{"with the file": {with("broken"), true}, "after it": {with("broken", next...), false}} {
		var notice string
		got := result{}
		for event, err := range a.Run(t.Context(), tt.turn) {
			got.err = err
			if n, ok := event.(assistant.Notice); ok {
				notice = n.Text
			}
			if f, ok := event.(assistant.Finished); ok {
				got.finished = &f
			}
		}
		if got.err != nil || got.finished == nil || (notice != "") != tt.notice || tt.notice && !strings.Contains(notice, "could not read") {
			t.Errorf("%s: %v, notice %q", name, got.err, notice)
		}
	}
	before := len(m.requests)
	if got := runConfig(t.Context(), a, with("good")); got.err != nil || len(m.requests) != before+1 || !assistant.ShowsFiles(m.requests[before].Array...) {
		t.Errorf("another file is not shown: %v, %d requests", got.err, len(m.requests)-before)
	}
}
