package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// ImportShared stores a row that ExportShared gave unless it is here, and says
// whether it did. Of a codebase it notes in codebases which id it has here: one of
// the same repository is the same codebase, or one of the same name of which no
// other repository is known, but never one that this import brought along. Nobody's
// role is changed. The row of a person (memory_person) is stored if nothing is
// remembered of them here and they did not switch that off; the caller leaves out
// the memories of all others. A memory that could not have been stored here is
// fault.Invalid.
func (t *Portable) ImportShared(ctx context.Context, kind string, row map[string]json.RawMessage, codebases map[string]string) (stored bool, err error) {
	i := slices.IndexFunc(portableShared, func(p portable) bool { return p.kind == kind })
	if i < 0 {
		return false, unknownKind(kind)
	}
	if kind == portableCodebase.kind {
		return t.importCodebase(ctx, row, codebases)
	}
	return t.importShared(ctx, portableShared[i], row)
}

func (t *Portable) importCodebase(ctx context.Context, row map[string]json.RawMessage, codebases map[string]string) (stored bool, err error) {
	values, err := decodePortable(portableCodebase, row)
	if err != nil {
		return false, err
	}
	given, _ := values[0].(string)
	if err := checkID(given, "codebase"); err != nil {
		return false, err
	}
	alike, err := t.tx.ids(ctx, `
		SELECT id FROM remote_agent_codebases WHERE id = $1 OR repository_url <> '' AND repository_url = $3
			OR name = $2 AND name <> '' AND (COALESCE(repository_url, '') = '' OR COALESCE($3, '') = '')
		ORDER BY CASE WHEN id = $1 THEN 0 WHEN repository_url = $3 THEN 1 ELSE 2 END, created_at, id`, values[0], values[1], values[2])
	if err != nil {
		return false, wrap(err, "look for a codebase")
	}
	for _, id := range alike {
		if _, brought := codebases[id]; id == given || !brought {
			codebases[given] = id
			return false, nil
		}
	}
	if err := t.freeName(ctx, row); err != nil {
		return false, err
	}
	codebases[given] = given
	_, err = t.insertPortable(ctx, portableCodebase, row, "")
	return err == nil, err
}

// freeName gives the row of a codebase a name that no other one has.
func (t *Portable) freeName(ctx context.Context, row map[string]json.RawMessage) error {
	var name string
	if err := json.Unmarshal(row["name"], &name); err != nil {
		return fault.Wrap(err, fault.Invalid, "read the name of a codebase")
	}
	name, err := sessions.FreeName(name, func(name string) (bool, error) {
		return t.tx.exists(ctx, `SELECT 1 FROM remote_agent_codebases WHERE name = $1 AND name <> ''`, name)
	})
	row["name"], _ = json.Marshal(name) // a string
	return wrap(err, "look for a name")
}

// ImportRow stores a row of a conversation as ExportConversation gave it, with
// what was open settled: nothing that is imported is ever sent, run or answered
// again. A row that is there already is a fault.Conflict, one that refers to a
// row that is not there a fault.NotFound, one that does not fit fault.Invalid.
func (t *Portable) ImportRow(ctx context.Context, kind string, row map[string]json.RawMessage) error {
	i := slices.IndexFunc(portables, func(p portable) bool { return p.kind == kind })
	if i < 0 {
		return unknownKind(kind)
	}
	settleRow(kind, row)
	var extra []extraColumn
	conflict := ""
	switch kind {
	case "tool_call":
		id, err := t.messageRow(ctx, row)
		if err != nil {
			return err
		}
		extra = []extraColumn{{"message_id", id}}
	case portableEntry:
		extra, conflict = []extraColumn{{"sender", senderOf(row)}}, ofDeletedEntry
	case "usage":
		again, err := t.usageAgain(ctx, portables[i], row)
		if err != nil || again {
			return err
		}
	}
	n, err := t.insertPortable(ctx, portables[i], row, conflict, extra...)
	if err == nil && n == 0 {
		err = fault.New(fault.Conflict, textRowIsThere)
	}
	return err
}

// ofDeletedEntry gives what a deletion of its conversation left of an event, the fact that
// it was received, its text again.
const ofDeletedEntry = ` ON CONFLICT (id) DO UPDATE SET conversation_id = excluded.conversation_id, seq = excluded.seq, state = excluded.state,
	attempts = excluded.attempts, session_id = excluded.session_id, error = excluded.error, data = excluded.data, raw = excluded.raw
	WHERE inbound_events.conversation_id IS NULL`

// usageAgain gives a record of usage that outlived its conversation its place again, so
// that nothing is counted twice, and says whether there was one.
func (t *Portable) usageAgain(ctx context.Context, p portable, row map[string]json.RawMessage) (bool, error) {
	values, err := decodePortable(p, row)
	if err != nil {
		return false, err
	}
	n, err := t.tx.exec(ctx, `
		UPDATE usage_records SET conversation_id = $2, session_id = $3, codebase_id = $4
		WHERE id = (SELECT u.id FROM usage_records u WHERE u.conversation_id IS NULL AND u.event_id = $1 AND u.actor = $5
			AND u.ai_assistant_type = $6 AND u.model = $7 AND u.input_tokens = $8 AND u.output_tokens = $9
			AND u.cached_tokens = $10 AND u.written_tokens = $11 AND u.cost_micros IS NOT DISTINCT FROM $12 AND u.at_ms = $13
			ORDER BY u.id LIMIT 1)`, values...)
	return n > 0, wrap(err, "look for a record of usage")
}

// senderOf returns who sent the event of a row, by which they see what it belongs to; empty
// if that is not kept any more.
func senderOf(row map[string]json.RawMessage) string {
	var data string
	var in messages.Inbound
	if json.Unmarshal(row["data"], &data) != nil || json.Unmarshal([]byte(data), &in) != nil {
		return ""
	}
	return senderKey(in)
}

func unknownKind(kind string) error {
	return fault.Newf(fault.Invalid, "There are no rows of type %q.", kind)
}

// settleRow ends what was open when the row was exported.
func settleRow(kind string, row map[string]json.RawMessage) {
	is := func(column string, values ...string) bool {
		var v string
		return json.Unmarshal(row[column], &v) == nil && slices.Contains(values, v)
	}
	ended := json.RawMessage(`"` + ErrRestored + `"`)
	switch {
	case kind == "delivery" && !is("state", "sent", "failed"):
		row["state"], row["final"], row["error"] = json.RawMessage(`"failed"`), json.RawMessage("true"), ended
	case kind == portableEntry && is("state", "waiting", "running"):
		row["state"], row["error"] = json.RawMessage(`"stopped"`), ended
	case kind == "tool_call" && is("status", "pending", "executing"):
		row["status"], row["error_details"] = json.RawMessage(`"failed"`), ended
	case kind == "run" && is("status", "running"):
		row["status"], row["error"], row["finished_ms"] = json.RawMessage(`"interrupted"`), ended, fmt.Append(nil, time.Now().UnixMilli())
	case kind == "web_message" && !is("mark", "done", "failed"):
		row["mark"] = json.RawMessage(`""`) // nothing waits in a copy
	case kind == "web_file" && string(row["data"]) == "null":
		row["data"] = json.RawMessage(`""`) // the export was redacted
	case kind == "session":
		if string(row["started_at"]) == "null" { // nobody knows, and lists go by it
			row["started_at"] = json.RawMessage(`"1970-01-01T00:00:00.000Z"`)
		}
		if is("status", "running") { // of an earlier version it says only that the session has not ended
			row["status"] = json.RawMessage(`"completed"`)
		}
	}
}

// insertPortable inserts a row and says how many there are more.
func (t *Portable) insertPortable(ctx context.Context, p portable, row map[string]json.RawMessage, conflict string, extra ...extraColumn) (int64, error) {
	values, err := decodePortable(p, row)
	if err != nil {
		return 0, err
	}
	var names, places []string
	args := make([]any, 0, len(values))
	for i, c := range p.columns {
		if c.value != "" { // of another table, see ImportRow
			continue
		}
		args = append(args, values[i])
		place := fmt.Sprintf("$%d", len(args))
		if c.name == "parent_session_id" { // it may be of a conversation that was not exported
			place = `(SELECT p.id FROM remote_agent_sessions p WHERE p.id = ` + place + `)`
		}
		names, places = append(names, quoted(c.name)), append(places, place)
	}
	for _, c := range extra {
		args = append(args, c.value)
		names, places = append(names, c.name), append(places, fmt.Sprintf("$%d", len(args)))
	}
	n, err := t.tx.exec(ctx, `INSERT INTO `+p.table+` (`+strings.Join(names, ", ")+`) VALUES (`+strings.Join(places, ", ")+`)`+conflict, args...)
	var public string
	switch fault.KindOf(err) {
	case fault.Conflict:
		public = textRowIsThere
	case fault.NotFound:
		public = "A row that it refers to is missing."
	case fault.Invalid:
		public = "A value does not fit into its column."
	default:
		return n, wrap(err, "import "+p.kind)
	}
	return 0, &fault.Error{Kind: fault.KindOf(err), Public: public, Err: err}
}

const textRowIsThere = "The row is there twice, or is here already."

// messageRow returns the number of the message row of a tool call, nil if it has
// none.
func (t *Portable) messageRow(ctx context.Context, row map[string]json.RawMessage) (any, error) {
	var session string
	var seq, part *int64
	if err := errors.Join(json.Unmarshal(row["session_id"], &session), json.Unmarshal(row["message_seq"], &seq), json.Unmarshal(row["message_part"], &part)); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "read message of tool call")
	}
	if seq == nil || part == nil {
		return nil, nil //nolint:nilnil // SQL's NULL
	}
	var id int64
	ok, err := t.tx.one(ctx, []any{&id}, `SELECT id FROM agent_messages WHERE session_id = $1 AND seq = $2 AND part = $3`, session, *seq, *part)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "The message that asked for the tool call is missing.")
	}
	return id, err
}

// decodePortable returns the values of a row in the order of the columns. Every
// column has to be there, and no other.
func decodePortable(p portable, row map[string]json.RawMessage) ([]any, error) {
	values := make([]any, len(p.columns))
	for i, c := range p.columns {
		raw, ok := row[c.name]
		if !ok {
			return nil, fault.Newf(fault.Invalid, "The row of type %s has no %s.", p.kind, c.name)
		}
		v, err := decodeValue(c.kind, raw)
		if err != nil {
			return nil, &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("The %s of the row of type %s cannot be read.", c.name, p.kind), Err: err}
		}
		values[i] = v
	}
	for name := range row {
		if !slices.ContainsFunc(p.columns, func(c portableColumn) bool { return c.name == name }) {
			return nil, fault.Newf(fault.Invalid, "A row of type %s has no %q here; a newer version may have written it.", p.kind, name)
		}
	}
	return values, nil
}

func decodeValue(kind portableKind, raw json.RawMessage) (any, error) {
	if string(raw) == "null" {
		return nil, nil //nolint:nilnil // SQL's NULL
	}
	switch kind {
	case asInt:
		var n int64
		err := json.Unmarshal(raw, &n)
		return n, err
	case asFloat:
		var f float64
		err := json.Unmarshal(raw, &f)
		return f, err
	case asBool:
		var b bool
		err := json.Unmarshal(raw, &b)
		return b, err
	case asJSON:
		return string(raw), nil
	case asText, asTime, asBytes, asBody:
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	switch kind {
	case asTime:
		at, err := time.Parse(time.RFC3339Nano, s)
		return stampText(at), err
	case asBytes, asBody:
		b, err := base64.StdEncoding.DecodeString(s)
		if kind == asBody && err == nil {
			return packBody(b), nil
		}
		return b, err
	default:
		return s, nil
	}
}
