package acp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

// agent is one process and its session.
type agent struct {
	a        *Assistant
	place    *place
	log      *slog.Logger
	dir      string
	private  bool // dir is ours, and goes when it is empty
	readOnly bool // it cannot change the worktree
	process  Process
	tools    *toolbox // nil: it is offered none
	began    time.Time
	stderr   string // as it was when the agent was silent last
	conn     *conn

	ending sync.Once
	ended  atomic.Bool
	gone   chan struct{} // closed when nothing of the process is left
	exit   error         // what Wait said; read it after gone
	idle   *time.Timer   // guarded by Assistant.mu

	version            string     // as it calls itself; may be empty
	tellsLogin         bool       // it sends loginUpdate by itself
	logins             chan Login // capacity 1: the first that came
	waysIn             string     // a sentence with a space behind it, or nothing
	wayIn              string     // the id of the way to authenticate that is tried; empty for none
	canResume, canLoad bool
	takesHTTP          bool        // servers of tools by their address
	prompts            promptKinds // what a prompt may hold besides text

	// What follows is used by the turn that holds the place, except turn.
	session string
	system  string // the instructions that the session has
	model   string // the session's current model, if the agent says
	own     string // the model that it had when it was opened
	modes   []string
	mode    string
	options map[string]option // session configuration, by category
	cost    meter
	earlier map[string]bool // the calls of earlier turns

	mu     sync.Mutex
	turn   *run        // the turn that updates belong to; nil between turns
	said   *transcript // since the last turn, if it was answered; else nil
	saidIn string      // the session of that turn
}

// option is something of a session that has a list of values to choose from.
type option struct {
	id      string // of the configuration option; empty: of a model that has a request of its own
	current string
	ids     []string          // the values, in order
	values  map[string]string // values and their names in lower case, to the value
}

func (o *option) add(name, value string) {
	if value != "" {
		o.ids = append(o.ids, value)
		o.values[strings.ToLower(name)], o.values[strings.ToLower(value)] = value, value
	}
}

// start starts a process for the place, which has none, and initializes it.
func (a *Assistant) start(ctx context.Context, p *place, turn assistant.Turn) (*agent, error) {
	program, err := a.program()
	if err != nil {
		return nil, err
	}
	dir, private, err := a.dir(turn)
	if err != nil {
		return nil, err
	}
	if err := a.slot(ctx); err != nil {
		return nil, err
	}
	g := &agent{
		a: a, place: p, dir: dir, private: private, readOnly: turn.ReadsOnly(), began: time.Now(), gone: make(chan struct{}), earlier: map[string]bool{}, logins: make(chan Login, 1),
		log: a.log.With("conversation", turn.Conversation, "run", turn.Run),
	}
	spec := StartSpec{
		Command: append([]string{program}, a.config.Command[1:]...),
		Env:     a.config.Env, Dir: dir, Tree: turn.Tree, GitData: turn.GitData, ReadOnly: turn.ReadsOnly(),
	}
	if specs := servedTools(turn); len(specs) > 0 {
		g.tools = newToolbox(g, specs)
		spec.Serve = g.tools.serve
	}
	process, err := a.config.Start(ctx, spec)
	if err != nil {
		<-a.slots
		return nil, a.notStarted(ctx, err)
	}
	g.process = process
	g.conn = connect(g, process.Stdin(), process.Stdout())
	g.conn.busy = g.busy
	a.mu.Lock()
	p.agent = g
	closing := a.closed()
	a.mu.Unlock()
	a.wg.Go(g.reap)
	if closing {
		g.end()
		return nil, errClosing
	}
	if err := g.initialize(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// notStarted classifies an error of Config.Start.
func (a *Assistant) notStarted(ctx context.Context, err error) error {
	var classified *fault.Error
	switch {
	case ctx.Err() != nil:
		return canceled(ctx)
	case errors.As(err, &classified):
		return err
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return a.missing()
	}
	if kind, own := fault.Resource(err); own {
		return &fault.Error{Kind: kind, Err: a.scrub(err)}
	}
	return &fault.Error{
		Kind: fault.Unavailable, Err: a.scrub(err),
		Public: "The agent could not be started. The reason is in the log.",
	}
}

// reap waits for the end of the process and cleans up after it.
func (g *agent) reap() {
	g.exit = g.process.Wait()
	timer := time.NewTimer(exitDrain)
	select {
	case <-g.conn.done: // everything was read
	case <-timer.C:
	}
	timer.Stop()
	_ = g.process.Stdout().Close()
	_ = g.process.Stdin().Close()
	g.conn.end(errEnded)
	g.detach(nil, false)
	g.conn.wait()
	if g.private {
		_ = os.Remove(g.dir) // succeeds only if it is empty
	}
	a := g.a
	a.mu.Lock()
	if g.place.agent == g {
		g.place.agent = nil
	}
	if g.idle != nil {
		g.idle.Stop()
	}
	a.tidy(g.place)
	a.mu.Unlock()
	<-a.slots
	close(g.gone)
}

// end begins to end the process group and returns at once. The caller has a
// part in Assistant.wg, or holds Assistant.mu while the place has this agent.
func (g *agent) end() {
	g.ending.Do(func() {
		g.ended.Store(true)
		g.a.wg.Go(func() {
			_ = g.process.Stdin().Close()
			g.process.Terminate()
			timer := time.NewTimer(killGrace)
			defer timer.Stop()
			select {
			case <-g.gone:
			case <-timer.C:
				g.process.Kill()
			}
		})
	})
}

// alive reports whether the process can be asked.
func (g *agent) alive() bool { return !g.ended.Load() && g.conn.cause() == nil }

// busy reports whether an agent that is silent while it starts has written to stderr since it was
// asked last: a wrapper that downloads it does, for example. It gets more time, up to maxInit in all.
func (g *agent) busy() bool {
	before := g.stderr
	g.stderr = g.process.StderrTail()
	return g.stderr != before && time.Since(g.began) < maxInit
}

// initialize does the handshake.
func (g *agent) initialize(ctx context.Context) error {
	var hello struct {
		ProtocolVersion   int             `json:"protocolVersion"`
		AgentInfo         json.RawMessage `json:"agentInfo"`
		AuthMethods       json.RawMessage `json:"authMethods"`
		AgentCapabilities struct {
			Meta        json.RawMessage `json:"_meta"`
			LoadSession bool            `json:"loadSession"`
			Prompt      promptKinds     `json:"promptCapabilities"`
			MCP         struct {
				HTTP bool `json:"http"`
			} `json:"mcpCapabilities"`
			SessionCapabilities struct {
				Resume json.RawMessage `json:"resume"` // an object; some say true
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
	}
	err := g.conn.call(ctx, g.a.config.InitTimeout, sdk.AgentMethodInitialize, map[string]any{
		"protocolVersion": sdk.ProtocolVersionNumber,
		"clientInfo":      map[string]string{"name": "remote-agent", "version": "1"},
		// No files, no terminals: the agent uses its own tools in its sandbox.
		"clientCapabilities": map[string]any{"auth": struct{}{}, "fs": struct{}{}},
	}, &hello)
	if err != nil {
		return g.broken(ctx, atStart, err)
	}
	if hello.ProtocolVersion != sdk.ProtocolVersionNumber {
		g.end()
		return fault.Newf(fault.Unsupported, "The agent %q uses version %d of the Agent Client Protocol; the bot supports version %d.",
			g.a.config.Name, hello.ProtocolVersion, sdk.ProtocolVersionNumber)
	}
	g.conn.ready.Store(true)
	g.version, g.tellsLogin = versionOf(hello.AgentInfo), tellsLogin(hello.AgentCapabilities.Meta)
	ways := waysOf(hello.AuthMethods)
	if g.wayIn = ready(ways, g.a.config.Env); g.a.config.Login == nil {
		g.waysIn = waysIn(ways)
	}
	g.canLoad = hello.AgentCapabilities.LoadSession
	g.prompts, g.takesHTTP = hello.AgentCapabilities.Prompt, hello.AgentCapabilities.MCP.HTTP
	switch string(hello.AgentCapabilities.SessionCapabilities.Resume) {
	case "", "null", "false":
	default:
		g.canResume = true
	}
	return nil
}

// attach makes r the turn that updates belong to.
func (g *agent) attach(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn = r
}

// detach ends what attach began, unless it is over. Whatever comes later belongs to no turn. If
// the turn was answered, what the agent says then is kept.
func (g *agent) detach(r *run, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turn == nil || r != nil && g.turn != r {
		return
	}
	g.turn.over()
	g.turn, g.said = nil, nil
	if answered {
		g.said, g.saidIn = &transcript{emit: func(assistant.Event) error { return nil }, mute: true}, r.agent.session
	}
}

func (g *agent) current() *run {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turn
}

// notified implements handler.
func (g *agent) notified(method string, params json.RawMessage) {
	if method == loginUpdate {
		g.told(params)
		return
	}
	r := g.current()
	if r == nil {
		g.late(params) // or a replay, or a prelude
		return
	}
	switch method {
	case sdk.ClientMethodSessionUpdate:
		r.deliver(arrival{update: params})
	case "$/cancel_request":
		r.deliver(arrival{withdrawn: params})
	}
}

// requested implements handler.
func (g *agent) requested(id json.RawMessage, method string, params json.RawMessage) {
	ctx := context.Background() // the end of the connection ends the wait
	if method != sdk.ClientMethodSessionRequestPermission {
		_ = g.conn.refuse(ctx, id, codeMethodNotFound, "Method not found")
		return
	}
	if r := g.current(); r == nil || !r.deliver(arrival{id: id, permission: params}) {
		_ = g.conn.answer(ctx, id, canceledPermission())
	}
}
