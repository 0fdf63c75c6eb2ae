//go:build unix

package journey_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/anthropic"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// asCamera makes this test an MCP server whose tool shows a picture.
const asCamera = "be-a-camera"

func serveCamera(args []string) {
	if len(args) != 2 || args[1] != asCamera {
		return
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "camera", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "screenshot", Description: "Shows the page."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{
				&sdk.TextContent{Text: "the page"}, &sdk.ImageContent{MIMEType: "image/png", Data: page()},
			}}, nil, nil
		})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(0)
}

// page is a screenshot: a picture of 64 x 32 pixels, with one that is red.
func page() []byte {
	m := image.NewRGBA(image.Rect(0, 0, 64, 32))
	for i := range m.Pix {
		m.Pix[i] = 0xff
	}
	m.Set(5, 7, color.RGBA{R: 0xff, A: 0xff})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// isPage checks what a model got of the page.
func isPage(t *testing.T, mediaType string, data []byte) {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil || mediaType != "image/png" {
		t.Fatalf("the model got %s: %v", mediaType, err)
	}
	if r, g, _, _ := m.At(5, 7).RGBA(); m.Bounds() != image.Rect(0, 0, 64, 32) || r != 0xffff || g != 0 {
		t.Errorf("the model got another picture: %v, %d %d", m.Bounds(), r, g)
	}
}

func (w *world) withCamera() *world {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"web": map[string]any{"command": self, "args": []string{asCamera}}}})
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w.with(map[string]string{"MCP_CONFIG": path, "TOOL_READ_PATHS": filepath.Dir(self)})
}

// TestCrashBeforeTheModelSeesAPicture kills the bot when the result of a tool is on record and the
// model does not have it: the next life shows the model the picture, the tool does not run again,
// and the turn after it shows the very same one.
func TestCrashBeforeTheModelSeesAPicture(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"SQLite": func(testing.TB) string { return "" }, "PostgreSQL": storetest.PostgresURL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashBeforeAPicture(t, newWorld(t, url(t)))
		})
	}
}

func crashBeforeAPicture(t *testing.T, w *world) {
	w.withCamera().with(map[string]string{"PATH": os.Getenv("PATH")})
	launch := func(name, point string) *process {
		env := maps.Clone(w.env)
		env["LISTEN_ADDR"] = freePort(t)
		p, err := startProcess(t, t.TempDir(), name, point, env)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.end(syscall.SIGKILL) })
		return p
	}
	first := launch("first life", string(failpoint.ResultStored))
	w.untilStatus(ann, "MCP tools: 1")
	w.ai.Enqueue(openai.Calls(call("mcp__web__screenshot", "{}")))
	w.says(ann, "look at the page")
	w.press(ann, "Allow")
	select {
	case <-first.done:
	case <-waittest.Late(t):
		t.Fatal("nobody died")
	}
	if n := len(w.ai.Requests()); n != 1 {
		t.Fatalf("the model was asked %d times before the end", n)
	}
	w.ai.Enqueue(openai.Text("I see a red dot."))
	second := launch("second life", "")
	w.patient(func() { w.seesText(ann, "I see a red dot.") })
	w.ai.Enqueue(openai.Text("It is at the left."))
	w.says(ann, "where?")
	w.seesText(ann, "It is at the left.")
	if err := second.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	requests := w.ai.Requests()
	if len(requests) != 3 || len(w.ai.Refusals()) > 0 {
		t.Fatalf("%d requests, refused %+v", len(requests), w.ai.Refusals())
	}
	var got []openai.File
	for i, roles := range []string{"user assistant tool user", "user assistant tool user assistant user"} {
		r := requests[i+1]
		if roles := "system " + roles; strings.Join(r.Roles(), " ") != roles || len(r.Files()) != 1 {
			t.Fatalf("request %d has %v and %d pictures", i+1, r.Roles(), len(r.Files()))
		}
		if text := r.Messages[3].Text(); !containsAll(text, []string{"the page", "[image, image/png", "[shown to the person: picture-1.png]"}) {
			t.Errorf("the model read %q", text)
		}
		if text := r.Messages[4].Text(); !containsAll(text, []string{"mcp__web__screenshot", "picture-1.png", "no instruction"}) || len(r.Messages[4].Files()) != 1 {
			t.Errorf("the picture comes with %q", text)
		}
		got = append(got, r.Files()...)
		isPage(t, got[i].MediaType, got[i].Data)
	}
	if !bytes.Equal(got[0].Data, got[1].Data) {
		t.Error("the next turn shows another picture")
	}
	if calls := w.rows("SELECT tool_name, status FROM agent_tool_calls"); fmt.Sprint(calls) != "[mcp__web__screenshot | completed]" {
		t.Errorf("the calls: %q", calls)
	}
	w.picturesGoWithTheirSession()
}

// picturesGoWithTheirSession shows the only session to the operator, deletes it, and looks for files.
func (w *world) picturesGoWithTheirSession() {
	w.t.Helper()
	session := strings.Trim(fmt.Sprint(w.rows("SELECT id FROM remote_agent_sessions")), "[]")
	if w.env["DATABASE_URL"] != "" {
		session = w.rows("SELECT CAST(id AS TEXT) FROM remote_agent_sessions")[0]
	}
	var transcript bytes.Buffer
	w.operator("sessions show", func(env app.Env) error {
		return app.ShowSession(w.ctx(), w.config(), env, &transcript, session, app.ShowOptions{})
	})
	if text := transcript.String(); !strings.Contains(text, "Attachment picture-1.png (image/png; 64 x 32 pixels; files/") || strings.Contains(text, "iVBOR") {
		w.t.Errorf("the transcript is %s", text)
	}
	if n := w.rows("SELECT count(*) FROM files")[0]; n != "1" {
		w.t.Errorf("%s files are kept", n)
	}
	w.operator("sessions rm", func(env app.Env) error { return app.RemoveSession(w.ctx(), w.config(), env, session, true) })
	if n := w.rows("SELECT count(*) FROM files")[0]; n != "0" {
		w.t.Errorf("%s files are left without their session", n)
	}
}

// TestTheModelLooksAtFilesOfTheRepository reads pictures and documents, and is told why it cannot.
func TestTheModelLooksAtFilesOfTheRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	claude := anthropic.New(anthropic.Options{})
	if err := claude.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claude.Close)
	_, url := w.withRepository(map[string]string{
		"page.png": string(page()), "offer.pdf": "%PDF-1.7\n\x00<< /Type /Pages /Count 2 >>\n%%EOF", "broken.png": "\x89PNG\r\n\x1a\n\x00",
		"long.pdf": "%PDF-1.7\n\x00<< /Type /Pages /Count 5000 >>", "large.png": "\x89PNG\r\n\x1a\n\x00" + strings.Repeat("\x00", 20<<20),
	})
	w.with(map[string]string{"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": claude.URL(), "DEFAULT_AI_ASSISTANT": "anthropic"}).start()
	w.says(ann, "/clone "+url)
	w.seesText(ann, "Cloned")
	var steps []anthropic.Step
	files := []string{"page.png", "offer.pdf", "broken.png", "long.pdf", "large.png"}
	for i, name := range files {
		steps = append(steps, anthropic.ToolUse(anthropic.Call{ID: fmt.Sprint("toolu_", i), Name: "read_file", Arguments: fmt.Sprintf(`{"path":%q}`, name)}))
	}
	claude.Enqueue(anthropic.Reply(steps...), anthropic.Text("I see two of them."))
	w.says(ann, "look at all files")
	w.seesText(ann, "I see two of them.")
	requests := claude.Requests()
	results := requests[len(requests)-1].Results()
	if len(results) != len(files) || len(claude.Refusals()) > 0 {
		t.Fatalf("%d results, refused: %+v", len(results), claude.Refusals())
	}
	for i, want := range []string{
		"[page.png: image/png, ", "[offer.pdf: application/pdf, ", "it cannot be shown: the picture is damaged",
		"it cannot be shown: the PDF has 5000 pages, and 100 is the limit", "it cannot be shown: it is larger than 20 MB, which is the limit",
	} {
		shown := results[i].ResultFiles()
		if text := results[i].ResultText(); !strings.Contains(text, want) || results[i].IsError != (i > 1) || len(shown) != max(0, min(1, 2-i)) {
			t.Errorf("%s: error %t, %d files: %q", files[i], results[i].IsError, len(shown), text)
		}
	}
	if t.Failed() {
		return
	}
	source := results[0].ResultFiles()[0].Source
	isPage(t, source.MediaType, source.Data)
	if doc := results[1].ResultFiles()[0]; doc.Type != "document" || doc.Title != "offer.pdf" || !bytes.HasPrefix(doc.Source.Data, []byte("%PDF-1.7")) {
		t.Errorf("the document is %s %s", doc.Type, doc.Title)
	}
}
