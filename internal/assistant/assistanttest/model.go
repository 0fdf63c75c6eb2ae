package assistanttest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// The scenarios that only models have. Their request offers Tools.
const (
	// Calls is a text and then CalledTools, in this order, with their arguments
	// in pieces where the API streams them so. The ids are the backend's.
	Calls Scenario = "calls"

	// CutCalls ends in the middle of the arguments of a call, without an error
	// and without a finish reason.
	CutCalls Scenario = "cut calls"
)

// CalledTools are the calls of the scenario Calls.
func CalledTools() []messages.ToolCall {
	return []messages.ToolCall{
		{ID: "call_a1", Name: "look", Arguments: `{"path":"héllo \"x\".txt"}`},
		{ID: "call_a2", Name: "change", Arguments: `{}`},
	}
}

// ToolSpecs are the tools that the suites offer: look and peek change nothing,
// change does.
func ToolSpecs() []messages.ToolSpec {
	const schema = `{"type":"object","properties":{"path":{"type":"string"}}}`
	return []messages.ToolSpec{
		{Name: "look", Description: "Reads a file.", Schema: json.RawMessage(schema)},
		{Name: "peek", Description: "Lists files.", Schema: json.RawMessage(schema)},
		{Name: "change", Description: "Changes a file.", Schema: json.RawMessage(schema)},
	}
}

// ModelSubject is a model with a backend that plays one scenario.
type ModelSubject struct {
	Model   assistant.Model
	Request assistant.Request

	// Bodies returns the bodies of the requests so far, as JSON. It may be nil.
	Bodies func() [][]byte

	// Close stops the backend and the model's idle connections, and fails the
	// test if the backend refused a request that the scenario does not refuse.
	Close func()
}

// ModelHarness builds the subjects of a suite for models.
type ModelHarness struct {
	// New returns a subject that plays the scenario, or false if its kind of
	// backend has no such case. Tools is not played.
	New func(t *testing.T, s Scenario) (ModelSubject, bool)

	// Secrets are the credentials that New uses. They must not appear in any
	// error or event.
	Secrets []string
}

// ExerciseModel runs the contract suite for models. Like Exercise it runs no
// subtests in parallel.
func ExerciseModel(t *testing.T, h ModelHarness) {
	Exercise(t, Harness{Secrets: h.Secrets, New: func(t *testing.T, s Scenario) (Subject, bool) {
		t.Helper()
		if s == Tools {
			return Subject{}, false
		}
		subject, ok := h.New(t, s)
		return subject.asAssistant(), ok
	}})
	one := Harness{Secrets: h.Secrets}
	with := func(s Scenario, test func(*testing.T, Harness, ModelSubject)) func(*testing.T) {
		return func(t *testing.T) {
			var subject ModelSubject
			one.New = func(t *testing.T, s Scenario) (Subject, bool) {
				t.Helper()
				var ok bool
				subject, ok = h.New(t, s)
				return subject.asAssistant(), ok
			}
			one.with(t, s, func(t *testing.T, _ Subject) { test(t, one, subject) })
		}
	}
	t.Run("AsksForTools", with(Calls, asksForTools))
	t.Run("NeverGivesCutCalls", with(CutCalls, func(t *testing.T, h Harness, s ModelSubject) {
		h.failsWithoutAnswer(t, s.asAssistant())
	}))
	t.Run("SendsAWholeTurnWithTools", with(Reply, sendsAWholeTurn))
	t.Run("SaysWhatItUsed", with(Reply, saysWhatItUsed))
	t.Run("SendsTheSamePrefix", with(Reply, sendsTheSamePrefix))
	t.Run("SendsPicturesOrSaysSo", with(Reply, sendsPictures))
	t.Run("SendsPicturesOfToolsOrSaysSo", with(Reply, sendsPicturesOfTools))
}

// once is a model as an assistant that asks it once.
type once struct{ model assistant.Model }

// Name implements assistant.Assistant.
func (o once) Name() assistant.Name { return o.model.Name() }

// Model implements assistant.Assistant.
func (o once) Model() string { return o.model.Model() }

// Run implements assistant.Assistant.
func (o once) Run(ctx context.Context, turn assistant.Turn) iter.Seq2[assistant.Event, error] {
	var tools []messages.ToolSpec
	if turn.Host != nil {
		tools = turn.Host.Tools()
	}
	return o.model.Complete(ctx, assistant.Request{
		Conversation: turn.Conversation, Run: turn.Run, System: turn.System, Array: turn.Array, Tools: tools, Model: turn.Model,
	})
}

func (s ModelSubject) asAssistant() Subject {
	turn := assistant.Turn{
		Conversation: s.Request.Conversation, Run: s.Request.Run, System: s.Request.System,
		Array: s.Request.Array, Model: s.Request.Model,
	}
	if len(s.Request.Tools) > 0 {
		turn.Host = &Host{Specs: s.Request.Tools}
	}
	return Subject{Assistant: once{s.Model}, Turn: turn, Close: s.Close}
}

func asksForTools(t *testing.T, h Harness, s ModelSubject) {
	s.Request.Tools = ToolSpecs()
	ctx, cancel := context.WithTimeout(t.Context(), turnLimit)
	defer cancel()
	out := h.run(ctx, t, s.asAssistant())
	if out.err != nil {
		t.Fatalf("an answer with calls is a success, got %v", out.err)
	}
	done := messagesOf(out.events)
	if len(done) != 1 || done[0].Role != messages.RoleAssistant {
		t.Fatalf("messages %+v, want one of the assistant", done)
	}
	if _, ok := out.events[len(out.events)-1].(assistant.Finished); !ok {
		t.Errorf("the last event is %T, want Finished", out.events[len(out.events)-1])
	}
	if strings.TrimSpace(done[0].PlainText()) == "" {
		t.Error("the text before the calls is lost")
	}
	var got []messages.ToolCall
	ids := map[string]bool{}
	for _, b := range done[0].Blocks {
		if c, ok := b.(messages.ToolCall); ok {
			ids[c.ID] = c.ID != ""
			c.ID = ""
			c.Arguments = compact(c.Arguments)
			got = append(got, c)
		}
	}
	want := CalledTools()
	for i := range want {
		want[i].ID = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if len(ids) != len(want) || ids[""] {
		t.Errorf("ids %v, want one for each call", ids)
	}
}

// wholeTurn is a history with all that a repaired array can hold.
func wholeTurn() []messages.Message {
	return messages.Repair([]messages.Message{
		{Role: messages.RoleUser, Blocks: []messages.Block{
			messages.Text{Text: "Read both."},
			messages.Attachment{Name: "a.txt", MediaType: "text/plain", Size: 5, Text: "attached text"},
		}},
		{Role: messages.RoleAssistant, Blocks: []messages.Block{
			messages.Thinking{Text: "foreign thought", Signature: "foreign signature", Provider: "another", Model: "other"},
			messages.Text{Text: "I look."},
			messages.ToolCall{ID: "call_1", Name: "look", Arguments: `{"path":"x"}`},
			messages.ToolCall{ID: "call_2", Name: "peek", Arguments: ""},
			messages.ToolCall{ID: "call_3", Name: "look", Arguments: `{"path":`},
		}},
		messages.NewToolResult("call_1", "content of x", false),
		messages.NewToolResult("call_2", "", false),
		messages.NewToolResult("call_3", "the arguments are bad", true),
		{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.ToolCall{ID: "call_4", Name: "change", Arguments: `{"path":"y"}`}}},
		messages.NewToolResult("call_4", "changed y", false),
		messages.NewText(messages.RoleUser, "Stop after this."),
	})
}

func sendsAWholeTurn(t *testing.T, h Harness, s ModelSubject) {
	s.Request.Array = wholeTurn()
	s.Request.Tools = ToolSpecs()
	s.Request.System, s.Request.Model = "What the system says.", "model-of-this-turn"
	h.answers(t, s.asAssistant())
	if s.Bodies == nil {
		return
	}
	bodies := s.Bodies()
	if len(bodies) == 0 {
		t.Fatal("no request was recorded")
	}
	body := string(bodies[len(bodies)-1])
	for _, want := range []string{
		"Read both.", "attached text", "I look.", "content of x", "the arguments are bad", "changed y", "Stop after this.",
		"Reads a file.", "Changes a file.", s.Request.System, s.Request.Model,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the request lacks %q", want)
		}
	}
	if strings.Contains(body, "foreign") {
		t.Error("thinking of another provider was sent")
	}
}

// saysWhatItUsed: a model that does not say costs nothing and is held to no budget.
func saysWhatItUsed(t *testing.T, _ Harness, s ModelSubject) {
	got := Collect(s.Model.Complete(t.Context(), s.Request))
	if f := got.Finished; f == nil || f.Model == "" || f.Usage.InputTokens <= 0 || f.Usage.OutputTokens <= 0 {
		t.Errorf("finished with %+v, %v; want the model, and the tokens that went in and came out", f, got.Err)
	}
}

// sendsTheSamePrefix checks that a request begins like the one before it, so
// that the provider's cache holds.
func sendsTheSamePrefix(t *testing.T, h Harness, s ModelSubject) {
	if s.Bodies == nil {
		t.Skip("this backend does not show its requests")
	}
	s.Request.Tools = ToolSpecs()
	array := wholeTurn()
	var sent []map[string]json.RawMessage
	for _, n := range []int{len(array) - 3, len(array)} {
		s.Request.Array = slices.Clone(array[:n])
		h.answers(t, s.asAssistant())
		bodies := s.Bodies()
		var body map[string]json.RawMessage
		if err := json.Unmarshal(bodies[len(bodies)-1], &body); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, body)
	}
	grown := 0
	for name, first := range sent[0] {
		var before, after []json.RawMessage
		second := sent[1][name]
		if bytes.Equal(first, second) {
			continue
		}
		if json.Unmarshal(first, &before) != nil || json.Unmarshal(second, &after) != nil || len(after) <= len(before) {
			t.Errorf("%s changed:\n%s\n%s", name, first, second)
			continue
		}
		grown++
		// The last message of the first request may carry a mark of the cache.
		for i := range max(len(before)-1, 0) {
			if !bytes.Equal(before[i], after[i]) {
				t.Errorf("element %d of %s changed:\n%s\n%s", i, name, before[i], after[i])
			}
		}
	}
	if grown != 1 {
		t.Errorf("%d fields of the request have grown with the conversation, want its messages only", grown)
	}
}

// dot is what stands for a picture.
const dot = "\x89PNG\r\n\x1a\n and a dot"

// sendsPictures: a picture is sent, or is said not to be: then the model is asked without it.
// One that is dropped in silence would have the model guess.
func sendsPictures(t *testing.T, h Harness, s ModelSubject) {
	if s.Bodies == nil {
		t.Skip("this backend does not show its requests")
	}
	sendsAll(t, h, s, []messages.Message{{Role: messages.RoleUser, Blocks: []messages.Block{
		messages.Text{Text: "What is this?"},
		messages.Attachment{Name: "dot.png", MediaType: "image/png", Width: 1, Height: 1, Data: dot},
	}}}, dot)
}

// sendsPicturesOfTools: so is what tools show, also those that failed.
func sendsPicturesOfTools(t *testing.T, h Harness, s ModelSubject) {
	array := wholeTurn()
	var all []string
	for i := range array {
		var blocks []messages.Block
		for _, b := range array[i].Blocks {
			blocks = append(blocks, b)
			if _, is := b.(messages.ToolResult); is {
				all = append(all, dot+fmt.Sprint(len(all)))
				blocks = append(blocks, messages.Attachment{Name: "dot.png", MediaType: "image/png", Width: 1, Height: 1, Data: all[len(all)-1]})
			}
		}
		array[i].Blocks = blocks
	}
	if len(all) != 4 {
		t.Fatalf("%d results", len(all))
	}
	s.Request.Tools = ToolSpecs()
	sendsAll(t, h, s, messages.Repair(array), all...)
}

func sendsAll(t *testing.T, h Harness, s ModelSubject, array []messages.Message, all ...string) {
	t.Helper()
	if s.Bodies == nil {
		t.Skip("this backend does not show its requests")
	}
	s.Request.Array = array
	out := h.run(t.Context(), t, s.asAssistant())
	if _, blind := errors.AsType[*assistant.BlindError](out.err); blind {
		return
	}
	if out.err != nil {
		t.Fatalf("a picture: %v", out.err)
	}
	bodies := s.Bodies()
	for _, data := range all {
		if body := bodies[len(bodies)-1]; !bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString([]byte(data)))) {
			t.Errorf("the picture was dropped, and no assistant.Blind says so:\n%s", body)
		}
	}
}

func messagesOf(events []assistant.Event) []messages.Message {
	var all []messages.Message
	for _, event := range events {
		if done, ok := event.(assistant.MessageDone); ok {
			all = append(all, done.Message)
		}
	}
	return all
}

func compact(raw string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(raw)); err != nil {
		return fmt.Sprintf("not JSON: %s", raw)
	}
	return b.String()
}
