package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/profile"
)

// agentColumns are all but the picture, which only Agent and Named read.
const agentColumns = `
	id, name, "group", description, lore, objectives, knowledge, system_prompt, "interval", plugins, memory, rag, mode,
	max_iterations, mcp_servers, avatar_mime_type, model_tier, model, version, created_at, updated_at`

func scanAgent(p *profile.Profile) []any {
	return []any{
		text{&p.ID}, &p.Name, &p.Group, &p.Description, agentPart{p, "lore", &p.Lore}, agentPart{p, "objectives", &p.Objectives},
		agentPart{p, "knowledge", &p.Knowledge}, &p.SystemPrompt, &p.Interval, agentPart{p, "plugins", &p.Plugins}, agentPart{p, "memory", &p.Memory},
		agentPart{p, "rag", &p.RAG}, &p.Mode, &p.MaxIterations, agentPart{p, "mcp_servers", &p.MCPServers}, &p.AvatarType, &p.ModelTier, &p.Model,
		&p.Version, stamp{&p.CreatedAt}, stamp{&p.UpdatedAt}, (*[]byte)(&p.AvatarImage),
	}
}

// agentPart scans a column of JSON of a profile whose name was scanned before.
type agentPart struct {
	p    *profile.Profile
	name string
	into any
}

// Scan implements sql.Scanner.
func (a agentPart) Scan(value any) error {
	var encoded string
	err := (text{&encoded}).Scan(value)
	if err == nil {
		err = json.Unmarshal([]byte(encoded), a.into)
	}
	if err != nil {
		return &fault.Error{Kind: fault.Internal, Err: fmt.Errorf("read %s of agent %s: %w", a.name, a.p.ID, err),
			Public: fmt.Sprintf("The profile %s cannot be read: its %s in the database has another form.", a.p.Title(), a.name)}
	}
	return nil
}

// encodeAgent returns the JSON columns of a profile, in the order of
// agentColumns without what stands between them.
func encodeAgent(p profile.Profile) (columns [7]string, err error) {
	servers := maps.Clone(p.MCPServers)
	for i, value := range []any{
		list(p.Lore), list(p.Objectives), list(p.Knowledge), list(p.Plugins), p.Memory, p.RAG, servers,
	} {
		if columns[i], err = encodeJSON(value, fault.Invalid, "an agent profile"); err != nil {
			return columns, err
		}
	}
	if len(servers) == 0 {
		columns[6] = "{}"
	}
	return columns, nil
}

// list is what a list is stored as: never null.
func list(texts profile.Texts) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

// Create stores a new profile and returns it with its id, version and times.
// The caller has checked it. A name that its group has already is a
// fault.Conflict.
func (t *Profiles) Create(ctx context.Context, p profile.Profile) (profile.Profile, error) {
	p = p.Prepare()
	id, err := newID()
	if err != nil {
		return p, err
	}
	c, err := encodeAgent(p)
	if err != nil {
		return p, err
	}
	n, err := t.tx.exec(ctx, `
		INSERT INTO agents (
			id, name, "group", description, lore, objectives, knowledge, system_prompt, "interval", plugins, memory, rag, mode,
			max_iterations, mcp_servers, avatar_image, avatar_mime_type, model_tier, model, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, {stamp}, {stamp})
		ON CONFLICT ("group", name) DO NOTHING`,
		id, p.Name, p.Group, p.Description, c[0], c[1], c[2], p.SystemPrompt, p.Interval, c[3], c[4], c[5], string(p.Mode),
		p.MaxIterations, c[6], bytesOrNull(p.AvatarImage), p.AvatarType, p.ModelTier, p.Model)
	if err != nil {
		return p, fmt.Errorf("create agent: %w", err)
	}
	if n == 0 {
		return p, taken(p)
	}
	return t.Agent(ctx, id)
}

func taken(p profile.Profile) error {
	return fault.Newf(fault.Conflict, "A profile %s already exists; choose another name, or change that one.", p.Title())
}

// Agent returns a profile by its id; fault.NotFound if there is none.
func (t *Profiles) Agent(ctx context.Context, id string) (profile.Profile, error) {
	return rowOf(ctx, t.tx, "profile", scanAgent, `SELECT `+agentColumns+`, avatar_image FROM agents WHERE CAST(id AS TEXT) = $1`, id)
}

// Named returns the profiles of a name in all groups, by group.
func (t *Profiles) Named(ctx context.Context, name string) ([]profile.Profile, error) {
	return t.agents(ctx, `avatar_image`, `WHERE name = $1 ORDER BY "group"`, name)
}

// List returns the profiles of a group by name, or those of all groups if it
// is empty, by group and name. Their pictures are left out.
func (t *Profiles) List(ctx context.Context, group string) ([]profile.Profile, error) {
	if group == "" {
		return t.agents(ctx, `NULL`, `ORDER BY "group", name`)
	}
	return t.agents(ctx, `NULL`, `WHERE "group" = $1 ORDER BY name`, group)
}

// Find returns the profile that a person means. Its errors are those of
// profile.Ref.Choose.
func (t *Profiles) Find(ctx context.Context, r profile.Ref) (profile.Profile, error) {
	named, err := t.Named(ctx, r.Name)
	if err != nil {
		return profile.Profile{}, err
	}
	p, err := r.Choose(named, nil)
	if !fault.Is(err, fault.NotFound) {
		return p, err
	}
	all, listErr := t.List(ctx, "")
	if listErr != nil {
		return p, listErr
	}
	return r.Choose(named, lists.Map(all, profile.Profile.Title))
}

func (t *Profiles) agents(ctx context.Context, picture, rest string, args ...any) ([]profile.Profile, error) {
	return rowsOf(ctx, t.tx, "list agents", scanAgent, `SELECT `+agentColumns+`, `+picture+` FROM agents `+rest, args...)
}

// Update replaces what a profile says, if its version is still p.Version, and
// returns it with the next one; the caller has checked it. One that somebody
// changed since is a fault.Conflict, as is a name that its group has already; one
// that is gone is a fault.NotFound. A standing task keeps its place: its next run
// is one interval after its last.
func (t *Profiles) Update(ctx context.Context, p profile.Profile) (profile.Profile, error) {
	p = p.Prepare()
	before, err := t.Agent(ctx, p.ID)
	if err != nil {
		return p, err
	}
	if before.Name != p.Name || before.Group != p.Group {
		named, err := t.Named(ctx, p.Name)
		if err != nil {
			return p, err
		}
		for _, other := range named {
			if other.Group == p.Group && other.ID != p.ID {
				return p, taken(p)
			}
		}
	}
	c, err := encodeAgent(p)
	if err != nil {
		return p, err
	}
	n, err := t.tx.exec(ctx, `
		UPDATE agents SET
			name = $3, "group" = $4, description = $5, lore = $6, objectives = $7, knowledge = $8, system_prompt = $9, "interval" = $10,
			plugins = $11, memory = $12, rag = $13, mode = $14, max_iterations = $15, mcp_servers = $16, avatar_image = $17,
			avatar_mime_type = $18, model_tier = $19, model = $20, version = version + 1, updated_at = {stamp}
		WHERE CAST(id AS TEXT) = $1 AND version = $2`,
		p.ID, p.Version, p.Name, p.Group, p.Description, c[0], c[1], c[2], p.SystemPrompt, p.Interval, c[3], c[4], c[5], string(p.Mode),
		p.MaxIterations, c[6], bytesOrNull(p.AvatarImage), p.AvatarType, p.ModelTier, p.Model)
	if err != nil {
		return p, fmt.Errorf("update agent: %w", err)
	}
	if n == 0 {
		return p, fault.Newf(fault.Conflict, "Someone else changed the profile %s in the meantime; look at it again and repeat your change.", before.Title())
	}
	if p.Interval > 0 && p.Interval != before.Interval {
		_, err := t.tx.exec(ctx, `
			UPDATE agent_schedules SET next_ms = CASE WHEN last_ms > 0 THEN last_ms ELSE created_ms END + $2
			WHERE CAST(agent_id AS TEXT) = $1`, p.ID, p.Every().Milliseconds())
		if err != nil {
			return p, fmt.Errorf("move standing tasks: %w", err)
		}
	}
	return t.Agent(ctx, p.ID)
}

// AgentsRemoved counts what goes with profiles.
type AgentsRemoved struct {
	Agents        int64
	Conversations int64 // that used one of them and go on with the default
	Schedules     int64 // standing tasks that end
	Memories      int64 // that they wrote by themselves; what people said to remember stays
}

// The profiles that are deleted.
const (
	agentByID     = `CAST(a.id AS TEXT) = $1`
	agentsInGroup = `a."group" = $1`
)

// wroteMemory is true of a memory m that a turn of one of the profiles wrote by
// itself. Once a session was deleted that is not known any more.
func wroteMemory(which string) string {
	return `m.origin <> 'person' AND EXISTS (
		SELECT 1 FROM inbound_events e
		JOIN remote_agent_sessions s ON s.id = e.session_id
		JOIN agents a ON a.id = s.agent_id
		WHERE e.id = m.run_id AND ` + which + `)`
}

// MeasureAgent says what Delete would delete, and changes nothing.
func (t *Profiles) MeasureAgent(ctx context.Context, id string) (AgentsRemoved, error) {
	return t.measureAgents(ctx, agentByID, id)
}

// MeasureAgents says what DeleteAgents would delete, and changes nothing.
func (t *Profiles) MeasureAgents(ctx context.Context, group string) (AgentsRemoved, error) {
	return t.measureAgents(ctx, agentsInGroup, group)
}

func (t *Profiles) measureAgents(ctx context.Context, which, value string) (AgentsRemoved, error) {
	var r AgentsRemoved
	_, err := t.tx.one(ctx, []any{&r.Agents, &r.Conversations, &r.Schedules, &r.Memories}, `
		SELECT
			(SELECT count(*) FROM agents a WHERE `+which+`),
			(SELECT count(*) FROM remote_agent_conversations c JOIN agents a ON a.id = c.agent_id WHERE `+which+`),
			(SELECT count(*) FROM agent_schedules s JOIN agents a ON a.id = s.agent_id WHERE `+which+`),
			(SELECT count(*) FROM semantic_memories m WHERE `+wroteMemory(which)+`)
				+ (SELECT count(*) FROM episodic_memories m WHERE `+wroteMemory(which)+`)`, value)
	return r, wrap(err, "count what belongs to agents")
}

// Delete deletes a profile with its standing tasks and the memories that it
// wrote by itself; conversations that used it go on with the default, and their
// messages stay. One that is gone is a fault.NotFound.
func (t *Profiles) Delete(ctx context.Context, id string) (AgentsRemoved, error) {
	r, err := t.deleteAgents(ctx, agentByID, id)
	if err == nil && r.Agents == 0 {
		err = notFound("profile")
	}
	return r, err
}

// DeleteAgents is seed 004's delete_all_agents with a scope: it deletes the
// profiles of one group as Delete does each of them, in this transaction, and
// the counts are of what was really deleted. A group without profiles is no error.
func (t *Profiles) DeleteAgents(ctx context.Context, group string) (AgentsRemoved, error) {
	return t.deleteAgents(ctx, agentsInGroup, group)
}

func (t *Profiles) deleteAgents(ctx context.Context, which, value string) (AgentsRemoved, error) {
	var r AgentsRemoved
	// Conversations first, as a turn locks them, so that the two do not wait for each
	// other; then the profiles, so that nobody begins to use one in between.
	for _, query := range []string{
		`SELECT c.id FROM remote_agent_conversations c WHERE c.agent_id IN (SELECT a.id FROM agents a WHERE ` + which + `) ORDER BY c.id {lock}`,
		`SELECT a.id FROM agents a WHERE ` + which + ` ORDER BY a.id {lock}`,
	} {
		err := t.tx.each(ctx, func(scan func(...any) error) error { return scan(text{new(string)}) }, query, value)
		if err != nil {
			return r, fmt.Errorf("lock agents: %w", err)
		}
	}
	for _, step := range []struct {
		count *int64
		query string
	}{
		{&r.Memories, `DELETE FROM semantic_memories WHERE id IN (SELECT m.id FROM semantic_memories m WHERE ` + wroteMemory(which) + `)`},
		{&r.Memories, `DELETE FROM episodic_memories WHERE id IN (SELECT m.id FROM episodic_memories m WHERE ` + wroteMemory(which) + `)`},
		{&r.Schedules, `DELETE FROM agent_schedules WHERE agent_id IN (SELECT a.id FROM agents a WHERE ` + which + `)`},
		{&r.Conversations, `UPDATE remote_agent_conversations SET agent_id = NULL, updated_at = {stamp} WHERE agent_id IN (SELECT a.id FROM agents a WHERE ` + which + `)`},
		{&r.Agents, `DELETE FROM agents WHERE id IN (SELECT a.id FROM agents a WHERE ` + which + `)`},
	} {
		n, err := t.tx.exec(ctx, step.query, value)
		if err != nil {
			return r, fmt.Errorf("delete agents: %w", err)
		}
		*step.count += n
	}
	return r, nil
}
