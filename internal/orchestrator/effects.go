package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// Effects have a row in the audit log that is committed before they happen: what
// cannot be written down is not done, and a process that dies at any point leaves
// one row for what happened or was about to. A row has names, ids and sums, and
// nothing that anybody wrote: it outlives the session that it is about.

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
func (w *worker) beginCall(ctx context.Context, tx Tx, d decision, e assistant.ToolStarted) error {
	call, begun, err := tx.BeginToolCall(ctx, d.begun.session.ID, e.ID)
	if err != nil || !begun {
		return err
	}
	effect := callEffect{
		CallID: call.CallID, Session: d.begun.session.ID, Entry: d.entry.ID, Kind: e.Kind, SHA256: approval.Sum(call.Name, plainText(call.Request)),
	}
	if e.Kind != assistant.KindRead && w.o.asks() {
		a, asked, err := tx.CallApproval(ctx, d.entry.ID, e.ID)
		if err != nil {
			return err
		}
		if asked && a.State == approval.Allowed {
			effect.Approval = a.Name()
		}
	}
	return auditEffect(ctx, tx, sessions.AuditEntry{
		Actor: actor(d.entry.In), Action: "tool.run", ConversationID: w.conv.ID, Target: wording.Head(call.Name, 200),
	}, effect)
}

// auditFile writes down that a file goes to a chat, in the transaction that puts it
// on its way.
func auditFile(ctx context.Context, tx Tx, in messages.Inbound, d messages.Delivery) error {
	sum := sha256.Sum256(d.File)
	return auditEffect(ctx, tx, sessions.AuditEntry{
		Actor: actor(in), Action: "file.send", ConversationID: d.ConversationID, Target: wording.Head(d.FileName, 200), Effect: "file:" + string(d.ID),
	}, map[string]any{"delivery": d.ID, "bytes": len(d.File), "sha256": hex.EncodeToString(sum[:])})
}

// post sends a new message. Where messages are comments that anybody may read, it is
// written down first: once for a delivery, however often it is tried.
func (o *Orchestrator) post(ctx context.Context, adapter platform.Adapter, conversationID string, out messages.Outbound) (messages.Ref, error) {
	if adapter.Capabilities().Comments {
		by := "system"
		if out.Asker.ID != "" {
			by = string(out.Conversation.Platform) + "/" + string(out.Asker.ID)
		}
		err := o.config.Storage.InTx(ctx, func(tx Tx) error {
			return auditEffect(ctx, tx, sessions.AuditEntry{
				Actor: by, Action: "comment.post", ConversationID: conversationID, Target: out.Conversation.String(), Effect: "comment:" + string(out.Delivery),
			}, map[string]any{"delivery": out.Delivery})
		})
		if err != nil {
			return messages.Ref{}, &recordError{err: fmt.Errorf("record a comment: %w", err)}
		}
	}
	return adapter.Send(ctx, out)
}

func auditEffect(ctx context.Context, tx Tx, e sessions.AuditEntry, detail any) error {
	encoded, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("encode the audit entry: %w", err)
	}
	e.Detail = string(encoded)
	return tx.Audit(ctx, e)
}
