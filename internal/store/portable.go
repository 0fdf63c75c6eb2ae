package store

import (
	"cmp"
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

	Damaged bool // what is stored is no JSON: Value is empty instead
}

// emptyJSON has what stands for JSON that is damaged, by column.
var emptyJSON = map[string]string{
	"commands": "{}", "settings": "{}", "metadata": "{}", "buttons": "[]", "sources": "[]", "source_events": "[]", "history": "[]",
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

// portableKinds are the kinds as cols names them.
var portableKinds = map[string]portableKind{
	"text:": asText, "int:": asInt, "float:": asFloat, "bool:": asBool, "time:": asTime, "json:": asJSON, "bytes:": asBytes, "body:": asBody,
}

// cols reads columns, each behind their kind: "text: id name int: seq". Behind a "=" stands
// the value of one that the table does not have.
func cols(spec string) (list []portableColumn) {
	var kind portableKind
	for word := range strings.FieldsSeq(spec) {
		if k, is := portableKinds[word]; is {
			kind = k
			continue
		}
		name, value, _ := strings.Cut(word, "=")
		list = append(list, portableColumn{name, kind, value})
	}
	return list
}

var portableCodebase = portable{
	kind: "codebase", table: "remote_agent_codebases",
	columns: cols("text: id name repository_url default_cwd ai_assistant_type json: commands time: created_at updated_at"),
	from:    `remote_agent_codebases t WHERE $1 = '' OR CAST(t.id AS TEXT) IN (SELECT CAST(c.codebase_id AS TEXT) FROM remote_agent_conversations c WHERE CAST(c.id AS TEXT) = $1 UNION SELECT CAST(s.codebase_id AS TEXT) FROM remote_agent_sessions s WHERE CAST(s.conversation_id AS TEXT) = $1 UNION SELECT CAST(u.codebase_id AS TEXT) FROM usage_records u WHERE CAST(u.conversation_id AS TEXT) = $1) ORDER BY t.id`,
}

var portableIdentity = portable{
	kind: "identity", table: "identities",
	columns: cols(`text: platform_type user_id name role int: refused_ms created_ms text: granted_by int: granted_ms removed_ms
		bool: reads`),
	from: `identities t WHERE $1 = '' ORDER BY t.platform_type, t.user_id`,
}

// portables are the tables of a conversation, what is referred to first.
var portables = []portable{
	{
		kind: "conversation", table: "remote_agent_conversations",
		columns: cols(`text: id platform_type platform_conversation_id codebase_id cwd ai_assistant_type json: settings
			time: created_at updated_at int: inbox_seq stop_seq delivery_seq`),
		from: `remote_agent_conversations t WHERE t.id = $1`,
	},
	{
		kind: "session", table: "remote_agent_sessions",
		columns: cols(`text: id conversation_id codebase_id parent_session_id ai_assistant_type assistant_session_id bool: active
			json: metadata time: started_at ended_at
			text: agent_name model system_prompt user_prompt config status result error
			int: input_tokens output_tokens last_seq`),
		from: `remote_agent_sessions t WHERE t.conversation_id = $1 ORDER BY t.started_at, t.id`,
	},
	{
		kind: "message", table: "agent_messages",
		columns: cols(`text: session_id int: seq part text: role kind content data_json provider_metadata run_id bool: undone
			int: created_at`),
		from: `agent_messages t WHERE t.session_id = $1 ORDER BY t.seq, t.part`, bySession: true,
	},
	{
		kind: "tool_call", table: "agent_tool_calls",
		columns: cols(`text: session_id tool_call_id tool_name request response status int: created_at completed_at execution_time_ms
			text: error_details int: executing_ms message_seq=m.seq message_part=m.part`),
		from: `agent_tool_calls t LEFT JOIN agent_messages m ON m.id = t.message_id WHERE t.session_id = $1 ORDER BY t.id`, bySession: true,
	},
	{
		kind: portableEntry, table: "inbound_events",
		columns: cols(`text: id platform_type account event_id conversation_id int: seq text: lane state int: attempts
			text: session_id message_id error data body: raw int: accepted_ms`),
		from: `inbound_events t WHERE t.conversation_id = $1 AND t.seq > 0 ORDER BY t.seq`,
	},
	{
		kind: "delivery", table: "deliveries",
		columns: cols(`text: id conversation_id event_id int: seq text: reply_to placeholder body bool: final control
			text: message_id state int: attempts text: error int: created_ms json: buttons text: only_for file_name
			bytes: file`),
		from: `deliveries t WHERE t.conversation_id = $1 ORDER BY t.seq`,
	},
	{
		kind: "run", table: "agent_runs",
		columns: cols(`text: session_id int: number text: entry_id status int: started_ms finished_ms duration_ms text: model
			int: input_tokens output_tokens cost_micros text: error`),
		from: `agent_runs t WHERE t.session_id = $1 ORDER BY t.number`, bySession: true,
	},
	{
		kind: "usage", table: "usage_records",
		columns: cols(`text: event_id conversation_id session_id codebase_id actor ai_assistant_type model
			int: input_tokens output_tokens cached_tokens written_tokens cost_micros at_ms`),
		from: `usage_records t WHERE t.conversation_id = $1 ORDER BY t.id`,
	},
	// What a browser shows of a conversation. A chat in which nothing was taken has none,
	// and is not exported.
	{
		kind: "web_chat", table: "web_chats", columns: cols("text: id account int: last_seq changed_ms"),
		from: `web_chats t WHERE t.id = ` + chatOfConversation,
	},
	{
		kind: "web_message", table: "web_messages",
		columns: cols("text: id chat_id int: seq text: delivery_id author body json: buttons text: mark int: created_ms"),
		from:    `web_messages t WHERE t.chat_id = ` + chatOfConversation + ` ORDER BY t.seq`,
	},
	{
		kind: "web_file", table: "web_files",
		columns: cols("text: id message_id name media_type int: size bytes: data"),
		from:    `web_messages m JOIN web_files t ON t.message_id = m.id WHERE m.chat_id = ` + chatOfConversation + ` ORDER BY m.seq, t.id`,
	},
}

// chatOfConversation is the chat in the browser that conversation $1 is, if it is one.
const chatOfConversation = `(SELECT platform_conversation_id FROM remote_agent_conversations WHERE id = $1 AND platform_type = 'web')`

// ConversationIDs returns ids of conversations in their order, behind the given
// one, up to limit.
func (t *Portable) ConversationIDs(ctx context.Context, after string, limit int) ([]string, error) {
	after = cmp.Or(after, firstUUID)
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
			dest[i] = portableValue{c.kind, &row[i]}
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
	column := func(name string) *Field {
		return &row[slices.IndexFunc(row, func(f Field) bool { return f.Name == name })]
	}
	of := func(name string) string { s, _ := column(name).Value.(string); return s }
	event := storedEvent{
		platform: messages.Platform(of("platform_type")), account: of("account"), event: messages.EventID(of("event_id")),
		message: messages.MessageID(of("message_id")), data: of("data"),
	}
	in, part, err := event.decode()
	if err != nil {
		column("data").Value, column("data").Damaged = nil, true
		return nil //nolint:nilerr // it is on the field
	}
	if !part {
		return nil
	}
	data, err := json.Marshal(in)
	column("data").Value = string(data)
	return wrap(err, "encode inbound event")
}

// portableValue scans a column of a kind.
type portableValue struct {
	kind portableKind
	to   *Field
}

// Scan implements sql.Scanner.
func (v portableValue) Scan(value any) error {
	if value == nil {
		v.to.Value = nil
		return nil
	}
	switch v.kind {
	case asInt:
		n, ok := value.(int64)
		v.to.Value = n
		if !ok {
			return fmt.Errorf("cannot read %T as a number", value)
		}
	case asFloat:
		f, ok := value.(float64)
		v.to.Value = f
		if !ok {
			return fmt.Errorf("cannot read %T as a number", value)
		}
	case asBool:
		switch b := value.(type) {
		case bool:
			v.to.Value = b
		case int64:
			v.to.Value = b != 0
		default:
			return fmt.Errorf("cannot read %T as yes or no", value)
		}
	case asBytes, asBody:
		b, ok := value.([]byte)
		if v.kind == asBody {
			b = unpackBody(b)
		}
		v.to.Value = slices.Clone(b)
		if !ok {
			return fmt.Errorf("cannot read %T as bytes", value)
		}
	case asTime:
		var at time.Time
		if err := (stamp{&at}).Scan(value); err != nil {
			return err
		}
		v.to.Value = stampText(at)
	case asText, asJSON:
		var s string
		if err := (text{&s}).Scan(value); err != nil {
			return err
		}
		if v.to.Value = s; v.kind == asJSON {
			if v.to.Damaged = !json.Valid([]byte(s)); v.to.Damaged {
				s = emptyJSON[v.to.Name]
			}
			v.to.Value = json.RawMessage(s)
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
