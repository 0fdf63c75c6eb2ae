package app

import (
	"context"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
	"remote-agent/internal/spend"
)

// awaitReload takes the configuration anew whenever the process is told to, by a signal
// or through the socket, until ctx ends. Where that needs a restart and this process can
// be started again, it stops itself.
func (d *daemon) awaitReload(ctx context.Context, stop context.CancelFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.env.Hangup:
			d.reload(ctx)
		case r := <-d.retakes:
			taken, err := d.retake(ctx, r.change)
			r.reply <- retaken{taken, err}
			<-r.heard // a socket that closes would swallow it
			if taken.Restarting {
				d.log.InfoContext(ctx, "restarting, for options that need it", "options", optionNames(taken.Restart))
				d.restarting.Store(true)
				stop()
				return
			}
		}
	}
}

// reload reads the configuration again and takes what a running process can. A
// configuration that is not usable as a whole changes nothing. Values are never
// logged: names say enough.
func (d *daemon) reload(ctx context.Context) {
	next, err := d.env.Reload()
	if err == nil {
		err = d.take(ctx, next)
	}
	if problems, ok := config.AsProblems(err); ok {
		d.log.ErrorContext(ctx, "the configuration was not reloaded, nothing changed", "problems", strings.Join(problems, "; "))
		return
	}
	if err != nil {
		d.log.ErrorContext(ctx, "the configuration was not reloaded, nothing changed", "reason", fault.Public(err), "err", err)
	}
}

// take applies next. What can fail comes first, so that an error changes nothing.
func (d *daemon) take(ctx context.Context, next config.Config) error {
	before := d.current()
	live, restart := before.Changes(next)
	now := before.WithLive(next)
	tiers, err := modelTiers(ctx, d.store, now.Tiers)
	if err != nil {
		return err
	}
	for i, k := range kindsOf(now) {
		r, ok := k.(platform.Reloader)
		if a := d.platforms.adapterOf(k.Platform()); ok && a != nil {
			if err := r.Reload(ctx, kindsOf(before)[i], a); err != nil {
				return err
			}
		}
	}
	d.live.Store(&now)
	for _, k := range modelsOf(now) {
		if m, ok := d.roster.models[assistant.Name(k.Assistant())].(assistant.Switcher); ok && k.Model() != "" {
			m.SetModel(k.Model())
		}
	}
	d.people.Reload(peoplePlatforms(now))
	if d.env.SetLogLevel != nil {
		d.env.SetLogLevel(now.Log.Level)
	}
	d.core.Reload(ctx, liveSettings(now, tiers))
	for _, warning := range next.Warnings {
		d.log.WarnContext(ctx, "configuration", "warning", warning)
	}
	d.log.InfoContext(ctx, "the configuration was reloaded", "changed", optionNames(live), "needs_restart", optionNames(restart))
	return nil
}

// optionNames lists options for the log.
func optionNames(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}

// current returns the configuration as it is now.
func (d *daemon) current() config.Config { return *d.live.Load() }

// budget returns the budget as it is now.
func (d *daemon) budget() spend.Budget { return spend.Budget(d.current().Budget) }

// liveSettings are what the engine can take while it runs.
func liveSettings(c config.Config, tiers map[string]spend.Tier) orchestrator.Live {
	return orchestrator.Live{
		Access: accessRules(c), Budget: spend.Budget(c.Budget), Tiers: tiers, SystemPrompt: c.SystemPrompt,
		ContextTokens: c.ContextTokens, Slots: c.MaxConversations, MaxWaiting: c.MaxWaiting, MaxRounds: c.Tools.MaxRounds,
		TurnTimeout: c.TurnTimeout, Grace: c.ShutdownGrace,
	}
}
