package openai_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/assistant/openai"
	emulated "remote-agent/internal/emulator/openai"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// TestContractWithTheEmulator runs the contract against the stand-in that the
// journeys use, so that both agree.
func TestContractWithTheEmulator(t *testing.T) {
	responses := map[assistanttest.Scenario]emulated.Script{
		assistanttest.Reply: emulated.Echo,
		assistanttest.Slow: func(emulated.Request) emulated.Response {
			var steps []emulated.Step
			for range 1000 {
				steps = append(steps, emulated.Delta("again "), emulated.Pause(20*time.Millisecond))
			}
			return emulated.Reply(steps...)
		},
		assistanttest.Cut:          always(emulated.Reply(emulated.Delta("Hello"), emulated.Cut())),
		assistanttest.Unauthorized: always(emulated.Unauthorized()),
		assistanttest.RateLimited:  always(emulated.RateLimited(7 * time.Second)),
		assistanttest.Quota:        always(emulated.QuotaExhausted()),
		assistanttest.Unavailable:  always(emulated.Overloaded()),
		assistanttest.Overflow:     always(emulated.ContextOverflow(8192, 9000)),
		assistanttest.Broken:       always(emulated.Reply(emulated.Delta("Hello"), emulated.KeepAlive(3), emulated.StreamError("server_error", "oops"))),
		assistanttest.Calls:        always(reply("I look.", assistanttest.CalledTools()...)),
		assistanttest.CutCalls: always(emulated.Reply(append(
			emulated.CallSteps(emulated.Call{ID: "c1", Name: "look", Arguments: `{"path":"x"`}), emulated.Cut())...)),
	}
	t.Run("Loop", func(t *testing.T) {
		assistanttest.Exercise(t, assistanttest.Harness{
			Secrets: []string{testKey},
			New: func(t *testing.T, s assistanttest.Scenario) (assistanttest.Subject, bool) {
				t.Helper()
				script, ok := responses[s]
				if !ok {
					return assistanttest.Subject{}, false
				}
				m, server := emulate(t, script)
				return subject(t, m, server), true
			},
			Scripted: func(t *testing.T, answers ...assistanttest.Answer) assistanttest.Subject {
				t.Helper()
				m, server := emulate(t, scripted(answers))
				return subject(t, m, server)
			},
		})
	})
	t.Run("Model", func(t *testing.T) {
		assistanttest.ExerciseModel(t, assistanttest.ModelHarness{
			Secrets: []string{testKey},
			New: func(t *testing.T, s assistanttest.Scenario) (assistanttest.ModelSubject, bool) {
				t.Helper()
				script, ok := responses[s]
				if !ok {
					return assistanttest.ModelSubject{}, false
				}
				m, server := emulate(t, script)
				of := subject(t, m, server)
				request := assistant.Request{Conversation: "c", Run: "r", System: "Be brief.", Array: of.Turn.Array}
				return assistanttest.ModelSubject{Model: m, Request: request, Bodies: of.Bodies, Close: of.Close}, true
			},
		})
	})
}

// subject is m behind the loop.
func subject(t *testing.T, m *openai.Model, server *emulated.Server) assistanttest.Subject {
	t.Helper()
	return assistanttest.Subject{
		Assistant: loop.New(m, loop.Config{}),
		Turn:      question("Hi"),
		Bodies: func() [][]byte {
			var all [][]byte
			for _, r := range server.Requests() {
				all = append(all, r.Body)
			}
			return all
		},
		Close: func() {
			m.CloseIdleConnections()
			server.Close()
			if refusals := server.Refusals(); len(refusals) > 0 {
				t.Errorf("the API refused requests: %+v", refusals)
			}
		},
	}
}

// scripted gives one answer to each request, and the last one again and again.
func scripted(answers []assistanttest.Answer) emulated.Script {
	return func(r emulated.Request) emulated.Response {
		a := answers[min(r.N, len(answers))-1]
		return reply(a.Text, a.Calls...)
	}
}

// reply is a text, then calls.
func reply(text string, calls ...messages.ToolCall) emulated.Response {
	var steps []emulated.Step
	if text != "" {
		steps = append(steps, emulated.Delta(text))
	}
	var wire []emulated.Call
	for _, c := range calls {
		wire = append(wire, emulated.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Pieces: 3})
	}
	return emulated.Reply(append(steps, emulated.CallSteps(wire...)...)...)
}

func always(r emulated.Response) emulated.Script {
	return func(emulated.Request) emulated.Response { return r }
}

func emulate(tb testing.TB, script emulated.Script) (*openai.Model, *emulated.Server) {
	tb.Helper()
	server := emulated.New(emulated.Options{APIKey: testKey, KeepRequests: 8})
	server.Script(script)
	if err := server.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	m, err := openai.New(openai.Config{APIKey: testKey, BaseURL: server.URL(), Model: "test-model"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.CloseIdleConnections)
	return m, server
}

func TestModels(t *testing.T) {
	t.Parallel()
	server := emulated.New(emulated.Options{APIKey: testKey, Models: []string{"one", "models/two"}})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for key, want := range map[string]string{testKey: "one two", "sk-wrong": ""} {
		m, err := openai.New(openai.Config{APIKey: key, BaseURL: server.URL(), Model: "test-model"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.CloseIdleConnections)
		if names, _ := m.Models(t.Context()); strings.Join(names, " ") != want {
			t.Errorf("models %q", names)
		}
	}
}

func TestResetConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	m, _ := emulate(t, always(emulated.Reply(emulated.Delta("Hello"), emulated.Reset())))
	got := ask(t.Context(), m, question("Hi"))
	if !fault.Is(got.Err, fault.Unavailable) || len(got.Messages) != 0 {
		t.Errorf("turn: %+v", got)
	}
}

// TestConversationGoesOnAfterARefusedCall has a model call tools although there
// are none, and then a next turn with what was recorded.
func TestConversationGoesOnAfterARefusedCall(t *testing.T) {
	t.Parallel()
	m, server := emulate(t, emulated.Echo)
	calls := emulated.Calls(
		emulated.Call{ID: "c1", Name: "read", Arguments: `{"path":"x"}`},
		emulated.Call{ID: "c2", Name: "list", Arguments: `{}`},
	)
	server.Enqueue(calls, calls)
	turn := question("Read x.")
	first := ask(t.Context(), m, turn)
	if !fault.Is(first.Err, fault.Unsupported) || !strings.Contains(fault.Public(first.Err), "read, list") {
		t.Fatalf("error %v of kind %q, want unsupported", first.Err, fault.KindOf(first.Err))
	}
	turn.Array = append(turn.Array, first.Messages...)
	turn.Array = messages.Repair(append(turn.Array, messages.NewText(messages.RoleUser, "Then just say hi.")))
	second := ask(t.Context(), m, turn)
	if second.Err != nil || !strings.Contains(second.Text, "Then just say hi.") {
		t.Fatalf("second turn: %+v", second)
	}
	if refusals := server.Refusals(); len(refusals) > 0 {
		t.Errorf("the API refused requests: %+v", refusals)
	}
	if second.Finished.Usage == (assistant.Usage{}) {
		t.Error("the turn has no usage")
	}
}

func BenchmarkTurn(b *testing.B) {
	m, _ := emulate(b, func(emulated.Request) emulated.Response {
		return emulated.Pieces(strings.Repeat("some words of an answer. ", 20), 20)
	})
	turn := question("Hi")
	b.ReportAllocs()
	for b.Loop() {
		if r := ask(b.Context(), m, turn); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
