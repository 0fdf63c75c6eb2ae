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
	for _, name := range cfg.Agents.Env {
		if _, own, ofOne := strings.Cut(name, "="); ofOne { // "agent=NAME"
			name = own
		}
		if lookup != nil {
			if value, ok := lookup(name); ok {
				all = append(all, secretOf(name, value)...)
			}
		}
	}
	servers, _ := readMCPConfig(cfg) // what is wrong with the file is told at the start
	return append(all, serverSecrets(servers)...)
}

// serverSecrets returns the secrets that MCP servers are given.
func serverSecrets(servers map[string]mcpserver.Server) (all []string) {
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		for _, values := range []map[string]string{servers[server].Env, servers[server].Headers} {
			for _, name := range slices.Sorted(maps.Keys(values)) {
				all = append(all, secretOf(name, values[name])...)
			}
		}
	}
	return all
}

// secretOf returns what is secret of a variable or header, if its name says that it is.
func secretOf(name, value string) []string {
	if !secretName.MatchString(name) {
		return nil
	}
	if _, token, ok := strings.Cut(value, " "); ok { // "Bearer ..."
		return []string{value, token}
	}
	return []string{value}
}

// newRedactor returns what keeps the secrets of the program out of texts.
func newRedactor(cfg config.Config, env Env) *redact.Redactor {
	return redact.New(Secrets(cfg, env.Lookup)...)
}
