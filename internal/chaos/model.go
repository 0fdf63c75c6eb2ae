package chaos

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/chaos/ledger"
	"remote-agent/internal/emulator/openai"
)

const modelKey = "sk-chaos-0123456789abcdef"

// model is the emulated model: it answers what was asked since its last answer.
type model struct {
	run    *run
	server *openai.Server

	mu    sync.Mutex // guards asked
	asked map[ledger.Ask]int
}

func newModel(r *run) (*model, error) {
	m := &model{run: r, asked: map[ledger.Ask]int{}}
	m.server = openai.New(openai.Options{APIKey: modelKey, KeepRequests: -1, OnDone: func(openai.Request, openai.Outcome) {
		r.moments.come(answered)
	}})
	m.server.Script(m.answer)
	if err := m.server.Start(); err != nil {
		return nil, fmt.Errorf("start the emulated model: %w", err)
	}
	return m, nil
}

func (m *model) environ() []string {
	return []string{"OPENAI_API_KEY=" + modelKey, "OPENAI_BASE_URL=" + m.server.URL(), "OPENAI_MODEL=emulated", "CONTEXT_TOKENS=8000", "MEMORY_LEARNING=off"}
}

// answer is the script. Each message fails twice at the most, so that what a message
// comes to does not depend on luck.
func (m *model) answer(q openai.Request) openai.Response {
	var asks []ledger.Ask
	for i := len(q.Messages) - 1; i >= 0 && q.Messages[i].Role == "user"; i-- {
		if a := ledger.Asks(q.Messages[i].Text()); len(a) > 0 { // those before the last one are what others said, as context
			asks = append(a[len(a)-1:], asks...)
		}
	}
	m.mu.Lock()
	if len(asks) == 0 {
		m.mu.Unlock()
		return openai.Text("Nobody asked this.")
	}
	last := asks[len(asks)-1]
	m.asked[last]++
	try := m.asked[last]
	m.mu.Unlock()

	var paragraphs []string
	for _, a := range asks {
		paragraphs = append(paragraphs, ledger.Answer(a.Conversation, a.N, a.Kind)...)
	}
	text := strings.Join(paragraphs, "\n\n")
	m.run.moments.come(asked)
	half := openai.Delta(text[:len(text)/2])
	x := m.run.dice.of("model", last.Conversation, last.N, try)
	if share := m.run.talk.share(); try <= 2 && x < share {
		m.run.count("model: " + modelFaults[int(x/share*float64(len(modelFaults)))])
		switch int(x / share * float64(len(modelFaults))) {
		case 0:
			return openai.RateLimited(time.Second)
		case 1:
			return openai.ServerError(503)
		case 2:
			return openai.Reply(half, openai.Cut())
		case 3:
			return openai.Reply(half, openai.Reset())
		case 4:
			return openai.Reply(half, openai.StreamError("server_error", "The server is overloaded."))
		default:
			return openai.Reply(half, openai.Pause(2*time.Second), openai.Delta(text[len(text)/2:]))
		}
	}
	return m.stream(text, last.Kind)
}

var modelFaults = []string{"429", "503", "half a stream", "reset in the stream", "error in the stream", "stall in the stream"}

// stream answers in pieces: what is slow, with pauses that a kill can fall into.
func (m *model) stream(text string, kind ledger.Kind) openai.Response {
	time.AfterFunc(20*time.Millisecond, func() { m.run.moments.come(streaming) })
	if kind != ledger.Slow {
		return openai.Pieces(text, 200)
	}
	var steps []openai.Step
	for i := 0; i < len(text); i += 24 {
		steps = append(steps, openai.Delta(text[i:min(i+24, len(text))]), openai.Pause(8*time.Millisecond))
	}
	return openai.Reply(steps...)
}
