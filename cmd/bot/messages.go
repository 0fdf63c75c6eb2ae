package main

import (
	"context"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/transcript"
)

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
