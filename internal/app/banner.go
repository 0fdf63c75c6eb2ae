package app

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/config"
)

// banner says what is on, what is off, and how to turn it on.
func (d *daemon) banner(ctx context.Context) {
	c := d.config
	d.notices.say("Remote Agent %s\n\n", d.env.Version)
	if c.Database.Driver == config.DriverSQLite {
		d.notices.say("  data      %s (SQLite)\n", c.Database.Path)
	} else {
		d.notices.say("  data      PostgreSQL; files in %s\n", c.DataDir)
	}
	d.notices.say("  http      http://%s  /healthz /readyz /metrics\n", d.web.Addr())
	d.sayPages(ctx)
	if c.Assistant == config.AssistantDemo {
		d.notices.say("  model     DEMO: scripted replies, not an AI. Run `bot setup model`, or set OPENAI_API_KEY.\n")
	} else {
		d.notices.say("  model     %s\n", d.roster.line())
	}
	for _, line := range d.roster.troubles() {
		d.notices.say("  agent     %s\n", line)
	}
	d.notices.say("  tools     mode %s; sandbox %s\n", c.Tools.Mode, d.programs.sandboxLine())
	if !d.programs.outside.confined() {
		d.notices.say("  network   %s\n", d.programs.outside.line())
	}
	if d.memory.service != nil && d.memory.vectors.Todo != "" {
		d.notices.say("  memory    pgvector is not used: %s\n", d.memory.vectors.Todo)
	}
	d.sayPlatforms()
	if d.env.Terminal {
		d.notices.say("  log       %s\n", filepath.Join(c.DataDir, "log", "bot.log"))
		d.notices.say("\nType a message, or /help. Ctrl-C stops an answer; press it twice to quit.\n")
	}
	d.notices.say("\n")
}

// sandboxLine says how far programs are confined; /status says by what.
func (ps *programs) sandboxLine() string {
	if ps.runner.Level().Full() {
		return "full"
	}
	return ps.runner.Level().String()
}

// line says what answers new conversations, and what else there is.
func (r *roster) line() string {
	text := r.programs.config.Assistant
	if a := r.all[assistant.Name(text)]; a != nil && a.Model() != "" {
		text += ", " + a.Model()
	}
	var others []string
	for name := range r.all {
		if string(name) != r.programs.config.Assistant && name != config.AssistantDemo {
			others = append(others, string(name))
		}
	}
	if slices.Sort(others); len(others) > 0 {
		text += "; also " + strings.Join(others, ", ")
	}
	return text
}
