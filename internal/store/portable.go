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
)

// Field is a value of a portable row: nil, string, int64, float64, bool,
// json.RawMessage or []byte.
type Field struct {
	Name  string
	Value any
}

// portable is a table in the form that export and import have in common, which
// is the same for both databases and holds no number that a database gave out.
type portable struct {
	kind    string // the type of its rows
	table   string
	columns []portableColumn
	from    string // FROM and what follows, for the rows of conversation $1

	// bySession is that $1 is a session: SQLite brings rows into order in memory, as
	// they are, where no index has that order.
	bySession bool
}

type portableColumn struct {
	name  string
	kind  portableKind
	value string // expression to read; empty: the column of the table's alias t
}

type portableKind int

const (
	asText portableKind = iota
	asInt
	asFloat
	asBool
	asTime
	asJSON
	asBytes
	asBody // bytes as packBody stores them
)

// stampLayout is the form of a time on SQLite, where it is sorted as text.
const stampLayout = "2006-01-02T15:04:05.000Z"

func cols(kind portableKind, names string) []portableColumn {
	var list []portableColumn
	for name := range strings.FieldsSeq(names) {
		list = append(list, portableColumn{name: name, kind: kind})
	}
	return list
}

var portableCodebase = portable{
	kind: "codebase", table: "remote_agent_codebases",
	columns: slices.Concat(cols(asText, "id name repository_url default_cwd ai_assistant_type"), cols(asJSON, "commands"), cols(asTime, "created_at updated_at")),
	from:    `remote_agent_codebases t WHERE $1 = '' OR CAST(t.id AS TEXT) IN (SELECT CAST(c.codebase_id AS TEXT) FROM remote_agent_conversations c WHERE CAST(c.id AS TEXT) = $1 UNION SELECT CAST(s.codebase_id AS TEXT) FROM remote_agent_sessions s WHERE CAST(s.conversation_id AS TEXT) = $1 UNION SELECT CAST(u.codebase_id AS TEXT) FROM usage_records u WHERE CAST(u.conversation_id AS TEXT) = $1) ORDER BY t.id`,
}

var portableIdentity = portable{
	kind: "identity", table: "identities",
	columns: slices.Concat(cols(asText, "platform_type user_id name role"), cols(asInt, "refused_ms created_ms"),
		cols(asText, "granted_by"), cols(asInt, "granted_ms removed_ms"), cols(asBool, "reads")),
	from: `identities t WHERE $1 = '' ORDER BY t.platform_type, t.user_id`,
}

// portables are the tables of a conversation, what is referred to first.
var portables = []portable{
	{
		kind: "conversation", table: "remote_agent_conversations",
		columns: slices.Concat(cols(asText, "id platform_type platform_conversation_id codebase_id cwd ai_assistant_type"),
			cols(asJSON, "settings"), cols(asTime, "created_at updated_at"), cols(asInt, "inbox_seq stop_seq delivery_seq")),
		from: `remote_agent_conversations t WHERE t.id = $1`,
	},
	{
		kind: "session", table: "remote_agent_sessions",
		columns: slices.Concat(cols(asText, "id conversation_id codebase_id parent_session_id ai_assistant_type assistant_session_id"),
			cols(asBool, "active"), cols(asJSON, "metadata"), cols(asTime, "started_at ended_at"),
			cols(asText, "agent_name model system_prompt user_prompt config status result error"), cols(asInt, "input_tokens output_tokens last_seq")),
		from: `remote_agent_sessions t WHERE t.conversation_id = $1 ORDER BY t.started_at, t.id`,
	},
	{
		kind: "message", table: "agent_messages",
		columns: slices.Concat(cols(asText, "session_id"), cols(asInt, "seq part"), cols(asText, "role kind content data_json provider_metadata run_id"),
			cols(asBool, "undone"), cols(asInt, "created_at")),
		from: `agent_messages t WHERE t.session_id = $1 ORDER BY t.seq, t.part`, bySession: true,
	},
	{
		kind: "tool_call", table: "agent_tool_calls",
		columns: slices.Concat(cols(asText, "session_id tool_call_id tool_name request response status"),
			cols(asInt, "created_at completed_at execution_time_ms"), cols(asText, "error_details"), cols(asInt, "executing_ms"),
			[]portableColumn{{"message_seq", asInt, "m.seq"}, {"message_part", asInt, "m.part"}}),
		from: `agent_tool_calls t LEFT JOIN agent_messages m ON m.id = t.message_id WHERE t.session_id = $1 ORDER BY t.id`, bySession: true,
	},
	{
		kind: "entry", table: "inbound_events",
		columns: slices.Concat(cols(asText, "id platform_type account event_id conversation_id"), cols(asInt, "seq"),
			cols(asText, "lane state"), cols(asInt, "attempts"), cols(asText, "session_id message_id error data"), cols(asBody, "raw"), cols(asInt, "accepted_ms")),
		from: `inbound_events t WHERE t.conversation_id = $1 AND t.seq > 0 ORDER BY t.seq`,
	},
	{
		kind: "delivery", table: "deliveries",
		columns: slices.Concat(cols(asText, "id conversation_id event_id"), cols(asInt, "seq"), cols(asText, "reply_to placeholder body"),
			cols(asBool, "final control"), cols(asText, "message_id state"), cols(asInt, "attempts"), cols(asText, "error"), cols(asInt, "created_ms"),
			cols(asJSON, "buttons"), cols(asText, "only_for file_name"), cols(asBytes, "file")),
		from: `deliveries t WHERE t.conversation_id = $1 ORDER BY t.seq`,
	},
	{
		kind: "run", table: "agent_runs",
		columns: slices.Concat(cols(asText, "session_id"), cols(asInt, "number"), cols(asText, "entry_id status"),
			cols(asInt, "started_ms finished_ms duration_ms"), cols(asText, "model"), cols(asInt, "input_tokens output_tokens cost_micros"), cols(asText, "error")),
		from: `agent_runs t WHERE t.session_id = $1 ORDER BY t.number`, bySession: true,
	},
	{
		kind: "usage", table: "usage_records",
		columns: slices.Concat(cols(asText, "event_id conversation_id session_id codebase_id actor ai_assistant_type model"),
			cols(asInt, "input_tokens output_tokens cached_tokens written_tokens cost_micros at_ms")),
		from: `usage_records t WHERE t.conversation_id = $1 ORDER BY t.id`,
	},
}

// ConversationIDs returns ids of conversations in their order, behind the given
// one, up to limit.
func (t *Tx) ConversationIDs(ctx context.Context, after string, limit int) ([]string, error) {
	if after == "" {
		after = "00000000-0000-0000-0000-000000000000"
	}
	ids, err := t.ids(ctx, `SELECT id FROM remote_agent_conversations WHERE id > $1 ORDER BY id LIMIT $2`, after, page(limit))
	return ids, wrap(err, "list conversations")
}

// ExportShared calls visit for the rows that conversations refer to, codebases,
// and without a conversation also for people and what is remembered of them. Of a
// conversation only its own.
func (t *Tx) ExportShared(ctx context.Context, conversationID string, visit func(kind string, row []Field) error) error {
	for _, p := range portableShared {
		if err := t.exportTable(ctx, p, conversationID, visit); err != nil {
			return err
		}
	}
	return nil
}

// ExportConversation calls visit for every row of a conversation, in an order in
// which ImportRow takes them and which is the same each time. Nothing but
// the ids of its sessions is collected in memory. visit may not use t.
func (t *Tx) ExportConversation(ctx context.Context, id string, visit func(kind string, row []Field) error) error {
	if err := checkID(id, "conversation"); err != nil {
		return err
	}
	if _, err := t.Conversation(ctx, id); err != nil {
		return err
	}
	sessions, err := t.SessionIDs(ctx, []string{id})
	if err != nil {
		return err
	}
	for _, p := range portables {
		of := []string{id}
		if p.bySession {
			of = sessions
		}
		for _, one := range of {
			if err := t.exportTable(ctx, p, one, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// query reads the rows of a table; $1 is the id of the conversation or session.
func (p portable) query() string {
	values := make([]string, len(p.columns))
	for i, c := range p.columns {
		if values[i] = c.value; c.value == "" {
			values[i] = "t." + quoteName(c.name)
		}
	}
	return `SELECT ` + strings.Join(values, ", ") + ` FROM ` + p.from
}

func (t *Tx) exportTable(ctx context.Context, p portable, id string, visit func(kind string, row []Field) error) error {
	err := t.each(ctx, func(scan func(...any) error) error {
		row := make([]Field, len(p.columns))
		dest := make([]any, len(p.columns))
		for i, c := range p.columns {
			row[i].Name = c.name
			dest[i] = portableValue{c.kind, &row[i].Value}
		}
		if err := scan(dest...); err != nil {
			return err
		}
		return visit(p.kind, row)
	}, p.query(), id)
	return wrap(err, "export "+p.kind)
}

// portableValue scans a column of a kind.
type portableValue struct {
	kind portableKind
	to   *any
}

// Scan implements sql.Scanner.
func (v portableValue) Scan(value any) error {
	if value == nil {
		*v.to = nil
		return nil
	}
	switch v.kind {
	case asInt:
		n, ok := value.(int64)
		*v.to = n
		if !ok {
			return fmt.Errorf("cannot read %T as a number", value)
		}
	case asFloat:
		f, ok := value.(float64)
		*v.to = f
		if !ok {
			return fmt.Errorf("cannot read %T as a number", value)
		}
	case asBool:
		switch b := value.(type) {
		case bool:
			*v.to = b
		case int64:
			*v.to = b != 0
		default:
			return fmt.Errorf("cannot read %T as yes or no", value)
		}
	case asBytes, asBody:
		b, ok := value.([]byte)
		if v.kind == asBody {
			b = unpackBody(b)
		}
		*v.to = slices.Clone(b)
		if !ok {
			return fmt.Errorf("cannot read %T as bytes", value)
		}
	case asTime:
		var at time.Time
		if err := (stamp{&at}).Scan(value); err != nil {
			return err
		}
		*v.to = stampText(at)
	case asText, asJSON:
		var s string
		if err := (text{&s}).Scan(value); err != nil {
			return err
		}
		if *v.to = s; v.kind == asJSON {
			*v.to = json.RawMessage(s)
		}
	}
	return nil
}

// HasConversation reports whether a conversation of an export is here already. It
// is a fault.Conflict if its place on the platform belongs to another one.
func (t *Tx) HasConversation(ctx context.Context, id, platform, platformID string) (bool, error) {
	if err := checkID(id, "conversation"); err != nil {
		return false, err
	}
	var found string
	ok, err := t.one(ctx, []any{text{&found}}, `
		SELECT id FROM remote_agent_conversations WHERE platform_type = $1 AND platform_conversation_id = $2`, platform, platformID)
	if err != nil {
		return false, fmt.Errorf("look for a conversation: %w", err)
	}
	if ok && found != id {
		return false, fault.Newf(fault.Conflict, "There is another conversation %s %s here already, with id %s.", platform, platformID, found)
	}
	if ok {
		return true, nil
	}
	_, err = t.Conversation(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err == nil {
		err = fault.Newf(fault.Conflict, "The conversation %s is here already, under another address.", id)
	}
	return false, err
}

// ImportShared stores a row that ExportShared gave unless it is here, and says
// whether it did. Of a codebase it returns the id that it has here: one with the
// same name or repository is the same codebase. Nobody's role is changed. The
// row of a person (memory_person) is stored if nothing is remembered of them here
// and they did not switch that off; the caller leaves out the memories of all
// others. A memory that could not have been stored here is fault.Invalid.
func (t *Tx) ImportShared(ctx context.Context, kind string, row map[string]json.RawMessage) (id string, stored bool, err error) {
	i := slices.IndexFunc(portableShared, func(p portable) bool { return p.kind == kind })
	if i < 0 {
		return "", false, unknownKind(kind)
	}
	if kind == portableCodebase.kind {
		return t.importCodebase(ctx, row)
	}
	stored, err = t.importShared(ctx, portableShared[i], row)
	return "", stored, err
}

func (t *Tx) importCodebase(ctx context.Context, row map[string]json.RawMessage) (id string, stored bool, err error) {
	values, err := decodePortable(portableCodebase, row)
	if err != nil {
		return "", false, err
	}
	given, _ := values[0].(string)
	if err := checkID(given, "codebase"); err != nil {
		return "", false, err
	}
	ok, err := t.one(ctx, []any{text{&id}}, `
		SELECT id FROM remote_agent_codebases WHERE id = $1 OR name = $2 OR (repository_url <> '' AND repository_url = $3)
		ORDER BY CASE WHEN id = $1 THEN 0 WHEN repository_url = $3 THEN 1 ELSE 2 END LIMIT 1`, values[0], values[1], values[2])
	if err != nil || ok {
		return id, false, wrap(err, "look for a codebase")
	}
	_, err = t.insertPortable(ctx, portableCodebase, row, "")
	return given, err == nil, err
}

// ImportRow stores a row of a conversation as ExportConversation gave it, with
// what was open settled: nothing that is imported is ever sent, run or answered
// again. A row that is there already is a fault.Conflict, one that refers to a
// row that is not there a fault.NotFound, one that does not fit fault.Invalid.
func (t *Tx) ImportRow(ctx context.Context, kind string, row map[string]json.RawMessage) error {
	i := slices.IndexFunc(portables, func(p portable) bool { return p.kind == kind })
	if i < 0 {
		return unknownKind(kind)
	}
	settleRow(kind, row)
	var extra []extraColumn
	if kind == "tool_call" {
		id, err := t.messageRow(ctx, row)
		if err != nil {
			return err
		}
		extra = []extraColumn{{"message_id", id}}
	}
	_, err := t.insertPortable(ctx, portables[i], row, "", extra...)
	return err
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
	case kind == "entry" && is("state", "waiting", "running"):
		row["state"], row["error"] = json.RawMessage(`"stopped"`), ended
	case kind == "tool_call" && is("status", "pending", "executing"):
		row["status"], row["error_details"] = json.RawMessage(`"failed"`), ended
	case kind == "run" && is("status", "running"):
		row["status"], row["error"], row["finished_ms"] = json.RawMessage(`"interrupted"`), ended, fmt.Append(nil, time.Now().UnixMilli())
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
func (t *Tx) insertPortable(ctx context.Context, p portable, row map[string]json.RawMessage, conflict string, extra ...extraColumn) (int64, error) {
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
		names, places = append(names, quoteName(c.name)), append(places, place)
	}
	for _, c := range extra {
		args = append(args, c.value)
		names, places = append(names, c.name), append(places, fmt.Sprintf("$%d", len(args)))
	}
	n, err := t.exec(ctx, `INSERT INTO `+p.table+` (`+strings.Join(names, ", ")+`) VALUES (`+strings.Join(places, ", ")+`)`+conflict, args...)
	for kind, public := range map[fault.Kind]string{
		fault.Conflict: "The row is there twice, or is here already.",
		fault.NotFound: "A row that it refers to is missing.",
		fault.Invalid:  "A value does not fit into its column.",
	} {
		if fault.Is(err, kind) {
			return 0, &fault.Error{Kind: kind, Public: public, Err: err}
		}
	}
	return n, wrap(err, "import "+p.kind)
}

// messageRow returns the number of the message row of a tool call, nil if it has
// none.
func (t *Tx) messageRow(ctx context.Context, row map[string]json.RawMessage) (any, error) {
	var session string
	var seq, part *int64
	if err := errors.Join(json.Unmarshal(row["session_id"], &session), json.Unmarshal(row["message_seq"], &seq), json.Unmarshal(row["message_part"], &part)); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "read message of tool call")
	}
	if seq == nil || part == nil {
		return nil, nil //nolint:nilnil // SQL's NULL
	}
	var id int64
	ok, err := t.one(ctx, []any{&id}, `SELECT id FROM agent_messages WHERE session_id = $1 AND seq = $2 AND part = $3`, session, *seq, *part)
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
