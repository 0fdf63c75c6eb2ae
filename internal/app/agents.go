package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/sandbox"
)

// knownAgent is an external agent that can be used if its program is there.
type knownAgent struct {
	config acp.Config
	asked  bool   // somebody wants it
	home   string // is kept
}

// knownAgents are the presets, and those of the operator.
func (ps *programs) knownAgents() (all []knownAgent, err error) {
	claude, err := acp.Claude(ps.config.Agents.Claude)
	if err != nil {
		return nil, err
	}
	codex, err := acp.Codex(ps.config.Agents.Codex)
	if err != nil {
		return nil, err
	}
	others, err := acp.ParseAgents(ps.config.Agents.Others, builtIn(ps.config)...)
	if err != nil {
		return nil, err
	}
	for _, preset := range []struct {
		agent  acp.Config
		option string
	}{{claude, "CLAUDE_COMMAND"}, {codex, "CODEX_COMMAND"}} {
		asked := ps.config.Assistant == string(preset.agent.Name) || !strings.HasPrefix(ps.config.Origin(preset.option), "default")
		all = append(all, knownAgent{config: preset.agent, asked: asked})
	}
	for _, c := range others {
		if slices.ContainsFunc(all, func(a knownAgent) bool { return a.config.Name == c.Name }) {
			return nil, fault.Newf(fault.Invalid, "ACP_AGENTS: the name %q is already taken; choose another one.", c.Name)
		}
		all = append(all, knownAgent{config: c, asked: true})
	}
	if err := errors.Join(addressed("AGENT_ENV", ps.config.Agents.Env, all), addressed("AGENT_HOSTS", ps.config.Agents.Hosts, all)); err != nil {
		return nil, err
	}
	for i := range all {
		a := &all[i]
		if a.home, err = filepath.Abs(filepath.Join(ps.config.Agents.Home, string(a.config.Name))); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "AGENT_HOME")
		}
		a.config.Log = ps.log
		a.config.Env = append(a.config.Env, ps.agentEnv(a.config.Name, a.home)...) // the operator's count
		if a.config.Name == acp.CodexName && slices.ContainsFunc(a.config.Env, isCodexKey) {
			a.config.Env = append(a.config.Env, codexUsesKey)
		}
	}
	return all, nil
}

// addressed refuses a list that names an agent that does not exist.
func addressed(option string, list []string, all []knownAgent) error {
	names := lists.Map(all, func(a knownAgent) string { return string(a.config.Name) })
	for _, entry := range list {
		if name, _, own := strings.Cut(entry, "="); own && !slices.Contains(names, name) {
			return fault.Newf(fault.Invalid, "%s: %q names an agent that does not exist; use one of %s.", option, entry, strings.Join(names, ", "))
		}
	}
	return nil
}

// codexUsesKey has Codex's front end log Codex in with the key in its environment, which it
// otherwise leaves alone. Who is logged in already stays so.
const codexUsesKey = `DEFAULT_AUTH_REQUEST={"methodId":"api-key"}`

func isCodexKey(variable string) bool {
	return strings.HasPrefix(variable, "CODEX_API_KEY=") || strings.HasPrefix(variable, "OPENAI_API_KEY=")
}

// addAgents builds the external agents that are there. A preset whose program
// is not installed is left out, unless it was asked for: then it is unavailable
// until it is installed.
func (r *roster) addAgents(conversations int) error {
	all, err := r.programs.knownAgents()
	for i := 0; i < len(all) && err == nil; i++ {
		err = r.addAgent(all[i], conversations)
	}
	return err
}

func (r *roster) addAgent(known knownAgent, conversations int) error {
	c := known.config
	scratch, err := filepath.Abs(filepath.Join(r.programs.config.DataDir, "scratch", string(c.Name)))
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "DATA_DIR")
	}
	c.Scratch, c.IdleTimeout = scratch, r.programs.config.Agents.Idle
	c.MaxProcesses = conversations
	modes := sync.OnceValue(func() map[string]string { return r.programs.modesOf(c.Name, known.home) })
	c.ModeFor = func(turn assistant.Turn) []string { return alternatives(modes()[turn.Mode]) }
	if _, preset := agentModes[c.Name]; !preset {
		asks := modesThatAsk(c.Env)
		c.ModeFor, c.AnyMode = func(assistant.Turn) []string { return asks }, true
	}
	start := r.programs.startAgent(c.Name, known.home)
	c.Start = func(ctx context.Context, spec acp.StartSpec) (acp.Process, error) {
		_ = modes() // what it configures is there before the agent reads it
		return start(ctx, spec)
	}
	a, err := acp.New(c)
	if err != nil {
		return err
	}
	if err := a.Check(); err != nil {
		if !known.asked {
			r.missing[c.Name] = fault.Public(err)
			return nil
		}
		// It is there and says what is missing whenever somebody wants it, until the
		// program is installed: the rest of the service does not need it.
		r.programs.log.Warn("an agent is not available", "assistant", c.Name, "err", err)
	}
	for _, dir := range []string{known.home, scratch} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fault.Wrap(err, fault.Invalid, "make a folder for agents (AGENT_HOME, DATA_DIR)")
		}
	}
	r.all[c.Name] = a
	return nil
}

// troubles says which agents cannot answer now, and why.
func (r *roster) troubles() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(r.all)) {
		if c, ok := r.all[name].(assistant.Checker); ok {
			if err := c.Check(); err != nil {
				lines = append(lines, fault.Public(err))
			}
		}
	}
	return lines
}

// alternatives returns the modes that a text of agentModes names.
func alternatives(modes string) []string {
	return strings.FieldsFunc(modes, func(c rune) bool { return c == '|' })
}

// agentModes are the session modes of the presets for our own modes, the best first.
var agentModes = map[assistant.Name]map[string]string{
	acp.ClaudeName: {"ask": "default", "plan": "plan", "edit": "acceptEdits", "auto": "acceptEdits"},
	acp.CodexName:  {"ask": codexReads, "plan": codexReads, "edit": codexEdits, "auto": codexEdits},
}

// modesThatAsk are the session modes in which a person is asked by agents that have others, too:
// "default" of Qwen Code, which may have a model decide otherwise, Gemini CLI and Mistral Vibe,
// and what Goose is told in its environment, which it heeds in new sessions only.
func modesThatAsk(env []string) []string {
	modes := []string{"default"}
	for _, variable := range slices.Backward(env) { // the last one counts
		if mode, ok := strings.CutPrefix(variable, "GOOSE_MODE="); ok {
			return append(modes, mode)
		}
	}
	return modes
}

// agentEnv is the environment of an agent: a home of its own, and the variables
// that the operator names for it.
func (ps *programs) agentEnv(agent assistant.Name, home string) []string {
	env := []string{"HOME=" + home, "LANG=C.UTF-8", "TERM=dumb"}
	for _, name := range append([]string{"PATH", "TZ"}, agentVariables(agent, ps.config.Agents.Env)...) {
		if value, ok := ps.lookup(name); ok && value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// lookup finds a variable of the environment, or of what the options say.
func (ps *programs) lookup(name string) (string, bool) {
	if value, ok := ps.env.lookup(name); ok {
		return value, true
	}
	return ps.config.Text(name)
}

// startAgent starts the process of an agent in the sandbox: the worktree and its
// home to change, its own program to read, and its provider to talk to.
func (ps *programs) startAgent(name assistant.Name, home string) func(ctx context.Context, spec acp.StartSpec) (acp.Process, error) {
	return func(ctx context.Context, spec acp.StartSpec) (acp.Process, error) {
		program := granted(spec.Dir, spec.Tree, spec.GitData, home)
		if spec.ReadOnly { // also for an agent that asks nobody
			program.ReadOnly, program.Writable, program.Sealed = append(program.ReadOnly, spec.Tree), nil, nil
		}
		program.Argv, program.Dir, program.Env = spec.Command, spec.Dir, spec.Env
		person, _ := ps.lookup("HOME")
		program.ReadOnly = append(program.ReadOnly, programFolders(spec.Command[0], home, person, os.TempDir())...)
		if err := ps.outside.connect(&program, ps.outside.forAgent(name, spec.Env)); err != nil { //nolint:contextcheck // connections live as long as the program
			return nil, err
		}
		a := &agentProcess{release: func() {}}
		if spec.Serve != nil {
			var err error
			if a.address, a.release, err = ps.outside.offer(&program, spec.Serve); err != nil {
				return nil, err
			}
		}
		if err := a.start(ctx, ps.runner, program); err != nil {
			a.release()
			return nil, err
		}
		return a, nil
	}
}

// agentProcess shows a program of the sandbox as the agents' package wants it.
type agentProcess struct {
	process *sandbox.Process
	stdin   io.WriteCloser
	stdout  io.ReadCloser
	stderr  io.ReadCloser
	tail    acp.Tail
	reading sync.WaitGroup
	address string
	release func() // of what is at that address
}

func (a *agentProcess) start(ctx context.Context, runner *sandbox.Runner, program sandbox.Spec) error {
	p, err := runner.Command(context.WithoutCancel(ctx), program)
	if err != nil {
		return err
	}
	a.process = p
	if a.stdin, err = p.StdinPipe(); err == nil {
		if a.stdout, err = p.StdoutPipe(); err == nil {
			a.stderr, err = p.StderrPipe()
		}
	}
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	a.reading.Go(func() { _, _ = io.Copy(&a.tail, a.stderr) })
	return nil
}

func (a *agentProcess) Stdin() io.WriteCloser { return a.stdin }
func (a *agentProcess) Stdout() io.ReadCloser { return a.stdout }
func (a *agentProcess) Address() string       { return a.address }
func (a *agentProcess) StderrTail() string    { return a.tail.String() }
func (a *agentProcess) Terminate()            { a.process.Stop() }
func (a *agentProcess) Kill()                 { a.process.Stop() }

// Wait implements acp.Process.
func (a *agentProcess) Wait() error {
	result, err := a.process.Wait()
	a.reading.Wait()
	a.release()
	switch {
	case err != nil:
		return err
	case result.Code != 0:
		return exitError{result}
	}
	return nil
}

// exitError is the end of a program that did not succeed.
type exitError struct{ sandbox.Result }

func (e exitError) Error() string {
	switch {
	case e.Over != "":
		return e.Over
	case e.Signal != "":
		return "signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// ExitCode is what package acp goes by: 126 and 127 are of a program that could
// not be started.
func (e exitError) ExitCode() int { return e.Code }

// modeOf is the mode that conversations begin with.
func modeOf(c config.Config) approval.Mode {
	if m, err := approval.ParseMode(c.Tools.Mode); err == nil {
		return m
	}
	return approval.ModeEdit
}

// close ends all processes of agents.
func (r *roster) close() error {
	var first error
	for _, a := range r.all {
		if agent, is := a.(assistant.Agent); is {
			if err := agent.Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}
