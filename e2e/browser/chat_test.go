package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"remote-agent/e2e/internal/bot"
	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
)

func TestAChatInTheBrowser(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	talk(b, w, w.sees)
	if w.number("document.querySelectorAll('.offline:not(:empty)').length") != 0 {
		t.Error("the page has lost its connection")
	}
}

func TestAChatWithoutJavaScript(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.withoutScript()
	w.size(320, 640)
	w.signsIn(b.OwnerLink())
	talk(b, w, func(parts ...string) {
		t.Helper()
		path, _, _ := strings.Cut(w.path(), "#") // with it, the page that is open would only be scrolled
		w.finds(path, parts...)
	})
}

// talk says something, reads the answer while it is written, stops it, sends a file, and
// goes on behind a restart. sees waits until the page that is open shows something.
func talk(b *bot.Bot, w *window, sees func(parts ...string)) {
	w.t.Helper()
	w.visit("/chat")
	gate := emulator.NewGate()
	b.Model.Enqueue(openai.Reply(openai.Delta("It adds **two** numbers, "), openai.Gate(gate), openai.Delta("and prints the sum.")))
	w.writes("textarea[name=text]", "what does it do?")
	w.presses("Send")
	w.sees("All conversations", "what does it do?") // it stands there when the page comes
	sees("what does it do?", "It adds two numbers,", "Stop")
	gate.Open()
	sees("and prints the sum.", "answered")

	never := emulator.NewGate()
	b.Model.Enqueue(openai.Reply(openai.Delta("This takes long. "), openai.Gate(never), openai.Delta("never said")))
	w.writes("textarea[name=text]", "take your time")
	w.presses("Send")
	w.sees("take your time")
	sees("This takes long.", "Stop")
	w.presses("Stop")
	w.sees("topp")
	sees("stopped")
	never.Open()

	file := filepath.Join(w.t.TempDir(), "notes.txt")
	if err := os.WriteFile(file, []byte("The budget is 42."), 0o600); err != nil {
		w.t.Fatal(err)
	}
	b.Model.Enqueue(openai.Text("I have read it."))
	w.run(chromedp.SetUploadFiles(chromedp.CSS("input[type=file]"), []string{file}))
	w.writes("textarea[name=text]", "read this")
	w.presses("Send")
	w.sees("notes.txt")
	sees("notes.txt", "I have read it.")

	b.Model.Enqueue(openai.Text("1. Add the flag.\n2. Test it."))
	w.writes("textarea[name=text]", "/plan add a --json flag")
	w.presses("Send")
	w.sees("/plan add a --json flag")
	sees("Plan p-1, version 1", "Add the flag.")
	b.Restart()
	w.writes("textarea[name=text]", "/edit p-1 1. Add the flag.")
	w.presses("Send")
	w.until("the message was taken", func() bool { // and the field is empty again
		left, err := chromedp.Run(w.ctx, chromedp.Evaluate[int64](`document.querySelector("textarea[name=text]").value.length`))
		return err == nil && left == 0
	}, w.text)
	sees("Plan p-1, version 2")
	b.Model.Enqueue(openai.Text("The flag is there."))
	w.presses("Approve and run")
	w.sees("It runs now.")
	sees("The flag is there.")
	w.finds("/chat", "what does it do?")
}
