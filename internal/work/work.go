// Package work is what people do with code by chat: codebases, the directory a
// conversation works in, command files, plans and their decisions, taking a turn
// back.
//
// It gives the orchestrator its commands and prepares its turns. It names no
// platform; buttons and dialogs are asked for by capability.
package work

import (
	"log/slog"

	"remote-agent/internal/codebase"
	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
)

// Config configures a Shop.
type Config struct {
	Storage   orchestrator.Storage
	Workspace *codebase.Workspace // nil: there is no git, and so no codebases
	Adapters  []platform.Adapter
	Log       *slog.Logger
}

// Shop holds the commands. It is safe for concurrent use.
type Shop struct {
	storage  orchestrator.Storage
	space    *codebase.Workspace
	adapters map[messages.Platform]platform.Adapter
	core     *orchestrator.Orchestrator // shows plans; set by Bind
	log      *slog.Logger
}

// New returns a Shop.
func New(config Config) *Shop {
	s := &Shop{storage: config.Storage, space: config.Workspace, adapters: make(map[messages.Platform]platform.Adapter), log: config.Log}
	for _, a := range config.Adapters {
		s.adapters[a.Platform()] = a
	}
	return s
}

// Bind tells the Shop the orchestrator that its commands run in. It is called
// once, before anything runs.
func (s *Shop) Bind(core *orchestrator.Orchestrator) { s.core = core }

// Commands returns the commands, in the order in which people read them.
func (s *Shop) Commands() []command.Command {
	commands := []command.Command{
		{Name: "approve", Usage: "approve [plan] [note]", Summary: "approve a plan", Menu: true, Run: s.runApprove},
		{Name: "edit", Usage: "edit [plan] <text>", Summary: "replace a plan by your own text", Run: s.runEdit},
		{Name: "reject", Usage: "reject [plan] [reason]", Summary: "reject a plan", Run: s.runReject},
	}
	if s.space == nil {
		return commands
	}
	return append(commands, []command.Command{
		{Name: "clone", Usage: "clone <url>", Summary: "get a repository and work on it here", Lane: command.Job, Run: s.runClone},
		{Name: "repos", Usage: "repos", Summary: "the repositories there are", Menu: true, Run: s.runRepos},
		{Name: "repo", Usage: "repo <name|number>", Summary: "work on another repository here", Lane: command.Ahead, Run: s.runRepo},
		{Name: "commands", Usage: "commands [search]", Summary: "the commands of this repository", Menu: true, Run: s.runCommands},
		{Name: "diff", Usage: "diff", Summary: "what has changed on this conversation's branch", Menu: true, Run: s.runDiff},
		{Name: "undo", Usage: "undo", Summary: "back to before the last turn, files and talk", Menu: true, Lane: command.Job, Run: s.runUndo},
		{Name: "pr", Usage: "pr [title]", Summary: "commit, push, and open or update a draft pull request", Menu: true, Lane: command.Job, Run: s.runPull},
		{Name: "retry", Usage: "retry [note]", Summary: "the last turn again, from where it began", Lane: command.Job, Run: s.runRetry},
		{Name: "branch", Usage: "branch", Summary: "the branch that this conversation works on", Run: s.runBranch},
		{Name: "setcwd", Usage: "setcwd <folder>", Summary: "work in a folder of the repository", Lane: command.Ahead, Run: s.runSetCwd},
		{Name: "getcwd", Usage: "getcwd", Summary: "the folder this conversation works in", Run: s.runGetCwd},
		{Name: "load_commands", Usage: "load_commands <folder>", Summary: "register all command files below a folder", Run: s.runLoadCommands},
		{Name: "command_set", Usage: "command_set <name> <path> [text]", Summary: "register a command file, or write it", Run: s.runCommandSet},
	}...)
}
