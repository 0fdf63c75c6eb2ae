package app

import (
	"maps"
	"slices"
	"strings"

	"remote-agent/internal/config"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/pattern"
	"remote-agent/internal/redact"
)

// secretName is what variables and headers that hold a credential are called.
var secretName = pattern.Lazy(`(?i)key|token|secret|passw|auth|credential|cookie`)

// Secrets returns every secret that the program is given: those of the options,
// of the variables that agents get, and of the servers of MCP_CONFIG. lookup
// finds a variable of the environment; it may be nil.
func Secrets(cfg config.Config, lookup func(name string) (string, bool)) []string {
	all := cfg.Secrets()
	add := func(name, value string) {
		if secretName.MatchString(name) {
			all = append(all, value)
			if _, token, ok := strings.Cut(value, " "); ok { // "Bearer ..."
				all = append(all, token)
			}
		}
	}
	for _, name := range cfg.Agents.Env {
		if _, own, ofOne := strings.Cut(name, "="); ofOne { // "agent=NAME"
			name = own
		}
		if lookup != nil {
			if value, ok := lookup(name); ok {
				add(name, value)
			}
		}
	}
	servers, _ := readMCPConfig(cfg) // what is wrong with the file is told at the start
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		each(servers[name], add)
	}
	return all
}

func each(s mcpserver.Server, add func(name, value string)) {
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			add(name, values[name])
		}
	}
}

// newRedactor returns what keeps the secrets of the program out of texts.
func newRedactor(cfg config.Config, env Env) *redact.Redactor {
	return redact.New(Secrets(cfg, env.Lookup)...)
}
