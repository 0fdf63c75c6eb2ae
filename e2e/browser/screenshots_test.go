package browser

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"remote-agent/e2e/internal/bot"
	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
)

// TestScreenshots takes the README's pictures: make screenshots.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		t.Skip("SCREENSHOTS names no folder: make screenshots does")
	}
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	b.Model.Enqueue(openai.Text("The flag is read in `cmd/sum/main.go`. Tests for it are in `main_test.go`."))
	b.Says("where is the --verbose flag read?")
	b.Sees("main_test.go")
	b.Model.Enqueue(openai.Text("1. Read `--json` beside the other flags.\n2. Print the sum as `{\"sum\": 5}` when it is set.\n3. Test both forms, and describe the flag in the README."))
	b.Says("/plan add a --json flag to sum")
	b.Sees("Plan p-1, version 1")
	w.finds("/", "p-1")
	w.shoots(dir, "overview", 1200, 720)
	w.presses("Review")
	w.sees("Print the sum")
	w.shoots(dir, "approval", 390, 760)

	gate := emulator.NewGate()
	defer gate.Open()
	b.Model.Enqueue(openai.Reply(openai.Delta("I read `--json` in `main.go` now, and the sum is printed as JSON when it is set. "), openai.Gate(gate), openai.Delta("Both tests pass.")))
	w.presses("Approve and run")
	b.Sees("the sum is printed as JSON")
	w.finds("/sessions", "/execute p-1")
	w.presses("/execute p-1")
	w.sees("Print the sum")
	w.shoots(dir, "session", 1200, 720)
	gate.Open()
	b.Sees("Both tests pass.")
	terminal(t, w, b, dir)
}

// terminal takes a picture of the demo as a terminal shows it.
func terminal(t *testing.T, w *window, b *bot.Bot, dir string) {
	t.Helper()
	text := regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(b.Demo(), "127.0.0.1:3000")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	text = strings.Join(lines[:min(len(lines), 28)], "\n")
	w.visit("about:blank")
	w.size(1000, 720)
	for _, theme := range []string{"light", "dark"} {
		colors := map[string]string{"light": "#ffffff;color:#1f2328", "dark": "#0d1117;color:#e6edf3"}[theme]
		w.run(chromedp.Evaluate[chromedp.Void](`((text, colors) => {
			document.body.style = "margin:0;padding:16px;background:" + colors;
			const pre = document.createElement("pre");
			pre.style = "margin:0;font:14px/1.45 'DejaVu Sans Mono',monospace;white-space:pre-wrap";
			pre.textContent = text;
			document.body.replaceChildren(pre);
		})(` + encoded(t, text) + `, ` + encoded(t, colors) + `)`))
		w.keeps(dir, "terminal-"+theme)
	}
}

// shoots takes a picture of what is visible of the page, in both themes.
func (w *window) shoots(dir, name string, width, height int64) {
	w.t.Helper()
	w.size(width, height)
	for _, theme := range []string{"light", "dark"} {
		w.likes(theme)
		w.keeps(dir, name+"-"+theme)
	}
	w.size(1200, 800)
}

// keeps writes a picture of what is visible, packed as small as it goes.
func (w *window) keeps(dir, name string) {
	w.t.Helper()
	w.run(command(emulation.SetScrollbarsHidden, emulation.SetScrollbarsHiddenParams{Hidden: true}))
	shot, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		w.t.Fatal(err)
	}
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		w.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, full); err != nil {
		w.t.Fatal(err)
	}
	if out.Len() > 150_000 {
		w.t.Errorf("%s has %d bytes", name, out.Len())
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), out.Bytes(), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// encoded is a text as scripts have it.
func encoded(t *testing.T, text string) string {
	t.Helper()
	out, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
