package plan

import "context"

// Store keeps plans, as a part of a transaction.
type Store interface {
	Reader

	// InsertPlan stores the first version of a new plan, or with p.Number set
	// the next version of that plan, whose earlier versions become superseded
	// if they were waiting. It assigns ID, Number, Version, SHA256, CreatedAt
	// and ExpiresAt. An open plan of the same conversation with another number
	// is superseded as well: a conversation has one open plan.
	InsertPlan(ctx context.Context, p *Plan) error

	// SettlePlan moves a version of a plan to a state, with who decided, when
	// and the note.
	SettlePlan(ctx context.Context, p Plan) error
}
