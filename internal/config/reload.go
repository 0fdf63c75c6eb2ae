package config

import "slices"

// Changes returns the names of the options that have another value in next, in the
// order of the table: those that a running process can take, and those that need a
// restart.
func (c Config) Changes(next Config) (live, restart []string) {
	for _, o := range c.table {
		switch {
		case c.values[o.Name].text == next.values[o.Name].text:
		case o.Live:
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
		if o.Live {
			values[o.Name] = next.values[o.Name]
		}
	}
	c.values = values
	return c
}
