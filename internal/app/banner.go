package app

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/config"
)

// notices is where the program tells what it does: the console's screen where
// there is one, else stderr, so that a pipe gets answers only.
func (d *daemon) notices() io.Writer {
	if screen := d.screen.Load(); screen != nil {
		return screen
	}
	if d.env.Terminal {
		return d.env.Stdout
	}
	return d.env.Stderr
}

// banner says what is on, what is off, and how to turn it on.
func (d *daemon) banner(ctx context.Context) {
	c := d.config
	d.say("Remote Agent %s\n\n", d.env.Version)
	if c.Database.Driver == config.DriverSQLite {
		d.say("  data      %s (SQLite)\n", c.Database.Path)
	} else {
		d.say("  data      PostgreSQL; files in %s\n", c.DataDir)
	}
	d.say("  http      http://%s  /healthz /readyz /metrics\n", d.web.Addr())
	d.sayPages(ctx)
	if c.Assistant == config.AssistantDemo {
		d.say("  model     DEMO: scripted replies, not an AI. Run `bot setup model`, or set OPENAI_API_KEY.\n")
	} else {
		d.say("  model     %s\n", d.modelLine())
	}
	for _, line := range d.agentTroubles() {
		d.say("  agent     %s\n", line)
	}
	d.say("  tools     mode %s; sandbox %s\n", c.Tools.Mode, d.sandboxLine())
	if !d.programs.outside.confined() {
		d.say("  network   %s\n", d.programs.outside.line())
	}
	if d.memory != nil && d.vectors.Todo != "" {
		d.say("  memory    pgvector is not used: %s\n", d.vectors.Todo)
	}
	d.sayPlatforms()
	if d.env.Terminal {
		d.say("  log       %s\n", filepath.Join(c.DataDir, "log", "bot.log"))
		d.say("\nType a message, or /help. Ctrl-C stops an answer; press it twice to quit.\n")
	}
	d.say("\n")
}

// sandboxLine says how far programs are confined; /status says by what.
func (d *daemon) sandboxLine() string {
	if d.programs.runner.Level().Full() {
		return "full"
	}
	return d.programs.runner.Level().String()
}

// modelLine says what answers new conversations, and what else there is.
func (d *daemon) modelLine() string {
	text := d.config.Assistant
	if a := d.assistants[assistant.Name(text)]; a != nil && a.Model() != "" {
		text += ", " + a.Model()
	}
	var others []string
	for name := range d.assistants {
		if string(name) != d.config.Assistant && name != config.AssistantDemo {
			others = append(others, string(name))
		}
	}
	if slices.Sort(others); len(others) > 0 {
		text += "; also " + strings.Join(others, ", ")
	}
	return text
}
