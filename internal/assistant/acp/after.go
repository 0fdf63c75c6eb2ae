package acp

import (
	"encoding/json"
	"strings"

	"remote-agent/internal/assistant"
)

// maxAfter is how much is shown of what an agent said after its answer, in bytes.
const maxAfter = 8 << 10

// late takes an update that belongs to no turn. What an agent says by itself behind its answer
// is for the next turn: Claude Code goes on when a command in the background has ended.
func (g *agent) late(params json.RawMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var w notification
	if g.said != nil && decoded(params, &w) && w.SessionID == g.saidIn && w.Update.Kind == "agent_message_chunk" && g.said.text.Len() < maxAfter {
		_ = g.said.apply(w.Update) // of too much, the beginning is there
	}
}

// missed returns what the agent said since its last answer, once, as an event.
func (g *agent) missed() (events []assistant.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.said != nil && g.said.text.Len() > 0 {
		events = append(events, assistant.Notice{Text: "The agent went on after its last answer and said:\n\n" + cut(strings.TrimSpace(g.said.text.String()), maxAfter)})
		g.said.text.Reset()
	}
	return events
}
