package main

import (
	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/transcript"
)

// messagesCommand is about single messages.
type messagesCommand struct {
	List messagesListCommand `cmd:"" help:"List messages in their order, of a conversation, a session or a profile."`
}

type messagesListCommand struct {
	Conversation string `help:"Only of this conversation: its id, or platform/id."`
	Session      string `help:"Only of this session."`
	Agent        string `help:"Only of sessions with this profile."                placeholder:"NAME"`
	Desc         bool   `help:"The newest first."`
	Limit        int    `default:"50"                                              help:"How many, up to 1000."`
	Offset       int    `help:"Leave out that many first."`
	After        string `help:"Go on behind this message."                         placeholder:"CURSOR"`
	JSON         bool   `help:"A JSON object a line, with everything."`
}

// Run implements the command.
func (c messagesListCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error {
		env.Stdout = transcript.VisibleJSON(p.stdout)
		return app.ListMessages(p.ctx, cfg, env, app.MessageQuery{
			Conversation: c.Conversation, Session: c.Session, Agent: c.Agent, Desc: c.Desc,
			Limit: c.Limit, Offset: c.Offset, After: c.After, JSON: c.JSON,
		})
	})
}
