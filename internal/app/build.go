package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/demo"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/platform"
	webchat "remote-agent/internal/platform/web"
)

// roster is the assistants that there are.
type roster struct {
	programs *programs
	all      map[assistant.Name]assistant.Assistant
	models   map[assistant.Name]assistant.Model // the model APIs among them
	missing  map[assistant.Name]string          // agents that are not installed, and how to
}

// newRoster builds what is configured. The demo is always there, for conversations that
// began with it; it answers no other. An agent has as many processes as conversations.
// What they ask of model APIs is counted in m, which may be nil. What an error leaves is to
// be closed, too.
func newRoster(ps *programs, conversations int, m *metrics.Metrics) (*roster, error) {
	models, err := buildModels(ps.config, ps.log)
	if err != nil {
		return nil, err
	}
	r := &roster{programs: ps, all: make(map[assistant.Name]assistant.Assistant), models: models, missing: make(map[assistant.Name]string)}
	scripted := demo.New(demo.Config{})
	r.all[scripted.Name()] = scripted
	for name, model := range models {
		r.all[name] = loop.New(&meter{model, m, false}, loop.Config{Log: ps.log})
		r.models[name] = &meter{model, m, true}
	}
	if err := r.addAgents(conversations); err != nil {
		return r, err
	}
	there := names(r.all)
	for _, tier := range slices.Sorted(maps.Keys(ps.config.Tiers)) {
		if who := ps.config.Tiers[tier].Assistant; !there[who] {
			ps.log.Warn("a model cannot be used, because its assistant is not configured", "option", "MODEL_"+strings.ToUpper(tier), "assistant", who)
		}
	}
	return r, checkDefault(ps.config, there)
}

// checkDefault refuses an assistant of new conversations that is none of those there are.
func checkDefault(cfg config.Config, there map[string]bool) error {
	if there[cfg.Assistant] {
		return nil
	}
	return fault.Newf(fault.Invalid, "DEFAULT_AI_ASSISTANT is %s, which is not configured. Available: %s.",
		cfg.Assistant, strings.Join(slices.Sorted(maps.Keys(there)), ", "))
}

func names(all map[assistant.Name]assistant.Assistant) map[string]bool {
	out := make(map[string]bool, len(all))
	for name := range all {
		out[string(name)] = true
	}
	return out
}

// modelsOf returns the model APIs of a configuration.
func modelsOf(cfg config.Config) []assistant.Kind { return sectionsOf[assistant.Kind](cfg) }

// builtIn returns the names of the assistants that are no external agents, whether or not
// they are configured.
func builtIn(cfg config.Config) []assistant.Name {
	names := []assistant.Name{config.AssistantDemo}
	for _, k := range modelsOf(cfg) {
		names = append(names, assistant.Name(k.Assistant()))
	}
	return names
}

// modelOf returns the model API that is the assistant of new conversations; false if
// something else is.
func modelOf(cfg config.Config) (assistant.Kind, bool) {
	all := modelsOf(cfg)
	i := slices.IndexFunc(all, func(k assistant.Kind) bool { return k.Assistant() == cfg.Assistant })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// buildModels builds the model APIs that are configured.
func buildModels(cfg config.Config, log *slog.Logger) (map[assistant.Name]assistant.Model, error) {
	models := make(map[assistant.Name]assistant.Model)
	for _, k := range modelsOf(cfg) {
		if !k.Configured() {
			continue
		}
		model, err := k.New(log)
		if err != nil {
			return nil, err
		}
		models[model.Name()] = model
	}
	return models, nil
}

func (d *daemon) buildAdapters() error {
	d.platforms = platforms{
		config: d.config, store: d.store, log: d.log, console: d.newConsole(), talk: webchat.New(d.store, d.log),
		accounts: make(map[messages.Platform]platform.Account), troubles: make(map[messages.Platform]error),
	}
	d.platforms.adapters = []platform.Adapter{d.platforms.console, d.platforms.talk}
	return d.addPlatforms()
}

// check asks each platform who the bot is. Refused credentials stop the
// start; a platform that does not answer is retried while running. One that cannot be
// asked is taken to answer.
func (pl *platforms) check(ctx context.Context) error {
	for _, a := range pl.adapters {
		err := pl.ask(ctx, a)
		switch {
		case err == nil:
		case fault.Is(err, fault.Unauthorized), fault.Is(err, fault.Invalid):
			return err
		default:
			pl.log.WarnContext(ctx, "a platform is not responding; it is tried again", "platform", a.Platform(), "err", err)
		}
	}
	return nil
}

// ask asks a platform who the bot is, and notes what it answers.
func (pl *platforms) ask(ctx context.Context, a platform.Adapter) (err error) {
	var account platform.Account
	if checker, ok := a.(platform.Checker); ok {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		account, err = checker.Check(ctx)
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if err != nil {
		pl.troubles[a.Platform()] = err
		return err
	}
	pl.accounts[a.Platform()] = account
	delete(pl.troubles, a.Platform())
	return nil
}

// account returns who the bot is on a platform, and whether the platform has told it.
func (pl *platforms) account(name messages.Platform) (account platform.Account, answered bool) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	account, answered = pl.accounts[name]
	return account, answered
}

// webhooks returns the handlers of the platforms that receive over HTTP.
func (pl *platforms) webhooks(to platform.Sink, m *metrics.Metrics) map[string]http.Handler {
	handlers := make(map[string]http.Handler)
	for _, a := range pl.adapters {
		if hook, ok := a.(platform.WebhookReceiver); ok && pl.intakeOf(a) == platform.OverHTTP {
			handlers[string(a.Platform())] = pl.links.watch(a.Platform(), hook.Webhook(to), m)
		}
	}
	return handlers
}

// offerOwnership prints a one-time owner link for each platform that nobody may
// use yet, and sets the platforms' menus.
func (d *daemon) offerOwnership(ctx context.Context) {
	for _, a := range d.platforms.adapters {
		if menu, ok := a.(platform.Menu); ok {
			go setMenu(ctx, menu, d.chat.Menu(menu.Capabilities()), d.log)
		}
		if a == platform.Adapter(d.platforms.console) || a == platform.Adapter(d.platforms.talk) {
			continue
		}
		code := rand.Text()
		account, _ := d.platforms.account(a.Platform())
		offered, err := d.core.OfferOwnership(ctx, a.Platform(), code)
		if err != nil {
			d.log.ErrorContext(ctx, "could not make an owner link", "platform", a.Platform(), "err", err)
		}
		if offered && d.notices.logsOnly() {
			d.log.WarnContext(ctx, "nobody may talk to the bot here yet: become its owner within 15 minutes",
				"platform", a.Platform(), "link", ownerLink(a, account, code))
		} else if offered {
			d.notices.say("  owner     nobody may talk to the bot on %s yet. Become its owner within 15 minutes:\n            %s\n",
				a.Platform(), ownerLink(a, account, code))
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

// setMenu sets a platform's menu of commands as soon as the platform lets it.
func setMenu(ctx context.Context, menu platform.Menu, commands []platform.CommandInfo, log *slog.Logger) {
	policy := fault.Policy{Longest: 5 * time.Minute}
	err := policy.Do(ctx, func() error { return menu.SetMenu(ctx, commands) })
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "could not set the menu of commands", "platform", menu.Platform(), "err", err)
	}
}
