package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// portableEntry is the kind of the rows that are events of the inbox.
const portableEntry = "entry"

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
		kind: portableEntry, table: "inbound_events",
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
	// What a browser shows of a conversation. A chat in which nothing was taken has none,
	// and is not exported.
	{
		kind: "web_chat", table: "web_chats", columns: slices.Concat(cols(asText, "id account"), cols(asInt, "last_seq changed_ms")),
		from: `web_chats t WHERE t.id = ` + chatOfConversation,
	},
	{
		kind: "web_message", table: "web_messages",
		columns: slices.Concat(cols(asText, "id chat_id"), cols(asInt, "seq"), cols(asText, "delivery_id author body"), cols(asJSON, "buttons"), cols(asText, "mark"), cols(asInt, "created_ms")),
		from:    `web_messages t WHERE t.chat_id = ` + chatOfConversation + ` ORDER BY t.seq`,
	},
	{
		kind: "web_file", table: "web_files",
		columns: slices.Concat(cols(asText, "id message_id name media_type"), cols(asInt, "size"), cols(asBytes, "data")),
		from:    `web_messages m JOIN web_files t ON t.message_id = m.id WHERE m.chat_id = ` + chatOfConversation + ` ORDER BY m.seq, t.id`,
	},
}

// chatOfConversation is the chat in the browser that conversation $1 is, if it is one.
const chatOfConversation = `(SELECT platform_conversation_id FROM remote_agent_conversations WHERE id = $1 AND platform_type = 'web')`

// ConversationIDs returns ids of conversations in their order, behind the given
// one, up to limit.
func (t *Portable) ConversationIDs(ctx context.Context, after string, limit int) ([]string, error) {
	if after == "" {
		after = firstUUID
	}
	ids, err := t.tx.ids(ctx, `SELECT id FROM remote_agent_conversations WHERE id > $1 ORDER BY id LIMIT $2`, after, page(limit))
	return ids, wrap(err, "list conversations")
}

// ExportShared calls visit for the rows that conversations refer to, codebases,
// and without a conversation also for people and what is remembered of them. Of a
// conversation only its own.
func (t *Portable) ExportShared(ctx context.Context, conversationID string, visit func(kind string, row []Field) error) error {
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
func (t *Portable) ExportConversation(ctx context.Context, id string, visit func(kind string, row []Field) error) error {
	if err := checkID(id, "conversation"); err != nil {
		return err
	}
	if _, err := t.tx.Conversations().Conversation(ctx, id); err != nil {
		return err
	}
	sessions, err := t.tx.Lists().SessionIDs(ctx, []string{id})
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
			values[i] = "t." + quoted(c.name)
		}
	}
	return `SELECT ` + strings.Join(values, ", ") + ` FROM ` + p.from
}

func (t *Portable) exportTable(ctx context.Context, p portable, id string, visit func(kind string, row []Field) error) error {
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		row := make([]Field, len(p.columns))
		dest := make([]any, len(p.columns))
		for i, c := range p.columns {
			row[i].Name = c.name
			dest[i] = portableValue{c.kind, &row[i].Value}
		}
		if err := scan(dest...); err != nil {
			return err
		}
		if err := p.whole(row); err != nil {
			return err
		}
		return visit(p.kind, row)
	}, p.query(), id)
	return wrap(err, "export "+p.kind)
}

// whole makes the event of a row of the inbox whole, as imports of any version read it.
func (p portable) whole(row []Field) error {
	if p.table != "inbound_events" {
		return nil
	}
	column := func(name string) *any {
		return &row[slices.IndexFunc(row, func(f Field) bool { return f.Name == name })].Value
	}
	of := func(name string) string { s, _ := (*column(name)).(string); return s }
	event := storedEvent{
		platform: messages.Platform(of("platform_type")), account: of("account"), event: messages.EventID(of("event_id")),
		message: messages.MessageID(of("message_id")), data: of("data"),
	}
	in, part, err := event.decode()
	if err != nil || !part {
		return err
	}
	data, err := json.Marshal(in)
	*column("data") = string(data)
	return wrap(err, "encode inbound event")
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
func (t *Portable) HasConversation(ctx context.Context, id, platform, platformID string) (bool, error) {
	if err := checkID(id, "conversation"); err != nil {
		return false, err
	}
	var found string
	ok, err := t.tx.one(ctx, []any{text{&found}}, `
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
	_, err = t.tx.Conversations().Conversation(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err == nil {
		err = fault.Newf(fault.Conflict, "The conversation %s is here already, under another address.", id)
	}
	return false, err
}
