package journey_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

// watches is how long a person surely watches who has written something.
const watches = 5 * time.Second

// TestLockScreen reads what the phone of a person shows that lies on the table.
func TestLockScreen(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		const answer = "The retry policy is in client.go: three tries, half a second apart."
		w.start()

		w.says(ann, "hello") // answered while she watches
		w.seesText(ann, "echo: hello")
		if rings := w.tg.ChatView(ann).Rings; len(rings) != 0 {
			t.Errorf("it rang while she watched: %+v", rings)
		}

		gate := emulator.NewGate()
		w.ai.Enqueue(openai.Reply(openai.Delta("The retry "), openai.Gate(gate), openai.Delta("policy is in client.go: three tries, half a second apart.")))
		w.says(ann, "where is the retry policy?")
		w.seesText(ann, "The retry")
		<-time.After(watches) // she puts the phone away
		gate.Open()
		w.seesText(ann, answer)
		w.settles()
		view := w.tg.ChatView(ann)
		if len(view.Rings) != 1 || !strings.HasPrefix(view.Rings[0].Text, "The retry policy is in") || view.Rings[0].Text == answer {
			t.Fatalf("it rang with %+v, want once, with the beginning of the answer", view.Rings)
		}
		if rung := view.Message(view.Rings[0].MessageID); rung.Text != answer {
			t.Errorf("the message that rang says %q", rung.Text)
		}
		if all := view.BotTexts(); len(all) != 3 || !strings.HasPrefix(all[1], "✔ Worked for ") || strings.Contains(all[1], "\n") {
			t.Errorf("she reads %q, want one line of progress before the answer", all)
		}

		before := len(w.tg.Calls("sendMessage", "editMessageText"))
		for range 5 {
			w.says(ann, "/whoami")
		}
		w.sees(ann, "five replies", func(texts []string) bool { return len(texts) == 8 })
		w.settles()
		for _, c := range w.tg.Calls("sendMessage", "editMessageText")[before:] {
			if c.Method != "sendMessage" {
				t.Errorf("a command was answered by %s %q", c.Method, c.Params["text"])
			}
		}
		rings := w.tg.ChatView(ann).Rings
		if len(rings) != 6 || slices.ContainsFunc(rings, func(r telegram.Ring) bool { return strings.HasPrefix(r.Text, "…") }) {
			t.Errorf("it rang with %+v", rings)
		}
	})
}
