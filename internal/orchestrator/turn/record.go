package turn

import (
	"errors"

	"remote-agent/internal/assistant"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// messageDone keeps a complete message for the end of the turn, or stores it at
// once if it has to do with tools: a call is on record before it runs.
func (w *worker) messageDone(out *outcome, d decision, m messages.Message) error {
	out.rest = append(out.rest, m)
	calls, results := toolBlocks(m)
	if len(calls) == 0 && len(results) == 0 {
		return nil
	}
	session := d.begun.session.ID
	err := w.hold(w.ctx, func(tx port.Tx) error {
		seqs, err := tx.AppendMessages(w.ctx, session, d.entry.ID, out.rest...)
		if err != nil {
			return err
		}
		for _, c := range calls {
			err := tx.InsertToolCall(w.ctx, sessions.ToolCall{
				SessionID: session, MessageSeq: seqs[len(seqs)-1], CallID: c.ID, Name: c.Name,
				Request: c.Arguments, Status: sessions.ToolPending,
			})
			if err != nil && (!isSettled(err) || !w.runsAgent()) {
				return err
			}
		}
		return w.recordResults(tx, session, results)
	})
	if err == nil {
		out.rest = nil
		if len(calls) > 0 {
			failpoint.Hit(failpoint.CallRecorded)
		}
	}
	return err
}

// recordResults ends the calls that results answer. A result for a call that has
// ended, or that nobody made, is an agent's mistake and changes nothing.
func (w *worker) recordResults(tx port.Tx, session string, results []messages.ToolResult) error {
	for _, r := range results {
		status, errText := sessions.ToolCompleted, ""
		if r.IsError {
			status, errText = sessions.ToolFailed, r.Content
		}
		err := tx.UpdateToolCall(w.ctx, session, r.CallID, status, jsonText(r.Content), errText)
		if err != nil && !fault.Is(err, fault.NotFound) && !isSettled(err) {
			return err
		}
	}
	return nil
}

// isSettled reports whether a write came too late, and not for a lost lease.
func isSettled(err error) bool {
	return fault.Is(err, fault.Conflict) && !errors.Is(err, sessions.ErrLeaseLost)
}

func (w *worker) toolStarted(d decision, e assistant.ToolStarted) error {
	err := w.hold(w.ctx, func(tx port.Tx) error {
		err := w.beginCall(w.ctx, tx, d, e)
		if fault.Is(err, fault.NotFound) || isSettled(err) && w.runsAgent() {
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

func toolBlocks(m messages.Message) (calls []messages.ToolCall, results []messages.ToolResult) {
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case messages.ToolCall:
			calls = append(calls, b)
		case messages.ToolResult:
			results = append(results, b)
		case messages.Text, messages.Thinking, messages.Attachment:
		}
	}
	return calls, results
}
