package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// codebaseRow, conversationRow and sessionRow are rows whose values could be read.
type codebaseRow struct {
	sessions.Codebase

	commands json.RawMessage
}

type conversationRow struct{ sessions.Conversation }

type sessionRow struct {
	sessions.Session

	metadata json.RawMessage
}

// tables are the rows that could be read, and those that could not.
type tables struct {
	codebases     []codebaseRow
	conversations []conversationRow
	sessions      []sessionRow

	refused []Refusal
	known   map[string]map[string]bool // ids by table, also of refused rows
}

// read reads the values of all rows. What one row by itself can have wrong is
// found here.
func read(rows Rows) tables {
	all := tables{known: make(map[string]map[string]bool)}
	for _, raw := range rows[store.SeedCodebases] {
		r := all.reader(store.SeedCodebases, raw)
		row := codebaseRow{Codebase: sessions.Codebase{
			ID: r.id, Name: r.text("name", 255, true), RepositoryURL: r.text("repository_url", 500, false), DefaultCwd: r.text("default_cwd", 500, true),
			Assistant: r.text("ai_assistant_type", 20, true), CreatedAt: r.time("created_at"), UpdatedAt: r.time("updated_at"),
		}, commands: r.object("commands")}
		r.registry(row.commands)
		if strings.ContainsFunc(row.Name, unicode.IsControl) { // lists of codebases have a line for each
			r.refuse("name is %q, and a name cannot have a line break or another control character", clip(row.Name))
		}
		if r.taken() {
			all.codebases = append(all.codebases, row)
		}
	}
	for _, raw := range rows[store.SeedConversations] {
		r := all.reader(store.SeedConversations, raw)
		row := conversationRow{sessions.Conversation{
			ID: r.id, Key: messages.ConversationKey{
				Platform: messages.Platform(r.text("platform_type", 20, true)), ID: r.text("platform_conversation_id", 255, true),
			},
			CodebaseID: r.reference("codebase_id", false), Cwd: r.text("cwd", 500, false), Assistant: r.text("ai_assistant_type", 20, true),
			CreatedAt: r.time("created_at"), UpdatedAt: r.time("updated_at"),
		}}
		if row.Key.Platform == "github" { // names of repositories stand in keys in lower case here
			row.Key.ID = strings.ToLower(row.Key.ID)
		}
		if r.taken() {
			all.conversations = append(all.conversations, row)
		}
	}
	for _, raw := range rows[store.SeedSessions] {
		r := all.reader(store.SeedSessions, raw)
		row := sessionRow{Session: sessions.Session{
			ID: r.id, ConversationID: r.reference("conversation_id", true), CodebaseID: r.reference("codebase_id", false),
			Assistant: r.text("ai_assistant_type", 20, true), AssistantSessionID: r.text("assistant_session_id", 255, false),
			Active: r.yes("active"), Status: sessions.Completed, StartedAt: r.time("started_at"), EndedAt: r.time("ended_at"),
		}, metadata: r.object("metadata")}
		if r.taken() {
			all.sessions = append(all.sessions, row)
		}
	}
	return all
}

// reader reads the values of a row and collects what is wrong with them.
type reader struct {
	all   *tables
	table string
	row   store.SeedRow
	id    string
	wrong []string
}

func (t *tables) reader(table string, row store.SeedRow) *reader {
	r := &reader{all: t, table: table, row: row}
	if t.known[table] == nil {
		t.known[table] = make(map[string]bool)
	}
	if raw := row["id"]; raw == nil {
		r.refuse("it has no ID")
	} else if id, ok := canonicalID(*raw); !ok {
		r.id = *raw
		r.refuse("its ID is not a UUID")
	} else {
		r.id = id
		if t.known[table][id] {
			r.refuse("its ID appears twice")
		}
		t.known[table][id] = true
	}
	return r
}

// canonicalID writes a UUID as it is stored here.
func canonicalID(text string) (string, bool) {
	id, err := uuid.Parse(text)
	return id.String(), err == nil
}

func (r *reader) refuse(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// taken reports whether nothing is wrong with the row, else notes why.
func (r *reader) taken() bool {
	if len(r.wrong) > 0 {
		r.all.refused = append(r.all.refused, Refusal{Table: r.table, ID: r.id, Why: strings.Join(r.wrong, "; ")})
	}
	return len(r.wrong) == 0
}

// text returns a text of at most limit characters.
func (r *reader) text(column string, limit int, required bool) string {
	raw := r.row[column]
	switch {
	case raw == nil && required:
		r.refuse("%s is NULL", column)
		return ""
	case raw == nil:
		return ""
	case *raw == "" && required:
		r.refuse("%s is empty", column)
	case !utf8.ValidString(*raw) || strings.ContainsRune(*raw, 0):
		r.refuse("%s is not text", column)
	case utf8.RuneCountInString(*raw) > limit:
		r.refuse("%s has %d characters and %d are possible", column, utf8.RuneCountInString(*raw), limit)
	}
	return *raw
}

// reference returns the id of another row.
func (r *reader) reference(column string, required bool) string {
	raw := r.row[column]
	if raw == nil {
		if required {
			r.refuse("%s is NULL", column)
		}
		return ""
	}
	id, ok := canonicalID(*raw)
	if !ok {
		r.refuse("%s is %q, which is not a UUID", column, clip(*raw))
	}
	return id
}

// yes reads a boolean; NULL is no.
func (r *reader) yes(column string) bool {
	raw := r.row[column]
	if raw == nil {
		return false
	}
	is, err := strconv.ParseBool(*raw)
	if err != nil {
		r.refuse("%s is %q, which is neither true nor false", column, clip(*raw))
	}
	return is
}

// object reads a JSON object; NULL and the null of JSON are an empty one. Numbers beyond
// a float64, which SQLite takes, PostgreSQL does not.
func (r *reader) object(column string) json.RawMessage {
	raw := r.row[column]
	if raw == nil || strings.TrimSpace(*raw) == "null" {
		return json.RawMessage("{}")
	}
	var object map[string]any
	err := json.Unmarshal([]byte(*raw), &object)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.HasPrefix(wrong.Value, "number ") {
		r.refuse("%s has a %s, which is too large", column, clip(wrong.Value))
	} else if err != nil || !utf8.ValidString(*raw) {
		r.refuse("%s is not a JSON object: %s", column, clip(*raw))
	}
	return json.RawMessage(*raw)
}

// registry checks a command registry.
func (r *reader) registry(commands json.RawMessage) {
	var all map[string]json.RawMessage
	if json.Unmarshal(commands, &all) != nil {
		return // object has said so
	}
	for name, raw := range all {
		var def sessions.CommandDef
		if err := json.Unmarshal(raw, &def); err != nil || !strings.HasPrefix(strings.TrimSpace(string(raw)), "{") {
			r.refuse("commands: %q is not an object with a path and a description", clip(name))
		}
	}
}

// timeForms are how databases write times. Without a zone it is UTC.
var timeForms = []string{
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04Z07:00", "2006-01-02 15:04", "2006-01-02",
}

var digits = pattern.Lazy(`^[0-9]{9,14}$`)

// time reads a time to the microsecond; NULL is the zero time. A whole number is
// Unix seconds, or milliseconds if it has more than ten digits.
func (r *reader) time(column string) time.Time {
	raw := r.row[column]
	if raw == nil {
		return time.Time{}
	}
	text := strings.TrimSpace(*raw)
	if digits.MatchString(text) {
		n, _ := strconv.ParseInt(text, 10, 64) // at most 14 digits
		if len(text) > 10 {
			return time.UnixMilli(n).UTC()
		}
		return time.Unix(n, 0).UTC()
	}
	for _, form := range timeForms {
		if at, err := time.Parse(form, text); err == nil && at.Year() > 0 {
			return at.UTC().Truncate(time.Microsecond)
		}
	}
	r.refuse("%s is %q, which is not a time", column, clip(*raw))
	return time.Time{}
}

// clip shortens what a database holds for a line of text.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return text
}
