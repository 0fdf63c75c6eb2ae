package store

import (
	"context"
	"encoding/json"
	"fmt"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// defaultAssistant is the seeds' default of ai_assistant_type.
const defaultAssistant = "claude"

// CreateCodebase stores a codebase and returns it with its id. Name and
// DefaultCwd are required; an empty Assistant means the default.
func (t *Tx) CreateCodebase(ctx context.Context, c sessions.Codebase) (sessions.Codebase, error) {
	if c.Name == "" || c.DefaultCwd == "" {
		return sessions.Codebase{}, fault.New(fault.Invalid, "A codebase needs a name and a directory.")
	}
	id, err := newID()
	if err != nil {
		return sessions.Codebase{}, err
	}
	if c.Assistant == "" {
		c.Assistant = defaultAssistant
	}
	_, err = t.exec(ctx, `
		INSERT INTO remote_agent_codebases (id, name, repository_url, default_cwd, ai_assistant_type)
		VALUES ($1, $2, $3, $4, $5)`,
		id, c.Name, orNull(c.RepositoryURL), c.DefaultCwd, c.Assistant)
	if err != nil {
		return sessions.Codebase{}, fmt.Errorf("create codebase: %w", err)
	}
	return t.Codebase(ctx, id)
}

// Codebase returns a codebase by id; fault.NotFound if there is none.
func (t *Tx) Codebase(ctx context.Context, id string) (sessions.Codebase, error) {
	var c sessions.Codebase
	ok, err := t.one(ctx, []any{
		text{&c.ID}, &c.Name, text{&c.RepositoryURL}, &c.DefaultCwd, &c.Assistant, stamp{&c.CreatedAt}, stamp{&c.UpdatedAt},
	}, `
		SELECT id, name, repository_url, default_cwd, ai_assistant_type, created_at, updated_at
		FROM remote_agent_codebases WHERE id = $1`, id)
	if err != nil {
		return sessions.Codebase{}, fmt.Errorf("read codebase: %w", err)
	}
	if !ok {
		return sessions.Codebase{}, notFound("codebase")
	}
	return c, nil
}

// RegisterCommand adds a command to a codebase's registry or replaces it.
func (t *Tx) RegisterCommand(ctx context.Context, codebaseID, name string, def sessions.CommandDef) error {
	commands, err := t.commands(ctx, codebaseID, true)
	if err != nil {
		return err
	}
	commands[name] = def
	return t.UpdateCodebaseCommands(ctx, codebaseID, commands)
}

// UpdateCodebaseCommands replaces a codebase's registry.
func (t *Tx) UpdateCodebaseCommands(ctx context.Context, codebaseID string, commands map[string]sessions.CommandDef) error {
	if commands == nil {
		commands = map[string]sessions.CommandDef{}
	}
	encoded, err := json.Marshal(commands)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "encode commands")
	}
	n, err := t.exec(ctx, `
		UPDATE remote_agent_codebases SET commands = $2, updated_at = {stamp} WHERE id = $1`,
		codebaseID, string(encoded))
	if err != nil {
		return fmt.Errorf("update commands: %w", err)
	}
	if n == 0 {
		return notFound("codebase")
	}
	return nil
}

// CodebaseCommands returns a codebase's registry by command name.
func (t *Tx) CodebaseCommands(ctx context.Context, codebaseID string) (map[string]sessions.CommandDef, error) {
	return t.commands(ctx, codebaseID, false)
}

func (t *Tx) commands(ctx context.Context, codebaseID string, lock bool) (map[string]sessions.CommandDef, error) {
	query := `SELECT commands FROM remote_agent_codebases WHERE id = $1`
	if lock {
		query += ` {lock}`
	}
	var encoded string
	ok, err := t.one(ctx, []any{text{&encoded}}, query, codebaseID)
	if err != nil {
		return nil, fmt.Errorf("read commands: %w", err)
	}
	if !ok {
		return nil, notFound("codebase")
	}
	commands := map[string]sessions.CommandDef{}
	if encoded == "" {
		return commands, nil
	}
	if err := json.Unmarshal([]byte(encoded), &commands); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "decode commands")
	}
	return commands, nil
}

// DeleteCodebase deletes a codebase. It is a fault.Conflict while conversations
// use it. Past sessions that ran in it stay and no longer name it.
func (t *Tx) DeleteCodebase(ctx context.Context, id string) error {
	var used int
	_, err := t.one(ctx, []any{&used}, `
		SELECT count(*) FROM remote_agent_conversations WHERE codebase_id = $1`, id)
	if err != nil {
		return fmt.Errorf("delete codebase: %w", err)
	}
	if used > 0 {
		return codebaseInUse(nil)
	}
	if _, err := t.exec(ctx, `
		UPDATE remote_agent_sessions SET codebase_id = NULL WHERE codebase_id = $1`, id); err != nil {
		return fmt.Errorf("delete codebase: %w", err)
	}
	n, err := t.exec(ctx, `DELETE FROM remote_agent_codebases WHERE id = $1`, id)
	switch {
	case fault.Is(err, fault.NotFound): // its foreign key: somebody took it up just now
		return codebaseInUse(err)
	case err != nil:
		return fmt.Errorf("delete codebase: %w", err)
	case n == 0:
		return notFound("codebase")
	}
	return nil
}

func codebaseInUse(cause error) error {
	return &fault.Error{Kind: fault.Conflict, Public: "Conversations still use this codebase.", Err: cause}
}
