package openai_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/assistanttest"
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
	}
	assistanttest.Exercise(t, assistanttest.Harness{
		Secrets: []string{testKey},
		New: func(t *testing.T, s assistanttest.Scenario) (assistanttest.Subject, bool) {
			t.Helper()
			script, ok := responses[s]
			if !ok {
				return assistanttest.Subject{}, false
			}
			a, server := emulate(t, script)
			return assistanttest.Subject{Assistant: a, Turn: question("Hi"), Close: func() {
				a.CloseIdleConnections()
				server.Close()
			}}, true
		},
	})
}

func always(r emulated.Response) emulated.Script {
	return func(emulated.Request) emulated.Response { return r }
}

func emulate(tb testing.TB, script emulated.Script) (*openai.Assistant, *emulated.Server) {
	tb.Helper()
	server := emulated.New(emulated.Options{APIKey: testKey, KeepRequests: 4})
	server.Script(script)
	if err := server.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	a, err := openai.New(openai.Config{APIKey: testKey, BaseURL: server.URL(), Model: "test-model"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(a.CloseIdleConnections)
	return a, server
}

func TestResetConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	a, _ := emulate(t, always(emulated.Reply(emulated.Delta("Hello"), emulated.Reset())))
	got := ask(t.Context(), a, question("Hi"))
	if !fault.Is(got.Err, fault.Unavailable) || len(got.Messages) != 0 {
		t.Errorf("turn: %+v", got)
	}
}

// TestConversationGoesOnAfterARefusedCall has a model call a tool that does not
// exist, and then a next turn with what was recorded.
func TestConversationGoesOnAfterARefusedCall(t *testing.T) {
	t.Parallel()
	a, server := emulate(t, emulated.Echo)
	server.Enqueue(emulated.Calls(
		emulated.Call{ID: "c1", Name: "read", Arguments: `{"path":"x"}`},
		emulated.Call{ID: "c2", Name: "list", Arguments: `{}`},
	))
	turn := question("Read x.")
	first := ask(t.Context(), a, turn)
	if !fault.Is(first.Err, fault.Unsupported) {
		t.Fatalf("error %v of kind %q, want unsupported", first.Err, fault.KindOf(first.Err))
	}
	turn.Array = append(turn.Array, first.Messages...)
	turn.Array = messages.Repair(append(turn.Array, messages.NewText(messages.RoleUser, "Then just say hi.")))
	second := ask(t.Context(), a, turn)
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
	a, _ := emulate(b, func(emulated.Request) emulated.Response {
		return emulated.Pieces(strings.Repeat("some words of an answer. ", 20), 20)
	})
	turn := question("Hi")
	b.ReportAllocs()
	for b.Loop() {
		if r := ask(b.Context(), a, turn); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
