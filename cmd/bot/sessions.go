package main

import (
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/transcript"
)

// care runs a command on the data.
func (p *program) care(run func(cfg config.Config, env app.Env) error) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	log, closeLog, err := p.newLogger(cfg, false)
	if err != nil {
		return err
	}
	defer closeLog()
	env := p.env(log, false)
	env.Stdout = transcript.Visible(env.Stdout) // what was said in chats must not act on a terminal
	return run(cfg, env)
}

// sessionsCommand is about what was said.
type sessionsCommand struct {
	List   sessionsListCommand   `cmd:"" help:"List sessions, the newest first."`
	Show   sessionsShowCommand   `cmd:"" help:"Print a session as Markdown, with its tool calls."`
	Runs   sessionsRunsCommand   `cmd:"" help:"List what was done to answer each message of a session: when, how it ended, what it cost."`
	Search sessionsSearchCommand `cmd:"" help:"Find messages that have all the words, the newest first."`
	Fork   sessionsForkCommand   `cmd:"" help:"Begin a session that goes on from a message of another one, in its conversation."`
	Rm     sessionsRmCommand     `cmd:"" help:"Say what deleting a session, or a whole conversation, would delete; --yes deletes it."`
}

type sessionsListCommand struct {
	Conversation string `help:"Only of this conversation: its id, or platform/id."`
	Status       string `help:"Only those: running, completed or failed." default:"" enum:",running,completed,failed"`
	Limit        int    `help:"How many, up to 1000."                              default:"50"`
	Before       string `help:"Go on behind this session."`
}

// Run implements the command.
func (c sessionsListCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error {
		return app.ListSessions(p.ctx, cfg, env, app.SessionQuery{
			Conversation: c.Conversation, Status: c.Status, Limit: c.Limit, Before: c.Before,
		})
	})
}

type sessionsRunsCommand struct {
	ID string `arg:"" help:"Id of the session."`
}

// Run implements the command.
func (c sessionsRunsCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.ListRuns(p.ctx, cfg, env, c.ID) })
}

type sessionsShowCommand struct {
	ID     string `arg:"" help:"Id of the session."`
	Whole  bool   `help:"Outputs of tools in full."`
	System bool   `help:"Also the system prompt and the configuration of its last turn."`
	Redact bool   `help:"Take credentials out."`
}

// Run implements the command.
func (c sessionsShowCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error {
		return app.ShowSession(p.ctx, cfg, env, env.Stdout, c.ID, app.ShowOptions{Whole: c.Whole, System: c.System, Redact: c.Redact})
	})
}

type sessionsForkCommand struct {
	ID string `arg:"" help:"Id of the session."`
	N  int    `arg:"" help:"How many of its messages to take over; all if it is left out." optional:""`
}

// Run implements the command.
func (c sessionsForkCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error {
		return app.ForkSession(p.ctx, cfg, env, c.ID, c.N)
	})
}

type sessionsSearchCommand struct {
	Words        []string `arg:"" help:"Words; one that ends with * is the beginning of words."`
	Conversation string   `help:"Only in this conversation: its id, or platform/id."`
	Limit        int      `help:"How many, up to 1000."                              default:"20"`
	Before       string   `help:"Go on behind this hit."`
}

// Run implements the command.
func (c sessionsSearchCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error {
		return app.SearchSessions(p.ctx, cfg, env, app.SessionQuery{
			Words: strings.Join(c.Words, " "), Conversation: c.Conversation, Limit: c.Limit, Before: c.Before,
		})
	})
}

type sessionsRmCommand struct {
	ID           string `arg:"" help:"Id of the session." optional:""`
	Conversation string `help:"Delete this whole conversation instead: its id, or platform/id."`
	Yes          bool   `help:"Really delete it."                                              short:"y"`
}

// Run implements the command.
func (c sessionsRmCommand) Run(p *program) error {
	if (c.ID == "") == (c.Conversation == "") {
		return fault.New(fault.Invalid, "name either a session by its id, or a conversation with --conversation")
	}
	return p.care(func(cfg config.Config, env app.Env) error {
		if c.Conversation != "" {
			return app.RemoveConversation(p.ctx, cfg, env, c.Conversation, c.Yes)
		}
		return app.RemoveSession(p.ctx, cfg, env, c.ID, c.Yes)
	})
}

// scrubCommand rewrites the database.
type scrubCommand struct{}

// Run implements the command.
func (scrubCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.Scrub(p.ctx, cfg, env) })
}
