package acp

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

const (
	maxServed = 5 << 20 // of one request of an agent, in bytes

	// stillAt is how often an agent that waits for a call hears that it is at work: Node.js ends an
	// answer that is silent for five minutes, and some ask again earlier.
	stillAt = 10 * time.Second

	codeInvalidParams = -32602
)

// protocolVersions are the versions of MCP that have what is served here, the same in each.
var protocolVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26"}

// toolbox offers the tools of the host that are of MCP servers to an agent: as one server for
// each, over streamable HTTP, at an address that only the agent's process has. The servers
// themselves run where those of other assistants do. The agent gets neither their programs nor
// their variables and headers, and each call is judged and run by the host, whether the agent
// asks for permission or not.
type toolbox struct {
	agent *agent
	specs []messages.ToolSpec // as they were when the process was started
	token string

	mu      sync.Mutex
	running map[string]context.CancelFunc // calls, by session and id
}

// partsOfName takes the name of a tool apart that is of an MCP server.
func partsOfName(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "__")
}

// servedTools returns the tools of a turn that are of MCP servers.
func servedTools(turn assistant.Turn) []messages.ToolSpec {
	if turn.Host == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(turn.Host.Tools()), func(s messages.ToolSpec) bool {
		_, _, ok := partsOfName(s.Name)
		return !ok
	})
}

// serves reports whether a turn has the tools that are offered; b may be nil.
func (b *toolbox) serves(turn assistant.Turn) bool {
	var specs []messages.ToolSpec
	if b != nil {
		specs = b.specs
	}
	return slices.EqualFunc(specs, servedTools(turn), func(a, b messages.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && string(a.Schema) == string(b.Schema)
	})
}

func newToolbox(g *agent, specs []messages.ToolSpec) *toolbox {
	return &toolbox{agent: g, specs: specs, token: rand.Text(), running: map[string]context.CancelFunc{}}
}

// has reports whether a tool is offered; b may be nil.
func (b *toolbox) has(name string) bool {
	return b != nil && slices.ContainsFunc(b.specs, func(s messages.ToolSpec) bool { return s.Name == name })
}

// mcpServer is a server as session/new and its like have it.
type mcpServer struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	URL     string   `json:"url"`
	Headers []header `json:"headers"`
}

type header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// servers returns what the agent is told of: one server for each whose tools are offered.
func (b *toolbox) servers(address string) []mcpServer {
	list := []mcpServer{}
	for _, spec := range b.specs {
		name, _, _ := partsOfName(spec.Name)
		if slices.ContainsFunc(list, func(s mcpServer) bool { return s.Name == name }) {
			continue
		}
		list = append(list, mcpServer{
			Type: "http", Name: name, URL: "http://" + address + "/" + name,
			Headers: []header{{"Authorization", "Bearer " + b.token}},
		})
	}
	return list
}

// serve takes the connections of the agent until l is closed.
func (b *toolbox) serve(l net.Listener) {
	s := &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	_ = s.Serve(l)
	_ = s.Close()
}

// ServeHTTP implements http.Handler.
func (b *toolbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m wire
	switch want := "Bearer " + b.token; {
	case subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) != 1:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case r.Method != http.MethodPost: // nothing is said without being asked
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case json.NewDecoder(http.MaxBytesReader(w, r.Body, maxServed)).Decode(&m) != nil || m.Method == "" && len(m.ID) == 0:
		w.WriteHeader(http.StatusBadRequest)
		return
	case len(m.ID) == 0 || m.Method == "":
		if m.Method == "notifications/cancelled" { //nolint:misspell // the protocol's spelling
			b.cancel(r, m.Params)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := outgoing{JSONRPC: "2.0", ID: m.ID}
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", rand.Text())
		answer.Result = greeting(m.Params)
	case "ping":
		answer.Result = struct{}{}
	case "tools/list":
		answer.Result = map[string]any{"tools": b.list(serverOf(r))}
	case "tools/call":
		b.call(w, r, m)
		return
	default:
		answer.Error = &sdk.RequestError{Code: codeMethodNotFound, Message: "Method not found"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// serverOf returns the server that a request is for.
func serverOf(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }

// greeting is the answer to initialize.
func greeting(params json.RawMessage) any {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(params, &p)
	version := protocolVersions[0]
	if slices.Contains(protocolVersions, p.ProtocolVersion) {
		version = p.ProtocolVersion
	}
	return map[string]any{
		"protocolVersion": version, "capabilities": map[string]any{"tools": struct{}{}},
		"serverInfo": map[string]string{"name": "remote-agent", "version": "1"},
	}
}

type servedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"inputSchema"`
}

func (b *toolbox) list(server string) []servedTool {
	list := []servedTool{}
	for _, s := range b.specs {
		if of, tool, _ := partsOfName(s.Name); of == server {
			list = append(list, servedTool{tool, s.Description, s.Schema})
		}
	}
	return list
}

// callKey is what a call that runs is known by.
func callKey(r *http.Request, id json.RawMessage) string {
	return strings.Join([]string{serverOf(r), r.Header.Get("Mcp-Session-Id"), string(id)}, "\n")
}

// cancel ends a call that the agent does not wait for any more.
func (b *toolbox) cancel(r *http.Request, params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if stop := b.running[callKey(r, p.ID)]; stop != nil {
		stop()
	}
}

// callParams is the params of tools/call.
type callParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      struct {
		Token json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

// call answers tools/call: as a stream, so that the agent sees that it is at work.
func (b *toolbox) call(w http.ResponseWriter, r *http.Request, m wire) {
	var p callParams
	name := ""
	if decoded(m.Params, &p) {
		name = "mcp__" + serverOf(r) + "__" + p.Name
	}
	key := callKey(r, m.ID)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	b.mu.Lock()
	twice := b.running[key] != nil
	if !twice {
		b.running[key] = cancel
	}
	b.mu.Unlock()
	answer := outgoing{JSONRPC: "2.0", ID: m.ID}
	if twice || !b.has(name) {
		answer.Error = &sdk.RequestError{Code: codeInvalidParams, Message: "there is no such tool, or the id is in use"}
		if !twice {
			b.forget(key)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	defer b.forget(key)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.Flush()
	done := make(chan served, 1)
	go func() { done <- b.agent.runServed(ctx, name, string(p.Arguments)) }() // is waited for below
	ticker := time.NewTicker(stillAt)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ticker.C:
			p.stillAt(w, n)
			_ = out.Flush()
			continue
		case result := <-done:
			answer.Result = result
		}
		event(w, answer)
		_ = out.Flush()
		return
	}
}

func (b *toolbox) forget(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, key)
}

// stillAt tells the agent that its call is at work, for the n-th time.
func (p callParams) stillAt(w http.ResponseWriter, n int) {
	if !present(p.Meta.Token) {
		_, _ = w.Write([]byte(": at work\n\n"))
		return
	}
	event(w, outgoing{JSONRPC: "2.0", Method: "notifications/progress", Params: map[string]any{"progressToken": p.Meta.Token, "progress": n}})
}

// event writes a message to a stream of events.
func event(w http.ResponseWriter, m outgoing) {
	line, err := json.Marshal(m)
	if err != nil {
		return
	}
	_, _ = w.Write(slices.Concat([]byte("event: message\ndata: "), line, []byte("\n\n")))
}

// served is the result of tools/call.
type served struct {
	Content []any `json:"content"` // mcpText, mcpImage
	IsError bool  `json:"isError"`
}

type mcpText struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

type mcpImage struct {
	Type      string `json:"type"` // image
	Data      []byte `json:"data"`
	MediaType string `json:"mimeType"`
}

// servedOf is a result with the pictures that the tool shows.
func servedOf(r messages.ToolResult, files []messages.Attachment) served {
	s := served{IsError: r.IsError, Content: []any{mcpText{"text", r.Content}}}
	for _, a := range files {
		if a.Data != "" && strings.HasPrefix(a.MediaType, "image/") {
			s.Content = append(s.Content, mcpImage{"image", []byte(a.Data), a.MediaType})
		} else {
			s.Content = append(s.Content, mcpText{"text", assistant.AttachmentText(a)})
		}
	}
	return s
}

// What an agent reads of a call that no turn is there for.
const noTurn = "not run: this tool can be called only while you work on a message."

// runServed runs a call of the agent that arrived at its address, if the host permits it. It
// ends with ctx and with the turn. It is on record as pending before anybody is asked, and as
// executing before it runs, as all calls are: as what the agent has reported, or by itself.
func (g *agent) runServed(ctx context.Context, name, arguments string) served {
	refused := func(why string) served { return served{IsError: true, Content: []any{mcpText{"text", why}}} }
	r := g.joined()
	if r == nil {
		return refused(noTurn)
	}
	defer r.serving.Done()
	defer r.served.Add(-1)
	turn, cancel := context.WithCancel(r.ctx) // the end of the turn says why it is over
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	asked, own := messages.ToolCall{ID: "mcp-" + rand.Text(), Name: name, Arguments: arguments}, false
	title := r.turn.Host.Describe(asked)
	var c *call
	if !r.within(func() (err error) {
		if c = r.t.reported(name, arguments); c == nil {
			own = true
			if c, err = r.t.find(asked.ID, true); err == nil {
				err = r.t.merge(c, update{Name: name, Title: title, ToolKind: "other", RawInput: json.RawMessage(arguments)})
			}
		}
		if err != nil {
			return err
		}
		c.served = true
		asked.ID = c.id
		return r.t.tell(c)
	}) {
		return refused(noTurn)
	}
	verdict, err := r.turn.Host.Permit(turn, asked) //nolint:contextcheck // it is of the turn, and ends with ctx as well
	if err != nil {
		if turn.Err() == nil {
			g.log.WarnContext(ctx, "nobody could be asked about a call; it is refused", "tool", name, "err", err)
		}
		verdict = assistant.Verdict{Reason: "not run: nobody could be asked."}
	}
	if !verdict.Allow {
		r.within(func() error {
			if c.refused = true; own {
				return r.t.finish(c, false, verdict.Reason)
			}
			return nil
		})
		return refused(verdict.Reason)
	}
	if !r.within(func() error { return r.t.start(c) }) {
		return refused(noTurn)
	}
	result, files := r.turn.Host.RunTool(turn, asked) //nolint:contextcheck // as above
	if own {
		r.within(func() error { return r.t.finish(c, !result.IsError, result.Content) })
	}
	return servedOf(result, files)
}

// within has the turn's goroutine do something with the transcript, and reports whether it has.
func (r *run) within(do func() error) bool {
	done := make(chan struct{})
	if !r.deliver(arrival{do: func() error {
		defer close(done)
		return do()
	}}) {
		return false
	}
	select {
	case <-done:
		return true
	case <-r.closed:
		return false
	}
}

// nameTool gives the call of an MCP server's tool the name and the input that others report, where
// it comes as Codex has it: with the title mcp.SERVER.TOOL, and both names in the input.
func (c *call) nameTool() {
	var in struct {
		Server, Tool string
		Arguments    json.RawMessage
	}
	if !strings.HasPrefix(c.title, "mcp.") || json.Unmarshal(c.input, &in) != nil || c.title != "mcp."+in.Server+"."+in.Tool {
		return
	}
	if c.name, c.input = "mcp__"+in.Server+"__"+in.Tool, in.Arguments; !present(c.input) {
		c.input = json.RawMessage("{}")
	}
}

// reported returns a call of a served tool that the agent has reported and that did not arrive
// yet; nil if there is none.
func (t *transcript) reported(name, arguments string) *call {
	for _, c := range t.open() {
		if !c.arrived && c.toolName() == name && sameJSON(c.arguments(), arguments) {
			c.arrived = true
			return c
		}
	}
	return nil
}

// sameJSON reports whether two texts are the same value.
func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	one, _ := json.Marshal(x)
	other, _ := json.Marshal(y)
	return string(one) == string(other)
}

// joined returns the turn at work, which does not end before serving is done; nil without one.
func (g *agent) joined() *run {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turn == nil || g.turn.turn.Host == nil {
		return nil
	}
	g.turn.serving.Add(1)
	g.turn.served.Add(1)
	return g.turn
}
