package turn

import (
	"context"
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
func (r *run) messageDone(out *outcome, m messages.Message) error {
	out.rest = append(out.rest, m)
	calls, results := toolBlocks(m)
	if len(calls) == 0 && len(results) == 0 {
		return nil
	}
	session := r.d.begun.session.ID
	err := r.w.hold(r.w.ctx, func(tx port.Tx) error {
		seqs, err := tx.Messages().AppendMessages(r.w.ctx, session, r.d.entry.ID, out.rest...)
		if err != nil {
			return err
		}
		for _, c := range calls {
			err := tx.Calls().InsertToolCall(r.w.ctx, sessions.ToolCall{
				SessionID: session, MessageSeq: seqs[len(seqs)-1], CallID: c.ID, Name: c.Name,
				Request: c.Arguments, Status: sessions.ToolPending,
			})
			if err != nil && (!isSettled(err) || !r.w.runsAgent()) {
				return err
			}
		}
		return recordResults(r.w.ctx, tx, session, results)
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
func recordResults(ctx context.Context, tx port.Tx, session string, results []messages.ToolResult) error {
	for _, r := range results {
		status, errText := sessions.ToolCompleted, ""
		if r.IsError {
			status, errText = sessions.ToolFailed, r.Content
		}
		err := tx.Calls().UpdateToolCall(ctx, session, r.CallID, status, jsonText(r.Content), errText)
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
