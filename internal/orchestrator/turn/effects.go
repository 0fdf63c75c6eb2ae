package turn

import (
	"context"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// callEffect is the detail of a row about a call of a tool.
type callEffect struct {
	CallID   string                   `json:"call"`
	Session  string                   `json:"session"`
	Entry    string                   `json:"entry"`
	Kind     assistant.PermissionKind `json:"kind,omitempty"`
	SHA256   string                   `json:"sha256"` // of the tool and its arguments, as on its approval
	Approval string                   `json:"approval,omitempty"`
}

// beginCall moves a call to executing and writes it down, once: a call that is on
// record as begun is not begun again.
func (r *run) beginCall(ctx context.Context, tx port.Tx, e assistant.ToolStarted) error {
	call, begun, err := tx.Calls().BeginToolCall(ctx, r.d.begun.session.ID, e.ID)
	if err != nil || !begun {
		return err
	}
	effect := callEffect{
		CallID: call.CallID, Session: r.d.begun.session.ID, Entry: r.d.entry.ID, Kind: e.Kind, SHA256: approval.Sum(call.Name, plainText(call.Request)),
	}
	if e.Kind != assistant.KindRead && r.w.o.asks() {
		a, asked, err := tx.Questions().CallApproval(ctx, r.d.entry.ID, e.ID)
		if err != nil {
			return err
		}
		if asked && a.State == approval.Allowed {
			effect.Approval = a.Name()
		}
	}
	return outbox.Audit(ctx, tx, sessions.AuditEntry{
		Actor: r.d.entry.In.Actor(), Action: "tool.run", ConversationID: r.w.conv.ID, Target: wording.Head(call.Name, 200),
	}, effect)
}
