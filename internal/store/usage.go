package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/spend"
)

const addUsageSQL = `
	INSERT INTO usage_records (
		event_id, conversation_id, session_id, codebase_id, actor, ai_assistant_type, model,
		input_tokens, output_tokens, cached_tokens, written_tokens, cost_micros, at_ms)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

func addUsageArgs(r spend.Record) []any {
	var cost any
	if r.Known {
		cost = r.Micros
	}
	if r.At.IsZero() {
		r.At = time.Now()
	}
	return []any{
		orNull(r.EntryID), orNull(r.ConversationID), orNull(r.SessionID), orNull(r.CodebaseID), r.Actor, r.Assistant, r.Model,
		r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.CachedTokens, r.Usage.WrittenTokens, cost, millis(r.At),
	}
}

// AddUsage records what a turn, or a part of one, used.
func (t *Spending) AddUsage(ctx context.Context, r spend.Record) error {
	return t.tx.run(ctx, "record usage", addUsageSQL, addUsageArgs(r)...)
}

// UsageFilter chooses usage records; empty members choose all.
type UsageFilter = spend.Filter

// SumUsage implements spend.Store. It is asked before every request to a model, so it
// reads by an index: only members of f that are set are conditions.
func (t *Spending) SumUsage(ctx context.Context, f UsageFilter) (spend.Sum, error) {
	var s spend.Sum
	query, args := sumUsageSQL(f)
	_, err := t.tx.one(ctx, []any{&s.Turns, &s.InputTokens, &s.OutputTokens, &s.Micros, &s.UnpricedToken}, query, args...)
	return s, wrap(err, "sum usage")
}

func sumUsageSQL(f UsageFilter) (query string, args []any) {
	where, args := usageWhere(f)
	return `SELECT ` + usageSums + ` FROM usage_records` + where, args
}

// usageSums are the columns of a sum of usage records.
const usageSums = `
	count(DISTINCT event_id), CAST(COALESCE(sum(input_tokens), 0) AS BIGINT), CAST(COALESCE(sum(output_tokens), 0) AS BIGINT),
	CAST(COALESCE(sum(cost_micros), 0) AS BIGINT),
	CAST(COALESCE(sum(CASE WHEN cost_micros IS NULL THEN input_tokens + output_tokens ELSE 0 END), 0) AS BIGINT)`

// What an entry or a session used is among what was used in its conversation since
// it began, which an index finds; the day is for clocks that differ.
const (
	ofEntry = `event_id = $%[1]d
		AND conversation_id = (SELECT e.conversation_id FROM inbound_events e WHERE e.id = $%[1]d)
		AND at_ms >= (SELECT e.accepted_ms - 86400000 FROM inbound_events e WHERE e.id = $%[1]d)`
	ofSession = `session_id = $%[1]d
		AND conversation_id = (SELECT s.conversation_id FROM remote_agent_sessions s WHERE s.id = $%[1]d)
		AND at_ms >= (SELECT a.started_at * 1000 - 86400000 FROM agent_sessions a WHERE a.id = $%[1]d)`
)

func usageWhere(f UsageFilter) (where string, args []any) {
	var c conditions
	c.when(f.EntryID != "", ofEntry, f.EntryID)
	c.when(f.ConversationID != "", "conversation_id = $%d", f.ConversationID)
	c.when(f.SessionID != "", ofSession, f.SessionID)
	c.when(f.CodebaseID != "", "codebase_id = $%d", f.CodebaseID)
	c.when(f.Actor != "", "actor = $%d", f.Actor)
	c.when(!f.Since.IsZero(), "at_ms >= $%d", millis(f.Since))
	c.when(!f.Until.IsZero(), "at_ms < $%d", millis(f.Until))
	return c.where(), c.args
}

var tierNames = [...]string{"fast", "smart", "cheap"}

// Tiers returns the model tiers of seed 004's models_config by name (fast,
// smart, cheap); those that are not set are left out.
func (t *Spending) Tiers(ctx context.Context) (map[string]spend.Tier, error) {
	var encoded [len(tierNames)]string
	ok, err := t.tx.one(ctx, []any{text{&encoded[0]}, text{&encoded[1]}, text{&encoded[2]}}, `
		SELECT fast, smart, cheap FROM models_config ORDER BY id DESC LIMIT 1`)
	if err != nil || !ok {
		return nil, wrap(err, "read model tiers")
	}
	tiers := make(map[string]spend.Tier)
	for i, name := range tierNames {
		var tier spend.Tier
		if err := json.Unmarshal([]byte(encoded[i]), &tier); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "read model tier "+name)
		}
		if tier.Model != "" {
			tiers[name] = tier
		}
	}
	return tiers, nil
}

// SaveTiers replaces the model tiers.
func (t *Spending) SaveTiers(ctx context.Context, tiers map[string]spend.Tier) error {
	encoded := make([]any, 0, len(tierNames))
	for _, name := range tierNames {
		one, err := encodeJSON(tiers[name], fault.Invalid, "model tier")
		if err != nil {
			return err
		}
		encoded = append(encoded, one)
	}
	if _, err := t.tx.exec(ctx, `DELETE FROM models_config`); err != nil {
		return fmt.Errorf("replace model tiers: %w", err)
	}
	return t.tx.run(ctx, "store model tiers", `INSERT INTO models_config (fast, smart, cheap) VALUES ($1, $2, $3)`, encoded...)
}

// nameGroups says what the things are called that sums are made for, in one round trip.
func (t *Spending) nameGroups(ctx context.Context, by spend.By, groups []spend.Group) error {
	var steps []step
	for i := range groups {
		key, name := groups[i].Key, &groups[i].Name
		if key == "" {
			continue
		}
		switch by {
		case spend.ByPerson:
			platform, id, _ := strings.Cut(key, "/")
			steps = append(steps, step{`SELECT name FROM identities WHERE platform_type = $1 AND user_id = $2`, []any{platform, id}, []any{name}})
		case spend.ByCodebase:
			steps = append(steps, step{`SELECT name FROM remote_agent_codebases WHERE id = $1`, []any{key}, []any{name}})
		case spend.ByConversation:
			steps = append(steps, step{`SELECT platform_type || '/' || platform_conversation_id FROM remote_agent_conversations WHERE id = $1`, []any{key}, []any{name}})
		case spend.ByDay, spend.ByModel:
		}
	}
	_, err := t.tx.all(ctx, steps)
	return wrap(err, "read the names of sums")
}
