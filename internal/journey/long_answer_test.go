package journey_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

// longAnswer is exactly a megabyte of text in paragraphs that can be told apart.
func longAnswer() string {
	const size, end = 1 << 20, "\n\nThis is the end of the report."
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "Paragraph %d of the report. %s\n\n", i, strings.Repeat("Active for a while. ", 8))
	}
	return b.String()[:size-len(end)] + end
}

// TestLongAnswerOnTelegram: a megabyte rings a few times and not for minutes, and the
// whole of it is there to be read.
func TestLongAnswerOnTelegram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.with(map[string]string{"TELEGRAM_CHAT_SEND_RATE": "0"}).start()
	whole := longAnswer()
	w.ai.Script(func(openai.Request) openai.Response { return openai.Pieces(whole, 50_000) })
	w.says(ann, "a report, please")
	err := w.tg.Wait(w.ctx(), func(l telegram.Ledger) bool {
		shown := l.Chat(ann).FromBot() // what streams has the end of the answer before the file is there
		posted := slices.ContainsFunc(shown, func(m telegram.Message) bool { return m.Document != nil })
		return posted && strings.Contains(shown[len(shown)-1].Text, "This is the end of the report.")
	})
	if err != nil {
		t.Fatalf("saw %q", w.tg.ChatView(ann).BotTexts())
	}
	shown := w.tg.ChatView(ann).FromBot()
	if strings.HasPrefix(shown[0].Text, "✔") { // the machine was so slow that the answer has to notify
		shown = shown[1:]
	}
	if len(shown) != 3 {
		t.Errorf("it is %d messages", len(shown))
	}
	var file []byte
	for _, m := range shown {
		if m.Document != nil {
			file = m.Document.Data
			if !strings.Contains(m.Text, "/full") {
				t.Errorf("the file says %q", m.Text)
			}
		}
	}
	if string(file) != whole {
		t.Errorf("the file has %d bytes, want %d", len(file), len(whole))
	}
	if !strings.Contains(shown[0].Text, "Paragraph 0 of the report.") {
		t.Errorf("it begins %q", shown[0].Text)
	}
}
