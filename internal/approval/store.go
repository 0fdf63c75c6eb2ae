package approval

import "context"

// Store keeps what people are asked and what they allowed from now on, as a part of a
// transaction.
type Store interface {
	// InsertApproval stores a question, waiting. It assigns Number, SHA256, State,
	// CreatedAt and, unless it is set, ExpiresAt.
	InsertApproval(ctx context.Context, a *Approval) error

	// Approval returns an approval by its number; fault.NotFound if there is none. The
	// row of its conversation is locked until the transaction ends; in a snapshot nothing is.
	Approval(ctx context.Context, number int64) (Approval, error)

	// CallApproval returns the newest approval of a call of a turn, whatever its
	// arguments; ok is false if nobody was asked.
	CallApproval(ctx context.Context, entryID, callID string) (a Approval, ok bool, err error)

	// UnheardApproval returns the newest approval of a turn with a sum, if it is a yes whose
	// call was not begun and ended with the given error.
	UnheardApproval(ctx context.Context, entryID, sum, result string) (a Approval, ok bool, err error)

	// CountApprovals returns how many approvals of a turn for a tool are in a
	// state.
	CountApprovals(ctx context.Context, entryID, tool string, state State) (int64, error)

	// EntryApprovals returns what a turn waits for, oldest first.
	EntryApprovals(ctx context.Context, entryID string) ([]Approval, error)

	// WaitingApprovals returns the approvals of a conversation that wait, oldest
	// first, up to limit.
	WaitingApprovals(ctx context.Context, conversationID string, limit int) ([]Approval, error)

	// SettleApproval moves a waiting approval to a.State, once: a settled one is
	// a fault.Conflict. With the state waiting it records a.DeliveryID only.
	SettleApproval(ctx context.Context, a Approval) error

	// SaveRule and HasRule keep the allow rules of a codebase.
	SaveRule(ctx context.Context, r Rule) error
	HasRule(ctx context.Context, codebaseID, tool, rule string) (bool, error)
}
