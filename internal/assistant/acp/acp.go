// Package acp runs external coding agents through the Agent Client Protocol:
// Claude Code, Codex, and every other agent that has a front end for it.
//
// An agent has a loop, tools and sessions of its own. This package keeps one
// process for each conversation that works, resumes the agent's session by its
// id, turns what the agent reports into the program's events, and asks people
// through the turn's host when the agent asks for permission. Files and
// terminals are not offered to the agent: it uses its own tools inside the
// sandbox that it was started in.
//
// Whatever an agent does wrong is a classified error with a text of our own, and
// ends its process, so that the next turn begins with a fresh one. Nothing that
// an agent wrote to stderr, or as the text of an error, reaches a person.
package acp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
	"remote-agent/internal/redact"
)

const (
	defaultIdle    = 10 * time.Minute
	defaultInit    = time.Minute
	defaultSilence = 10 * time.Minute
	defaultMax     = 20

	// maxInit is how long an agent may be silent while it starts that says on stderr that
	// it is at work.
	maxInit = 5 * time.Minute

	// cancelGrace is how long an agent may take to end a turn that was stopped,
	// before its process group is ended. killGrace is the time between SIGTERM
	// and SIGKILL.
	cancelGrace = 2 * time.Second
	killGrace   = time.Second

	// stopWait is how much of cancelGrace Run itself waits: it has to return
	// within a second, also on a busy machine.
	stopWait = 400 * time.Millisecond

	// exitDrain is how long the rest of stdout is read after the end of the
	// program, while a child that left the group keeps it open.
	exitDrain = 500 * time.Millisecond
)

// Config describes one agent. Claude, Codex and ParseAgents fill in Name,
// Command and the texts.
type Config struct {
	Name    assistant.Name // 1 to 20 bytes of [a-z0-9_-]
	Command []string       // the program and its arguments

	// InstallHint and LoginHint tell an operator what to do when the program is
	// missing or the agent has no valid credentials. They are shown to people.
	InstallHint string
	LoginHint   string

	// Login is what the program is called with, in place of its arguments, to log
	// in; nil if that is not known.
	Login []string

	// Env is the whole environment of the process. It needs a PATH, in which the
	// program is found, and usually a HOME that outlives the process: there the
	// agent keeps its sessions.
	Env []string

	// Scratch is an existing private directory. A conversation without a
	// codebase gets a directory of its own in it.
	Scratch string

	// Start starts a process. It must use StartSpec.Env and StartSpec.Dir as they
	// are. Its context is for the start only.
	Start func(ctx context.Context, spec StartSpec) (Process, error)

	// ModeFor returns the session modes in which the agent may do a turn, by
	// their ids at the agent; it is put into the first that it offers. Without
	// any, it stays as it is, with a line in the log if there was a choice;
	// permissions are asked for all the same. Nil means none. AnyMode leaves the
	// line out, for an agent that need not have any of them.
	ModeFor func(turn assistant.Turn) []string
	AnyMode bool

	// SessionMeta is sent as _meta when a session is opened, for what only one
	// agent understands. May be nil.
	SessionMeta map[string]any

	IdleTimeout    time.Duration // a process whose conversation was idle for so long ends; 0 means 10 min
	InitTimeout    time.Duration // the longest silence while a process or a session starts, unless it writes to stderr; 0 means 1 min
	SilenceTimeout time.Duration // the longest silence in a turn while no person is asked; 0 means 10 min
	MaxProcesses   int           // at once; a turn beyond it waits, and ends the process that was idle longest; 0 means 20

	Log *slog.Logger // nil means no log
}

// Assistant runs an external agent. It is safe for concurrent use.
type Assistant struct {
	config Config
	log    *slog.Logger
	redact *redact.Redactor

	mu      sync.Mutex
	places  map[string]*place // by conversation; only those in use or with a process
	slots   chan struct{}     // one for each process
	waiting int               // turns that wait for a slot
	models  []string          // what a session offered last
	closing chan struct{}     // closed by Close
	wg      sync.WaitGroup    // everything that runs
}

var (
	_ assistant.Agent   = (*Assistant)(nil)
	_ assistant.Lister  = (*Assistant)(nil)
	_ assistant.Checker = (*Assistant)(nil)
)

var validName = pattern.Lazy(`^[a-z0-9_-]{1,20}$`)

// New checks c and starts nothing. Its errors are fault.Invalid.
func New(c Config) (*Assistant, error) {
	switch {
	case !validName.MatchString(string(c.Name)):
		return nil, fault.Newf(fault.Invalid, "%q cannot be the name of an agent: use 1 to 20 of a-z, 0-9, _ and -.", c.Name)
	case len(c.Command) == 0 || c.Command[0] == "":
		return nil, fault.Newf(fault.Invalid, "The agent %q has no command.", c.Name)
	case !filepath.IsAbs(c.Scratch):
		return nil, fault.Newf(fault.Invalid, "The agent %q needs an absolute path as its scratch directory.", c.Name)
	case c.MaxProcesses < 0:
		return nil, fault.Newf(fault.Invalid, "The agent %q cannot have %d processes.", c.Name, c.MaxProcesses)
	}
	for _, entry := range c.Env {
		if k, _, ok := strings.Cut(entry, "="); !ok || k == "" || strings.ContainsRune(entry, 0) {
			return nil, fault.Newf(fault.Invalid, "The environment of the agent %q has an entry that is not NAME=value.", c.Name)
		}
	}
	c.IdleTimeout = positive(c.IdleTimeout, defaultIdle)
	c.InitTimeout = positive(c.InitTimeout, defaultInit)
	c.SilenceTimeout = positive(c.SilenceTimeout, defaultSilence)
	c.MaxProcesses = cmp.Or(c.MaxProcesses, defaultMax)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Command, c.Env = slices.Clone(c.Command), slices.Clone(c.Env)
	return &Assistant{
		config: c, log: c.Log.With("assistant", string(c.Name)), redact: redact.New(secrets(c.Env)...),
		places: map[string]*place{}, slots: make(chan struct{}, c.MaxProcesses), closing: make(chan struct{}),
	}, nil
}

func positive(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

var secretName = pattern.Lazy(`(?i)key|token|secret|passw|auth|credential|cookie`)

// secrets returns the values of env that must not show in a log.
func secrets(env []string) []string {
	var values []string
	for _, entry := range env {
		if k, v, _ := strings.Cut(entry, "="); secretName.MatchString(k) && v != "" {
			values = append(values, v)
		}
	}
	return values
}

// Name implements assistant.Assistant.
func (a *Assistant) Name() assistant.Name { return a.config.Name }

// Model implements assistant.Assistant. The agent chooses its model, so there is
// none.
func (a *Assistant) Model() string { return "" }

// Models implements assistant.Lister.
func (a *Assistant) Models(context.Context) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.models), nil
}

// Check reports whether the program can be found, as a fault.Unsupported that
// says how to install it. It starts nothing.
func (a *Assistant) Check() error {
	_, err := a.program()
	return err
}

func (a *Assistant) program() (string, error) {
	path, ok := find(a.config.Command[0], a.config.Env)
	if !ok {
		return "", a.missing()
	}
	return path, nil
}

// missing is the error for a program that is not there.
func (a *Assistant) missing() error {
	text := fmt.Sprintf("The agent %q is not installed here: there is no program %q.", a.config.Name, a.config.Command[0])
	if a.config.InstallHint != "" {
		text += " To install it: " + a.config.InstallHint
	}
	return fault.New(fault.Unsupported, text)
}
