package main

import (
	"remote-agent/internal/app"
)

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
