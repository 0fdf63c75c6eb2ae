package main

import (
	"context"
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
	return run(p.ctx, cfg, p.env(log, false))
}

// care runs a command on the data.
func (p *program) care(run func(ctx context.Context, cfg config.Config, env app.Env) error) error {
	return p.command(func(ctx context.Context, cfg config.Config, env app.Env) error {
		env.Stdout = transcript.Visible(env.Stdout) // what was said in chats must not act on a terminal
		return run(ctx, cfg, env)
	})
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

// messagesCommand is about single messages.
type messagesCommand struct {
	List messagesListCommand `cmd:"" help:"List the messages of a conversation, session or profile in order."`
}

type messagesListCommand struct {
	Conversation string `help:"Only this conversation: its ID, or platform/id."`
	Session      string `help:"Only this session."`
	Agent        string `help:"Only sessions with this profile."                placeholder:"NAME"`
	Desc         bool   `help:"The newest first."`
	Limit        int    `default:"50"                                              help:"Maximum number, up to 1000."`
	Offset       int    `help:"Skip this many."`
	After        string `help:"Continue after this message."                         placeholder:"CURSOR"`
	JSON         bool   `help:"One JSON object per line, with all fields."`
}

func (c messagesListCommand) Run(p *program) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		env.Stdout = transcript.VisibleJSON(p.stdout)
		return app.ListMessages(ctx, cfg, env, app.MessageQuery(c))
	})
}

// costsCommand sums up what was used.
type costsCommand struct {
	By    string `default:"day" enum:"person,repository,codebase,model,day,conversation"                 help:"person, repository, model, day or conversation."`
	Since string `default:"30d" help:"Start: 7d (days, including today), 2w, 12h, all, or a date such as 2026-11-01 (UTC)."`
	Until string `help:"End of this date. Default: now."                     placeholder:"DATE"`
	CSV   bool   `help:"CSV; costs in millionths of a US dollar."         name:"csv"`
	JSON  bool   `help:"One JSON object per line; costs in millionths of a US dollar."             name:"json"`
}

func (c costsCommand) Run(p *program) error {
	return with(p, app.Costs, app.CostQuery(c))
}

// auditCommand is about the record of what was done, and by whom.
type auditCommand struct {
	List   auditListCommand   `cmd:"" help:"List entries, oldest first."`
	Verify auditVerifyCommand `cmd:"" help:"Check the whole chain; if it is broken, print the row and exit with 1."`
}

type auditListCommand struct {
	Since        string `default:"all"                                                                         help:"Start: 7d (days, including today), 2w, 12h, all, or a date such as 2026-11-01 (UTC)."`
	Actor        string `help:"Who did it: an account such as telegram/42, or cli, system, api/NAME."                placeholder:"WHO"`
	Action       string `help:"An action such as tool.run, or a prefix such as tool or person." placeholder:"ACTION"`
	Conversation string `help:"Only this conversation: its ID, or telegram/123."                                    placeholder:"ID"`
	Limit        int    `default:"1000"                                                                        help:"Maximum number of entries, newest kept."`
	JSON         bool   `help:"One JSON object per line, with hashes."                                              name:"json"`
}

func (c auditListCommand) Run(p *program) error {
	return with(p, app.ListAudit, app.AuditQuery(c))
}

type auditVerifyCommand struct {
	Expect string `help:"A chain end printed by an earlier verify; it must still be in the chain." placeholder:"SEQ:HASH"`
}

func (c auditVerifyCommand) Run(p *program) error { return with(p, app.VerifyAudit, c.Expect) }

// memoryCommand is about what is remembered.
type memoryCommand struct {
	Status memoryStatusCommand `cmd:"" help:"Show how memories are found and why, how many there are, and whether the embeddings API works."`
}

type memoryStatusCommand struct{}

func (memoryStatusCommand) Run(p *program) error { return p.care(app.MemoryStatus) }
