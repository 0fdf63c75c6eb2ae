package main

import (
	"remote-agent/internal/app"
)

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
