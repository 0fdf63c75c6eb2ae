package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/anthropic"
	"remote-agent/internal/assistant/demo"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/assistant/openai"
	"remote-agent/internal/chat"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/terminal"
	"remote-agent/internal/wording"
	"remote-agent/internal/work"
)

// buildAssistants builds what is configured. The demo is always there, for
// conversations that began with it; it answers no other.
func (d *daemon) buildAssistants() error {
	d.assistants = make(map[assistant.Name]assistant.Assistant)
	d.models = make(map[assistant.Name]assistant.Model)
	scripted := demo.New(demo.Config{})
	d.assistants[scripted.Name()] = scripted
	if err := d.buildModels(); err != nil {
		return err
	}
	if err := d.buildAgents(); err != nil {
		return err
	}
	if _, ok := d.assistants[assistant.Name(d.config.Assistant)]; !ok {
		return fault.Newf(fault.Invalid, "DEFAULT_AI_ASSISTANT is %s, which is not configured. Available: %s.",
			d.config.Assistant, strings.Join(slices.Sorted(maps.Keys(names(d.assistants))), ", "))
	}
	return nil
}

func names(all map[assistant.Name]assistant.Assistant) map[string]bool {
	out := make(map[string]bool, len(all))
	for name := range all {
		out[string(name)] = true
	}
	return out
}

// buildModels builds the assistants that ask a model API and run our tools.
func (d *daemon) buildModels() error {
	if c := d.config.Anthropic; c.Configured() {
		model, err := anthropic.New(anthropic.Config{
			APIKey: c.APIKey.Reveal(), BaseURL: c.BaseURL, Model: c.Model,
			MaxTokens: c.MaxTokens, ThinkingBudget: c.ThinkingTokens, Effort: c.Effort, Log: d.log,
		})
		if err != nil {
			return err
		}
		d.models[model.Name()] = model
		d.assistants[model.Name()] = loop.New(model, loop.Config{Log: d.log})
	}
	if !d.config.OpenAI.Configured() {
		return nil
	}
	model, err := openai.New(openai.Config{
		APIKey:  d.config.OpenAI.APIKey.Reveal(),
		BaseURL: d.config.OpenAI.BaseURL,
		Model:   d.config.OpenAI.Model,
		Log:     d.log,
	})
	if err != nil {
		return err
	}
	d.models[model.Name()] = model
	d.assistants[model.Name()] = loop.New(model, loop.Config{Log: d.log})
	return nil
}

func (d *daemon) buildAdapters() error {
	d.addConsole()
	return d.addPlatforms()
}

// checkAdapters asks each platform who the bot is. Refused credentials stop the
// start; a platform that does not answer is retried while running.
func (d *daemon) checkAdapters(ctx context.Context) error {
	for _, a := range d.adapters {
		checker, ok := a.(platform.Checker)
		if !ok {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		account, err := checker.Check(ctx)
		cancel()
		switch {
		case err == nil:
			d.accounts[a.Platform()] = account
			d.warnScopes(ctx, a)
		case fault.Is(err, fault.Unauthorized), fault.Is(err, fault.Invalid):
			return err
		default:
			d.troubles[a.Platform()] = err
			d.log.WarnContext(ctx, "a platform is not responding; it is tried again", "platform", a.Platform(), "err", err)
		}
	}
	return nil
}

// warnScopes names what a platform would have to grant for everything to work.
func (d *daemon) warnScopes(ctx context.Context, a platform.Adapter) {
	var missing []string
	switch scoped := a.(type) {
	case interface{ MissingScopes() []string }:
		missing = scoped.MissingScopes()
	case interface{ MissingPermissions() []string }:
		missing = scoped.MissingPermissions()
	}
	if len(missing) > 0 {
		d.log.WarnContext(ctx, "the app lacks scopes; some things will not work until it is installed again with them",
			"platform", a.Platform(), "missing", strings.Join(missing, " "))
	}
}

// modelTiers returns the model tiers: those of the database (seed 004's
// models_config), with what the options say written over them.
func (d *daemon) modelTiers(ctx context.Context, wanted map[string]config.Tier) (map[string]spend.Tier, error) {
	var tiers map[string]spend.Tier
	err := d.store.InTx(ctx, func(tx *store.Tx) error {
		var err error
		if tiers, err = tx.Tiers(ctx); err != nil || len(wanted) == 0 {
			return err
		}
		if tiers == nil {
			tiers = make(map[string]spend.Tier)
		}
		for name, t := range wanted {
			tiers[name] = spend.Tier{Provider: t.Assistant, Model: t.Model, Description: tiers[name].Description}
		}
		return tx.SaveTiers(ctx, tiers)
	})
	if err != nil {
		return nil, fmt.Errorf("read the model tiers: %w", err)
	}
	return tiers, nil
}

func (d *daemon) buildCore(ctx context.Context) error {
	renew := 5 * time.Second
	if d.config.Database.Driver == config.DriverPostgres {
		renew = 700 * time.Millisecond // a stop that was asked for on another replica arrives with it
	}
	d.people = newPeople(d.config, d.store, func() { d.core.AccessChanged() }, func(id string) { d.core.Wake(id) }) //nolint:contextcheck // the work outlives who asks for it
	var worktrees orchestrator.Worktrees
	if d.space != nil {
		d.work = work.New(work.Config{Store: d.store, Workspace: d.space, Log: d.log})
		worktrees = d.work
	}
	if err := d.buildMemory(ctx); err != nil {
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
	tiers, err := d.modelTiers(ctx, d.config.Tiers)
	if err != nil {
		return err
	}
	d.buildLearner(ctx, tiers)
	placeholders := map[assistant.Name]bool{config.AssistantDemo: true}
	d.chat, err = chat.New(chat.Config{
		Storage:     d.store,
		Adapters:    d.adapters,
		Redact:      d.redact,
		Assistants:  d.assistants,
		Missing:     d.missing,
		Placeholder: placeholders,
		Mode:        modeOf(d.config),
		Tools:       tools,
		People:      d.people,
		Memory:      d.memory,
		Work:        d.work,
		Workspace:   d.space,
		Version:     d.env.Version,
		Now:         d.env.Now,
		Log:         d.log,
	})
	if err != nil {
		return err
	}
	core, err := orchestrator.New(orchestrator.Config{
		Tools:          tools,
		Mode:           modeOf(d.config),
		Pairing:        d.config.Pairing,
		Confined:       d.runner.Level().Files,
		SecondApprover: d.config.Tools.SecondApprover,
		MaxRounds:      d.config.Tools.MaxRounds,
		Budget:         spend.Budget(d.config.Budget),
		Tiers:          tiers,
		Redact:         d.redact.String,
		RedactPart:     d.redact.Partial,
		Storage:        storage{d.store},
		Commands:       d.chat,
		Worktrees:      worktrees,
		Memory:         d.memoryPort(),
		Learner:        d.learnerPort(),
		Files:          d.intake,
		Queue:          d.queue,
		Adapters:       d.adapters,
		Assistants:     d.assistants,
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
	return nil
}

// webhooks returns the handlers of the platforms that receive over HTTP.
func (d *daemon) webhooks() map[string]http.Handler {
	handlers := make(map[string]http.Handler)
	for _, a := range d.adapters {
		if hook, ok := a.(platform.WebhookReceiver); ok && d.intakeOf(a) == platform.OverHTTP {
			handlers[string(a.Platform())] = hook.Webhook(d.core)
		}
	}
	return handlers
}

// offerOwnership prints a one-time owner link for each platform that nobody may
// use yet, and sets the platforms' menus.
func (d *daemon) offerOwnership(ctx context.Context) {
	for _, a := range d.adapters {
		if menu, ok := a.(platform.Menu); ok && d.troubles[a.Platform()] == nil {
			go d.setMenu(ctx, menu)
		}
		if a == platform.Adapter(d.console) {
			continue
		}
		code := rand.Text()
		offered, err := d.core.OfferOwnership(ctx, a.Platform(), code)
		if err != nil {
			d.log.ErrorContext(ctx, "could not make an owner link", "platform", a.Platform(), "err", err)
		}
		if offered && d.logsOnly() {
			d.log.WarnContext(ctx, "nobody may talk to the bot here yet: become its owner within 15 minutes",
				"platform", a.Platform(), "link", ownerLink(a, d.accounts[a.Platform()], code))
		} else if offered {
			d.say("  owner     nobody may talk to the bot on %s yet. Become its owner within 15 minutes:\n            %s\n",
				a.Platform(), ownerLink(a, d.accounts[a.Platform()], code))
		}
	}
}

// ownerLink returns what makes somebody the owner: a link where the platform has
// one, else what to send.
func ownerLink(a platform.Adapter, account platform.Account, code string) string {
	if linker, ok := a.(platform.OwnerLinker); ok {
		return linker.OwnerLink(account, code)
	}
	return "send the bot a direct message: start " + code
}

func (d *daemon) setMenu(ctx context.Context, menu platform.Menu) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := menu.SetMenu(ctx, d.chat.Menu(menu.Capabilities())); err != nil && ctx.Err() == nil {
		d.log.WarnContext(ctx, "could not set the menu of commands", "platform", menu.Platform(), "err", err)
	}
}

// logsOnly reports whether nothing but the log may be written.
func (d *daemon) logsOnly() bool { return d.env.LogOnly && !d.env.Terminal }

// bannerIndent is where the lines of the banner say something, in columns.
const bannerIndent = 12

// say writes to the person who started the program. The start must not depend
// on somebody reading it.
func (d *daemon) say(format string, args ...any) {
	if d.env.Quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	if d.logsOnly() {
		for line := range strings.Lines(text) {
			if line = wording.OneLine(line); line != "" {
				d.log.Info(line, "component", "start") //nolint:sloglint // what is said on a screen elsewhere
			}
		}
		return
	}
	if d.env.Terminal {
		text = terminal.Fold(terminalOf(d.env), text, bannerIndent)
	}
	_, _ = io.WriteString(d.notices(), text) // a closed terminal
}
