package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/messages"
)

// toolHost is a host with tools.
type toolHost struct {
	host
	specs  []messages.ToolSpec
	shows  []messages.Attachment // each time
	permit func(ctx context.Context, call messages.ToolCall) (assistant.Verdict, error)

	mu  sync.Mutex
	ran []messages.ToolCall
}

func (h *toolHost) Tools() []messages.ToolSpec { return h.specs }

func (h *toolHost) Describe(call messages.ToolCall) string { return "about " + call.Name }

func (h *toolHost) Permit(ctx context.Context, call messages.ToolCall) (assistant.Verdict, error) {
	if h.permit == nil {
		return assistant.Verdict{Allow: true}, nil
	}
	return h.permit(ctx, call)
}

func (h *toolHost) RunTool(_ context.Context, call messages.ToolCall) (messages.ToolResult, []messages.Attachment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran = append(h.ran, call)
	return messages.ToolResult{CallID: call.ID, Name: call.Name, Content: "ran " + call.Name + " " + call.Arguments}, h.shows
}

func (h *toolHost) did() (did []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.ran {
		did = append(did, c.Name+" "+c.Arguments)
	}
	return did
}

func withTools(names ...string) *toolHost {
	h := &toolHost{host: host{decide: func(context.Context, assistant.Permission) (assistant.Verdict, error) {
		return assistant.Verdict{}, nil
	}}}
	for _, name := range names {
		h.specs = append(h.specs, messages.ToolSpec{Name: name, Description: "about " + name, Schema: raw(`{"type":"object"}`)})
	}
	return h
}

func use(server, tool, input string) acpagent.Step {
	return acpagent.Step{Use: &acpagent.Use{Server: server, Tool: tool, Input: raw(input)}}
}

// TestAnAgentUsesToolsOfMCPServers: it is told of the servers, finds their tools, and each call
// is judged and run by the host. Tools of the program itself are not among them.
func TestAnAgentUsesToolsOfMCPServers(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{HTTP: true, Turns: []acpagent.Turn{{Steps: []acpagent.Step{
		{Use: &acpagent.Use{}}, use("jira", "find", `{"q":"a"}`), use("jira", "drop", `{}`), use("jira", "read_file", `{}`),
	}}}})
	h := withTools("read_file", "mcp__jira__find", "mcp__jira__drop", "mcp__web-1__get__all")
	h.permit = func(_ context.Context, call messages.ToolCall) (assistant.Verdict, error) {
		return assistant.Verdict{Allow: call.Name == "mcp__jira__find", Reason: "not run: no."}, nil
	}
	turn := question("go")
	turn.Host = h
	got := ask(t.Context(), w, turn)
	want := `jira has find, drop. web-1 has get__all. ran mcp__jira__find {"q":"a"}error: not run: no.failed: error -32602: there is no such tool, or the id is in use`
	if got.err != nil || got.text != want {
		t.Errorf("the agent says %q, want %q: %v", got.text, want, got.err)
	}
	if did := h.did(); !slices.Equal(did, []string{`mcp__jira__find {"q":"a"}`}) || len(h.asked) != 0 {
		t.Errorf("the host ran %q and was asked %+v", did, h.asked)
	}
	if want := []string{`ran mcp__jira__find {"q":"a"}`, "not run: no."}; !slices.Equal(got.results(), want) {
		t.Errorf("on record are the results %q, want %q", got.results(), want)
	}
	if want := []string{"message", "started", "message", "finished", "message", "message"}; !slices.Equal(got.steps(), want) {
		t.Errorf("the events are %q, want %q", got.steps(), want)
	}
}

// steps are the events of calls, without the last message.
func (r result) steps() (steps []string) {
	for _, event := range r.events {
		switch event.(type) {
		case assistant.MessageDone:
			steps = append(steps, "message")
		case assistant.ToolStarted:
			steps = append(steps, "started")
		case assistant.ToolFinished:
			steps = append(steps, "finished")
		case assistant.TextDelta, assistant.Resumable, assistant.Notice, assistant.Finished, assistant.ThoughtDelta, assistant.PlanUpdated, assistant.FileMade, assistant.UsageUpdated:
		}
	}
	return steps[:len(steps)-1]
}

// TestACallThatTheAgentReports is one on record: it is pending until the host has decided.
func TestACallThatTheAgentReports(t *testing.T) {
	t.Parallel()
	for name, reported := range map[string]string{
		"ByClaude": `"title":"Find it","rawInput":{"q":"a","n":1},"_meta":{"claudeCode":{"toolName":"mcp__jira__find"}}`,
		"ByCodex":  `"title":"mcp.jira.find","rawInput":{"server":"jira","tool":"find","arguments":{"q":"a","n":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reportsACall(t, `{"sessionUpdate":"tool_call","toolCallId":"1","kind":"other","status":"pending",`+reported+`}`)
		})
	}
}

func reportsACall(t *testing.T, reported string) {
	t.Helper()
	w := start(t, acpagent.Script{HTTP: true, Turns: []acpagent.Turn{{Steps: []acpagent.Step{
		{Update: raw(reported)}, asks("%SESSION%", `{"toolCallId":"1"}`), {Pause: "1s"}, use("jira", "find", `{"n":1, "q":"a"}`),
		{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","rawOutput":"found"}`)}, {Say: "Done."},
	}}}})
	h := withTools("mcp__jira__find")
	var asked, ran string
	h.permit = func(_ context.Context, call messages.ToolCall) (assistant.Verdict, error) {
		asked = call.ID
		return assistant.Verdict{Allow: true}, nil
	}
	turn := question("go")
	turn.Host = h
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	var got result
	for event, err := range w.Run(ctx, turn) {
		if err != nil {
			t.Fatal(err)
		}
		if e, started := event.(assistant.ToolStarted); started {
			if ran = e.ID; asked != ran {
				t.Error("the call started before the host was asked")
			}
		}
		got.add(event)
	}
	if results := got.results(); !slices.Equal(results, []string{"found"}) || ran == "" || len(h.did()) != 1 || len(h.asked) != 0 {
		t.Errorf("on record are %q, started was %q, the host did %q and was asked %+v", results, ran, h.did(), h.asked)
	}
}

// TestWhoIsAskedAboutAToolOfAnMCPServer: the agent's own question about one is answered with a
// yes, also where it takes only one for ever, since the host is asked about each call. A
// question with several answers, and one about another tool, go to a person.
func TestWhoIsAskedAboutAToolOfAnMCPServer(t *testing.T) {
	t.Parallel()
	about := func(name string, kinds ...string) acpagent.Step {
		return acpagent.Step{Tool: &acpagent.Tool{ID: name + strings.Join(kinds, ""), Name: name, Title: name, Kind: "other", Input: raw(`{"q":"a"}`), Ask: acpagent.Options(kinds...)}}
	}
	w := start(t, acpagent.Script{HTTP: true, Turns: []acpagent.Turn{{Steps: []acpagent.Step{
		about("mcp__jira__find", "allow_always", "allow_once", "reject_once"), about("mcp__jira__find", "allow_always"),
		about("mcp__jira__find", "allow_once", "allow_once"), about("mcp__jira__other", "allow_once", "reject_once"), {Say: "Done."},
	}}}})
	h := withTools("mcp__jira__find")
	turn := question("go")
	turn.Host = h
	got := ask(t.Context(), w, turn)
	if got.err != nil || len(h.asked) != 2 || h.asked[0].Kind != assistant.KindQuestion || h.asked[1].Call.Name != "mcp__jira__other" {
		t.Errorf("a person was asked %+v: %v", h.asked, got.err)
	}
	_, _, lines := w.got(t)
	said := strings.Join(lines, "\n")
	if strings.Count(said, `"optionId":"id-allow_once"`) != 1 || strings.Count(said, `"optionId":"id-allow_always"`) != 1 {
		t.Errorf("the agent was answered\n%s", said)
	}
}

// TestAnAgentThatTakesNoServers works without them, and the person reads so.
func TestAnAgentThatTakesNoServers(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(acpagent.Step{Use: &acpagent.Use{}}))
	turn := question("go")
	turn.Host = withTools("mcp__jira__find")
	got := ask(t.Context(), w, turn)
	if got.err != nil || got.text != "no such server" || len(got.notices) != 1 || !strings.Contains(got.notices[0], "takes no MCP servers over HTTP") {
		t.Errorf("it says %q, people read %q: %v", got.text, got.notices, got.err)
	}
}

// TestASessionHasTheToolsOfItsTurn: a change has the process restarted, and the session resumed
// with what there is now. Without a change it is kept.
func TestASessionHasTheToolsOfItsTurn(t *testing.T) {
	t.Parallel()
	for _, script := range []acpagent.Script{{Resume: true}, {Load: true}} {
		script.HTTP, script.Turns = true, []acpagent.Turn{{Steps: []acpagent.Step{{Use: &acpagent.Use{}}}}}
		w := start(t, script)
		turn := question("go")
		var said []string
		for i, tools := range [][]string{{"mcp__a__x"}, {"mcp__a__x"}, {"mcp__a__x", "mcp__b__y"}, nil, {"read_file"}} {
			h := withTools(tools...)
			turn.Host = h
			got := ask(t.Context(), w, turn)
			if got.err != nil {
				t.Fatal(i, got.err)
			}
			said = append(said, got.text)
			resume := turn.Resume
			if resume == "" {
				resume = got.session(t)
			}
			turn = next(turn, got, resume, "go")
		}
		if want := []string{"a has x. ", "a has x. ", "a has x. b has y. ", "no such server", "no such server"}; !slices.Equal(said, want) {
			t.Errorf("the agent says %q, want %q", said, want)
		}
		if n := len(w.starts(t)); n != 3 {
			t.Errorf("%d processes, want 3", n)
		}
	}
}

// served returns the address of the first MCP server that the agent was told of, and the header
// that opens it.
func (w world) served(tb testing.TB) (url, authorization string) {
	tb.Helper()
	_, _, lines := w.got(tb)
	for _, line := range lines {
		var m struct {
			Params struct {
				Servers []struct {
					URL     string
					Headers []struct{ Name, Value string }
				} `json:"mcpServers"`
			}
		}
		if json.Unmarshal([]byte(line), &m) == nil && len(m.Params.Servers) > 0 {
			s := m.Params.Servers[0]
			return s.URL, s.Headers[0].Value
		}
	}
	tb.Fatalf("the agent was told of no server: %q", lines)
	return "", ""
}

// authorized adds a header to requests.
type authorized string

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// TestTheOfficialClientUsesTheTools of a turn while it lasts. Nobody does without the token.
func TestTheOfficialClientUsesTheTools(t *testing.T) {
	t.Parallel()
	goOn, working := filepath.Join(t.TempDir(), "go-on"), filepath.Join(t.TempDir(), "working")
	w := start(t, acpagent.Script{HTTP: true, Turns: []acpagent.Turn{
		{Nth: 1, Steps: []acpagent.Step{{Say: "Ready."}}}, {Steps: []acpagent.Step{{Touch: working}, {AwaitFile: goOn}, {Say: "Done."}}},
	}})
	h := withTools("mcp__jira__find")
	turn := question("go")
	turn.Host = h
	first := ask(t.Context(), w, turn)
	if first.err != nil {
		t.Fatal(first.err)
	}
	url, token := w.served(t)
	for _, wrong := range []string{"", "Bearer ", token + "x"} {
		r, err := (&http.Client{Transport: authorized(wrong)}).Post(url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		if _ = r.Body.Close(); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("with %q: %s", wrong, r.Status)
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "official", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: authorized(token)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close() //nolint:errcheck // the test is over
	h.shows = []messages.Attachment{{Name: "picture-1.png", MediaType: "image/png", Data: dot}, {Name: "picture-2.png", Note: "too large"}}
	call := func() (string, bool, []sdk.Content) {
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "find", Arguments: map[string]any{"q": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		return got.Content[0].(*sdk.TextContent).Text, got.IsError, got.Content[1:] //nolint:forcetypeassert // it comes first
	}
	if text, failed, _ := call(); !failed || text != "not run: this tool can be called only while you work on a message." {
		t.Errorf("between turns: %q, %t", text, failed)
	}
	turn = next(turn, first, first.session(t), "on")
	done := make(chan result, 1)
	go func() { done <- ask(t.Context(), w, turn) }()
	eventually(t, "the agent works", func() bool {
		_, err := os.Stat(working)
		return err == nil
	})
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "find" || list.Tools[0].Description != "about mcp__jira__find" {
		t.Errorf("the tools are %+v: %v", list, err)
	}
	text, failed, shown := call()
	if failed || text != `ran mcp__jira__find {"q":"a"}` || len(shown) != 2 {
		t.Fatalf("in a turn: %q, %t, and %d more", text, failed, len(shown))
	}
	if picture, is := shown[0].(*sdk.ImageContent); !is || string(picture.Data) != dot || picture.MIMEType != "image/png" {
		t.Errorf("it shows %+v", shown[0])
	}
	if named, is := shown[1].(*sdk.TextContent); !is || !strings.Contains(named.Text, "too large") {
		t.Errorf("it does not show %+v", shown[1])
	}
	if err := touch(goOn); err != nil {
		t.Fatal(err)
	}
	if second := <-done; second.err != nil {
		t.Error(second.err)
	}
}

// waitingHost has a tool about which nobody decides.
func waitingHost() (h *toolHost, asked chan struct{}, over chan error) {
	h, asked, over = withTools("mcp__jira__find"), make(chan struct{}, 1), make(chan error, 1)
	h.permit = func(ctx context.Context, _ messages.ToolCall) (assistant.Verdict, error) {
		asked <- struct{}{}
		<-ctx.Done()
		over <- context.Cause(ctx)
		return assistant.Verdict{}, context.Cause(ctx)
	}
	return h, asked, over
}

// TestACallThatTheAgentTakesBack is over, and the turn goes on. It did not run.
func TestACallThatTheAgentTakesBack(t *testing.T) {
	t.Parallel()
	const silence = 4 * time.Second // that an agent is allowed
	file := filepath.Join(t.TempDir(), "cancel")
	w := start(t, acpagent.Script{HTTP: true, Turns: []acpagent.Turn{{Steps: []acpagent.Step{
		{Use: &acpagent.Use{Server: "jira", Tool: "find", Input: raw(`{}`), Cancel: file}},
	}}}}, func(c *acp.Config) { c.SilenceTimeout = silence }) // a call is no silence
	h, asked, over := waitingHost()
	turn := question("go")
	turn.Host = h
	go func() {
		<-asked
		time.Sleep(silence + silence/4)
		if err := touch(file); err != nil {
			t.Error(err)
		}
	}()
	got := ask(t.Context(), w, turn)
	if got.err != nil || got.text != "error: not run: nobody could be asked." || len(h.did()) != 0 {
		t.Errorf("the agent says %q: %v", got.text, got.err)
	}
	<-over
}

// TestATurnThatEndsEndsItsCalls: whoever is asked hears why.
func TestATurnThatEndsEndsItsCalls(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{HTTP: true, Turns: []acpagent.Turn{{Steps: []acpagent.Step{use("jira", "find", `{}`)}}}})
	h, asked, over := waitingHost()
	turn := question("go")
	turn.Host = h
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	go func() {
		<-asked
		stop(errTheEnd)
	}()
	began := time.Now()
	got := ask(ctx, w, turn)
	if got.err == nil || time.Since(began) > testLimit/2 {
		t.Errorf("the turn ended after %s with %v", time.Since(began), got.err)
	}
	if why := <-over; why != errTheEnd { //nolint:errorlint // it is passed on as it is
		t.Errorf("the call ended because of %v", why)
	}
}

var errTheEnd = errors.New("the end")

func touch(path string) error { return os.WriteFile(path, nil, 0o600) }
