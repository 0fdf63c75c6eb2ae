package config

import "slices"

// liveOptions are what a running process takes anew: people, limits, budgets, models
// and the level of the log. Sections say so of theirs. All others need a restart.
var liveOptions = []string{
	"MAX_CONCURRENT_CONVERSATIONS", "MAX_WAITING_MESSAGES", "MAX_ROUNDS", "TURN_TIMEOUT", "SHUTDOWN_GRACE", "CONTEXT_TOKENS",
	"BUDGET_TURN_USD", "BUDGET_PERSON_USD", "BUDGET_DAY_USD", "BUDGET_TURN_TOKENS", "BUDGET_PERSON_TOKENS", "BUDGET_DAY_TOKENS",
	"MODEL_FAST", "MODEL_SMART", "SYSTEM_PROMPT", "LOG_LEVEL",
}

// Live reports whether a running process takes the option anew when it is told to
// read its configuration again (SIGHUP).
func (o Option) Live() bool { return o.live || slices.Contains(liveOptions, o.Name) }

// Changes returns the names of the options that have another value in next, in the
// order of the table: those that a running process can take, and those that need a
// restart.
func (c Config) Changes(next Config) (live, restart []string) {
	for _, o := range c.table {
		switch {
		case c.values[o.Name].text == next.values[o.Name].text:
		case o.Live():
			live = append(live, o.Name)
		default:
			restart = append(restart, o.Name)
		}
	}
	return live, restart
}

// WithLive returns c with what a running process can take of next.
func (c Config) WithLive(next Config) Config {
	c.Sections = slices.Clone(c.Sections)
	for i := range c.Sections {
		c.Sections[i] = c.Sections[i].WithLive(next.Sections[i])
	}
	c.MaxConversations, c.MaxWaiting, c.Tools.MaxRounds = next.MaxConversations, next.MaxWaiting, next.Tools.MaxRounds
	c.TurnTimeout, c.ShutdownGrace, c.ContextTokens = next.TurnTimeout, next.ShutdownGrace, next.ContextTokens
	c.Budget, c.SystemPrompt, c.Log.Level = next.Budget, next.SystemPrompt, next.Log.Level
	tiers := make(map[string]Tier)
	for _, name := range []string{"fast", "smart", "cheap"} {
		from := next.Tiers
		if name == "cheap" { // what learns by itself has taken it
			from = c.Tiers
		}
		if t, ok := from[name]; ok {
			tiers[name] = t
		}
	}
	c.Tiers = tiers
	values := make(map[string]value, len(c.values))
	for _, o := range c.table {
		values[o.Name] = c.values[o.Name]
		if o.Live() {
			values[o.Name] = next.values[o.Name]
		}
	}
	c.values = values
	return c
}
