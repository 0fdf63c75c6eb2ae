package main

import (
	"remote-agent/internal/app"
	"remote-agent/internal/config"
)

// costsCommand sums up what was used.
type costsCommand struct {
	By    string `default:"day" enum:"person,codebase,model,day,conversation"                            help:"person, codebase, model, day or conversation."`
	Since string `default:"30d" help:"From when on: 7d (days, today among them), 2w, 12h, all, or a date such as 2026-11-01; UTC."`
	Until string `help:"Until the end of that date; until now without it."                     placeholder:"DATE"`
	CSV   bool   `help:"A table for spreadsheets; costs in millionths of a US dollar."         name:"csv"`
	JSON  bool   `help:"A JSON object a line; costs in millionths of a US dollar."             name:"json"`
}

// Run implements the command.
func (c costsCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error {
		return app.Costs(p.ctx, cfg, env, app.CostQuery{By: c.By, Since: c.Since, Until: c.Until, CSV: c.CSV, JSON: c.JSON})
	})
}
