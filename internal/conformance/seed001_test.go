package conformance_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/messages"
	"remote-agent/internal/messages/messagestest"
)

// The two examples of data_json, without the comments that stand in the document:
// with them they are no JSON.
const (
	callExample = `{
  "tool_call_id": "call_abc123",
  "name": "file_read",
  "arguments": "{\"path\":\"foo\"}"
}`
	resultExample = `{
  "tool_call_id": "call_abc123",
  "name": "file_read",
  "output": "file contents...",
  "success": true,
  "summary": "Read 100 bytes"
}`
)

func tell001(*check) {}

func rules001() []rule {
	return slices.Concat(creation001(), conversion001(), errors001(), format001(), management001(), dualMode001())
}

func one(r messages.Role, b messages.Block) messages.Message {
	return messages.Message{Role: r, Blocks: []messages.Block{b}}
}

func (c *check) same(what string, want, got any) {
	c.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func creation001() []rule {
	const section = "MessageCreation"
	return []rule{
		{section: section, name: "test_message_create_text_user", on: inCode, asks: "A text message of the user is one text block and has no provider metadata",
			holds: func(c *check) {
				c.same("user", one(messages.RoleUser, messages.Text{Text: "hi"}), messages.NewText(messages.RoleUser, "hi"))
			}},
		{section: section, name: "test_message_create_text_assistant", on: inCode, asks: "A text message of the assistant likewise",
			holds: func(c *check) {
				c.same("assistant", one(messages.RoleAssistant, messages.Text{Text: "hi"}), messages.NewText(messages.RoleAssistant, "hi"))
			}},
		{section: section, name: "test_message_create_tool_call", on: inCode, asks: "A tool call is a message of the assistant: id, name, arguments",
			holds: func(c *check) {
				c.same("call", one(messages.RoleAssistant, messages.ToolCall{ID: "c1", Name: "bash", Arguments: `{"a":1}`}), messages.NewToolCall("c1", "bash", `{"a":1}`))
			}},
		{section: section, name: "test_message_create_tool_result", on: inCode, asks: "A tool result is a message of the role tool: id of the call, content, whether it is an error",
			holds: func(c *check) {
				c.same("result", one(messages.RoleTool, messages.ToolResult{CallID: "c1", Content: "out", IsError: true}), messages.NewToolResult("c1", "out", true))
			}},
		{section: section, name: "Roles", on: inCode, asks: "Three roles: user, assistant, tool, numbered 0, 1, 2",
			differs: "they are words, because the database and every provider write words",
			holds: func(c *check) {
				c.same("roles", []messages.Role{"user", "assistant", "tool"}, []messages.Role{messages.RoleUser, messages.RoleAssistant, messages.RoleTool})
			}},
		{section: section, name: "BlockTypes", on: inCode, asks: "Four kinds of blocks: text, tool_call, tool_result, thinking",
			differs: "there is a fifth, attachment, for files that people send and tools show; thinking keeps the provider's signature besides its text",
			holds: func(c *check) {
				kinds := map[string]messages.Message{
					"user": one(messages.RoleUser, messages.Text{Text: "t"}), "tool_call": messages.NewToolCall("c", "n", "{}"),
					"tool_result": messages.NewToolResult("c", "o", false), "thinking": one(messages.RoleAssistant, messages.Thinking{Text: "t"}),
				}
				for kind, m := range kinds {
					records, err := messages.ToRecords(m)
					if err != nil || len(records) != 1 || records[0].Kind != kind {
						c.Errorf("%s is stored as %+v, %v", kind, records, err)
						continue
					}
					back, ok, err := messages.FromRecord(records[0])
					if err != nil || !ok {
						c.Errorf("%s is not read: %v, %v", kind, ok, err)
					}
					c.same(kind, m, back)
				}
			}},
	}
}

// reads is the message that a record is read as.
func (c *check) reads(kind, content, data string) messages.Message {
	c.Helper()
	m, ok, err := messages.FromRecord(messages.Record{Kind: kind, Content: content, DataJSON: data})
	if err != nil || !ok {
		c.Fatalf("a %s is not read: %v, %v", kind, ok, err)
	}
	return m
}

// refusesData fails unless a record cannot be read, with an error that says why.
func (c *check) refusesData(kind, data string) {
	c.Helper()
	_, _, err := messages.FromRecord(messages.Record{Kind: kind, DataJSON: data})
	if err == nil || !strings.Contains(err.Error(), "data_json") {
		c.Errorf("a %s with %s: %v, want an error about data_json", kind, data, err)
	}
}

func conversion001() []rule {
	const section = "DatabaseConversion"
	return []rule{
		{section: section, name: "test_message_from_db_msg_user", on: inCode, asks: "kind user becomes the role user with the content as text",
			holds: func(c *check) {
				c.same("user", messages.NewText(messages.RoleUser, "hi"), c.reads("user", "hi", ""))
			}},
		{section: section, name: "test_message_from_db_msg_assistant", on: inCode, asks: "kind assistant becomes the role assistant",
			holds: func(c *check) {
				c.same("assistant", messages.NewText(messages.RoleAssistant, "hi"), c.reads("assistant", "hi", ""))
			}},
		{section: section, name: "test_message_from_db_msg_tool_call", on: inCode, asks: "kind tool_call becomes the role assistant; its data_json is parsed",
			holds: func(c *check) {
				c.same("call", messages.NewToolCall("call_abc123", "file_read", `{"path":"foo"}`), c.reads("tool_call", "", callExample))
			}},
		{section: section, name: "test_message_from_db_msg_tool_result", on: inCode, asks: "kind tool_result becomes the role tool; its data_json is parsed",
			holds: func(c *check) {
				m := c.reads("tool_result", "", resultExample)
				r, _ := m.Blocks[0].(messages.ToolResult)
				if m.Role != messages.RoleTool || r.CallID != "call_abc123" || r.Name != "file_read" || r.Content != "file contents..." || r.IsError {
					c.Errorf("read %+v", m)
				}
			}},
		{section: section, name: "LegacyTool", on: inCode, asks: "kind tool is the legacy name of tool_result",
			holds: func(c *check) {
				c.same("tool", c.reads("tool_result", "", resultExample), c.reads("tool", "", resultExample))
			}},
		{section: section, name: "SystemIsNoMessage", on: inCode, asks: "kind system is no message: system prompts travel beside the array",
			holds: func(c *check) {
				if m, ok, err := messages.FromRecord(messages.Record{Kind: "system", Content: "be kind"}); ok || err != nil {
					c.Errorf("a system record is %+v, %v, %v", m, ok, err)
				}
			}},
		{section: section, name: "OtherKindsAreText", on: inCode, asks: "Every other kind is text of its content",
			holds: func(c *check) {
				c.same("other", messages.NewText(messages.RoleUser, "hm"), c.reads("rewind", "hm", `{"tool_call_id":1}`))
			}},
		{section: section, name: "ParseFailuresAreErrors", on: inCode, asks: "data_json that is no JSON, or no object, is an error and no message",
			holds: func(c *check) {
				for _, data := range []string{"", "nonsense", `{"tool_call_id":"c"`, "[]", `"text"`, "null", "7"} {
					for _, kind := range []string{"tool_call", "tool_result", "tool"} {
						c.refusesData(kind, data)
					}
				}
			}},
	}
}

func errors001() []rule {
	const section = "ErrorHandling"
	return []rule{
		{section: section, name: "FailuresArePropagated", on: inCode, asks: "After the migration an error of the new functions is propagated at once",
			holds: func(c *check) {
				_, err := messagestest.JoinRecords([]messages.Record{{Seq: 1, Kind: "user", Content: "hi"}, {Seq: 2, Kind: "tool_call", DataJSON: "{"}})
				if err == nil || !strings.Contains(err.Error(), "message 2") {
					c.Errorf("a list with a record that cannot be read: %v", err)
				}
			}},
		{section: section, name: "UnknownRole", on: inCode, asks: "Invalid arguments are an error",
			holds: func(c *check) {
				if _, err := messages.ToRecords(messages.NewText("nobody", "hi")); err == nil {
					c.Errorf("a message of nobody is stored")
				}
			}},
		{section: section, name: "OutOfMemory", asks: "PANIC when talloc fails; asserts for NULL", apart: "Go ends the program when memory is out, and has no NULL where a value is"},
	}
}

func format001() []rule {
	const section = "DataJSON"
	return []rule{
		{section: section, name: "RequiredOfACall", on: inCode, asks: "A call needs tool_call_id, name and arguments, all strings",
			holds: func(c *check) { c.needsStrings("tool_call", callExample, "tool_call_id", "name", "arguments") }},
		{section: section, name: "RequiredOfAResult", on: inCode, asks: "A result needs tool_call_id and output, both strings",
			holds: func(c *check) { c.needsStrings("tool_result", resultExample, "tool_call_id", "output") }},
		{section: section, name: "SuccessDefaultsToFalse", on: inCode, asks: "success that is missing counts as false",
			holds: func(c *check) {
				for data, want := range map[string]bool{
					`{"tool_call_id":"c","output":"o"}`: true, `{"tool_call_id":"c","output":"o","success":false}`: true, `{"tool_call_id":"c","output":"o","success":true}`: false,
				} {
					if r, _ := c.reads("tool_result", "", data).Blocks[0].(messages.ToolResult); r.IsError != want {
						c.Errorf("%s is an error: %v", data, r.IsError)
					}
				}
			}},
		{section: section, name: "OptionalOfAResult", on: inCode, asks: "name and summary of a result may be missing or null",
			holds: func(c *check) {
				for _, more := range []string{"", `,"name":null,"summary":null`} {
					r, _ := c.reads("tool_result", "", `{"tool_call_id":"c","output":"o","success":true`+more+`}`).Blocks[0].(messages.ToolResult)
					if r.Name != "" || r.Content != "o" {
						c.Errorf("read %+v", r)
					}
				}
			}},
		{section: section, name: "SummaryIsKept", on: inCode, asks: "The summary of a result is read and written again",
			holds: func(c *check) {
				records, err := messages.ToRecords(c.reads("tool_result", "", resultExample))
				if err != nil || len(records) != 1 || !strings.Contains(records[0].DataJSON, `"summary":"Read 100 bytes"`) {
					c.Errorf("written again it is %+v, %v", records, err)
				}
			}},
		{section: section, name: "StoredCalls", asks: "A call of a real turn is stored in this form",
			holds: func(c *check) {
				p := c.usesTools()
				var data struct {
					ID        *string `json:"tool_call_id"`
					Name      *string `json:"name"`
					Arguments *string `json:"arguments"`
				}
				c.decode(&data, c.one(`SELECT data_json FROM agent_messages WHERE kind = 'tool_call' AND role = 'assistant' AND session_id IN (`+p.sessions()+`)`))
				if data.ID == nil || *data.ID == "" || data.Name == nil || *data.Name != "remember" || data.Arguments == nil || !json.Valid([]byte(*data.Arguments)) {
					c.Errorf("stored %+v", data)
				}
			}},
		{section: section, name: "StoredResults", asks: "A result of a real turn is stored in this form and can be read as the seed's program does",
			holds: func(c *check) {
				p := c.usesTools()
				var data struct {
					ID      *string `json:"tool_call_id"`
					Name    *string `json:"name"`
					Output  *string `json:"output"`
					Success *bool   `json:"success"`
					Summary *string `json:"summary"`
				}
				c.decode(&data, c.one(`SELECT data_json FROM agent_messages WHERE kind = 'tool_result' AND role = 'tool' AND session_id IN (`+p.sessions()+`)`))
				if data.ID == nil || data.Name == nil || *data.Name != "remember" || data.Output == nil || data.Success == nil || !*data.Success {
					c.Errorf("stored %+v", data)
				}
			}},
	}
}

// decode reads JSON strictly: a key that the form does not have is an error.
func (c *check) decode(into any, text string) {
	c.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		c.Fatalf("%s: %v", text, err)
	}
}

// needsStrings takes each of some keys away from an example, and makes it null and a
// number: none of that can be read.
func (c *check) needsStrings(kind, example string, keys ...string) {
	c.Helper()
	for _, key := range keys {
		var whole map[string]any
		if err := json.Unmarshal([]byte(example), &whole); err != nil {
			c.Fatalf("%v", err)
		}
		for _, wrong := range []any{nil, 7} {
			whole[key] = wrong
			data, err := json.Marshal(whole)
			if err != nil {
				c.Fatalf("%v", err)
			}
			c.refusesData(kind, string(data))
		}
		delete(whole, key)
		data, err := json.Marshal(whole)
		if err != nil {
			c.Fatalf("%v", err)
		}
		c.refusesData(kind, string(data))
	}
}

// usesTools is somebody whose turn called a tool once.
func (c *check) usesTools() person {
	c.Helper()
	p := c.person()
	text := fmt.Sprintf("remember for %d", p.id)
	c.model.says(text, openai.Calls(toolCall("remember", map[string]string{"text": "Likes tea"})), openai.Text("I noted it."))
	p.says(text, "I noted it.")
	p.rests()
	return p
}

func management001() []rule {
	const section = "MessageManagement"
	text := func(i int) messages.Message { return messages.NewText(messages.RoleUser, fmt.Sprint(i)) }
	filled := func(n int) *messages.Array {
		a := &messages.Array{}
		for i := range n {
			a.Append(text(i))
		}
		return a
	}
	return []rule{
		{section: section, name: "StartsEmpty", on: inCode, asks: "A new agent has no messages",
			holds: func(c *check) {
				if a := (&messages.Array{}); a.Len() != 0 || len(a.Messages()) != 0 {
					c.Errorf("a new array has %d messages", a.Len())
				}
			}},
		{section: section, name: "test_agent_add_message_single", on: inCode, asks: "One message is added",
			holds: func(c *check) {
				if a := filled(1); a.Len() != 1 {
					c.Errorf("%d messages", a.Len())
				}
			}},
		{section: section, name: "test_agent_add_message_multiple", on: inCode, asks: "Many are added, in order",
			holds: func(c *check) {
				for i, m := range filled(1000).Messages() {
					c.same(fmt.Sprint(i), text(i), m)
				}
			}},
		{section: section, name: "test_agent_add_message_capacity_growth", on: inCode, asks: "The array grows geometrically: room for 16, then twice as much",
			differs: "Go's slices decide how much they grow; adding is still amortized O(1)",
			holds: func(c *check) {
				a := filled(20)
				if a.Len() != 20 {
					c.Errorf("%d messages", a.Len())
				}
				grown, before := 0, 0
				for i := range 10_000 {
					a.Append(text(i))
					if now := cap(a.Messages()); now != before && now > a.Len() {
						grown, before = grown+1, now
					}
				}
				if grown > 60 { // a growth by a fixed amount would be hundreds
					c.Errorf("grew %d times", grown)
				}
			}},
		{section: section, name: "test_agent_clear_messages", on: inCode, asks: "Clearing leaves no message",
			holds: func(c *check) {
				a := filled(3)
				a.Clear()
				if a.Len() != 0 {
					c.Errorf("%d messages", a.Len())
				}
				a.Append(text(9))
				c.same("afterwards", []messages.Message{text(9)}, a.Messages())
			}},
		{section: section, name: "test_agent_clone_messages", on: inCode, asks: "A clone is deep: what happens to one does not show in the other",
			holds: func(c *check) {
				a := messages.NewArray(messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Text{Text: "a"}}, ProviderMetadata: json.RawMessage(`{"x":1}`)})
				b := a.Clone()
				a.Messages()[0].Blocks[0] = messages.Text{Text: "changed"}
				a.Messages()[0].ProviderMetadata[2] = 'y'
				a.Append(text(1))
				c.same("the clone", []messages.Message{{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Text{Text: "a"}}, ProviderMetadata: json.RawMessage(`{"x":1}`)}}, b.Messages())
			}},
		{section: section, name: "test_agent_clone_messages_empty", on: inCode, asks: "Cloning an agent without messages works",
			holds: func(c *check) {
				if b := (&messages.Array{}).Clone(); b.Len() != 0 {
					c.Errorf("%d messages", b.Len())
				}
			}},
	}
}

func dualMode001() []rule {
	const section = "DualMode"
	return []rule{
		{section: section, name: "StoredAndSentAreTheSame", asks: "Both storages, the old and the new, have the same messages at all times",
			differs: "there are not two: the array is read from the rows that were stored, so the check is that what the model is sent equals what the database has",
			holds: func(c *check) {
				p := c.usesTools()
				next := fmt.Sprintf("and now, %d", p.id)
				p.says(next, "echo: "+next)
				p.rests()
				c.sent(p, next)
			}},
		{section: section, name: "fork_test", asks: "After a fork both storages of the child have the parent's messages",
			differs: "as above; a fork copies messages into a session of its own and names its parent",
			holds: func(c *check) {
				p := c.person()
				for _, text := range []string{"first", "second"} {
					text = fmt.Sprintf("%s of %d", text, p.id)
					p.says(text, "echo: "+text)
				}
				p.rests()
				p.says("/fork 2")
				next := fmt.Sprintf("third of %d", p.id)
				p.says(next, "echo: "+next)
				p.rests()
				request := c.sent(p, next)
				if got := strings.Join(request.Roles(), " "); got != "system user assistant user" {
					c.Errorf("the fork was told %s", got)
				}
				c.is("1", `SELECT count(*) FROM remote_agent_sessions WHERE active AND parent_session_id IS NOT NULL AND conversation_id IN (`+p.conversation()+`)`)
			}},
		{section: section, name: "SystemPromptBeside", asks: "The system prompt is no message: it is kept with the agent",
			holds: func(c *check) {
				p := c.usesTools()
				c.is("0", `SELECT count(*) FROM agent_messages WHERE role = 'system' AND session_id IN (`+p.sessions()+`)`)
				if prompt := c.one(`SELECT system_prompt FROM remote_agent_sessions WHERE id IN (` + p.sessions() + `)`); len(prompt) < 100 || prompt == "NULL" {
					c.Errorf("the session's system prompt is %q", prompt)
				}
			}},
		{section: "Build", name: "Makefile", asks: "Makefile targets, C sources, talloc, yyjson, no compiler warnings", apart: "the program is written in Go; go vet and the linters run in CI"},
		{section: "Build", name: "Migration", asks: "Tasks 1-8: both storages live side by side until the old one is removed", apart: "there never was another storage"},
	}
}

// sent fails unless the model was sent, besides the system prompt, what the active
// session has stored up to the person's newest message.
func (c *check) sent(p person, text string) openai.Request {
	c.Helper()
	request, ok := c.model.asked(text)
	if !ok {
		c.Fatalf("the model was not asked %q", text)
	}
	stored := c.query(`SELECT m.role, m.kind, m.content FROM agent_messages m JOIN remote_agent_sessions s ON s.id = m.session_id
		WHERE s.active AND s.conversation_id IN (` + p.conversation() + `) ORDER BY m.seq, m.part`).rows
	var want, got []string
	for _, row := range stored[:len(stored)-1] { // the last is the answer to it
		want = append(want, row[0]+": "+row[2])
	}
	for _, m := range request.Messages {
		switch {
		case m.Role == "system":
		case m.Role == "tool", len(m.ToolCalls) > 0:
			got = append(got, m.Role+": ") // their text is in data_json
		default:
			got = append(got, m.Role+": "+m.Text())
		}
	}
	c.same("stored and sent", want, got)
	return request
}
