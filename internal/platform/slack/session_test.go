package slack_test

import (
	"testing"

	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

func TestSessionStatus(t *testing.T) {
	t.Parallel()
	w := asked(t, overHTTP, sessions)
	state := func() string { return w.server.Thread("C1", w.root).Session.Status }
	for range 3 {
		if err := w.Typing(t.Context(), w.key); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.server.Count("agents.sessions.setStatus"); n != 1 || state() != "processing" || w.server.Count("assistant.threads.setStatus") != 0 {
		t.Errorf("%d calls, the session is %q", n, state())
	}
	ref := w.place(t) // a message that more follows
	if state() != "processing" {
		t.Errorf("behind a placeholder the session is %q", state())
	}
	w.final(t, ref, "done")
	w.final(t, ref, "done")
	if n := w.server.Count("agents.sessions.setStatus"); n != 2 || state() != "active" {
		t.Errorf("%d calls, the session is %q", n, state())
	}

	t.Log("an answer without a placeholder ends it, too")
	if err := w.Typing(t.Context(), w.key); err != nil || state() != "processing" {
		t.Errorf("the next turn: %v, %q", err, state())
	}
	if _, err := w.Send(t.Context(), messages.Outbound{Delivery: newDelivery(), Conversation: w.key, Text: "42"}); err != nil || state() != "active" {
		t.Errorf("after the answer: %v, %q", err, state())
	}

	t.Log("so does the answer of a process that goes on after another one died")
	if err := w.Typing(t.Context(), w.key); err != nil || state() != "processing" {
		t.Errorf("the next turn: %v, %q", err, state())
	}
	if err := w.another(t).Edit(t.Context(), platform.Edit{Ref: ref, Text: "done"}); err != nil || state() != "active" {
		t.Errorf("after the answer: %v, %q", err, state())
	}

	t.Log("what could not be taken away is taken away later")
	w.final(t, ref, "done")
	w.eventually(t, func() bool { return w.Typing(t.Context(), w.key) == nil && state() == "processing" })
	w.server.Inject("agents.sessions.setStatus", emulator.ServerError(503))
	w.final(t, ref, "done again")
	if state() != "processing" {
		t.Fatalf("the session is %q", state())
	}
	w.eventually(t, func() bool { return state() == "active" })
}

// A workspace without sessions is asked once, and has the status of a thread.
func TestWithoutSessions(t *testing.T) {
	t.Parallel()
	w := asked(t, overHTTP)
	other := w.elsewhere()
	for _, root := range []string{w.root, other, w.root} {
		if err := w.Typing(t.Context(), key("T1/C1/"+root)); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.server.Count("agents.sessions.setStatus"); n != 1 || w.server.Thread("C1", w.root).Status == "" {
		t.Errorf("%d calls, the status is %q", n, w.server.Thread("C1", w.root).Status)
	}
}
