package config

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/option"
	"remote-agent/internal/pattern"
)

// parseTier reads "assistant:model".
func (c *Config) parseTier(tier string) option.Parser {
	return func(text string) error {
		provider, model, ok := strings.Cut(text, ":")
		if !ok || provider == "" || model == "" || strings.ContainsAny(text, " \t\n") {
			return fmt.Errorf("is %q: use assistant:model, such as openai:gpt-5-mini", text)
		}
		if c.Tiers == nil {
			c.Tiers = make(map[string]Tier)
		}
		c.Tiers[tier] = Tier{Assistant: provider, Model: model}
		return nil
	}
}

// setDollars reads an amount into millionths of a dollar.
func setDollars(to *int64) option.Parser {
	return func(text string) error {
		amount, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
		if err != nil || amount <= 0 || amount > 1e6 || math.IsNaN(amount) {
			return fmt.Errorf("is %q: use an amount in US dollars above 0, such as 2.50", text)
		}
		micros := int64(math.Round(amount * 1e6))
		if micros < 10_000 {
			return fmt.Errorf("is %q: use at least one cent, 0.01", text)
		}
		*to = micros
		return nil
	}
}

func setCount(to *int64) option.Parser {
	return func(text string) error {
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		if err != nil || n <= 0 {
			return fmt.Errorf("is %q: use a whole number above 0, such as 500000", text)
		}
		*to = n
		return nil
	}
}

var environmentName = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ownSecret reports whether a variable belongs to this program alone: those that begin
// as the options of a platform do. Keys of model APIs may be meant for an agent.
func (c *Config) ownSecret(name string) bool {
	prefixes := []string{"GITHUB_TOKEN", "GH_TOKEN", "DATABASE_URL", "OIDC_CLIENT_SECRET"}
	for _, s := range c.Sections {
		if _, ok := s.(option.Answerer); ok {
			continue
		}
		for _, o := range s.Options() {
			first, _, _ := strings.Cut(o.Name, "_")
			prefixes = append(prefixes, first+"_")
			for _, alias := range o.Aliases {
				prefixes = append(prefixes, alias.Name)
			}
		}
	}
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// setHosts reads a list of hosts. What they mean is checked where they are used.
func setHosts(to *[]string) option.Parser {
	return func(text string) error {
		*to = option.List(text)
		return nil
	}
}

// setVariables reads names; those for agents may be for one of them: agent=NAME.
func (c *Config) setVariables(to *[]string, agents bool) option.Parser {
	return func(text string) error {
		names := option.List(text)
		for _, n := range names {
			if _, name, ok := strings.Cut(n, "="); ok && agents {
				n = name
			}
			if !environmentName.MatchString(n) {
				return fmt.Errorf("contains %q, which is not a valid name of an environment variable", n)
			}
			if c.ownSecret(n) {
				return fmt.Errorf("contains %s, which is a secret of the bot: assistants must not see it", n)
			}
		}
		*to = names
		return nil
	}
}

// setPaths reads absolute folders with commas; a folder may have spaces.
func setPaths(to *[]string) option.Parser {
	return func(text string) error {
		var paths []string
		for p := range strings.SplitSeq(text, ",") {
			p = strings.TrimSpace(p)
			if p == "" {
				continue
			}
			if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
				return fmt.Errorf("contains %q: use comma-separated absolute folders, but not the whole file system", p)
			}
			paths = append(paths, filepath.Clean(p))
		}
		*to = paths
		return nil
	}
}

// assistantName is how assistants are called (seed 002: at most 20 bytes).
var assistantName = pattern.Lazy(`^[a-z0-9][a-z0-9_-]{0,19}$`)
