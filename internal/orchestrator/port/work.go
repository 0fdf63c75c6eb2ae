package port

import (
	"context"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// codebaseTx keeps repositories and their command registries.
type codebaseTx interface {
	// CreateCodebase registers a codebase. Its name and its repository URL are
	// each unique where not empty: a second one is a fault.Conflict.
	CreateCodebase(ctx context.Context, c sessions.Codebase) (sessions.Codebase, error)

	// Codebase returns a codebase by id.
	Codebase(ctx context.Context, id string) (sessions.Codebase, error)

	// Codebases returns all codebases by name.
	Codebases(ctx context.Context) ([]sessions.Codebase, error)

	// FindCodebase returns the codebase of a repository URL (its canonical
	// form); ok is false if there is none.
	FindCodebase(ctx context.Context, repositoryURL string) (c sessions.Codebase, ok bool, err error)

	// MoveCodebase notes that a codebase is in another folder; fault.NotFound if
	// there is none.
	MoveCodebase(ctx context.Context, id, dir string) error

	// DeleteCodebase removes a codebase. It is a fault.Conflict while
	// conversations use it.
	DeleteCodebase(ctx context.Context, id string) error

	// CodebaseUse returns how many conversations use a codebase.
	CodebaseUse(ctx context.Context, id string) (int, error)

	// UpdateCodebaseCommands replaces the command registry of a codebase.
	UpdateCodebaseCommands(ctx context.Context, id string, commands map[string]sessions.CommandDef) error

	// RegisterCommand adds or replaces one command of the registry.
	RegisterCommand(ctx context.Context, id, name string, def sessions.CommandDef) error

	// CodebaseCommands returns the command registry of a codebase.
	CodebaseCommands(ctx context.Context, id string) (map[string]sessions.CommandDef, error)

	// SharedWorktrees returns, for each conversation that goes on in the worktree
	// of another one, the id of that one.
	SharedWorktrees(ctx context.Context) (map[string]string, error)

	// IdleConversations returns ids of conversations with a codebase that have
	// not changed since before, and have no open work.
	IdleConversations(ctx context.Context, before time.Time, limit int) ([]string, error)
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
	SaveButton(ctx context.Context, b plan.Button) error

	// Button returns a stored button; fault.NotFound if there is none or it has
	// expired.
	Button(ctx context.Context, id string) (plan.Button, error)
}

// undoTx takes a turn back.
type undoTx interface {
	// SaveCheckpoint records the state of the worktree before the turn of an
	// entry: a git ref, and where the session stood.
	SaveCheckpoint(ctx context.Context, c sessions.Checkpoint) error

	// LastCheckpoint returns the newest checkpoint of a conversation that was
	// not undone; ok is false if there is none.
	LastCheckpoint(ctx context.Context, conversationID string) (c sessions.Checkpoint, ok bool, err error)

	// UndoTurn marks a checkpoint as undone and takes the messages of its
	// session from its sequence number on out of the message array: they stay
	// stored and are left out of MessagesBefore and RunMessages. It returns how
	// many there were.
	UndoTurn(ctx context.Context, c sessions.Checkpoint) (int, error)

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

	// WaitingApprovals returns what waits in a conversation, or everywhere if it
	// is empty, oldest first.
	WaitingApprovals(ctx context.Context, conversationID string, limit int) ([]approval.Approval, error)

	// EntryApprovals returns what a turn waits for.
	EntryApprovals(ctx context.Context, entryID string) ([]approval.Approval, error)

	// SettleApproval moves a waiting approval to a.State, once: a settled one is
	// a fault.Conflict. With the state waiting it records a.DeliveryID only.
	SettleApproval(ctx context.Context, a approval.Approval) error

	// SaveRule, Rules, HasRule and DeleteRule keep the allow rules of a codebase.
	SaveRule(ctx context.Context, r approval.Rule) error
	Rules(ctx context.Context, codebaseID string) ([]approval.Rule, error)
	HasRule(ctx context.Context, codebaseID, tool, rule string) (bool, error)
	DeleteRule(ctx context.Context, codebaseID string, id int64) error
}

// usageTx keeps what turns used, and seed 004's model tiers.
type usageTx interface {
	// AddUsage records what a turn, or a part of one, used.
	AddUsage(ctx context.Context, r spend.Record) error

	// SumUsage returns the sum of the records that f chooses.
	SumUsage(ctx context.Context, f spend.Filter) (spend.Sum, error)

	// UsageBy returns the sums of the records that f chooses by person, codebase,
	// model, day or conversation: the dearest first, days the newest first, up to
	// limit.
	UsageBy(ctx context.Context, by spend.By, f spend.Filter, limit int) ([]spend.Group, error)

	// Tiers returns the model tiers that are set, by name.
	Tiers(ctx context.Context) (map[string]spend.Tier, error)

	// SaveTiers replaces the model tiers.
	SaveTiers(ctx context.Context, tiers map[string]spend.Tier) error
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

	// Schedules returns all standing tasks by their next run.
	Schedules(ctx context.Context, limit int) ([]sessions.Schedule, error)

	// DueSchedules returns those whose next run is not after now. Those of profiles
	// without an interval rest.
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]sessions.Schedule, error)

	// SaveSchedule switches the standing task of a conversation on.
	SaveSchedule(ctx context.Context, s *sessions.Schedule) error

	// AdvanceSchedule moves a standing task to its next run if it is still the one
	// that was read, which ok says. With an entry it counts as a run.
	AdvanceSchedule(ctx context.Context, s sessions.Schedule, now, next time.Time, entryID string) (ok bool, err error)

	// EndSchedule switches the standing task of a conversation off. ok is false if
	// it had none.
	EndSchedule(ctx context.Context, conversationID string) (ok bool, err error)
}

// profileTx keeps agent profiles.
type profileTx interface {
	// Agent returns a profile by its id; fault.NotFound if there is none.
	Agent(ctx context.Context, id string) (profile.Profile, error)

	// FindAgent returns the profile that a person means; its errors say what they
	// may have meant.
	FindAgent(ctx context.Context, r profile.Ref) (profile.Profile, error)

	// ListAgents returns the profiles of a group, or all, without their pictures.
	ListAgents(ctx context.Context, group string) ([]profile.Profile, error)

	// UpdateSessionAgent records the profile's name that a session has after its
	// profile changed.
	UpdateSessionAgent(ctx context.Context, id, agentName string) error
}
