package app

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/chat"
	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/work"
)

// modelTiers returns the model tiers: those of the database (seed 004's
// models_config), with what the options say written over them.
func modelTiers(ctx context.Context, s *store.Store, wanted map[string]config.Tier) (map[string]spend.Tier, error) {
	var tiers map[string]spend.Tier
	err := s.InTx(ctx, func(tx *store.Tx) (err error) {
		if tiers, err = tx.Spending().Tiers(ctx); err != nil || len(wanted) == 0 {
			return err
		}
		if tiers == nil {
			tiers = make(map[string]spend.Tier)
		}
		for name, t := range wanted {
			tiers[name] = spend.Tier{Provider: t.Assistant, Model: t.Model, Description: tiers[name].Description}
		}
		return tx.Spending().SaveTiers(ctx, tiers)
	})
	if err != nil {
		return nil, fmt.Errorf("read the model tiers: %w", err)
	}
	return tiers, nil
}

// buildCore builds what decides: the commands and the orchestrator, with what they work on.
func (d *daemon) buildCore(ctx context.Context) error {
	d.people = newPeople(d.config, d.store, func() { d.core.AccessChanged() }, func(id string) { d.core.Wake(id) }) //nolint:contextcheck // the work outlives who asks for it
	if d.space != nil {
		d.work = work.New(work.Config{Store: d.store, Workspace: d.space, Log: d.log})
	}
	d.memory = remembering{
		config: d.config.Memory, store: d.store, redact: d.redact, now: d.env.Now, log: d.log, roster: d.roster, budget: d.budget,
		halted: func() bool { return d.core.Halted().Halted() },
	}
	if err := d.memory.build(ctx); err != nil {
		return err
	}
	if err := d.buildFiles(); err != nil {
		return err
	}
	tools, err := d.newToolSets() //nolint:contextcheck // connections to servers outlive the start
	if err != nil {
		return err
	}
	d.tools = tools
	tiers, err := modelTiers(ctx, d.store, d.config.Tiers)
	if err != nil {
		return err
	}
	d.memory.buildLearner(ctx, tiers)
	placeholders := map[assistant.Name]bool{config.AssistantDemo: true}
	if err := d.buildChat(placeholders); err != nil {
		return err
	}
	return d.buildOrchestrator(tiers, placeholders)
}

// buildChat builds the commands.
func (d *daemon) buildChat(placeholders map[assistant.Name]bool) (err error) {
	d.chat, err = chat.New(chat.Config{
		Storage:     d.store,
		Adapters:    d.platforms.adapters,
		Redact:      d.redact,
		Assistants:  d.roster.all,
		Missing:     d.roster.missing,
		Placeholder: placeholders,
		Mode:        modeOf(d.config),
		Tools:       d.tools,
		People:      d.people,
		Memory:      d.memory.service,
		Work:        d.work,
		Workspace:   d.space,
		Link:        d.signInLink,
		Pages:       d.config.PublicURL,
		Doctor:      func(ctx context.Context) doctor.Report { return Doctor(ctx, *d.live.Load(), d.env, false) },
		Version:     d.env.Version,
		Now:         d.env.Now,
		Log:         d.log,
	})
	return err
}

// buildOrchestrator builds the engine, which carries the commands out.
func (d *daemon) buildOrchestrator(tiers map[string]spend.Tier, placeholders map[assistant.Name]bool) error {
	renew := 5 * time.Second
	if d.config.Database.Driver == config.DriverPostgres {
		renew = 700 * time.Millisecond // a stop that was asked for on another replica arrives with it
	}
	var worktrees orchestrator.Worktrees
	if d.work != nil {
		worktrees = d.work
	}
	core, err := orchestrator.New(orchestrator.Config{
		Tools:          d.tools,
		Mode:           modeOf(d.config),
		Pairing:        d.config.Pairing,
		Confined:       d.programs.runner.Level().Files,
		SecondApprover: d.config.Tools.SecondApprover,
		MaxRounds:      d.config.Tools.MaxRounds,
		Budget:         spend.Budget(d.config.Budget),
		Tiers:          tiers,
		Redact:         d.redact.String,
		Rush:           d.env.Rush,
		Pages:          d.config.PublicURL,
		RedactPart:     d.redact.Partial,
		Storage:        store.Through[orchestrator.Tx]{Store: d.store, As: func(tx *store.Tx) orchestrator.Tx { return store.Port{Tx: tx} }},
		Commands:       d.chat,
		Worktrees:      worktrees,
		Memory:         d.memory.port(),
		Learner:        d.memory.learnerPort(),
		Files:          d.intake,
		Queue:          d.queue,
		Adapters:       d.platforms.adapters,
		Assistants:     d.roster.all,
		Default:        assistant.Name(d.config.Assistant),
		Placeholder:    placeholders,
		Access:         accessRules(d.config),
		SystemPrompt:   d.config.SystemPrompt,
		ContextTokens:  d.config.ContextTokens,
		Slots:          d.plan.Conversations,
		MaxWaiting:     d.config.MaxWaiting,
		TurnTimeout:    d.config.TurnTimeout,
		Grace:          d.config.ShutdownGrace,
		RenewEvery:     renew,
		Takers:         d.store.Takers,
		Exclusive:      d.config.Database.Driver == config.DriverSQLite,
		Now:            d.env.Now,
		Log:            d.log,
		Metrics:        d.metrics,
	})
	if err != nil {
		return err
	}
	d.chat.Bind(core)
	d.core = core
	d.leases = leases{d.store, d.log, core.Owner()}
	return nil
}
