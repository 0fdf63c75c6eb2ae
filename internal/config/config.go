// Package config reads the options of the program: command-line flags over the
// environment over a .env file over defaults.
//
// One table (options.go) is the source of truth for names, defaults, help and
// validation; flags, the .env example and the listing are made from it. The
// package never changes the process environment and prints no secret.
package config

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/option"
)

// Names of assistants that DEFAULT_AI_ASSISTANT may hold, besides those of sections.
const (
	AssistantClaude = "claude"
	AssistantCodex  = "codex"
	AssistantDemo   = "demo"
)

// Values of LOG_FORMAT.
const (
	FormatAuto = "auto" // text on a terminal, JSON otherwise
	FormatText = "text"
	FormatJSON = "json"
)

// Drivers of a Database.
const (
	DriverSQLite   = "sqlite"
	DriverPostgres = "postgres"
)

// Secret is a text that does not print itself.
type Secret = option.Secret

// NewSecret returns a Secret that holds text.
func NewSecret(text string) Secret { return option.NewSecret(text) }

// Config is every option of the program, parsed and checked.
type Config struct {
	ListenAddr       string // host:port
	PublicURL        string // without a trailing slash; empty if there is none
	API              bool   // programs with a key may read and delete data over HTTP
	DataDir          string
	Database         Database
	WorkspacePath    string
	BackupDir        string // never empty
	Retention        Retention
	Assistant        string // never empty
	MaxConversations int
	MaxWaiting       int  // messages of one person
	Pairing          bool // owners are asked about strangers
	TurnTimeout      time.Duration
	ShutdownGrace    time.Duration
	ContextTokens    int
	SystemPrompt     string
	Tiers            map[string]Tier // by name: fast, smart, cheap
	Tools            Tools
	Budget           Budget
	Agents           Agents
	Memory           Memory
	Transcribe       Transcribe
	SignIn           SignIn
	Git              Git
	Log              Log

	// Sections are what other packages read, such as platforms and model APIs, as they
	// were given to Load.
	Sections []option.Section

	// Warnings are problems that do not stop the program, one line each.
	Warnings []string

	table  []option.Option
	values map[string]value
}

// Database says where the data is.
type Database struct {
	Driver string // DriverSQLite or DriverPostgres
	Path   string // the file, for SQLite
	URL    Secret // the connection string, for PostgreSQL
}

// Tier is a model by another name.
type Tier struct{ Assistant, Model string }

// Tools configures what assistants may do.
type Tools struct {
	Mode           string // ask or edit
	SecondApprover bool
	Sandbox        string // best, strict or off
	Network        bool   // programs that assistants run may reach Hosts
	Hosts          []string
	Timeout        time.Duration
	ReadPaths      []string // absolute
	Env            []string // names
	Fetch          bool
	MCPConfig      string // a file; empty: no servers
	MaxRounds      int
}

// Budget limits what may be used; zero members limit nothing. Amounts are in
// millionths of a US dollar, days are UTC.
type Budget struct {
	TurnMicros, PersonMicros, DayMicros int64
	TurnTokens, PersonTokens, DayTokens int64
}

// Agents configures external coding agents.
type Agents struct {
	Claude, Codex string   // commands
	Others        string   // "name=command; ..."
	Env           []string // NAME, or agent=NAME
	Hosts         []string // host, or agent=host
	Home          string   // never empty
	Idle          time.Duration
}

// Git says where repositories come from.
type Git struct {
	Hosts []string // host or host:port, in lower case
	Token Secret   // for github.com
}

// Log configures logging.
type Log struct {
	Level  slog.Level
	Format string // FormatAuto, FormatText or FormatJSON
}

// Secrets returns the text of every secret that is set, for a redactor.
func (c Config) Secrets() []string {
	var out []string
	for _, o := range c.table {
		if !o.Secret {
			continue
		}
		// Of an address only the password is secret; the host is wanted in logs.
		if o.Mask != nil {
			continue
		}
		if v := c.values[o.Name]; v.text != "" {
			out = append(out, v.text)
			if lines := strings.ReplaceAll(v.text, `\n`, "\n"); lines != v.text {
				out = append(out, lines) // a key whose line breaks were written as \n
			}
		}
	}
	return append(out, urlPasswords(c.Database.URL.Reveal())...)
}

// Text returns the text of an option that was set, secrets included; ok is false
// for one that has its default.
func (c Config) Text(name string) (text string, ok bool) {
	v, known := c.values[name]
	return v.text, known && v.text != "" && !strings.HasPrefix(v.origin, "default")
}

// SecretFiles returns the files that secrets were read from.
func (c Config) SecretFiles() []string {
	var paths []string
	for _, v := range c.values {
		if path, ok := strings.CutPrefix(v.origin, "file "); ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// Origin returns where the value of an option came from, for people: "default",
// "environment", ".env", "file /run/secrets/token" or "flag --listen-addr".
func (c Config) Origin(name string) string { return c.values[name].origin }

// Pinned reports whether a flag or the environment sets an option, so that what the .env
// file says of it does not count.
func (c Config) Pinned(name string) bool { return c.values[name].pinned }
