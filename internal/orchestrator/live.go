package orchestrator

import (
	"context"
	"maps"
	"time"

	"remote-agent/internal/orchestrator/turn"

	"remote-agent/internal/messages"
	"remote-agent/internal/spend"
)

// Live are the settings that may change while the process works. They mean what
// the fields of Config with the same names do.
type Live struct {
	Access        map[messages.Platform]AccessRule
	Budget        spend.Budget
	Tiers         map[string]spend.Tier
	SystemPrompt  string
	ContextTokens int
	Slots         int
	MaxWaiting    int
	MaxRounds     int
	TurnTimeout   time.Duration
	Grace         time.Duration
}

// live returns the settings that a process begins with.
func (c *Config) live() Live {
	return Live{
		Access: c.Access, Budget: c.Budget, Tiers: c.Tiers, SystemPrompt: c.SystemPrompt, ContextTokens: c.ContextTokens,
		Slots: c.Slots, MaxWaiting: c.MaxWaiting, MaxRounds: c.MaxRounds, TurnTimeout: c.TurnTimeout, Grace: c.Grace,
	}
}

// live returns the settings as they are now. What it returns is not changed.
func (o *Orchestrator) live() *Live { return o.settings.Load() }

// Live returns the settings as they are now. What it returns may not be changed.
func (o *Orchestrator) Live() *Live { return o.live() }

// Reload takes other settings. A zero value means the default, as in Config. What
// begins from now on goes by them; running turns keep their limits, and end if
// their person may not any more. Fewer slots take effect as turns end.
func (o *Orchestrator) Reload(ctx context.Context, next Live) {
	c := Config{
		Access: maps.Clone(next.Access), Budget: next.Budget, Tiers: maps.Clone(next.Tiers), SystemPrompt: next.SystemPrompt,
		ContextTokens: next.ContextTokens, Slots: next.Slots, MaxWaiting: next.MaxWaiting, MaxRounds: next.MaxRounds,
		TurnTimeout: next.TurnTimeout, Grace: next.Grace,
	}
	c.defaults()
	before := o.settings.Swap(new(c.live()))
	o.Grow(c.Slots - before.Slots)
	o.JudgeAll(ctx)
}

// turnSettings are those of turns.
func (o *Orchestrator) turnSettings() turn.Settings {
	l := o.live()
	return turn.Settings{
		Budget: l.Budget, Tiers: l.Tiers, SystemPrompt: l.SystemPrompt, ContextTokens: l.ContextTokens, MaxRounds: l.MaxRounds, TurnTimeout: l.TurnTimeout,
	}
}
