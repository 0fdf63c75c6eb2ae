package turn

import (
	"context"
	"slices"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/commit"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// interrupted gives the calls that a crash interrupted their results, and
// reports those that never began: they run when the turn goes on. Of an assistant with tools
// of its own all have ended, and of those that it had asked about it hears that they did not run.
func (w *worker) interrupted(ctx context.Context, tx port.Tx, entry sessions.Entry, session string) error {
	open, err := tx.Calls().OpenCalls(ctx, session)
	if err != nil {
		return err
	}
	a := w.o.config.Assistants[assistant.Name(w.conv.Assistant)]
	if _, uses := a.(assistant.ToolUser); !uses {
		results, err := w.undecided(ctx, tx, entry, open)
		if err == nil {
			err = w.o.cancelQuestions(ctx, tx, entry, approval.Restarted) // under other names
		}
		if err != nil {
			return err
		}
		over := commit.Session{ID: session, Over: true}
		if len(results.Blocks) > 0 {
			over.Run, over.Messages = entry.ID, []messages.Message{results}
		}
		_, err = tx.Leases().Apply(ctx, w.lease, commit.Changes{Session: &over})
		return err
	}
	begun := slices.DeleteFunc(open, func(c sessions.ToolCall) bool { return c.Status != sessions.ToolExecuting })
	if len(begun) == 0 {
		return nil
	}
	results := messages.Message{Role: messages.RoleTool}
	for _, c := range begun {
		results.Blocks = append(results.Blocks, messages.ToolResult{
			CallID: c.CallID, Name: c.Name, IsError: true,
			Content: "interrupted, may have run: the service stopped meanwhile. Check what took effect before you repeat it.",
		})
	}
	_, err = tx.Leases().Apply(ctx, w.lease, commit.Changes{Session: &commit.Session{ID: session, Run: entry.ID, Messages: []messages.Message{results}}})
	return err
}

// unheard is the result of a call that was allowed, and that its agent did not hear of: a call is
// on record as begun before the agent does. It is what such a yes is known by, see passOn.
const unheard = "not run: a person allowed it, but the service stopped before you had the answer. If it is still needed, ask for exactly the same again."

// undecided returns the results of the open calls about which an agent had asked and got no
// answer, and has people told where one of them had said yes: it asks again.
func (w *worker) undecided(ctx context.Context, tx port.Tx, entry sessions.Entry, open []sessions.ToolCall) (results messages.Message, err error) {
	results.Role = messages.RoleTool
	for _, c := range open {
		a, asked, err := tx.Questions().CallApproval(ctx, entry.ID, c.CallID)
		if err != nil {
			return results, err
		}
		var why string
		switch {
		case !asked || c.Status != sessions.ToolPending:
			continue
		case a.State == approval.Waiting, a.State == approval.Canceled: // which a service does that stops in order
			why = "not run: the service stopped before anybody had allowed it."
		case a.State == approval.Allowed:
			why = unheard
			err = outbox.AddNotice(ctx, tx, w.conv.ID, entry.ID, "⚠ "+a.Name()+" was approved, but the bot was restarted before the agent had the answer. If the agent asks for the same again in this turn, it gets that answer.")
		default:
			why = "not run: it was not allowed."
		}
		if err != nil {
			return results, err
		}
		results.Blocks = append(results.Blocks, messages.ToolResult{CallID: c.CallID, Name: c.Name, IsError: true, Content: why})
	}
	return results, nil
}
