package chat

import (
	"context"
	"log/slog"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/codebase"
	"remote-agent/internal/command"
	"remote-agent/internal/doctor"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/people"
	"remote-agent/internal/recollect"
	"remote-agent/internal/redact"
	"remote-agent/internal/work"
)

// families are the commands by subject. Each type has only what its own commands use;
// a command that needs hardly anything is a plain function, as webCommand is.
type families struct {
	turns        *turns
	newSessions  *newSessions
	history      *history
	decisions    *decisions
	repositories *repositories
	branches     *branches
	memories     *memories
	preferences  *preferences
	schedules    *schedules
	access       *access
	overview     *overview
	costs        *costs
}

// turns is for what happens to a turn: stop, retry, undo, and the full answer.
type turns struct {
	platforms
	store      Storage
	engine     Engine
	work       *work.Service
	space      *codebase.Workspace
	listModels func(ctx context.Context, r command.Request) string
}

// newSessions is for what begins another session: a fresh one, a fork, a handoff.
type newSessions struct {
	platforms
	store       Storage
	engine      Engine
	work        *work.Service
	assistants  map[assistant.Name]assistant.Assistant
	missing     map[assistant.Name]string
	placeholder map[assistant.Name]bool
}

// history is for reading earlier sessions.
type history struct {
	platforms
	store  Storage
	redact *redact.Redactor
}

// decisions is for plans, and for questions about tool calls.
type decisions struct {
	platforms
	store  Storage
	settle func(ctx context.Context, r command.Request, v orchestrator.Decision) (approval.Approval, error)
	mode   approval.Mode
	pages  string
	log    *slog.Logger
}

// repositories is for what a conversation works on: its codebase, its folder, and the
// command files there.
type repositories struct {
	platforms
	store Storage
	work  *work.Service
	space *codebase.Workspace
	log   *slog.Logger
	code  func(name string) bool // whether a name is of a command that no file replaces
}

// branches is for what a conversation has changed: the diff, the pull request.
type branches struct {
	platforms
	store  Storage
	work   *work.Service
	space  *codebase.Workspace
	redact *redact.Redactor
}

// memories is for what the bot remembers of a person, and for the accounts that share it.
type memories struct {
	store  Storage
	memory *recollect.Service
	now    func() time.Time
}

// preferences is for what a conversation chooses for its next turns.
type preferences struct {
	platforms
	store       Storage
	engine      Engine
	assistants  map[assistant.Name]assistant.Assistant
	placeholder map[assistant.Name]bool
	mode        approval.Mode
}

// schedules is for standing tasks.
type schedules struct {
	platforms
	store Storage
	now   func() time.Time
}

// access is for who may use the bot, and for halting it.
type access struct{ people *people.Service }

// overview is for the state of a conversation, and of the installation.
type overview struct {
	platforms
	store      Storage
	engine     Engine
	assistants map[assistant.Name]assistant.Assistant
	mode       approval.Mode
	tools      interface{ Status() []string }
	work       *work.Service
	doctor     func(ctx context.Context) doctor.Report
	redact     *redact.Redactor
	pages      string
	version    string
	started    time.Time
}

// costs is for what was spent.
type costs struct {
	platforms
	store Storage
	live  func() *orchestrator.Live
}

func newFamilies(c Config, on platforms, engine Engine, code func(name string) bool) families {
	pf := &preferences{on, c.Storage, engine, c.Assistants, c.Placeholder, c.Mode}
	return families{
		turns:        &turns{on, c.Storage, engine, c.Work, c.Workspace, pf.listModels},
		newSessions:  &newSessions{on, c.Storage, engine, c.Work, c.Assistants, c.Missing, c.Placeholder},
		history:      &history{on, c.Storage, c.Redact},
		decisions:    &decisions{on, c.Storage, engine.Decide, c.Mode, c.Pages, c.Log},
		repositories: &repositories{on, c.Storage, c.Work, c.Workspace, c.Log, code},
		branches:     &branches{on, c.Storage, c.Work, c.Workspace, c.Redact},
		memories:     &memories{c.Storage, c.Memory, c.Now},
		preferences:  pf,
		schedules:    &schedules{on, c.Storage, c.Now},
		access:       &access{c.People},
		overview: &overview{
			platforms: on, store: c.Storage, engine: engine, assistants: c.Assistants, mode: c.Mode, tools: c.Tools, work: c.Work,
			doctor: c.Doctor, redact: c.Redact, pages: c.Pages, version: c.Version, started: time.Now(),
		},
		costs: &costs{on, c.Storage, engine.Live},
	}
}
