package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/transcript"
)

// command runs a command of package app.
func (p *program) command(run func(ctx context.Context, cfg config.Config, env app.Env) error) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	log, closeLog, err := p.newLogger(cfg, false)
	if err != nil {
		return err
	}
	defer closeLog()
	env, out := p.env(log, false), &output{to: p.stdout}
	env.Stdout = out
	if err := run(p.ctx, cfg, env); err != nil {
		return err
	}
	return out.err
}

// care runs a command on the data.
func (p *program) care(run func(ctx context.Context, cfg config.Config, env app.Env) error) error {
	return p.command(func(ctx context.Context, cfg config.Config, env app.Env) error {
		env.Stdout = transcript.Visible(env.Stdout) // what was said in chats must not act on a terminal
		return run(ctx, cfg, env)
	})
}

// output notes the first error of a writer. What tells a person something need not look
// for it; a script that keeps what is printed must not take a torn list for a whole one.
type output struct {
	to  io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("print the output: %w", err)
	}
	return n, err
}

// with runs a command on the data that is given one more thing.
func with[A any](p *program, run func(ctx context.Context, cfg config.Config, env app.Env, given A) error, given A) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error { return run(ctx, cfg, env, given) })
}

// sessionsCommand is about what was said.
type sessionsCommand struct {
	List   sessionsListCommand   `cmd:"" help:"List sessions, newest first."`
	Show   sessionsShowCommand   `cmd:"" help:"Print a session as Markdown, including tool calls."`
	Runs   sessionsRunsCommand   `cmd:"" help:"List the turns of a session: when each ran, how it ended, what it cost."`
	Search sessionsSearchCommand `cmd:"" help:"Find messages that contain all words, newest first."`
	Fork   sessionsForkCommand   `cmd:"" help:"Start a new session from a message of another one, in the same conversation."`
	Rm     sessionsRmCommand     `cmd:"" help:"Show what deleting a session or conversation would remove; --yes deletes it."`
}

type sessionsListCommand struct {
	Conversation string `help:"Only this conversation: its ID, or platform/id."`
	Status       string `help:"Only sessions with this status: running, completed or failed." default:"" enum:",running,completed,failed"`
	Limit        int    `help:"Maximum number, up to 1000."                              default:"50"`
	Before       string `help:"Continue after this session."`
}

func (c sessionsListCommand) Run(p *program) error {
	return with(p, app.ListSessions, app.SessionQuery{Conversation: c.Conversation, Status: c.Status, Limit: c.Limit, Before: c.Before})
}

type sessionsRunsCommand struct {
	ID string `arg:"" help:"ID of the session."`
}

func (c sessionsRunsCommand) Run(p *program) error { return with(p, app.ListRuns, c.ID) }

type sessionsShowCommand struct {
	ID     string `arg:"" help:"ID of the session."`
	Whole  bool   `help:"Show tool output in full."`
	System bool   `help:"Include the system prompt and configuration of the last turn."`
	Redact bool   `help:"Mask credentials."`
}

func (c sessionsShowCommand) Run(p *program) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.ShowSession(ctx, cfg, env, env.Stdout, c.ID, app.ShowOptions{Whole: c.Whole, System: c.System, Redact: c.Redact})
	})
}

type sessionsForkCommand struct {
	ID string `arg:"" help:"ID of the session."`
	N  int    `arg:"" help:"Number of messages to copy. Default: all." optional:""`
}

func (c sessionsForkCommand) Run(p *program) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.ForkSession(ctx, cfg, env, c.ID, c.N)
	})
}

type sessionsSearchCommand struct {
	Words        []string `arg:"" help:"Words to find; word* matches a prefix."`
	Conversation string   `help:"Only this conversation: its ID, or platform/id."`
	Limit        int      `help:"Maximum number, up to 1000."                              default:"20"`
	Before       string   `help:"Continue after this result."`
}

func (c sessionsSearchCommand) Run(p *program) error {
	return with(p, app.SearchSessions, app.SessionQuery{
		Words: strings.Join(c.Words, " "), Conversation: c.Conversation, Limit: c.Limit, Before: c.Before,
	})
}

type sessionsRmCommand struct {
	ID           string `arg:"" help:"ID of the session." optional:""`
	Conversation string `help:"Delete a whole conversation instead: its ID, or platform/id."`
	Yes          bool   `help:"Really delete it."                                              short:"y"`
}

func (c sessionsRmCommand) Run(p *program) error {
	if (c.ID == "") == (c.Conversation == "") {
		return fault.New(fault.Invalid, "give either a session ID, or a conversation with --conversation")
	}
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		if c.Conversation != "" {
			return app.RemoveConversation(ctx, cfg, env, c.Conversation, c.Yes)
		}
		return app.RemoveSession(ctx, cfg, env, c.ID, c.Yes)
	})
}

// scrubCommand rewrites the database.
type scrubCommand struct{}

func (scrubCommand) Run(p *program) error { return p.care(app.Scrub) }
