package messages_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"remote-agent/internal/messages"
	"remote-agent/internal/messages/messagestest"
)

var sizes = []int{1, 100, 500, 10_000}

func user(texts ...string) messages.Message { return said(messages.RoleUser, texts...) }
func bot(texts ...string) messages.Message  { return said(messages.RoleAssistant, texts...) }

func said(role messages.Role, texts ...string) messages.Message {
	m := messages.Message{Role: role}
	for _, text := range texts {
		m.Blocks = append(m.Blocks, messages.Text{Text: text})
	}
	return m
}

func call(id string) messages.Message { return messages.NewToolCall(id, "read", "{}") }

func result(id, content string) messages.Message { return messages.NewToolResult(id, content, false) }

func with(m messages.Message, more ...messages.Message) messages.Message {
	for _, o := range more {
		m.Blocks = append(m.Blocks, o.Blocks...)
	}
	return m
}

func answered(id, content string) messages.ToolResult {
	return messages.ToolResult{CallID: id, Name: "read", Content: content}
}

func interrupted(id string) messages.ToolResult {
	return messages.ToolResult{CallID: id, Name: "read", Content: messages.Interrupted, IsError: true}
}

func results(rs ...messages.Block) messages.Message {
	return messages.Message{Role: messages.RoleTool, Blocks: rs}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	thinking := messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Thinking{Text: "hm"}}}
	long := strings.Repeat("x", 41)
	type array = []messages.Message
	tests := map[string]struct{ in, want array }{
		"empty":           {nil, nil},
		"good as it is":   {array{user("a"), bot("b"), user("c")}, array{user("a"), bot("b"), user("c")}},
		"blank text":      {array{user("a", " \n"), bot(""), user("c")}, array{user("a", "c")}},
		"neighbors merge": {array{user("a"), user("b"), bot("c"), bot("d"), user("e")}, array{user("a", "b"), bot("c", "d"), user("e")}},
		"begins late":     {array{bot("a"), call("1"), result("1", "x"), user("b")}, array{user("b")}},
		"ends with a bot": {array{user("a"), bot("b")}, array{user("a")}},
		"no user":         {array{bot("a"), call("1"), result("1", "x")}, nil},
		"call without result": {
			array{user("a"), call("1")},
			array{user("a"), call("1"), results(interrupted("1"))},
		},
		"result after the next message": {
			array{user("a"), call("1"), user("b"), result("1", "x")},
			array{user("a"), call("1"), results(answered("1", "x")), user("b")},
		},
		"orphan and second result": {
			array{user("a"), result("0", "?"), call("1"), result("1", "x"), result("1", "y"), user("b")},
			array{user("a"), call("1"), results(answered("1", "x")), user("b")},
		},
		"parallel calls in one and in several messages": {
			array{user("a"), with(bot("look"), call("1")), call("2"), result("2", "y"), result("1", "x")},
			array{user("a"), with(bot("look"), call("1"), call("2")), results(answered("1", "x"), answered("2", "y"))},
		},
		"text after a call": {
			array{user("a"), with(call("1"), bot("look")), result("1", "x")},
			array{user("a"), with(bot("look"), call("1")), results(answered("1", "x"))},
		},
		"the assistant spoke on": {
			array{user("a"), call("1"), bot("b"), user("c")},
			array{user("a"), call("1"), results(interrupted("1")), bot("b"), user("c")},
		},
		"a loop of calls": {
			array{user("a"), call("1"), result("1", "x"), call("2"), result("2", "y")},
			array{user("a"), call("1"), results(answered("1", "x")), call("2"), results(answered("2", "y"))},
		},
		"result inside a user message": {
			array{user("a"), call("1"), with(user("b"), result("1", "x"))},
			array{user("a"), call("1"), results(answered("1", "x")), user("b")},
		},
		"nothing but thinking": {array{user("a"), thinking, user("b")}, array{user("a", "b")}},
		"thinking goes with its call": {
			array{user("a"), thinking, call("1"), result("1", "x")},
			array{user("a"), with(thinking, call("1")), results(answered("1", "x"))},
		},
		"unknown role": {array{said("system", "x"), user("a")}, array{user("a")}},
		"foreign id": {
			array{user("a"), call(long), result(long, "x")},
			array{user("a"), call(messages.SafeID(long)), results(answered(messages.SafeID(long), "x"))},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := messages.Repair(tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Repair (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRepairTellsReusedIDsApart(t *testing.T) {
	t.Parallel()
	got := messages.Repair([]messages.Message{
		user("a"), call("1"), call("1"), result("1", "first"), result("1", "second"),
		user("b"), call("1"),
		user("c"), call("1"), result("1", "third"),
	})
	var contents []string
	calls := map[string]bool{}
	for _, m := range got {
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case messages.ToolCall:
				if calls[b.ID] {
					t.Errorf("call id %q is there twice", b.ID)
				}
				calls[b.ID] = true
			case messages.ToolResult:
				contents = append(contents, b.Content)
			case messages.Text, messages.Thinking, messages.Attachment:
			}
		}
	}
	want := []string{"first", "second", messages.Interrupted, "third"}
	if diff := cmp.Diff(want, contents); diff != "" {
		t.Errorf("results in order (-want +got):\n%s", diff)
	}
}

func TestRepairDoesNotWriteIntoSpareCapacity(t *testing.T) {
	t.Parallel()
	blocks := []messages.Block{messages.Text{Text: "a"}, messages.Text{Text: "not part of it"}}
	messages.Repair([]messages.Message{
		{Role: messages.RoleUser, Blocks: blocks[:1]}, user("b"), {Role: messages.RoleAssistant, Blocks: blocks[:1]}, call("1"),
	})
	if diff := cmp.Diff(messages.Block(messages.Text{Text: "not part of it"}), blocks[1]); diff != "" {
		t.Errorf("the array behind the input changed (-want +got):\n%s", diff)
	}
}

func TestSafeName(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"":          "tool",
		"read_file": "read_file",
		"mcp.x/y":   "mcp_x_y",
		"größe":     "gr__e",
	}
	for in, want := range tests {
		if got := messages.SafeName(in); got != want {
			t.Errorf("SafeName(%q) = %q, want %q", in, got, want)
		}
	}
	a, b := messages.SafeName(strings.Repeat("a", 70)+"1"), messages.SafeName(strings.Repeat("a", 70)+"2")
	if a == b || len(a) != 64 || messages.SafeName(a) != a {
		t.Errorf("long names: %q and %q", a, b)
	}
}

// drawMessage draws any message, lawful or not. The few ids make clashes,
// orphans and duplicates common.
func drawMessage(t *rapid.T, label string) messages.Message {
	ids := rapid.SampledFrom([]string{"a", "b", "c", "", "toolu_bdrk.1/2", strings.Repeat("long", 20)})
	texts := rapid.SampledFrom([]string{"", " ", "\n\t", "hello", "grüße", "\u00a0", "x\ny"})
	names := rapid.SampledFrom([]string{"read", "", "a.b", strings.Repeat("n", 80)})
	block := rapid.Custom(func(t *rapid.T) messages.Block {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			return messages.Text{Text: texts.Draw(t, "text")}
		case 2:
			return messages.ToolCall{ID: ids.Draw(t, "id"), Name: names.Draw(t, "name"), Arguments: rapid.SampledFrom([]string{"", "{}", `{"a":`, "[]"}).Draw(t, "arguments")}
		case 3:
			return messages.ToolResult{CallID: ids.Draw(t, "id"), Content: texts.Draw(t, "content"), IsError: rapid.Bool().Draw(t, "error")}
		case 4:
			return messages.Thinking{Text: texts.Draw(t, "thought"), Signature: "s", Provider: "other"}
		default:
			return messages.Attachment{Name: names.Draw(t, "file"), Text: texts.Draw(t, "content"), Size: 3}
		}
	})
	return messages.Message{
		Role:   rapid.SampledFrom([]messages.Role{messages.RoleUser, messages.RoleAssistant, messages.RoleTool}).Draw(t, label+" role"),
		Blocks: rapid.SliceOfN(block, 0, 4).Draw(t, label+" blocks"),
	}
}

// drawHistory draws a plausible conversation, cut anywhere at both ends, or
// any messages at all.
func drawHistory(t *rapid.T) []messages.Message {
	n := rapid.IntRange(0, 14).Draw(t, "messages")
	var msgs []messages.Message
	defer func() {
		for i := range msgs {
			msgs[i].Seq = int64(i + 1)
		}
	}()
	if rapid.Bool().Draw(t, "wild") {
		for i := range n {
			msgs = append(msgs, drawMessage(t, fmt.Sprint(i)))
		}
		return msgs
	}
	for i := range n {
		msgs = append(msgs, user(fmt.Sprint("question ", i)))
		for round := range rapid.IntRange(0, 3).Draw(t, "rounds") {
			calls := messages.Message{Role: messages.RoleAssistant}
			var answers []messages.Message
			for k := range rapid.IntRange(1, 3).Draw(t, "calls") {
				id := fmt.Sprintf("c%d_%d_%d", i, round, k)
				calls = with(calls, call(id))
				answers = append(answers, result(id, "ok"))
			}
			msgs = append(append(msgs, calls), rapid.Permutation(answers).Draw(t, "answers")...)
		}
		msgs = append(msgs, bot(fmt.Sprint("answer ", i)))
	}
	from := rapid.IntRange(0, len(msgs)).Draw(t, "from")
	to := rapid.IntRange(from, len(msgs)).Draw(t, "to")
	return msgs[from:to]
}

func TestRepairedArraysKeepTheProvidersRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawHistory(t)
		before := messages.NewArray(in...).Clone().Messages()
		repaired := messages.Repair(in)
		if diff := cmp.Diff(before, in, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("Repair changed its input (-before +after):\n%s", diff)
		}
		checkRules(t, repaired)
		if diff := cmp.Diff(repaired, messages.Repair(repaired)); diff != "" {
			t.Fatalf("Repair is not idempotent (-once +twice):\n%s", diff)
		}
		if heard, want := userTexts(repaired), userTexts(in); heard != want {
			t.Fatalf("users said %q, after Repair %q", want, heard)
		}
		budget := rapid.IntRange(0, 300).Draw(t, "budget")
		window := messages.Window(repaired, budget)
		checkRules(t, window)
		if len(repaired) > 0 && len(window) == 0 {
			t.Fatal("Window dropped the last turn")
		}
		if diff := cmp.Diff(repaired[len(repaired)-len(window):], window, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the window is not the tail of the array:\n%s", diff)
		}
		if tokens := messages.EstimateAll(window); tokens > budget && turns(window) > 1 {
			t.Fatalf("a window of %d turns has %d tokens, budget %d", turns(window), tokens, budget)
		}
		// A second window of the same budget, and a second repair, change nothing.
		if diff := cmp.Diff(window, messages.Window(messages.Repair(window), budget), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the window is not stable:\n%s", diff)
		}
	})
}

func TestWindow(t *testing.T) {
	t.Parallel()
	turn := []messages.Message{user("question"), call("1"), result("1", "x"), bot("answer")}
	var msgs []messages.Message
	for range 3 {
		msgs = append(msgs, turn...)
	}
	msgs = append(msgs, user("last"))
	cost := messages.EstimateAll(turn)
	last := messages.EstimateTokens(msgs[12])
	tests := map[string]struct{ budget, want int }{
		"everything":      {1 << 30, 13},
		"exactly":         {3*cost + last, 13},
		"one too few":     {3*cost + last - 1, 9},
		"two turns":       {cost + last, 5},
		"only the last":   {cost + last - 1, 1},
		"less than that":  {0, 1},
		"negative budget": {-5, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := messages.Window(msgs, tt.budget); len(got) != tt.want {
				t.Errorf("Window(%d) has %d messages, want %d", tt.budget, len(got), tt.want)
			}
		})
	}
	if got := messages.Window([]messages.Message{bot("x"), call("1")}, 100); got != nil {
		t.Errorf("Window without a user message = %v", got)
	}
}

func TestWindowOfAnArrayThatNobodyRepaired(t *testing.T) {
	t.Parallel()
	type array = []messages.Message
	enough := 1 << 20
	tests := map[string]struct {
		in     array
		budget int
		want   int
	}{
		"a person wrote between call and result": {array{user("a"), call("1"), user("b"), result("1", "x")}, 0, 4},
		"an orphan hides no history":             {array{user("a"), bot("x"), user("b"), result("9", "?"), bot("y"), user("c")}, enough, 6},
		"nor does a second result":               {array{user("a"), call("1"), result("1", "x"), result("1", "y"), user("c")}, enough, 5},
		"an orphan in the last turn":             {array{user("a"), bot("x"), user("b"), result("9", "?")}, 0, 2},
		"an id that every turn uses":             {array{user("a"), call("0"), result("0", "x"), user("b"), call("0"), result("0", "y"), user("c")}, 0, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := messages.Window(tt.in, tt.budget); len(got) != tt.want {
				t.Errorf("%d messages left, want %d: %+v", len(got), tt.want, got)
			}
		})
	}
}

func TestNewest(t *testing.T) {
	t.Parallel()
	turn := []messages.Message{user("question"), call("1"), result("1", "x"), bot("answer")}
	msgs := append(slices.Concat(turn, turn, turn), user("last"))
	for limit, want := range map[int]int{100: 13, 13: 13, 12: 9, 9: 9, 8: 5, 5: 5, 4: 1, 1: 1, 0: 1, -1: 1} {
		if got := messages.Newest(msgs, limit); len(got) != want {
			t.Errorf("Newest(%d) has %d messages, want %d", limit, len(got), want)
		}
	}
	if got := messages.Newest(msgs[:12], 2); len(got) != 4 {
		t.Errorf("the last turn is cut to %d messages", len(got))
	}
}

func TestWindowThenRepairKeepsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawHistory(t)
		got := messages.Repair(messages.Window(in, rapid.IntRange(0, 300).Draw(t, "budget")))
		checkRules(t, got)
		if all, kept := userTexts(messages.Repair(in)), userTexts(got); !strings.HasSuffix(all, kept) {
			t.Fatalf("of what users said, %q, the window kept %q", all, kept)
		}
		if whole := messages.Repair(messages.Window(in, 1<<30)); userTexts(whole) != userTexts(in) {
			t.Fatalf("a window without a limit lost words: %q of %q", userTexts(whole), userTexts(in))
		}
	})
}

func userTexts(msgs []messages.Message) string {
	var texts []string
	for _, m := range msgs {
		for _, b := range m.Blocks {
			if text, ok := b.(messages.Text); ok && m.Role == messages.RoleUser && strings.TrimSpace(text.Text) != "" {
				texts = append(texts, text.Text)
			}
		}
	}
	return strings.Join(texts, "|")
}

func turns(msgs []messages.Message) int {
	n := 0
	for _, m := range msgs {
		if m.Role == messages.RoleUser {
			n++
		}
	}
	return n
}

func checkRules(t *rapid.T, msgs []messages.Message) {
	t.Helper()
	if len(msgs) == 0 {
		return
	}
	body := encodeOpenAI(t, msgs)
	if err := messagestest.OpenAI(body); err != nil {
		t.Fatalf("OpenAI: %v\n%s", err, body)
	}
	body = encodeAnthropic(t, msgs)
	if err := messagestest.Anthropic(body); err != nil {
		t.Fatalf("Anthropic: %v\n%s", err, body)
	}
}

type object = map[string]any

// encodeOpenAI writes msgs in the plainest way: what is wrong in msgs stays
// wrong in the request.
func encodeOpenAI(t *rapid.T, msgs []messages.Message) []byte {
	var out []object
	for _, m := range msgs {
		var parts, calls []object
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case messages.Text:
				parts = append(parts, object{"type": "text", "text": b.Text})
			case messages.Attachment:
				parts = append(parts, object{"type": "text", "text": "file " + b.Name})
			case messages.ToolCall:
				calls = append(calls, object{"id": b.ID, "type": "function", "function": object{"name": b.Name, "arguments": "{}" + b.Arguments}})
			case messages.ToolResult:
				out = append(out, object{"role": "tool", "tool_call_id": b.CallID, "content": "result: " + b.Content})
			case messages.Thinking:
			}
		}
		if m.Role == messages.RoleTool {
			if len(parts)+len(calls) > 0 {
				t.Fatalf("a tool message holds more than results: %+v", m)
			}
			continue
		}
		wire := object{"role": string(m.Role), "content": parts}
		if len(calls) > 0 {
			wire["tool_calls"] = calls
		}
		out = append(out, wire)
	}
	return encode(t, object{"messages": out})
}

func encodeAnthropic(t *rapid.T, msgs []messages.Message) []byte {
	var out []object
	for _, m := range msgs {
		role := "user"
		if m.Role == messages.RoleAssistant {
			role = "assistant"
		}
		var blocks []object
		if n := len(out); n > 0 && out[n-1]["role"] == role && m.Role == messages.RoleUser {
			blocks, _ = out[n-1]["content"].([]object)
			out = out[:n-1]
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case messages.Text:
				blocks = append(blocks, object{"type": "text", "text": b.Text})
			case messages.Attachment:
				blocks = append(blocks, object{"type": "text", "text": "file " + b.Name})
			case messages.ToolCall:
				blocks = append(blocks, object{"type": "tool_use", "id": b.ID, "name": b.Name, "input": object{}})
			case messages.ToolResult:
				blocks = append(blocks, object{"type": "tool_result", "tool_use_id": b.CallID, "content": b.Content, "is_error": b.IsError})
			case messages.Thinking:
			}
		}
		out = append(out, object{"role": role, "content": blocks})
	}
	return encode(t, object{"messages": out})
}

func encode(t *rapid.T, v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// history returns n messages of ordinary turns with tool calls.
func history(n int) []messages.Message {
	msgs := make([]messages.Message, 0, n+4)
	for i := 0; len(msgs) < n; i++ {
		id := fmt.Sprint("call_", i)
		msgs = append(msgs,
			user("Where is the retry policy set, and what does it do on a timeout?"),
			call(id), result(id, strings.Repeat("a line of a file\n", 20)),
			bot(strings.Repeat("An answer of some length. ", 20)))
	}
	msgs = msgs[len(msgs)-n:]
	msgs[n-1] = user("And now?")
	return msgs
}

func BenchmarkRepair(b *testing.B) {
	for _, n := range sizes {
		msgs := history(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				messages.Repair(msgs)
			}
		})
	}
}

func BenchmarkWindow(b *testing.B) {
	for _, n := range sizes {
		msgs := messages.Repair(history(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				messages.Window(msgs, 20_000)
			}
		})
	}
}
