package config

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// list splits a text at commas and spaces.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}

// parseTier reads "assistant:model".
func parseTier(tier string) parser {
	return func(c *Config, text string) error {
		provider, model, ok := strings.Cut(text, ":")
		if !ok || provider == "" || model == "" || strings.ContainsAny(text, " \t\n") {
			return fmt.Errorf("is %q: write the assistant and the model, such as openai:gpt-5-mini", text)
		}
		if c.Tiers == nil {
			c.Tiers = make(map[string]Tier)
		}
		c.Tiers[tier] = Tier{Assistant: provider, Model: model}
		return nil
	}
}

// setDollars reads an amount into millionths of a dollar.
func setDollars(field func(*Config) *int64) parser {
	return func(c *Config, text string) error {
		amount, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
		if err != nil || amount <= 0 || amount > 1e6 || math.IsNaN(amount) {
			return fmt.Errorf("is %q: use an amount in US dollars above 0, such as 2.50", text)
		}
		micros := int64(math.Round(amount * 1e6))
		if micros < 10_000 {
			return fmt.Errorf("is %q: use at least one cent, 0.01", text)
		}
		*field(c) = micros
		return nil
	}
}

func setCount(field func(*Config) *int64) parser {
	return func(c *Config, text string) error {
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		if err != nil || n <= 0 {
			return fmt.Errorf("is %q: use a whole number above 0, such as 500000", text)
		}
		*field(c) = n
		return nil
	}
}

var environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ownSecret reports whether a variable belongs to this program alone. Keys of
// model APIs may be meant for an agent.
func ownSecret(name string) bool {
	for _, prefix := range []string{"TELEGRAM_", "SLACK_", "GITHUB_", "GH_TOKEN", "WEBHOOK_SECRET", "DATABASE_URL"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func parseNames(field func(*Config) *[]string) parser { return parseVariables(field, false) }

// parseAgentNames is parseNames for names that may be for one agent: agent=NAME.
func parseAgentNames(field func(*Config) *[]string) parser { return parseVariables(field, true) }

// parseProgramHosts reads a list of hosts. What they mean is checked where they are used.
func parseProgramHosts(field func(*Config) *[]string) parser {
	return func(c *Config, text string) error {
		*field(c) = list(text)
		return nil
	}
}

func parseVariables(field func(*Config) *[]string, agents bool) parser {
	return func(c *Config, text string) error {
		names := list(text)
		for _, n := range names {
			if _, name, ok := strings.Cut(n, "="); ok && agents {
				n = name
			}
			if !environmentName.MatchString(n) {
				return fmt.Errorf("has %q in it, which is not the name of an environment variable", n)
			}
			if ownSecret(n) {
				return fmt.Errorf("has %s in it, which is a secret of this program: assistants must not see it", n)
			}
		}
		*field(c) = names
		return nil
	}
}

// parsePaths reads absolute folders with commas; a folder may have spaces.
func parsePaths(field func(*Config) *[]string) parser {
	return func(c *Config, text string) error {
		var paths []string
		for p := range strings.SplitSeq(text, ",") {
			p = strings.TrimSpace(p)
			if p == "" {
				continue
			}
			if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
				return fmt.Errorf("has %q in it: use absolute folders with commas, and not the whole system", p)
			}
			paths = append(paths, filepath.Clean(p))
		}
		*field(c) = paths
		return nil
	}
}

// minSecret is the shortest secret for webhooks, in bytes.
const minSecret = 16

func parseLongSecret(field func(*Config) *Secret) parser {
	return func(c *Config, text string) error {
		if len(text) < minSecret {
			return fmt.Errorf("is too short: use %d characters or more, for example from `openssl rand -hex 32`", minSecret)
		}
		return setSecret(field)(c, text)
	}
}

// parsePEM reads a private key. In an environment variable its line breaks may
// be written as \n.
func parsePEM(field func(*Config) *Secret) parser {
	return func(c *Config, text string) error {
		text = strings.ReplaceAll(text, `\n`, "\n")
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return errors.New("is not a private key in PEM: it begins with -----BEGIN, and its line breaks must be there")
		}
		if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if _, isRSA := key.(*rsa.PrivateKey); err != nil || !isRSA {
				return errors.New("is not a usable RSA key: download a new one from the app's page")
			}
		}
		*field(c) = NewSecret(text)
		return nil
	}
}

var mention = regexp.MustCompile(`^@?[A-Za-z0-9][A-Za-z0-9-]{0,58}$`)

func parseMention(c *Config, text string) error {
	if !mention.MatchString(text) {
		return fmt.Errorf("is %q: use a name as GitHub has them, such as @remote-agent", text)
	}
	c.GitHub.Mention = "@" + strings.TrimPrefix(text, "@")
	return nil
}

var login = regexp.MustCompile(`^(?:[0-9]{1,18}|[A-Za-z0-9][A-Za-z0-9-]{0,38})$`)

func parseLogins(c *Config, text string) error {
	names := list(text)
	for _, n := range names {
		if !login.MatchString(strings.TrimPrefix(n, "@")) {
			return fmt.Errorf("has %q in it, which is neither a numeric id nor a login", n)
		}
	}
	if len(names) == 0 {
		return errors.New("names nobody: list ids or logins with commas, or take the option out")
	}
	c.GitHub.Allowed = names
	return nil
}

var repository = regexp.MustCompile(`^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$`)

func parseRepositories(c *Config, text string) error {
	names := list(text)
	for _, n := range names {
		if !repository.MatchString(n) {
			return fmt.Errorf("has %q in it: use owner/name", n)
		}
	}
	c.GitHub.Repositories = names
	return nil
}

// assistantName is how assistants are called (seed 002: at most 20 bytes).
var assistantName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,19}$`)
