package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/order"
	"remote-agent/internal/sessions"
)

// defaultAssistant is the seeds' default of ai_assistant_type.
const defaultAssistant = "claude"

const codebaseColumns = `id, name, repository_url, default_cwd, ai_assistant_type, created_at, updated_at`

func scanCodebase(c *sessions.Codebase) []any {
	return []any{
		text{&c.ID}, &c.Name, text{&c.RepositoryURL}, &c.DefaultCwd, &c.Assistant, noted{&c.CreatedAt}, noted{&c.UpdatedAt},
	}
}

// Create stores a codebase and returns it with its id. Name and
// DefaultCwd are required; an empty Assistant means the default. Its name and,
// where there is one, its repository URL in canonical form are each unique: a
// second one is a fault.Conflict, which leaves the transaction usable.
func (t *Registry) Create(ctx context.Context, c sessions.Codebase) (sessions.Codebase, error) {
	if c.Name == "" || c.DefaultCwd == "" {
		return sessions.Codebase{}, fault.New(fault.Invalid, "A repository needs a name and a directory.")
	}
	if err := t.lockRepository(ctx, c.RepositoryURL); err != nil {
		return sessions.Codebase{}, err
	}
	if _, taken, err := t.FindCodebase(ctx, c.RepositoryURL); err != nil || taken {
		if err == nil {
			err = t.codebaseTaken(ctx, c)
		}
		return sessions.Codebase{}, err
	}
	id, err := newID()
	if err != nil {
		return sessions.Codebase{}, err
	}
	c.Assistant = cmp.Or(c.Assistant, defaultAssistant)
	n, err := t.tx.exec(ctx, `
		INSERT INTO remote_agent_codebases (id, name, repository_url, default_cwd, ai_assistant_type)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`,
		id, c.Name, orNull(c.RepositoryURL), c.DefaultCwd, c.Assistant)
	if err != nil {
		return sessions.Codebase{}, fmt.Errorf("create codebase: %w", err)
	}
	if n == 0 {
		return sessions.Codebase{}, t.codebaseTaken(ctx, c)
	}
	return t.Codebase(ctx, id)
}

// lockRepository lets nobody else register a repository until the transaction
// ends. SQLite has one writer anyway.
func (t *Registry) lockRepository(ctx context.Context, repositoryURL string) error {
	if t.tx.pg == nil || repositoryURL == "" {
		return nil
	}
	return t.tx.run(ctx, "lock a repository", `SELECT pg_advisory_xact_lock(hashtext('codebase'), hashtext($1))`, repositoryURL)
}

// codebaseTaken says which of the two unique values another codebase has.
func (t *Registry) codebaseTaken(ctx context.Context, c sessions.Codebase) error {
	other, ok, err := t.FindCodebase(ctx, c.RepositoryURL)
	if err != nil {
		return err
	}
	if ok {
		return fault.Newf(fault.Conflict, "This repository is already registered as %s.", other.Name)
	}
	return fault.Newf(fault.Conflict, "A repository called %s already exists.", c.Name)
}

// Move notes that a codebase is in another folder; fault.NotFound if there
// is none. Conversations that work in a folder of it by its absolute path, which
// only an import of an earlier version has left, work in it by the relative one.
func (t *Registry) Move(ctx context.Context, id, dir string) error {
	c, err := t.Codebase(ctx, id)
	if err != nil {
		return err
	}
	if _, err := t.tx.exec(ctx, `
		UPDATE remote_agent_conversations SET cwd = NULLIF(substr(cwd, $3), '')
		WHERE codebase_id = $1 AND substr(cwd || '/', 1, $3 - 1) = $2`,
		id, c.DefaultCwd+"/", utf8.RuneCountInString(c.DefaultCwd)+2); err != nil {
		return fmt.Errorf("move conversations of a codebase: %w", err)
	}
	return t.tx.run(ctx, "move codebase", `
		UPDATE remote_agent_codebases SET default_cwd = $2, updated_at = {stamp} WHERE id = $1`, id, dir)
}

// Codebase returns a codebase by id; fault.NotFound if there is none.
func (t *Registry) Codebase(ctx context.Context, id string) (sessions.Codebase, error) {
	return rowOf(ctx, t.tx, "codebase", scanCodebase, `
		SELECT `+codebaseColumns+` FROM remote_agent_codebases WHERE id = $1`, id)
}

// List returns all codebases by name, in the order of its bytes: the same
// on every database.
func (t *Registry) List(ctx context.Context) ([]sessions.Codebase, error) {
	list, err := rowsOf(ctx, t.tx, "read codebases", scanCodebase, `SELECT `+codebaseColumns+` FROM remote_agent_codebases`)
	order.By(list, func(a, b sessions.Codebase) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return list, err
}

// findCodebaseSQL repeats the condition of the partial index
// idx_remote_agent_codebases_repository.
const findCodebaseSQL = `
	SELECT ` + codebaseColumns + ` FROM remote_agent_codebases WHERE repository_url = $1 AND repository_url <> ''
	ORDER BY created_at, id LIMIT 1`

// FindCodebase implements sessions.CodebaseStore. Of several, which only an import makes,
// it is the oldest.
func (t *Registry) FindCodebase(ctx context.Context, repositoryURL string) (c sessions.Codebase, ok bool, err error) {
	ok, err = t.tx.one(ctx, scanCodebase(&c), findCodebaseSQL, repositoryURL)
	return c, ok, wrap(err, "find codebase")
}

// RegisterCommand adds a command to a codebase's registry or replaces it.
func (t *Registry) RegisterCommand(ctx context.Context, codebaseID, name string, def sessions.CommandDef) error {
	commands, err := t.commands(ctx, codebaseID, true)
	if err != nil {
		return err
	}
	if found, ok := command.Canonical(name); ok {
		name = found
	}
	commands[name] = def
	return t.UpdateCodebaseCommands(ctx, codebaseID, commands)
}

// UpdateCodebaseCommands replaces a codebase's registry.
func (t *Registry) UpdateCodebaseCommands(ctx context.Context, codebaseID string, commands map[string]sessions.CommandDef) error {
	if commands == nil {
		commands = map[string]sessions.CommandDef{}
	}
	encoded, err := encodeJSON(commands, fault.Internal, "commands")
	if err != nil {
		return err
	}
	return t.tx.change(ctx, "update commands", "codebase", `
		UPDATE remote_agent_codebases SET commands = $2, updated_at = {stamp} WHERE id = $1`,
		codebaseID, encoded)
}

// CodebaseCommands returns a codebase's registry by canonical command name, whatever
// form of a name was stored.
func (t *Registry) CodebaseCommands(ctx context.Context, codebaseID string) (map[string]sessions.CommandDef, error) {
	return t.commands(ctx, codebaseID, false)
}

func (t *Registry) commands(ctx context.Context, codebaseID string, lock bool) (map[string]sessions.CommandDef, error) {
	query := `SELECT commands FROM remote_agent_codebases WHERE id = $1`
	if lock {
		query += ` {lock}`
	}
	var encoded string
	ok, err := t.tx.one(ctx, []any{text{&encoded}}, query, codebaseID)
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
	return canonical(commands), nil
}

// canonical gives commands the names by which they are found. Another program, such
// as that of seed 002, writes "plan-feature" where ours writes "plan_feature"; of two
// such entries ours counts.
func canonical(commands map[string]sessions.CommandDef) map[string]sessions.CommandDef {
	named := make(map[string]sessions.CommandDef, len(commands))
	for _, name := range slices.Sorted(maps.Keys(commands)) { // "-" is before "_"
		found, ok := command.Canonical(name)
		if !ok {
			found = name
		}
		named[found] = commands[name]
	}
	return named
}

// Delete deletes a codebase. It is a fault.Conflict while conversations
// use it. Past sessions that ran in it stay and no longer name it.
func (t *Registry) Delete(ctx context.Context, id string) error {
	used, err := t.CodebaseUse(ctx, id)
	if err != nil {
		return fmt.Errorf("delete codebase: %w", err)
	}
	if used > 0 {
		return codebaseInUse(nil)
	}
	if _, err := t.tx.exec(ctx, `
		UPDATE remote_agent_sessions SET codebase_id = NULL WHERE codebase_id = $1`, id); err != nil {
		return fmt.Errorf("delete codebase: %w", err)
	}
	n, err := t.tx.exec(ctx, `DELETE FROM remote_agent_codebases WHERE id = $1`, id)
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

// CodebaseUse returns how many conversations use a codebase.
func (t *Registry) CodebaseUse(ctx context.Context, id string) (n int, err error) {
	_, err = t.tx.one(ctx, []any{&n}, `
		SELECT count(*) FROM remote_agent_conversations WHERE codebase_id = $1`, id)
	return n, wrap(err, "count conversations of codebase")
}

func codebaseInUse(cause error) error {
	return &fault.Error{Kind: fault.Conflict, Public: "Conversations still use this repository.", Err: cause}
}

// A conversation changes with its row, with what is said to it and with what is
// said in it; the last numbers given out lead to the newest of each.
const idleConversationsSQL = `
	SELECT c.id FROM remote_agent_conversations c
	WHERE c.codebase_id IS NOT NULL AND c.updated_at < $1
		AND (c.lease_owner IS NULL OR c.lease_until <= {now})
		AND NOT EXISTS (
			SELECT 1 FROM inbound_events e
			WHERE e.conversation_id = c.id AND e.lane = 'turn' AND e.state IN ('waiting', 'running'))
		AND NOT EXISTS (
			SELECT 1 FROM inbound_events e
			WHERE e.conversation_id = c.id AND e.seq > 0 AND e.seq = c.inbox_seq AND e.accepted_ms >= $2)
		AND c.id NOT IN (
			SELECT e.conversation_id FROM inbound_events e
			WHERE e.lane = 'control' AND e.state = 'waiting' AND e.conversation_id IS NOT NULL)
		AND NOT EXISTS (
			SELECT 1 FROM deliveries d
			WHERE d.conversation_id = c.id AND d.state IN ('pending', 'sending', 'placed'))
		AND NOT EXISTS (
			SELECT 1 FROM deliveries d
			WHERE d.conversation_id = c.id AND d.seq = c.delivery_seq AND d.created_ms >= $2)
	ORDER BY c.updated_at, c.id
	LIMIT $3`

// IdleConversations returns ids of conversations with a codebase in which nothing
// has happened since before and that have no open work, those first whose row has
// not changed for the longest time. UpdateConversation, even of nothing, takes
// one to the end of the line.
func (t *Registry) IdleConversations(ctx context.Context, before time.Time, limit int) ([]string, error) {
	ids, err := t.tx.ids(ctx, idleConversationsSQL, before.UTC().Format("2006-01-02T15:04:05.000Z07:00"), millis(before), limit)
	return ids, wrap(err, "find idle conversations")
}

// CodebasesAtWork returns ids of the codebases of conversations that somebody works
// in, by a live lease.
func (t *Registry) CodebasesAtWork(ctx context.Context) ([]string, error) {
	ids, err := t.tx.ids(ctx, `
		SELECT DISTINCT c.codebase_id FROM remote_agent_conversations c
		WHERE c.codebase_id IS NOT NULL AND c.lease_owner IS NOT NULL AND c.lease_until > {now}`)
	return ids, wrap(err, "find codebases at work")
}

// SharedWorktrees returns, for each conversation that goes on in the worktree of
// another one, the id of that one.
func (t *Registry) SharedWorktrees(ctx context.Context) (map[string]string, error) {
	shared := make(map[string]string)
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var id string
		var s sessions.Settings
		if err := scan(text{&id}, settings{&s}); err != nil {
			return err
		}
		if s.Worktree != "" {
			shared[id] = s.Worktree
		}
		return nil
	}, `SELECT id, settings FROM remote_agent_conversations WHERE CAST(settings AS TEXT) LIKE '%"worktree"%'`)
	return shared, wrap(err, "list shared worktrees")
}
