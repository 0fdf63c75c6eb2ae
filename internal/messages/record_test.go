package messages_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/messages"
	"remote-agent/internal/messages/messagestest"
)

func TestFromRecordReadsTheFormatsOfSeed001(t *testing.T) {
	t.Parallel()
	result := func(isError bool) messages.Message {
		return messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{
			messages.ToolResult{CallID: "call_abc123", Name: "file_read", Content: "file contents...", IsError: isError, Summary: "Read 100 bytes"},
		}}
	}
	const resultData = `{"tool_call_id":"call_abc123","name":"file_read","output":"file contents...","success":true,"summary":"Read 100 bytes"}`
	tests := map[string]struct {
		in   messages.Record
		want messages.Message
	}{
		"user":      {messages.Record{Kind: "user", Content: "hi"}, messages.NewText(messages.RoleUser, "hi")},
		"assistant": {messages.Record{Kind: "assistant", Content: "yes"}, messages.NewText(messages.RoleAssistant, "yes")},
		"tool call": {
			messages.Record{Kind: "tool_call", DataJSON: `{"tool_call_id":"call_abc123","name":"file_read","arguments":"{\"path\":\"foo\"}"}`},
			messages.NewToolCall("call_abc123", "file_read", `{"path":"foo"}`),
		},
		"tool result": {messages.Record{Kind: "tool_result", DataJSON: resultData}, result(false)},
		"legacy tool": {messages.Record{Kind: "tool", DataJSON: resultData}, result(false)},
		"null name and summary": {
			messages.Record{Kind: "tool", DataJSON: `{"tool_call_id":"c","name":null,"output":"o","success":true,"summary":null}`},
			messages.NewToolResult("c", "o", false),
		},
		"failed":          {messages.Record{Kind: "tool_result", DataJSON: strings.Replace(resultData, "true", "false", 1)}, result(true)},
		"success missing": {messages.Record{Kind: "tool_result", DataJSON: `{"tool_call_id":"c","output":""}`}, messages.NewToolResult("c", "", true)},
		"success a text":  {messages.Record{Kind: "tool_result", DataJSON: `{"tool_call_id":"c","output":"","success":"true"}`}, messages.NewToolResult("c", "", true)},
		"unknown kind":    {messages.Record{Kind: "mark", Content: "checkpoint"}, messages.NewText(messages.RoleUser, "checkpoint")},
		"unknown kind of the assistant": {
			messages.Record{Kind: "refusal", Role: messages.RoleAssistant, Content: "no"}, messages.NewText(messages.RoleAssistant, "no"),
		},
		"thinking": {
			messages.Record{Kind: "thinking", Content: "hm", DataJSON: `{"signature":"s","provider":"p","model":"m"}`},
			messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Thinking{Text: "hm", Signature: "s", Provider: "p", Model: "m"}}},
		},
		"thinking of seed 001": {
			messages.Record{Kind: "thinking", Content: "hm"},
			messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Thinking{Text: "hm"}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok, err := messages.FromRecord(tt.in)
			if err != nil || !ok {
				t.Fatalf("FromRecord: ok %v, err %v", ok, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromRecordSkipsSystem(t *testing.T) {
	t.Parallel()
	_, ok, err := messages.FromRecord(messages.Record{Kind: "system", Content: "be nice", DataJSON: "{"})
	if ok || err != nil {
		t.Errorf("FromRecord(system): ok %v, err %v", ok, err)
	}
}

func TestFromRecordRefusesBadData(t *testing.T) {
	t.Parallel()
	tests := map[string]messages.Record{
		"no data":               {Kind: "tool_call"},
		"not JSON":              {Kind: "tool_call", DataJSON: "{"},
		"null":                  {Kind: "tool_call", DataJSON: "null"},
		"a list":                {Kind: "tool_result", DataJSON: "[]"},
		"id missing":            {Kind: "tool_call", DataJSON: `{"name":"n","arguments":"{}"}`},
		"id of another case":    {Kind: "tool_call", DataJSON: `{"Tool_Call_ID":"c","name":"n","arguments":"{}"}`},
		"id a number":           {Kind: "tool_call", DataJSON: `{"tool_call_id":1,"name":"n","arguments":"{}"}`},
		"name null":             {Kind: "tool_call", DataJSON: `{"tool_call_id":"c","name":null,"arguments":"{}"}`},
		"arguments an object":   {Kind: "tool_call", DataJSON: `{"tool_call_id":"c","name":"n","arguments":{}}`},
		"output missing":        {Kind: "tool", DataJSON: `{"tool_call_id":"c","success":true}`},
		"thinking not JSON":     {Kind: "thinking", DataJSON: "x"},
		"attachment of nothing": {Kind: "attachment"},
		"attachment size":       {Kind: "attachment", DataJSON: `{"name":"a","size":"big"}`},
	}
	for name, r := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if m, ok, err := messages.FromRecord(r); err == nil || ok {
				t.Errorf("FromRecord = %+v, %v, want an error", m, ok)
			}
		})
	}
}

func TestToRecordsWritesTheFormatsOfSeed001(t *testing.T) {
	t.Parallel()
	got, err := messages.ToRecords(messages.Message{
		Role: messages.RoleAssistant, Seq: 7, ProviderMetadata: json.RawMessage(`{"id":"x"}`),
		Blocks: []messages.Block{
			messages.Text{Text: "I look."},
			messages.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"foo"}`},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []messages.Record{
		{Seq: 7, Kind: "assistant", Role: "assistant", Content: "I look.", ProviderMetadata: json.RawMessage(`{"id":"x"}`)},
		{Seq: 7, Kind: "tool_call", Role: "assistant", DataJSON: `{"tool_call_id":"c1","name":"read","arguments":"{\"path\":\"foo\"}"}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	got, err = messages.ToRecords(messages.NewToolResult("c1", "bytes\x00\xff", true))
	if err != nil {
		t.Fatal(err)
	}
	want = []messages.Record{
		{Kind: "tool_result", Role: "tool", DataJSON: `{"tool_call_id":"c1","output":"bytes��","success":false}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records of a result (-want +got):\n%s", diff)
	}
}

func TestToRecordsRefusesAnUnknownRole(t *testing.T) {
	t.Parallel()
	if _, err := messages.ToRecords(messages.NewText("system", "x")); err == nil {
		t.Error("ToRecords accepted a system message")
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawMessage(t, "m")
		want.Seq = rapid.Int64Range(1, 99).Draw(t, "seq")
		if len(want.Blocks) == 0 {
			want.Blocks = []messages.Block{messages.Text{}}
		}
		records, err := messages.ToRecords(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := messagestest.JoinRecords(records)
		if err != nil {
			t.Fatal(err)
		}
		wantAll := []messages.Message{want}
		// A record of a call or a result has the role of its kind, so a message
		// that breaks the roles comes back as several.
		if lawful(want) {
			if diff := cmp.Diff(wantAll, got); diff != "" {
				t.Fatalf("messages (-want +got):\n%s", diff)
			}
		}
	})
}

// lawful reports whether m holds only blocks that its role can have.
func lawful(m messages.Message) bool {
	for _, b := range m.Blocks {
		switch b.(type) {
		case messages.ToolCall:
			if m.Role != messages.RoleAssistant {
				return false
			}
		case messages.ToolResult:
			if m.Role != messages.RoleTool {
				return false
			}
		case messages.Text, messages.Thinking, messages.Attachment:
		}
	}
	return true
}

func FuzzFromRecord(f *testing.F) {
	for _, kind := range []string{"user", "assistant", "tool_call", "tool_result", "tool", "thinking", "attachment", "system", "mark", ""} {
		f.Add(kind, "assistant", "text", `{"tool_call_id":"c","name":"n","arguments":"{}","output":"o","success":true,"size":1}`)
		f.Add(kind, "", "", `{"tool_call_id":"\ud800\u0000"`)
	}
	f.Fuzz(func(t *testing.T, kind, role, content, data string) {
		in := messages.Record{Seq: 1, Kind: kind, Role: messages.Role(role), Content: content, DataJSON: data}
		m, ok, err := messages.FromRecord(in)
		if err != nil || !ok {
			if len(m.Blocks) != 0 {
				t.Fatalf("a refused record gave %+v", m)
			}
			return
		}
		// What was read can be stored, and then no longer changes.
		once := roundTrip(t, m)
		if diff := cmp.Diff(once, roundTrip(t, once)); diff != "" {
			t.Fatalf("a stored message changed (-first +second):\n%s", diff)
		}
	})
}

func roundTrip(t *testing.T, m messages.Message) messages.Message {
	t.Helper()
	records, err := messages.ToRecords(m)
	if err != nil || len(records) != 1 {
		t.Fatalf("ToRecords(%+v) = %d records, %v", m, len(records), err)
	}
	got, ok, err := messages.FromRecord(records[0])
	if err != nil || !ok {
		t.Fatalf("FromRecord(%+v): ok %v, err %v", records[0], ok, err)
	}
	return got
}
