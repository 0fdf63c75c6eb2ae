//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// seedSchema is what seed 002 has, as the program that it describes made it.
const seedSchema = `
CREATE TABLE remote_agent_codebases (id UUID PRIMARY KEY, name VARCHAR(255) NOT NULL, repository_url VARCHAR(500), default_cwd VARCHAR(500) NOT NULL,
  ai_assistant_type VARCHAR(20) NOT NULL DEFAULT 'claude', commands JSONB DEFAULT '{}', created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE remote_agent_conversations (id UUID PRIMARY KEY, platform_type VARCHAR(20) NOT NULL, platform_conversation_id VARCHAR(255) NOT NULL, codebase_id UUID REFERENCES remote_agent_codebases(id),
  cwd VARCHAR(500), ai_assistant_type VARCHAR(20) NOT NULL DEFAULT 'claude', created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE remote_agent_sessions (id UUID PRIMARY KEY, conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id), codebase_id UUID REFERENCES remote_agent_codebases(id),
  ai_assistant_type VARCHAR(20) NOT NULL, assistant_session_id VARCHAR(255), active BOOLEAN DEFAULT true, metadata JSONB DEFAULT '{}', started_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, ended_at TIMESTAMP);
INSERT INTO remote_agent_codebases (id, name, default_cwd, commands) VALUES ('11111111-1111-4111-8111-111111111111', 'web', '/workspace/web', '{"prime":{"path":"p.md","description":"d"}}');
INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, codebase_id) VALUES ('22222222-2222-4222-8222-222222222222', 'telegram', '42', '11111111-1111-4111-8111-111111111111');
INSERT INTO remote_agent_sessions (id, conversation_id, ai_assistant_type, assistant_session_id, metadata, started_at) VALUES ('33333333-3333-4333-8333-333333333333', '22222222-2222-4222-8222-222222222222', 'claude', 'old', '{}', '2025-01-01 00:00:00');
INSERT INTO remote_agent_sessions (id, conversation_id, ai_assistant_type, assistant_session_id, metadata, started_at) VALUES ('44444444-4444-4444-8444-444444444444', '22222222-2222-4222-8222-222222222222', 'claude', 'resume-me', '{"lastCommand":"plan-feature"}', '2025-01-02 00:00:00');
`

func TestImportOfTheTablesOfSeed002(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		sources := map[string]store.Options{
			"SQLite":   {DataDir: t.TempDir(), Log: storetest.Log(t), Exclusive: true},
			"Postgres": {URL: storetest.PostgresURL(t), Log: storetest.Log(t)},
		}
		for _, name := range []string{"SQLite", "Postgres"} {
			from, err := store.Open(t.Context(), sources[name])
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close() //nolint:errcheck // only read
			_, err = b.ImportSeed(t.Context(), from)
			wantKind(t, err, fault.Invalid)
			err = from.InTx(t.Context(), func(tx *store.Tx) error {
				for statement := range strings.SplitSeq(strings.TrimSpace(seedSchema), ";\n") {
					if err := store.Exec(t.Context(), tx, strings.TrimSuffix(statement, ";")); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want := store.SeedImport{Codebases: 1, Conversations: 1, Sessions: 2}
			if name == "Postgres" { // the same rows again
				want = store.SeedImport{Codebases: 1, Skipped: 1}
			}
			if done, err := b.ImportSeed(t.Context(), from); err != nil || done != want {
				t.Errorf("from %s: %+v, %v; want %+v", name, done, err, want)
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			c, err := tx.FindConversation(ctx, messages.ConversationKey{Platform: "telegram", ID: "42"})
			if err != nil || c.Assistant != "claude" || c.CodebaseID == "" {
				t.Errorf("conversation = %+v, %v", c, err)
			}
			s, ok, err := tx.ActiveSession(ctx, c.ID)
			if err != nil || !ok || s.AssistantSessionID != "resume-me" || s.Metadata.LastCommand() != "plan-feature" {
				t.Errorf("active session = %+v, %v, %v", s, ok, err)
			}
			return nil
		})
	})
}

// The other program's file stays as it is, byte for byte.
func TestTheOtherDatabaseIsOnlyRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		dir := t.TempDir()
		path := filepath.Join(dir, "other.db")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), seedSchema+`UPDATE remote_agent_sessions SET started_at = NULL;`); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		from, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Log: storetest.Log(t), Foreign: true})
		if err != nil {
			t.Fatal(err)
		}
		if done, err := b.ImportSeed(t.Context(), from); err != nil || done.Sessions != 2 {
			t.Errorf("import = %+v, %v", done, err)
		}
		wantKind(t, from.InTx(t.Context(), func(*store.Tx) error { return nil }), fault.Unsupported)
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("the file was changed: %v", err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("files beside it: %v, %v", entries, err)
		}
		err = b.InRead(t.Context(), func(tx *store.Tx) error { // without a time they are listed all the same
			rows, err := tx.ListSessions(t.Context(), store.SessionFilter{Limit: 1})
			if err != nil || len(rows) != 1 {
				t.Fatalf("listed %d, %v", len(rows), err)
			}
			rows, err = tx.ListSessions(t.Context(), store.SessionFilter{Limit: 1, Before: rows[0].ID})
			if len(rows) != 1 {
				t.Errorf("behind the first session are %d, want 1", len(rows))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		for _, name := range []string{dir, filepath.Join(dir, "none.db"), os.Args[0]} {
			_, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + name, Log: storetest.Log(t), Foreign: true})
			wantKind(t, err, fault.Invalid)
		}
	})
}
