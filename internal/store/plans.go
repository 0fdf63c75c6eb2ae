package store

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/plan"
)

const planColumns = `
	id, number, version, conversation_id, session_id, event_id, goal, body, sha256, author, requester, state, head,
	delivery_id, decided_by, decided_ms, note, created_ms, expires_ms`

func scanPlan(p *plan.Plan) []any {
	return []any{
		text{&p.ID}, &p.Number, &p.Version, text{&p.ConversationID}, text{&p.SessionID}, text{&p.EntryID},
		&p.Goal, &p.Text, &p.SHA256, &p.Author, &p.Requester, &p.State, &p.Head,
		&p.DeliveryID, &p.DecidedBy, msTime{&p.DecidedAt}, &p.Note, msTime{&p.CreatedAt}, msTime{&p.ExpiresAt},
	}
}

// openPlan is the condition of the partial index idx_plans_one_open; SQLite uses
// the index only if the query repeats it word for word.
const openPlan = `state IN ('proposed', 'approved')`

// InsertPlan stores the first version of a new plan, or with p.Number set the
// next version of that plan. It waits for a decision: whatever p says about its
// state and a decision is cleared. Everything else that waited in the
// conversation, earlier versions and other plans, becomes superseded: a
// conversation has one open plan.
//
// It assigns ID, Number, Version, SHA256, State, CreatedAt and ExpiresAt, so a
// closure that may run twice makes a fresh p each time. A number that is never
// stored is not given again. It locks the conversation's row.
//
// A plan without text is a fault.Invalid, as is a version for another
// conversation than the plan's; an unknown number or conversation is a
// fault.NotFound.
func (t *Proposals) InsertPlan(ctx context.Context, p *plan.Plan) error {
	next := *p
	next.Text = storable(next.Text)
	if next.Text == "" {
		return fault.New(fault.Invalid, "A plan needs a text.")
	}
	if err := t.placePlan(ctx, &next); err != nil {
		return err
	}
	// Under the lock nothing can be opened in between.
	if _, err := t.tx.exec(ctx, `
		UPDATE plans SET state = 'superseded' WHERE conversation_id = $1 AND `+openPlan, next.ConversationID); err != nil {
		return fmt.Errorf("supersede plans: %w", err)
	}
	id, err := newID()
	if err != nil {
		return err
	}
	next.ID, next.SHA256, next.State = id, plan.Sum(next.Text), plan.Proposed
	next.DecidedBy, next.DecidedAt, next.Note = "", time.Time{}, ""
	next.CreatedAt = time.Now().UTC().Truncate(time.Millisecond)
	next.ExpiresAt = next.CreatedAt.Add(plan.TTL)
	_, err = t.tx.exec(ctx, `
		INSERT INTO plans (`+planColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		next.ID, next.Number, next.Version, next.ConversationID, orNull(next.SessionID), orNull(next.EntryID),
		next.Goal, next.Text, next.SHA256, next.Author, next.Requester, string(next.State), next.Head,
		next.DeliveryID, next.DecidedBy, millis(next.DecidedAt), next.Note, millis(next.CreatedAt), millis(next.ExpiresAt))
	if err != nil {
		return fmt.Errorf("store plan: %w", err)
	}
	t.tx.touches(next.ConversationID)
	*p = next
	return nil
}

// placePlan locks the conversation and gives p its number and version.
func (t *Proposals) placePlan(ctx context.Context, p *plan.Plan) error {
	if p.Number == 0 {
		if err := t.tx.Conversations().lockConversationID(ctx, p.ConversationID); err != nil {
			return err
		}
		p.Version = 1
		_, err := t.tx.one(ctx, []any{&p.Number}, `
			INSERT INTO plan_numbers (conversation_id) VALUES ($1) RETURNING number`, p.ConversationID)
		return wrap(err, "number plan")
	}
	earlier, err := t.Plan(ctx, p.Number)
	if err != nil {
		return err
	}
	if p.ConversationID != "" && p.ConversationID != earlier.ConversationID {
		return fault.Newf(fault.Invalid, "Plan %s belongs to another conversation.", p.Name())
	}
	p.ConversationID, p.Version = earlier.ConversationID, earlier.Version+1
	return nil
}

const (
	planSQL = `SELECT ` + planColumns + ` FROM plans WHERE number = $1 ORDER BY version DESC LIMIT 1`

	lockPlanSQL = `
		SELECT 1 FROM remote_agent_conversations
		WHERE id = (SELECT conversation_id FROM plan_numbers WHERE number = $1) {lock}`

	// The clocks of two processes differ, so what waits or runs comes before what was stored last.
	latestPlanSQL = `
		SELECT number FROM plans WHERE conversation_id = $1
		ORDER BY (state IN ('proposed', 'approved', 'executing')) DESC, id DESC LIMIT 1`

	replacedPlanSQL = `
		SELECT number FROM plans WHERE state = 'superseded' AND expires_ms > {now} AND id = (
			SELECT id FROM plans
			WHERE conversation_id = $1 AND id < (SELECT id FROM plans WHERE number = $2 AND version = 1)
			ORDER BY id DESC LIMIT 1)`
)

// Plan implements plan.Store. The row of its conversation is locked until the transaction
// ends, and with it all its plans; in a read-only snapshot nothing is.
func (t *Proposals) Plan(ctx context.Context, number int64) (plan.Plan, error) {
	if err := t.tx.require(ctx, "plan", lockPlanSQL, number); err != nil {
		return plan.Plan{}, err
	}
	// A statement of its own: it sees what was committed while the lock was
	// waited for.
	return rowOf(ctx, t.tx, "plan", scanPlan, planSQL, number)
}

// LatestPlan implements plan.Store. It is locked like Plan: no other can be open.
func (t *Proposals) LatestPlan(ctx context.Context, conversationID string) (p plan.Plan, ok bool, err error) {
	if err := t.tx.Conversations().lockConversationID(ctx, conversationID); err != nil {
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return p, false, err
	}
	var number int64
	ok, err = t.tx.one(ctx, []any{&number}, latestPlanSQL, conversationID)
	if err != nil || !ok {
		return p, false, wrap(err, "find latest plan")
	}
	p, err = t.Plan(ctx, number)
	return p, err == nil, err
}

// ReplacedPlan returns the number of the plan whose place another of the conversation took
// when it was proposed, if that could be decided on until now; 0 if there is none.
func (t *Proposals) ReplacedPlan(ctx context.Context, conversationID string, by int64) (number int64, err error) {
	_, err = t.tx.one(ctx, []any{&number}, replacedPlanSQL, conversationID, by)
	return number, err
}

// SettlePlan moves a version of a plan, by its ID, to p.State, with who decided,
// when and the note, and records p.DeliveryID if it is not empty. A version that
// is rejected, expired, superseded or done stays what it is: moving it elsewhere
// is a fault.Conflict, and settling it the same way again changes nothing. So is
// going back to approved while the conversation has another open plan.
//
// Nothing goes back to proposed: with that state only p.DeliveryID is recorded,
// whatever has been decided in the meantime.
func (t *Proposals) SettlePlan(ctx context.Context, p plan.Plan) error {
	if p.State == plan.Proposed {
		return t.tx.change(ctx, "record where a plan is shown", "plan", `
			UPDATE plans SET delivery_id = COALESCE($2, delivery_id) WHERE id = $1`, p.ID, orNull(p.DeliveryID))
	}
	n, err := t.tx.exec(ctx, `
		UPDATE plans SET
			state = $2, decided_by = $3, decided_ms = $4, note = $5,
			delivery_id = COALESCE($6, delivery_id)
		WHERE id = $1 AND state NOT IN ('rejected', 'expired', 'superseded', 'done')`,
		p.ID, string(p.State), p.DecidedBy, millis(p.DecidedAt), p.Note, orNull(p.DeliveryID))
	if err != nil {
		return fmt.Errorf("settle plan: %w", err)
	}
	if n > 0 {
		t.tx.touches(p.ConversationID)
		return nil
	}
	var state plan.State
	ok, err := t.tx.one(ctx, []any{&state}, `SELECT state FROM plans WHERE id = $1`, p.ID)
	if err := missing(ok, err, "plan"); err != nil {
		return err
	}
	if state != p.State {
		return fault.Newf(fault.Conflict, "Plan %s (version %d) is already %s.", p.Name(), p.Version, state)
	}
	return nil
}

// maxButtonID is the longest id of a button in bytes.
const maxButtonID = 40

const buttonSQL = `
	SELECT id, conversation_id, decision, plan_number, sha256, expires_ms
	FROM buttons WHERE id = $1 AND expires_ms > {now}`

// subjectOf says on what a decision is: no two subjects have one in common.
func subjectOf(decision string) command.Subject {
	switch approval.Decision(decision) {
	case approval.Once, approval.Always, approval.Deny:
		return command.OnApproval
	}
	switch decision {
	case command.LetIn, command.LetInRead, command.LetOut:
		return command.OnPairing
	}
	return command.OnPlan
}
