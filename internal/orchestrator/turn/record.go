package turn

import (
	"errors"

	"remote-agent/internal/assistant"
	"remote-agent/internal/commit"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// messageDone keeps a complete message for the end of the turn, or stores it at
// once if it has to do with tools: a call is on record before it runs.
func (r *run) messageDone(out *outcome, m messages.Message) error {
	out.rest = append(out.rest, m)
	calls, results := usesTools(m)
	if !calls && !results {
		return nil
	}
	agent := r.w.runsAgent()
	_, err := r.w.o.config.Storage.Commit(r.w.ctx, r.w.lease, commit.Changes{Session: &commit.Session{
		ID: r.d.begun.session.ID, Run: r.d.entry.ID, Messages: out.rest, Twice: agent,
	}})
	switch {
	case err == nil:
		out.rest = nil
		if calls {
			failpoint.Hit(failpoint.CallRecorded)
		}
		if results {
			failpoint.Hit(failpoint.ResultStored)
		}
	case isSettled(err) && !agent:
		err = &fault.Error{Kind: fault.Conflict, Public: "The model gave a tool call the ID of another one.", Err: err}
	}
	return err
}

// isSettled reports whether a write came too late, and not for a lost lease.
func isSettled(err error) bool {
	return fault.Is(err, fault.Conflict) && !errors.Is(err, sessions.ErrLeaseLost)
}

func (r *run) toolStarted(e assistant.ToolStarted) error {
	err := r.w.hold(r.w.ctx, func(tx port.Tx) error {
		err := r.beginCall(r.w.ctx, tx, e)
		if fault.Is(err, fault.NotFound) || isSettled(err) && r.w.runsAgent() {
			return nil // an agent that reports calls without messages of its own, or twice
		}
		return err
	})
	if err == nil {
		failpoint.Hit(failpoint.CallBegun)
	}
	return err
}

// runsAgent reports whether the conversation's assistant runs tools of its own.
func (w *worker) runsAgent() bool {
	_, is := w.o.config.Assistants[assistant.Name(w.conv.Assistant)].(assistant.Agent)
	return is
}

// usesTools reports whether a message asks for calls of tools, and whether it has results.
func usesTools(m messages.Message) (calls, results bool) {
	for _, b := range m.Blocks {
		switch b.(type) {
		case messages.ToolCall:
			calls = true
		case messages.ToolResult:
			results = true
		case messages.Text, messages.Thinking, messages.Attachment:
		}
	}
	return calls, results
}
