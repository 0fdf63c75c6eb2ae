package main

import (
	"remote-agent/internal/app"
	"remote-agent/internal/config"
)

// auditCommand is about the record of what was done, and by whom.
type auditCommand struct {
	List   auditListCommand   `cmd:"" help:"List rows, the oldest first."`
	Verify auditVerifyCommand `cmd:"" help:"Check the whole chain; exit code 1 and the row where it breaks, if it does."`
}

type auditListCommand struct {
	Since        string `default:"all"                                                                         help:"From when on: 7d (days, today among them), 2w, 12h, all, or a date such as 2026-11-01; UTC."`
	Actor        string `help:"By whom: an account such as telegram/42, or cli, system, api/NAME."                placeholder:"WHO"`
	Action       string `help:"An action such as tool.run, or the beginning of several, such as tool or person." placeholder:"ACTION"`
	Conversation string `help:"Of one conversation: its id, or telegram/123."                                    placeholder:"ID"`
	Limit        int    `default:"1000"                                                                        help:"At most so many, the newest."`
	JSON         bool   `help:"A JSON object a line, with hashes."                                              name:"json"`
}

// Run implements the command.
func (c auditListCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error {
		return app.ListAudit(p.ctx, cfg, env, app.AuditQuery{
			Since: c.Since, Actor: c.Actor, Action: c.Action, Conversation: c.Conversation, Limit: c.Limit, JSON: c.JSON,
		})
	})
}

type auditVerifyCommand struct {
	Expect string `help:"An end of the chain that was noted down, as verify prints it: it has to be in the chain." placeholder:"SEQ:HASH"`
}

// Run implements the command.
func (c auditVerifyCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.VerifyAudit(p.ctx, cfg, env, c.Expect) })
}
