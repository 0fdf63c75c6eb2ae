package journey_test

import (
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
)

// leaked is a token that no configuration knows, in two parts so that no scanner
// takes it for a leak.
const leaked = "gh" + "p_q7RtY2uVw9Xz4AbC6dEf8GhJ0kLmN1pQ3sT5"

// pieces are what of leaked must not be seen anywhere.
func pieces(text string) string {
	for i := len("ghp_"); i+8 <= len(leaked); i++ {
		if strings.Contains(text, leaked[i:i+8]) {
			return leaked[i : i+8]
		}
	}
	return ""
}

// Finding 6: what is shown while an answer streams never holds a token in pieces.
func TestFinding6StreamedAnswerShowsNoPieceOfASecret(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		gate := emulator.NewGate()
		steps := []openai.Step{openai.Delta("Look here: "), openai.Delta(leaked[:20]), openai.Gate(gate)}
		for _, b := range leaked[20:] {
			steps = append(steps, openai.Delta(string(b)))
		}
		w.ai.Enqueue(openai.Reply(append(steps, openai.Delta(" was it."))...))
		w.start()
		w.says(ann, "what is the key?")
		w.seesText(ann, "Look here:")
		gate.Open()
		w.seesText(ann, "Look here: [redacted] was it.")
		w.settles()
		for _, c := range w.tg.Calls() {
			if piece := pieces(fmt.Sprint(c)); piece != "" {
				t.Errorf("%q was sent: %v", piece, c)
			}
		}
		if rows := fmt.Sprint(w.rows(`SELECT content, data_json FROM agent_messages`), w.rows(`SELECT body, placeholder FROM deliveries`)); pieces(rows) != "" {
			t.Errorf("a piece is stored: %s", rows)
		}
	})
}

// Finding 6: a provider's error text is stored and logged without the token in it.
func TestFinding6ErrorTextsAreStoredRedacted(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		for range 3 {
			w.ai.Enqueue(openai.Fail(400, "invalid_request_error", "", "the header "+leaked+" and "+key+" cannot be used"))
		}
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "✖")
		w.settles()
		w.shutdown()
		rows := fmt.Sprint(w.rows(`SELECT error, result, metadata FROM remote_agent_sessions`), w.rows(`SELECT error FROM inbound_events`),
			w.rows(`SELECT error, body FROM deliveries`), w.rows(`SELECT content, data_json FROM agent_messages`))
		if !strings.Contains(rows, "cannot be used") {
			t.Fatalf("the error is not stored: %s", rows)
		}
		if pieces(rows) != "" || strings.Contains(rows, key) {
			t.Errorf("a secret is stored: %s", rows)
		}
		for _, c := range w.tg.Calls() {
			if text := fmt.Sprint(c); pieces(text) != "" || strings.Contains(text, key) {
				t.Errorf("a secret is sent: %v", c)
			}
		}
	})
}
