package port

import (
	"context"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// codebaseTx keeps repositories and their command registries.
type codebaseTx interface {
	// FindCodebase returns the codebase of a repository URL (its canonical
	// form); ok is false if there is none.
	FindCodebase(ctx context.Context, repositoryURL string) (c sessions.Codebase, ok bool, err error)

	// CodebaseCommands returns the command registry of a codebase.
	CodebaseCommands(ctx context.Context, id string) (map[string]sessions.CommandDef, error)
}

// planTx keeps plans and the buttons that decide on them.
type planTx interface {
	// InsertPlan stores the first version of a new plan, or with p.Number set
	// the next version of that plan, whose earlier versions become superseded
	// if they were waiting. It assigns ID, Number, Version, SHA256, CreatedAt
	// and ExpiresAt. An open plan of the same conversation with another number
	// is superseded as well: a conversation has one open plan.
	InsertPlan(ctx context.Context, p *plan.Plan) error

	// Plan returns the newest version of a plan by its number, locked until the
	// transaction ends; fault.NotFound if there is none.
	Plan(ctx context.Context, number int64) (plan.Plan, error)

	// LatestPlan returns the newest plan of a conversation in its newest
	// version, locked; ok is false if there is none.
	LatestPlan(ctx context.Context, conversationID string) (p plan.Plan, ok bool, err error)

	// SettlePlan moves a version of a plan to a state, with who decided, when
	// and the note.
	SettlePlan(ctx context.Context, p plan.Plan) error

	// SaveButton stores what pressing a button means. data is JSON.
	SaveButton(ctx context.Context, b command.Button) error
}

// undoTx takes a turn back.
type undoTx interface {
	// SaveCheckpoint records the state of the worktree before the turn of an
	// entry: a git ref, and where the session stood.
	SaveCheckpoint(ctx context.Context, c sessions.Checkpoint) error

	// WithdrawMessages takes the messages of a session from a sequence number on out of
	// the message array: they stay stored and are left out of MessagesBefore and
	// RunMessages. Once more it changes nothing.
	WithdrawMessages(ctx context.Context, session string, seq int64) error

	// Delivery returns a delivery by id.
	Delivery(ctx context.Context, id messages.DeliveryID) (messages.Delivery, error)
}

// approvalTx keeps what people are asked and what they allowed from now on.
type approvalTx interface {
	// InsertApproval stores a question, waiting. It assigns Number, SHA256, State,
	// CreatedAt and ExpiresAt.
	InsertApproval(ctx context.Context, a *approval.Approval) error

	// Approval returns an approval by its number; the row of its conversation is
	// locked until the transaction ends.
	Approval(ctx context.Context, number int64) (approval.Approval, error)

	// CallApproval returns the newest approval of a call of a turn.
	CallApproval(ctx context.Context, entryID, callID string) (a approval.Approval, ok bool, err error)

	// CountApprovals returns how many approvals of a turn for a tool are in a
	// state.
	CountApprovals(ctx context.Context, entryID, tool string, state approval.State) (int64, error)

	// EntryApprovals returns what a turn waits for.
	EntryApprovals(ctx context.Context, entryID string) ([]approval.Approval, error)

	// WaitingApprovals returns the approvals of a conversation that wait, oldest
	// first, up to limit.
	WaitingApprovals(ctx context.Context, conversationID string, limit int) ([]approval.Approval, error)

	// SettleApproval moves a waiting approval to a.State, once: a settled one is
	// a fault.Conflict. With the state waiting it records a.DeliveryID only.
	SettleApproval(ctx context.Context, a approval.Approval) error

	// SaveRule and HasRule keep the allow rules of a codebase.
	SaveRule(ctx context.Context, r approval.Rule) error
	HasRule(ctx context.Context, codebaseID, tool, rule string) (bool, error)
}

// usageTx keeps what turns used, and seed 004's model tiers.
type usageTx interface {
	// AddUsage records what a turn, or a part of one, used.
	AddUsage(ctx context.Context, r spend.Record) error

	// SumUsage returns the sum of the records that f chooses.
	SumUsage(ctx context.Context, f spend.Filter) (spend.Sum, error)
}

// lessonTx notes what may be learned from.
type lessonTx interface {
	// AddLesson stores that something may be learned of an account from a message,
	// not before due. A second time it changes nothing, and neither does it for
	// somebody who switched memory off.
	AddLesson(ctx context.Context, entryID, account, conversationID string, due time.Time) error
}

// scheduleTx keeps the standing tasks of profiles.
type scheduleTx interface {
	// Schedule returns the standing task of a conversation; ok is false if it has
	// none.
	Schedule(ctx context.Context, conversationID string) (s sessions.Schedule, ok bool, err error)

	// DueSchedules returns those whose next run is not after now. Those of profiles
	// without an interval rest.
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]sessions.Schedule, error)

	// AdvanceSchedule moves a standing task to its next run if it is still the one
	// that was read, which ok says. With an entry it counts as a run.
	AdvanceSchedule(ctx context.Context, s sessions.Schedule, now, next time.Time, entryID string) (ok bool, err error)

	// TakePlace has a conversation go on as another one did whose place it takes:
	// with its profile and its standing task.
	TakePlace(ctx context.Context, from, to sessions.Conversation) error

	// EndSchedule switches the standing task of a conversation off. ok is false if
	// it had none.
	EndSchedule(ctx context.Context, conversationID string) (ok bool, err error)
}

// profileTx keeps agent profiles.
type profileTx interface {
	// Agent returns a profile by its id; fault.NotFound if there is none.
	Agent(ctx context.Context, id string) (profile.Profile, error)

	// UpdateSessionAgent records the profile's name that a session has after its
	// profile changed.
	UpdateSessionAgent(ctx context.Context, id, agentName string) error
}
