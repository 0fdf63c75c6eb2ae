package acpagent

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"remote-agent/internal/emulator"
)

// errOver ends a list of steps: the request has its answer, or gets none.
var errOver = errors.New("over")

// exitError ends the agent.
type exitError int

func (e exitError) Error() string { return "exit " + strconv.Itoa(int(e)) }

// message is anything on the wire.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// agent plays one script.
type agent struct {
	script Script
	ctx    context.Context //nolint:containedctx // the life of the process
	cancel context.CancelCauseFunc

	writing sync.Mutex
	out     io.Writer
	stderr  io.Writer

	mu       sync.Mutex
	next     int
	waiting  map[string]chan message // by id of our requests
	sessions map[string]*session
	prompts  int
	deaf     bool
	unlocked bool // it was authenticated
	children []*os.Process

	wg sync.WaitGroup
}

// session is a conversation of the agent.
type session struct {
	ID       string   `json:"id"`
	Dir      string   `json:"dir"`
	Prompts  []string `json:"prompts"`
	canceled chan struct{}
	servers  []server
}

// Run plays a script on the given streams until stdin ends, ctx is done or the
// script says so, and returns the exit code. Nothing is left running. The end
// of ctx is SIGKILL: Hang and Deaf do not resist it.
func Run(ctx context.Context, s Script, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &agent{
		script: s, out: stdout, stderr: stderr,
		waiting: map[string]chan message{}, sessions: map[string]*session{},
	}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.record(fmt.Sprintf(`{"started":%d}`, os.Getpid()))
	if err := a.steps(request{}, s.Start); err != nil {
		a.stop(err)
	}
	// The reader may stay in Read when the agent ends: the process ends then, or
	// who called closes the stream.
	lines := make(chan string)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(stdin, 1<<16)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			select {
			case lines <- line:
			case <-a.ctx.Done():
				return
			}
		}
	}()
	a.serve(lines)
	a.wg.Wait()
	if ctx.Err() != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, child := range a.children {
			_ = child.Kill() // what it was to outlive is gone
		}
	}
	//nolint:contextcheck // the cause is that of the agent's life, not of the caller's
	if code, ok := errors.AsType[exitError](context.Cause(a.ctx)); ok {
		return int(code)
	}
	return 0
}

func (a *agent) serve(lines <-chan string) {
	for {
		select {
		case <-a.ctx.Done():
			return
		case line, ok := <-lines:
			if !ok {
				a.mu.Lock()
				deaf := a.deaf
				a.mu.Unlock()
				if deaf {
					a.hang()
				}
				a.cancel(exitError(0))
				return
			}
			a.record(strings.TrimSpace(line))
			var m message
			if json.Unmarshal([]byte(line), &m) != nil {
				a.send(map[string]any{"id": nil, "error": Error{Code: -32700, Message: "Parse error"}})
				continue
			}
			a.dispatch(m)
		}
	}
}

// request is what a list of steps belongs to.
type request struct {
	id      json.RawMessage
	session *session
	prompt  string
	files   []string // of the prompt: type and size
}

func (a *agent) dispatch(m message) {
	if m.Method == "" {
		a.mu.Lock()
		c := a.waiting[string(m.ID)]
		delete(a.waiting, string(m.ID))
		a.mu.Unlock()
		if c != nil {
			c <- m
		}
		return
	}
	if m.Method == "session/cancel" {
		a.canceled(m.Params)
		return
	}
	if m.ID == nil {
		return
	}
	a.wg.Go(func() {
		if err := a.handle(m); err != nil && !errors.Is(err, errOver) {
			a.stop(err)
		}
	})
}

// stop ends the agent because of err.
func (a *agent) stop(err error) {
	if _, ok := errors.AsType[exitError](err); !ok {
		_, _ = fmt.Fprintln(a.stderr, err)
		err = exitError(1)
	}
	a.cancel(err)
}

func (a *agent) handle(m message) error {
	r := request{id: m.ID}
	switch m.Method {
	case "initialize":
		if err := a.steps(r, a.script.Init); err != nil {
			return err
		}
		a.answer(r, a.hello())
		if len(a.script.Login) > 0 && string(a.script.Login) != `"silent"` {
			a.send(map[string]any{"method": "_auth/status_update", "params": map[string]any{"authStatus": a.script.Login}})
		}
	case "authenticate":
		return a.authenticate(r, m.Params)
	case "session/new", "session/load", "session/resume":
		if a.locked() {
			a.fail(r, Error{Code: -32000, Message: "Authentication required"})
			return nil
		}
		if m.Method == "session/new" {
			return a.open(r, m.Params)
		}
		return a.reopen(r, m)
	case "session/set_mode", "session/set_model":
		if err := a.steps(r, a.script.Mode); err != nil {
			return err
		}
		a.answer(r, struct{}{})
	case "session/prompt":
		return a.prompt(r, m.Params)
	default:
		a.fail(r, Error{Code: -32601, Message: "Method not found"})
	}
	return nil
}

// choices is what the answer to session/new says of modes and models.
func (a *agent) choices(into map[string]any) map[string]any {
	if len(a.script.Modes) > 0 {
		modes := []any{}
		for _, m := range a.script.Modes {
			modes = append(modes, map[string]any{"id": m, "name": m})
		}
		into["modes"] = map[string]any{"currentModeId": a.script.Modes[0], "availableModes": modes}
	}
	if len(a.script.Models) > 0 {
		models := []any{}
		for _, m := range a.script.Models {
			models = append(models, map[string]any{"modelId": m, "name": m})
		}
		into["models"] = map[string]any{"currentModelId": a.script.Models[0], "availableModels": models}
	}
	return into
}

func (a *agent) open(r request, params json.RawMessage) error {
	var p struct {
		Cwd        string
		MCPServers []server `json:"mcpServers"`
	}
	_ = json.Unmarshal(params, &p)
	if !filepath.IsAbs(p.Cwd) {
		a.fail(r, Error{Code: -32602, Message: "cwd must be an absolute path"})
		return nil
	}
	a.mu.Lock()
	s := &session{ID: "session-" + strings.ToLower(rand.Text()[:16]), Dir: p.Cwd, servers: p.MCPServers}
	a.sessions[s.ID] = s
	a.mu.Unlock()
	if err := a.steps(request{id: r.id, session: s}, a.script.Open); err != nil {
		return err
	}
	if err := a.keep(s); err != nil {
		return err
	}
	a.answer(r, a.choices(map[string]any{"sessionId": s.ID}))
	return nil
}

func (a *agent) reopen(r request, m message) error {
	load := m.Method == "session/load"
	if load && !a.script.Load || !load && !a.script.Resume {
		a.fail(r, Error{Code: -32601, Message: "Method not found"})
		return nil
	}
	var p struct {
		SessionID  string `json:"sessionId"`
		Cwd        string
		MCPServers []server `json:"mcpServers"`
	}
	_ = json.Unmarshal(m.Params, &p)
	s := a.find(p.SessionID)
	if s == nil {
		unknown := Error{Code: -32002, Message: "Resource not found"}
		if a.script.Unknown != nil {
			unknown = *a.script.Unknown
		}
		a.fail(r, unknown)
		return nil
	}
	s.Dir, s.servers = p.Cwd, p.MCPServers
	if load {
		for _, text := range s.Prompts {
			a.update(s.ID, chunk("user_message_chunk", text))
			a.update(s.ID, chunk("agent_message_chunk", "replayed answer to: "+text))
		}
	}
	answer := map[string]any{}
	if a.script.Renames {
		renamed := *s
		renamed.ID += "-on"
		a.mu.Lock()
		delete(a.sessions, s.ID)
		a.sessions[renamed.ID] = &renamed
		a.mu.Unlock()
		if err := a.keep(&renamed); err != nil {
			return err
		}
		answer["sessionId"] = renamed.ID
	}
	a.answer(r, a.choices(answer))
	return nil
}

// find returns a session of this process or of an earlier one.
func (a *agent) find(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil {
		return s
	}
	if a.script.State == "" || id != filepath.Base(id) {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(a.script.State, id+".json")) //nolint:gosec // id is a base name
	if err != nil {
		return nil
	}
	s := &session{}
	if json.Unmarshal(text, s) != nil {
		return nil
	}
	a.sessions[id] = s
	return s
}

func (a *agent) keep(s *session) error {
	if a.script.State == "" {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.script.State, s.ID+".json"), text, 0o600)
}

func (a *agent) prompt(r request, params json.RawMessage) error {
	var p struct {
		SessionID string `json:"sessionId"`
		Prompt    []struct {
			Type     string
			Text     string
			MimeType string
			Data     []byte // of an image
			Resource struct {
				MimeType string
				Blob     []byte
			}
		}
	}
	_ = json.Unmarshal(params, &p)
	if r.session = a.find(p.SessionID); r.session == nil {
		a.fail(r, Error{Code: -32002, Message: "Resource not found"})
		return nil
	}
	var text strings.Builder
	for _, b := range p.Prompt {
		text.WriteString(b.Text)
		switch b.Type {
		case "image":
			if !a.script.Images || len(b.Data) == 0 || !strings.HasPrefix(b.MimeType, "image/") {
				a.fail(r, Error{Code: -32602, Message: "Invalid params: an image that was not offered, or is none"})
				return nil
			}
			r.files = append(r.files, fmt.Sprintf("%s %d", b.MimeType, len(b.Data)))
		case "resource":
			r.files = append(r.files, fmt.Sprintf("%s %d", b.Resource.MimeType, len(b.Resource.Blob)))
		}
	}
	r.prompt = text.String()
	a.mu.Lock()
	a.prompts++
	nth := a.prompts
	r.session.canceled = make(chan struct{})
	r.session.Prompts = append(r.session.Prompts, r.prompt)
	a.mu.Unlock()
	if err := a.keep(r.session); err != nil {
		return err
	}
	if err := a.steps(r, a.script.fits(r.prompt, nth)); err != nil {
		return err
	}
	a.answer(r, Stop{Reason: "end_turn"}.result())
	return nil
}

func (s Stop) result() any {
	result := map[string]any{"stopReason": s.Reason}
	if s.Tokens != nil {
		result["usage"] = s.Tokens
	}
	return result
}

func (a *agent) canceled(params json.RawMessage) {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(params, &p)
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[p.SessionID]
	if s == nil || s.canceled == nil {
		return
	}
	select {
	case <-s.canceled:
	default:
		close(s.canceled)
	}
}

// child starts a process that keeps stdout open.
func (a *agent) child(pidFile string) error {
	cmd := exec.Command("sleep", "300") //nolint:noctx // it is to outlive us
	if f, ok := a.out.(*os.File); ok {
		cmd.Stdout = f
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	// Nobody waits for it: that is the point.
	a.mu.Lock()
	a.children = append(a.children, cmd.Process)
	a.mu.Unlock()
	return os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

// goDeaf makes SIGTERM and the end of stdin do nothing.
func (a *agent) goDeaf() {
	signal.Ignore(syscall.SIGTERM)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deaf = true
}

func (a *agent) pause(d string) error {
	parsed, err := time.ParseDuration(d)
	if err != nil {
		return err
	}
	return emulator.Sleep(a.ctx, parsed)
}

// awaitFile looks for a file until it is there.
func (a *agent) awaitFile(path string) error {
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		if err := emulator.Sleep(a.ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

func (a *agent) record(line string) {
	if a.script.Record == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f, err := os.OpenFile(a.script.Record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		a.stop(err)
		return
	}
	_, _ = f.WriteString(line + "\n")
	_ = f.Close()
}
