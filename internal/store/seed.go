package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/sessions"
)

// The tables of seed 002.
const (
	SeedCodebases     = "remote_agent_codebases"
	SeedConversations = "remote_agent_conversations"
	SeedSessions      = "remote_agent_sessions"
)

// seedTables are the tables of seed 002 with their columns.
var seedTables = []struct{ name, columns string }{
	{SeedCodebases, "id name repository_url default_cwd ai_assistant_type commands created_at updated_at"},
	{SeedConversations, "id platform_type platform_conversation_id codebase_id cwd ai_assistant_type created_at updated_at"},
	{SeedSessions, "id conversation_id codebase_id ai_assistant_type assistant_session_id active metadata started_at ended_at"},
}

// SeedRow is a row of another program's database by column, as the text that
// the database makes of each value; nil is NULL.
type SeedRow map[string]*string

// ReadSeed returns the rows of the tables of seed 002 by table, read in one
// snapshot and in the order of their ids. Nothing in them was checked. It is
// fault.Invalid, and names every table and column that is missing, if the
// database does not have the tables of the seed. It is fault.Invalid as well if
// the database is one of this program, of which these tables are a small part.
func (s *Store) ReadSeed(ctx context.Context) (map[string][]SeedRow, error) {
	rows := make(map[string][]SeedRow)
	err := s.InRead(ctx, func(tx *Tx) error {
		clear(rows)
		if tx.pg != nil { // else it says what it stores as it is stored, in whatever encoding
			if err := tx.run(ctx, "choose the encoding", `SET LOCAL client_encoding TO 'UTF8'`); err != nil {
				return err
			}
		}
		var missing []string
		for _, table := range seedTables {
			there, err := tx.Portable().columnsOf(ctx, table.name)
			if err != nil {
				return err
			}
			if len(there) == 0 {
				missing = append(missing, "the table "+table.name)
				continue
			}
			for column := range strings.FieldsSeq(table.columns) {
				if !there[column] {
					missing = append(missing, "the column "+table.name+"."+column)
				}
			}
		}
		if len(missing) > 0 {
			return fault.Newf(fault.Invalid,
				"This database lacks the remote_agent_* tables to import. Missing: %s. Nothing was imported.", strings.Join(missing, ", "))
		}
		if own, err := tx.Portable().columnsOf(ctx, "inbound_events"); err != nil || own["accepted_ms"] {
			return cmp.Or[error](err, fault.New(fault.Invalid, "This is a database of this bot: --from would leave out its messages, memories and costs. "+
				"Use `bot export` there and `bot import FILE` here, or `bot backup`. Nothing was imported."))
		}
		for _, table := range seedTables {
			list, err := tx.Portable().seedRows(ctx, table.name, strings.Fields(table.columns))
			if err != nil {
				return err
			}
			rows[table.name] = list
		}
		return nil
	})
	return rows, wrap(err, "read the other database")
}

// columnsOf returns the columns of a table or view, none if there is none.
func (t *Portable) columnsOf(ctx context.Context, table string) (map[string]bool, error) {
	query := `SELECT name FROM pragma_table_info($1)`
	if t.tx.pg != nil {
		// The table that a query without a schema reads.
		query = `SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`
	}
	names, err := t.tx.ids(ctx, query, table)
	columns := make(map[string]bool, len(names))
	for _, name := range names {
		columns[name] = true
	}
	return columns, wrap(err, "read the columns of "+table)
}

func (t *Portable) seedRows(ctx context.Context, table string, columns []string) ([]SeedRow, error) {
	values := lists.Map(columns, func(name string) string { return "CAST(" + name + " AS TEXT)" })
	var rows []SeedRow
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		found := make([]*string, len(columns))
		dest := make([]any, len(columns))
		for i := range found {
			dest[i] = &found[i]
		}
		if err := scan(dest...); err != nil {
			return err
		}
		row := make(SeedRow, len(columns))
		for i, name := range columns {
			row[name] = found[i]
		}
		rows = append(rows, row)
		return nil
	}, `SELECT `+strings.Join(values, ", ")+` FROM `+table+` ORDER BY 1`)
	return rows, wrap(err, "read "+table)
}

// ImportCodebase stores a codebase as it was somewhere else, with its id and its
// times; commands is its registry as JSON, empty for none. It is a
// fault.Conflict if the id or the name is taken.
func (t *Portable) ImportCodebase(ctx context.Context, c sessions.Codebase, commands json.RawMessage) error {
	registry, err := jsonOr(commands)
	if err != nil {
		return err
	}
	return t.tx.run(ctx, "import codebase", `
		INSERT INTO remote_agent_codebases (id, name, repository_url, default_cwd, ai_assistant_type, commands, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		c.ID, c.Name, orNull(c.RepositoryURL), c.DefaultCwd, c.Assistant, registry, stampOf(c.CreatedAt), stampOf(c.UpdatedAt))
}

// ImportConversation stores a conversation as it was somewhere else, with its id
// and its times. It is a fault.Conflict if its id or its place is taken, and a
// fault.NotFound if its codebase is not here.
func (t *Portable) ImportConversation(ctx context.Context, c sessions.Conversation) error {
	return t.tx.run(ctx, "import conversation", `
		INSERT INTO remote_agent_conversations (
			id, platform_type, platform_conversation_id, codebase_id, cwd, ai_assistant_type, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		c.ID, string(c.Key.Platform), c.Key.ID, orNull(c.CodebaseID), orNull(c.Cwd), c.Assistant, stampOf(c.CreatedAt), stampOf(c.UpdatedAt))
}

// ImportSession stores a session as it was somewhere else, with its id, its
// times and its metadata. Nothing runs in it here. It is a fault.Conflict if its
// id is taken or another session of the conversation is active, and a
// fault.NotFound if its conversation or codebase is not here.
func (t *Portable) ImportSession(ctx context.Context, s sessions.Session, metadata json.RawMessage) error {
	meta, err := jsonOr(metadata)
	if err != nil {
		return err
	}
	return t.tx.run(ctx, "import session", `
		INSERT INTO remote_agent_sessions (
			id, conversation_id, codebase_id, ai_assistant_type, assistant_session_id, active, metadata, status, started_at, ended_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		s.ID, s.ConversationID, orNull(s.CodebaseID), s.Assistant, orNull(s.AssistantSessionID), s.Active, meta, string(s.Status),
		stampOf(s.StartedAt), stampOf(s.EndedAt))
}

// jsonOr is what is stored of a JSON object that may be missing: without the escapes
// that only SQLite takes, of a NUL and of half a character.
func jsonOr(object json.RawMessage) (string, error) {
	value := any(struct{}{})
	if len(object) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(object))
		decoder.UseNumber() // as it was written
		if err := decoder.Decode(&value); err != nil {
			return "", fault.Wrap(err, fault.Invalid, "read JSON")
		}
	}
	return encodeJSON(value, fault.Invalid, "JSON")
}

// stampOf is a time for one of the seeds' timestamp columns, to the microsecond;
// the zero time is NULL.
func stampOf(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return stampText(at)
}

// stampText writes a time as SQLite keeps it. Those that this program takes have
// milliseconds; those of others keep their microseconds.
func stampText(at time.Time) string {
	at = at.UTC().Truncate(time.Microsecond)
	if at.Nanosecond()%int(time.Millisecond) == 0 {
		return at.Format(stampLayout)
	}
	return at.Format("2006-01-02T15:04:05.000000Z")
}
