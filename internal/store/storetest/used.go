package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/store"
)

// Used is a database as it is after years: so many sessions of a year, twenty to a
// conversation, each of ten messages in two turns with what belongs to them, ended but
// for the last forty. A person in a hundred conversations is telegram/42, and one in two
// of those of Telegram telegram/43.
//
// The first session has 10,000 messages more, the second a tool's answer of 10 MB.
func Used(t testing.TB, kind string, sessions int) *store.Store {
	t.Helper()
	return UsedIn(t, kind, sessions, "")
}

// UsedIn is Used, and keeps what it filled for the next time: on SQLite in a folder that is
// there, on PostgreSQL as a template on the server of TEST_DATABASE_URL. An empty folder
// keeps nothing.
func UsedIn(t testing.TB, kind string, sessions int, folder string) *store.Store {
	t.Helper()
	if folder == "" {
		return Open(t, fillUsed(t, kind, sessions, t.TempDir()))
	}
	kept := filepath.Join(folder, fmt.Sprintf("used-%d", sessions))
	var options store.Options
	if kind == "SQLite" {
		if _, err := os.Stat(filepath.Join(kept, sqliteName)); err != nil {
			fillUsed(t, kind, sessions, kept)
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
			t.Fatal(err)
		}
		options = store.Options{DataDir: dir, Log: Log(t), Exclusive: true}
	} else {
		options = store.Options{URL: keptPostgres(t, sessions), Log: Log(t), Exclusive: true}
	}
	s := Open(t, options)
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	sumUp(t, s)
	return s
}

// keptPostgres returns a copy of a filled database, which it fills the first time.
func keptPostgres(t testing.TB, sessions int) string {
	t.Helper()
	name := fmt.Sprintf("bot_used_%d", sessions)
	return postgres(t, func(t testing.TB, base string) string {
		t.Helper()
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, base)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx) //nolint:errcheck // it was only asked
		there := false
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, name).Scan(&there); err != nil {
			t.Fatal(err)
		}
		if !there {
			filled, err := url.Parse(fillUsed(t, "Postgres", sessions, "").URL)
			if err != nil {
				t.Fatal(err)
			}
			admin(t, base, "CREATE DATABASE "+name+" TEMPLATE "+strings.TrimPrefix(filled.Path, "/"))
		}
		return name
	})
}

// sumUp sums up the days of usage that are over, as the program does in the background.
func sumUp(t testing.TB, s *store.Store) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	days, err := s.UsageToSum(ctx, time.Now())
	for _, day := range days {
		err = errors.Join(err, s.SumUsageDay(ctx, day))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fillUsed fills a database and returns how it is opened.
func fillUsed(t testing.TB, kind string, sessions int, dir string) store.Options {
	t.Helper()
	var options store.Options
	var exec func(statement string) error
	ctx := context.WithoutCancel(t.Context())
	switch kind {
	case "SQLite":
		SQLiteFile(t, dir)
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqliteName)+"?_pragma=synchronous(0)&_pragma=journal_mode(wal)&_pragma=cache_size(-200000)&_pragma=temp_store(2)")
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		exec = func(statement string) error {
			_, err := db.ExecContext(ctx, statement)
			return err
		}
		fill(t, exec, inSQLite, sessions)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		options = store.Options{DataDir: dir, Log: Log(t), Exclusive: true}
	default:
		address := PostgresMigratedURL(t)
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		exec = func(statement string) error {
			_, err := conn.Exec(ctx, statement)
			return err
		}
		fill(t, exec, inPostgres, sessions)
		if err := conn.Close(ctx); err != nil {
			t.Fatal(err)
		}
		options = store.Options{URL: address, Log: Log(t), Exclusive: true}
	}
	s, err := store.Open(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	sumUp(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return options
}

// UsedID is the id of the nth row of a kind in a Used database: 1 conversations, 2
// sessions, 3 events, 4 repositories, 5 deliveries.
func UsedID(kind, n int) string { return fmt.Sprintf("00000000-0000-7000-800%d-%012d", kind, n) }

// UsedPerson is who said most in a Used database of this many sessions.
const UsedPerson = "telegram/43"

func fill(t testing.TB, exec func(statement string) error, dialect func(template string, args []string) string, sessions int) {
	t.Helper()
	constants := strings.NewReplacer(":sessions", strconv.Itoa(sessions), ":conversations", strconv.Itoa(max(sessions/20, 1)), ":year", "31536000000")
	for _, statement := range used {
		text := constants.Replace(statement)
		for inner := inBraces.FindStringSubmatchIndex(text); inner != nil; inner = inBraces.FindStringSubmatchIndex(text) {
			text = text[:inner[0]] + dialect(text[inner[2]:inner[3]], strings.Split(text[inner[4]:inner[5]], ";")) + text[inner[1]:]
		}
		if err := exec(text); err != nil {
			t.Fatalf("filling a database: %v\n%s", err, text)
		}
	}
}

// inBraces is something that databases say in different ways, the innermost first.
var inBraces = regexp.MustCompile(`\{(\w+)([^{}]*)\}`)

func inSQLite(what string, args []string) string {
	arg := func(i int) string { return strings.TrimSpace(args[i]) }
	switch what {
	case "id":
		return fmt.Sprintf("printf('00000000-0000-7000-800%s-%%012d', %s)", arg(0), arg(1))
	case "at":
		return fmt.Sprintf("strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', (%s) / 1000.0, 'unixepoch')", arg(0))
	case "now":
		return "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
	case "rows":
		return fmt.Sprintf("(WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < %s) SELECT i FROM r) AS %s", arg(0), arg(1))
	case "zeros":
		return fmt.Sprintf("replace(hex(zeroblob(%s)), '00', 'output ')", arg(0))
	case "analyze":
		return "ANALYZE"
	case "index":
		return "INSERT INTO agent_messages_fts(agent_messages_fts) VALUES ('rebuild')"
	}
	return arg(0)
}

func inPostgres(what string, args []string) string {
	arg := func(i int) string { return strings.TrimSpace(args[i]) }
	switch what {
	case "id":
		return fmt.Sprintf("CAST('00000000-0000-7000-800%s-' || lpad(CAST(%s AS TEXT), 12, '0') AS UUID)", arg(0), arg(1))
	case "at":
		return fmt.Sprintf("to_timestamp((%s) / 1000.0)", arg(0))
	case "now":
		return "CAST(extract(epoch FROM now()) * 1000 AS BIGINT)"
	case "rows":
		return fmt.Sprintf("generate_series(1, %s) AS %s(i)", arg(0), arg(1))
	case "zeros":
		return fmt.Sprintf("repeat('output ', %s)", arg(0))
	case "analyze":
		return "VACUUM ANALYZE"
	case "index":
		return "SELECT 1"
	}
	return arg(0)
}

// used are the statements that fill a database.
var used = []string{
	`INSERT INTO identities (platform_type, user_id, name, role, created_ms) SELECT 'telegram', CAST(40 + i AS TEXT), 'Person ' || i, 'user', {now} FROM {rows 500; n}`,
	`INSERT INTO remote_agent_codebases (id, name, repository_url, default_cwd)
		SELECT {id 4; i}, 'owner/repository-' || i, 'https://github.example.com/owner/repository-' || i, '/srv/' || i FROM {rows 50; n}`,
	`INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, codebase_id, inbox_seq, delivery_seq)
		SELECT {id 1; i}, CASE WHEN i % 1000 = 7 THEN 'web' WHEN i % 10 < 7 THEN 'telegram' WHEN i % 10 < 9 THEN 'slack' ELSE 'github' END, 'c' || i, {id 4; i % 50 + 1}, 40, 40
		FROM {rows :conversations; n}`,
	`INSERT INTO remote_agent_sessions (id, conversation_id, codebase_id, ai_assistant_type, active, started_at, ended_at, user_prompt, status, model, last_seq)
		SELECT {id 2; i}, {id 1; (i - 1) % :conversations + 1}, {id 4; ((i - 1) % :conversations + 1) % 50 + 1},
			CASE WHEN i % 5000 = 3 THEN 'acp' WHEN i % 3 = 0 THEN 'anthropic' ELSE 'openai' END, i > :sessions - :conversations,
			{at {now} - CAST((:sessions - i) * (:year / :sessions) AS BIGINT)}, {at {now} - CAST((:sessions - i) * (:year / :sessions) AS BIGINT) + 120000},
			'Why does the test number ' || i || ' fail on Fridays?', CASE WHEN i > :sessions - 40 THEN 'running' WHEN i % 50 = 0 THEN 'failed' ELSE 'completed' END, 'gpt-' || (i % 4), 10
		FROM {rows :sessions; n}`,
	`INSERT INTO inbound_events (id, platform_type, event_id, conversation_id, seq, state, session_id, message_id, data, accepted_ms, sender)
		SELECT {id 3; i}, c.platform_type, 'e' || i, s.conversation_id, ((i - 1) / 2) / :conversations * 2 + (i - 1) % 2 + 1,
			CASE WHEN i > :sessions * 2 - 40 AND i % 2 = 0 THEN 'running' WHEN i % 100 = 0 THEN 'failed' ELSE 'done' END, s.id, 'm' || i,
			'{"event":"e' || i || '","kind":"message","conversation":{"platform":"' || c.platform_type || '","id":"' || c.platform_conversation_id || '"},"sender":{"id":"' || p.sender || '","name":"Person"},"text":"Why does the test number ' || i || ' fail?","sent_at":"2026-01-01T00:00:00Z"}',
			{now} - CAST((:sessions * 2 - i) * (:year / :sessions / 2) AS BIGINT), p.sender
		FROM {rows :sessions * 2; n} JOIN remote_agent_sessions s ON s.id = {id 2; (i + 1) / 2} JOIN remote_agent_conversations c ON c.id = s.conversation_id
			JOIN (SELECT id AS of, CASE WHEN platform_conversation_id LIKE 'c%00' THEN '42' WHEN platform_type = 'telegram' AND (platform_conversation_id LIKE '%2' OR platform_conversation_id LIKE '%4' OR platform_conversation_id LIKE '%6') THEN '43'
				ELSE substr(platform_conversation_id, 2, 2) END AS sender FROM remote_agent_conversations) p ON p.of = s.conversation_id`,
	`INSERT INTO agent_runs (session_id, number, entry_id, status, started_ms, finished_ms, duration_ms, model, input_tokens, output_tokens)
		SELECT session_id, 1 + (seq - 1) % 2, id, CASE state WHEN 'running' THEN 'running' ELSE 'completed' END, accepted_ms, CASE state WHEN 'running' THEN NULL ELSE accepted_ms + 9000 END, 9000, 'gpt-5', 1000, 100 FROM inbound_events`,
	`INSERT INTO deliveries (id, conversation_id, event_id, seq, body, final, state, created_ms)
		SELECT CAST({id 5; e.n} AS VARCHAR(64)), e.conversation_id, e.id, e.seq, 'It fails because of the clock.', true, CASE WHEN e.n % 5000 = 0 THEN 'failed' ELSE 'sent' END, e.accepted_ms
		FROM (SELECT inbound_events.*, CAST(substr(event_id, 2) AS INTEGER) AS n FROM inbound_events) e`,
	`INSERT INTO usage_records (event_id, conversation_id, session_id, codebase_id, actor, ai_assistant_type, model, input_tokens, output_tokens, cost_micros, at_ms)
		SELECT e.id, e.conversation_id, e.session_id, c.codebase_id, e.platform_type || '/' || e.sender, 'openai', 'gpt-' || (e.seq % 4), 1000, 100 + e.seq, CASE WHEN e.seq % 7 = 0 THEN NULL ELSE 900 END, e.accepted_ms
		FROM inbound_events e JOIN remote_agent_conversations c ON c.id = e.conversation_id`,
	`INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind, data_json, run_id)
		SELECT {id 2; (i + 9) / 10}, CASE i % 5 WHEN 1 THEN 'user' WHEN 3 THEN 'tool' ELSE 'assistant' END,
			CASE WHEN i % 5 IN (2, 3) THEN '' ELSE 'The test number ' || i || ' of module' || (i % 1000) || ' fails because the clock of word' || (i % 20011) || ' is late by an hour, which ' || CASE WHEN i % 10 = 1 THEN 'tenth' ELSE 'other' END || ' people have seen since' END,
			({now} - CAST((:sessions - i / 10) * (:year / :sessions) AS BIGINT)) / 1000, (i - 1) % 10 + 1,
			CASE i % 5 WHEN 1 THEN 'user' WHEN 2 THEN 'tool_call' WHEN 3 THEN 'tool_result' ELSE 'assistant' END,
			CASE i % 5 WHEN 2 THEN '{"tool_call_id":"c' || i || '","name":"bash","arguments":"{\"command\":\"ls -l\"}"}' WHEN 3 THEN '{"tool_call_id":"c' || (i - 1) || '","name":"bash","output":"total 8","success":true}' END,
			CAST({id 3; (i + 4) / 5} AS VARCHAR(64))
		FROM {rows :sessions * 10; n}`,
	`INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind, run_id)
		SELECT {id 2; 1}, CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, 'A message of a **long** session, of which there are many: number ' || i, {now} / 1000, 10 + i, CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, CAST({id 3; 1} AS VARCHAR(64))
		FROM {rows 10000; n}`,
	`INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind, data_json, run_id)
		SELECT {id 2; 2}, 'tool', '', {now} / 1000, 11, 'tool_result', '{"tool_call_id":"c12","name":"bash","output":"' || {zeros 1500000} || '","success":true}', CAST({id 3; 3} AS VARCHAR(64))`,
	`INSERT INTO agent_tool_calls (session_id, tool_call_id, tool_name, request, response, status, created_at, completed_at, execution_time_ms, executing_ms)
		SELECT m.session_id, 'c' || m.id, 'bash', '{"command":"ls -l"}', '"total 8"', 'completed', m.created_at, m.created_at + 1, 900, m.created_at * 1000 FROM agent_messages m WHERE m.kind = 'tool_call'`,
	`INSERT INTO approvals (conversation_id, session_id, event_id, tool_call_id, tool_name, request, sha256, kind, title, requester, state, decided_by, created_ms, expires_ms)
		SELECT {id 1; i % :conversations + 1}, {id 2; i % :conversations + 1}, {id 3; i % :sessions + 1}, 'c' || i, 'bash', '{"command":"ls -l"}', '0123456789012345678901234567890123456789012345678901234567890123', 'command', 'ls -l', 'telegram/42',
			CASE WHEN i % 250 = 0 THEN 'waiting' ELSE 'allowed' END, 'telegram/1', {now} - 60000, {now} + 86400000 FROM {rows 5000; n}`,
	`INSERT INTO audit_log (at_ms, actor, action, conversation_id, target, seq, hash)
		SELECT {now} - (:sessions - i) * 1000, 'telegram/' || (40 + i % 500), 'tool.run', CAST({id 1; i % :conversations + 1} AS TEXT), 'bash ' || i, i, 'x' FROM {rows :sessions; n}`,
	`UPDATE audit_head SET seq = :sessions, hash = 'x'`,
	`INSERT INTO memory_people (user_id, seq) VALUES ('console/local', 5000)`,
	`INSERT INTO semantic_memories (user_id, run_id, fact, seq, content_hash, terms)
		SELECT 'console/local', {id 3; 1}, 'The server number ' || i || ' restarts on Fridays', i, 'h' || i, 'server number ' || i || ' restarts fridays' FROM {rows 5000; n}`,
	`INSERT INTO web_chats (id, account, last_seq, changed_ms) SELECT CAST({id 6; i} AS VARCHAR(40)), 'console/local', 500, {now} - i * 1000 FROM {rows 2000; n}`,
	`INSERT INTO web_messages (id, chat_id, seq, author, body, delivery_id, created_ms) SELECT 'w' || (n.i * 2000 + k.i), CAST({id 6; k.i} AS VARCHAR(40)), n.i, CASE n.i % 2 WHEN 1 THEN 'console/local' ELSE '' END,
		'Something was **said** here, number ' || n.i, CASE n.i % 2 WHEN 1 THEN NULL ELSE 'd' || (n.i * 2000 + k.i) END, {now} - n.i * 1000 FROM {rows 500; n} CROSS JOIN (SELECT m.i FROM {rows 20; m}) k`,
	`{index}`,
	`{analyze}`,
}
