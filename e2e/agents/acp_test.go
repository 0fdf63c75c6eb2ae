package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/e2e/internal/need"
	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/assistant/acp/acptest"
	"remote-agent/internal/emulator/anthropic"
	"remote-agent/internal/emulator/responses"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

const (
	realLimit = 90 * time.Second
	// What the scripted models react to.
	wantsTool     = "PLEASE RUN THE TOOL"
	wantsPause    = "PLEASE TAKE YOUR TIME"
	wantsForecast = "PLEASE LOOK AT THE WEATHER"
	wantsError    = "PLEASE FAIL"
	wantsOn       = "PLEASE GO ON" // an agent keeps what was said before a failure
)

// real is an agent that others wrote, with a model server of ours.
type real struct {
	acp.Config
	seen  func() string     // all that the model was sent, one request a line
	mode  string            // in which it asks before it runs a command
	wrong func(*acp.Config) // gives it a key that the server refuses
	costs bool              // it says what a turn costs
}

func realEnv(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"}
}

func realClaude(t *testing.T) real {
	t.Helper()
	config, err := acp.Claude("'" + need.Program(t, "@agentclientprotocol/claude-agent-acp", acp.ClaudeCommand) + "'")
	if err != nil {
		t.Fatal(err)
	}
	server := anthropic.New(anthropic.Options{APIKey: "sk-ant-emulated-key-0123456789"})
	server.Script(func(r anthropic.Request) anthropic.Response {
		last := string(r.Messages[len(r.Messages)-1].RawContent)
		switch {
		case len(r.Tools) == 0:
			return anthropic.Text("A title")
		case strings.Contains(last, "tool_result"):
			return anthropic.Text("The tool ", "was run.")
		case strings.Contains(last, wantsTool):
			return anthropic.Reply(anthropic.Delta("I run it. "), anthropic.ToolUse(anthropic.Call{
				ID: fmt.Sprintf("toolu_%04d", r.N), Name: "Bash", Arguments: `{"command":"touch made.txt && echo made","description":"make a file"}`,
			}))
		case strings.Contains(last, wantsForecast):
			return anthropic.Reply(anthropic.ToolUse(anthropic.Call{ID: fmt.Sprintf("toolu_%04d", r.N), Name: "mcp__weather__forecast", Arguments: `{"city":"Bonn"}`}))
		case strings.Contains(last, wantsError) && !strings.Contains(last, wantsOn):
			return anthropic.Overloaded()
		case strings.Contains(last, wantsPause):
			return anthropic.Reply(anthropic.Delta("I begin. "), anthropic.Pause(time.Minute))
		}
		return anthropic.Text("I heard ", "you.")
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	config.Env = append(append(realEnv(t.TempDir()), config.Env...),
		"ANTHROPIC_BASE_URL="+server.URL(), "ANTHROPIC_API_KEY=sk-ant-emulated-key-0123456789", "IS_SANDBOX=1")
	return real{
		Config: config, mode: "default", costs: true,
		seen: func() string {
			var all strings.Builder
			for _, r := range server.Requests() {
				if len(r.Tools) > 0 {
					all.Write(r.Body)
					all.WriteByte('\n')
				}
			}
			return all.String()
		},
		wrong: func(c *acp.Config) { c.Env = append(c.Env, "ANTHROPIC_API_KEY=sk-ant-wrong-key-0123456789") },
	}
}

func realCodex(t *testing.T) real {
	t.Helper()
	config, err := acp.Codex("'" + need.Program(t, "@agentclientprotocol/codex-acp", acp.CodexCommand) + "'")
	if err != nil {
		t.Fatal(err)
	}
	server := responses.New(responses.Options{APIKey: "emulated-key-0123456789"})
	server.Script(func(r responses.Request) responses.Response {
		last := r.Items[len(r.Items)-1]
		text := string(last.RawContent)
		switch {
		case strings.HasSuffix(last.Type, "_output"):
			return responses.Text("The tool ", "was run.")
		case strings.Contains(text, wantsTool):
			return responses.Reply(responses.Delta("I run it. "), responses.Function(responses.Call{
				ID: fmt.Sprintf("call_%04d", r.N), Name: "exec_command",
				Arguments: `{"cmd":"touch made.txt && echo made","sandbox_permissions":"require_escalated","justification":"make a file"}`,
			}))
		case strings.Contains(text, wantsForecast):
			return responses.Reply(responses.Function(responses.Call{ID: fmt.Sprintf("call_%04d", r.N), Namespace: "mcp__weather", Name: "forecast", Arguments: `{"city":"Bonn"}`}))
		case strings.Contains(text, wantsError) && !strings.Contains(text, wantsOn):
			return responses.ServerError(500)
		case strings.Contains(text, wantsPause):
			return responses.Reply(responses.Delta("I begin. "), responses.Pause(time.Minute))
		}
		return responses.Text("I heard ", "you.")
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	home := t.TempDir()
	settings := fmt.Sprintf("model = %q\nmodel_provider = %q\n[model_providers.emulated]\nname = %q\nbase_url = %q\nwire_api = %q\nenv_key = %q\nrequest_max_retries = 1\nstream_max_retries = 1\n",
		"gpt-emulated", "emulated", "emulated", server.URL(), "responses", "EMULATED_API_KEY")
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	config.Env = append(append(realEnv(home), config.Env...), "CODEX_HOME="+home, "EMULATED_API_KEY=emulated-key-0123456789")
	return real{
		Config: config, mode: "read-only",
		seen: func() string {
			var all strings.Builder
			for _, r := range server.Requests() {
				all.Write(r.Body)
				all.WriteByte('\n')
			}
			return all.String()
		},
		wrong: func(c *acp.Config) { c.Env = append(c.Env, "EMULATED_API_KEY=wrong-key-0123456789") },
	}
}

func (r real) start(t *testing.T, change ...func(*acp.Config)) *acp.Assistant {
	t.Helper()
	c := r.Config
	c.Env = append([]string{}, c.Env...)
	c.Scratch, c.Start = t.TempDir(), acptest.Exec
	c.ModeFor = func(assistant.Turn) []string { return []string{r.mode} }
	l := &logged{}
	c.Log = logger(l)
	for _, f := range change {
		f(&c)
	}
	a, err := acp.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(l)
		}
	})
	return a
}

func askReal(ctx context.Context, a assistant.Assistant, turn assistant.Turn) result {
	var r result
	ctx, cancel := context.WithTimeout(ctx, realLimit)
	defer cancel()
	for event, err := range a.Run(ctx, turn) {
		if err != nil {
			r.err = err
			continue
		}
		r.add(event)
	}
	return r
}

func TestRealClaude(t *testing.T) {
	t.Parallel()
	exerciseReal(t, realClaude(t))
}

func TestRealCodex(t *testing.T) {
	t.Parallel()
	exerciseReal(t, realCodex(t))
}

func exerciseReal(t *testing.T, r real) {
	t.Helper()
	t.Run("AsksAndRunsATool", r.asksAndRunsATool)
	t.Run("RefusedToolDoesNotRun", r.refusedToolDoesNotRun)
	t.Run("UsesToolsOfMCPServers", r.usesToolsOfMCPServers)
	t.Run("Resumes", r.resumes)
	t.Run("LostSession", r.lostSession)
	t.Run("WrongKey", r.wrongKey)
	t.Run("ModelIsDown", r.modelIsDown)
	t.Run("Stops", r.stops)
	t.Run("ManyAtOnce", r.manyAtOnce)
}

func (r real) asksAndRunsATool(t *testing.T) {
	a := r.start(t)
	turn := question(wantsTool)
	turn.Dir = t.TempDir()
	h := always(assistant.Verdict{Allow: true})
	turn.Host = h
	got := askReal(t.Context(), a, turn)
	if got.err != nil || !strings.Contains(got.answer, "The tool was run.") {
		t.Fatalf("turn: %v\n%s", got.err, strings.Join(kinds(got.events), "\n"))
	}
	if len(h.asked) != 1 || h.asked[0].Kind != assistant.KindExecute || !strings.Contains(h.asked[0].Detail, "touch made.txt && echo made") {
		t.Errorf("asked %+v", h.asked)
	}
	if _, err := os.Stat(filepath.Join(turn.Dir, "made.txt")); err != nil {
		t.Error(err)
	}
	text := strings.Join(kinds(got.events), "\n")
	for _, part := range []string{`touch made.txt \u0026\u0026 echo made`, "assistant.ToolStarted", "IsError:false", "made", "OK:true"} {
		if !strings.Contains(text, part) && !strings.Contains(text, strings.ReplaceAll(part, `\u0026`, "&")) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	u := got.finished.Usage
	if u.InputTokens == 0 || u.OutputTokens == 0 || u.ContextUsed == 0 || u.ContextSize == 0 || (u.CostUSD > 0) != r.costs || got.finished.Model == "" {
		t.Errorf("usage %+v of %q", u, got.finished.Model)
	}
}

// usesToolsOfMCPServers that we serve: each call is judged, and nobody is asked besides.
func (r real) usesToolsOfMCPServers(t *testing.T) {
	a := r.start(t)
	turn := question(wantsForecast)
	turn.Dir = t.TempDir()
	h := always(assistant.Verdict{})
	h.specs = []messages.ToolSpec{{
		Name: "mcp__weather__forecast", Description: "Says how the weather becomes.",
		Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`),
	}}
	turn.Host = h
	got := askReal(t.Context(), a, turn)
	if got.err != nil || !strings.Contains(got.answer, "The tool was run.") {
		t.Fatalf("turn: %v\n%s", got.err, strings.Join(kinds(got.events), "\n"))
	}
	if len(h.judged) != 1 || h.judged[0].Name != "mcp__weather__forecast" || !strings.Contains(h.judged[0].Arguments, "Bonn") || len(h.asked) != 0 {
		t.Errorf("judged %+v, asked %+v", h.judged, h.asked)
	}
	if !strings.Contains(r.seen(), "rain, for ") {
		t.Errorf("the model was sent\n%s", r.seen())
	}
}

func (r real) refusedToolDoesNotRun(t *testing.T) {
	a := r.start(t)
	turn := question(wantsTool)
	turn.Dir = t.TempDir() // and no host: nobody can be asked
	got := askReal(t.Context(), a, turn)
	if got.err != nil && !fault.Is(got.err, fault.Forbidden) {
		t.Fatalf("turn: %v\n%s", got.err, strings.Join(kinds(got.events), "\n"))
	}
	if _, err := os.Stat(filepath.Join(turn.Dir, "made.txt")); err == nil {
		t.Error("the command ran")
	}
	text := strings.Join(kinds(got.events), "\n")
	// An agent that is slow to ask has begun the call before it is refused.
	if strings.Contains(text, "OK:true") || !strings.Contains(text, "IsError:true") && got.err == nil {
		t.Errorf("the refusal is not on record:\n%s", text)
	}
}

// resumes checks that a session outlives its process, and that tokens and cost
// are those of each turn, before and after that.
func (r real) resumes(t *testing.T) {
	a := r.start(t)
	turn := question("remember the number 4711")
	turn.Dir = t.TempDir()
	turns := []result{askReal(t.Context(), a, turn)}
	if turns[0].err != nil {
		t.Fatal(turns[0].err)
	}
	session := turns[0].session(t)
	for i := range 3 {
		if i == 1 {
			a.Release(turn.Conversation)
		}
		turn = next(turn, turns[i], session, fmt.Sprintf("question %d", i))
		got := askReal(t.Context(), a, turn)
		if got.err != nil || len(got.resume) > 0 || len(got.notices) > 0 {
			t.Fatalf("turn %d: %+v", i, got)
		}
		turns = append(turns, got)
	}
	lines := strings.Split(strings.TrimSpace(r.seen()), "\n")
	last := lines[len(lines)-1]
	for _, part := range []string{"remember the number 4711", "question 0", "question 1", "question 2"} {
		if strings.Count(last, part) != 1 {
			t.Errorf("the model was told %q %d times", part, strings.Count(last, part))
		}
	}
	for i, got := range turns {
		u := got.finished.Usage
		t.Logf("turn %d: %+v", i, u)
		// One request each: a sum over the session would double.
		if first := turns[0].finished.Usage; u.InputTokens == 0 || u.OutputTokens > 2*first.OutputTokens || u.InputTokens > first.InputTokens*3/2 {
			t.Errorf("turn %d: usage %+v, the first turn's was %+v", i, u, first)
		}
		if first := turns[0].finished.Usage; r.costs && (u.CostUSD <= 0 || u.CostUSD > 2*first.CostUSD+0.05) {
			t.Errorf("turn %d cost %v, the first turn %v", i, u.CostUSD, first.CostUSD)
		}
	}
}

func (r real) lostSession(t *testing.T) {
	a := r.start(t)
	turn := question("and now?")
	turn.Dir = t.TempDir()
	turn.Resume = "11111111-1111-4111-8111-111111111111"
	turn.Array = append([]messages.Message{
		messages.NewText(messages.RoleUser, "the number is 815"), messages.NewText(messages.RoleAssistant, "noted"),
	}, turn.Array...)
	got := askReal(t.Context(), a, turn)
	if got.err != nil || len(got.resume) != 2 || got.resume[0] != "" || len(got.notices) != 1 {
		t.Fatalf("turn: %+v", got)
	}
	if !strings.Contains(r.seen(), "the number is 815") {
		t.Error("the model got no summary")
	}
}

func (r real) wrongKey(t *testing.T) {
	a := r.start(t, r.wrong)
	turn := question("Hi")
	turn.Dir = t.TempDir()
	got := askReal(t.Context(), a, turn)
	if !fault.Is(got.err, fault.Unauthorized) || strings.Contains(got.err.Error(), "wrong-key") {
		t.Errorf("turn: %v", got.err)
	}
}

// modelIsDown checks that the failure of a request is no answer, however the
// agent reports it, and that the next turn works.
func (r real) modelIsDown(t *testing.T) {
	a := r.start(t)
	turn := question(wantsError)
	turn.Dir = t.TempDir()
	got := askReal(t.Context(), a, turn)
	if !fault.Is(got.err, fault.Unavailable) || len(got.messages) > 0 {
		t.Errorf("turn: %v\n%s", got.err, strings.Join(kinds(got.events), "\n"))
	}
	again := question(wantsOn)
	again.Resume, again.Dir = got.session(t), turn.Dir
	if got := askReal(t.Context(), a, again); got.err != nil || !strings.Contains(got.answer, "I heard you.") {
		t.Errorf("the next turn: %v", got.err)
	}
}

func (r real) stops(t *testing.T) {
	a := r.start(t)
	turn := question(wantsPause)
	turn.Dir = t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), realLimit)
	defer cancel()
	var stopped time.Time
	var got result
	for event, err := range a.Run(ctx, turn) {
		if err != nil {
			got.err = err
			continue
		}
		got.add(event)
		if _, ok := event.(assistant.TextDelta); ok && stopped.IsZero() {
			stopped = time.Now()
			cancel()
		}
	}
	if took := time.Since(stopped); !fault.Is(got.err, fault.Canceled) || took > time.Second {
		t.Errorf("stopped after %v: %v", took, got.err)
	}
	turn = question("Hi")
	turn.Resume = got.session(t)
	if got := askReal(t.Context(), a, turn); got.err != nil || !strings.Contains(got.answer, "I heard you.") {
		t.Errorf("the next turn: %v", got.err)
	}
}

func (r real) manyAtOnce(t *testing.T) {
	const n = 3
	a := r.start(t)
	results := make(chan result, n)
	for i := range n {
		go func() {
			turn := question("Hi")
			turn.Conversation = fmt.Sprint(i)
			results <- askReal(t.Context(), a, turn)
		}()
	}
	for range n {
		if got := <-results; got.err != nil || !strings.Contains(got.answer, "I heard you.") {
			t.Errorf("turn: %v %q", got.err, got.answer)
		}
	}
}
