// Package profile holds agent profiles, seed 004's agents: a named configuration
// that says who an assistant is, which tools it is offered, which model answers
// and what is remembered. It has the types, their rules and their form in YAML.
//
// A profile narrows and never widens: what a person may do, what asks first and
// what the service offers at all is decided elsewhere. The package does no I/O.
package profile

import (
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/mcpserver"
)

// Names with a meaning of their own.
const (
	DefaultGroup = "default_group" // seed 004's default
	Default      = "default"       // what is used where no profile was chosen; it has no row
)

// Mode is how much a profile lets happen without asking. It only takes away from
// the mode of the conversation.
type Mode string

// The modes.
const (
	Interactive Mode = "interactive" // seed 004's default: what the conversation's mode says
	Ask         Mode = "ask"         // it only reads
	Edit        Mode = "edit"        // files of the worktree may change, the rest asks, for owners as well
)

// DefaultMaxIterations is seed 004's default.
const DefaultMaxIterations = 15

// Profile is a row of agents. JSON and YAML have the seed's names of the columns;
// in YAML there is only what a person writes.
type Profile struct {
	ID    string `json:"id"    yaml:"-"`
	Name  string `json:"name"  yaml:"name"`
	Group string `json:"group" yaml:"group,omitempty"`

	Description  string `json:"description"   yaml:"description,omitempty"`
	Lore         Texts  `json:"lore"          yaml:"lore,omitempty"`
	Objectives   Texts  `json:"objectives"    yaml:"objectives,omitempty"`
	Knowledge    Texts  `json:"knowledge"     yaml:"knowledge,omitempty"`
	SystemPrompt string `json:"system_prompt" yaml:"system_prompt,omitempty"`

	Interval int64 `json:"interval" yaml:"interval,omitempty"` // seconds; 0: it has no standing task

	// Plugins are the tools that it is offered, as names or patterns of
	// path.Match. Empty means all.
	Plugins Texts `json:"plugins" yaml:"plugins,omitempty"`

	Memory        Memory                      `json:"memory"         yaml:"memory"`
	RAG           RAG                         `json:"rag"            yaml:"rag"`
	Mode          Mode                        `json:"mode"           yaml:"mode"`
	MaxIterations int                         `json:"max_iterations" yaml:"max_iterations"` // requests to the model in a turn before a person is asked
	MCPServers    map[string]mcpserver.Server `json:"mcp_servers"    yaml:"mcp_servers,omitempty"`
	AvatarImage   Image                       `json:"avatar_image,omitempty"     yaml:"avatar_image,omitempty"`
	AvatarType    string                      `json:"avatar_mime_type,omitempty" yaml:"avatar_mime_type,omitempty"`

	// One of them at most: a tier of the service (fast, smart, cheap), or the name
	// of a model. Without both the conversation's own model answers.
	ModelTier string `json:"model_tier,omitempty" yaml:"model_tier,omitempty"`
	Model     string `json:"model,omitempty"      yaml:"model,omitempty"`

	Version   int64     `json:"version"    yaml:"-"` // grows with each change
	CreatedAt time.Time `json:"created_at" yaml:"-"`
	UpdatedAt time.Time `json:"updated_at" yaml:"-"`
}

// Memory is seed 004's type of that name.
type Memory struct {
	Enabled bool `json:"enabled" yaml:"enabled"`

	// ShortTerm caps how many messages of the session a turn sees; the newest turn
	// is always whole. 0: as many as fit.
	ShortTerm int `json:"short_term_memory_size" yaml:"short_term_memory_size,omitempty"`

	// Size caps how many memories are recalled before a turn. 0: the service's own
	// number.
	Size int `json:"memory_size" yaml:"memory_size,omitempty"`
}

// RAG is seed 004's type of that name: whether memories are looked for by their
// embeddings as well as by their words.
type RAG struct {
	Enabled bool `json:"enabled" yaml:"enabled"`

	// EmbeddingModel, if it is set, is the model whose embeddings count. Where the
	// service has another one, memories are found by their words.
	EmbeddingModel string `json:"embedding_model" yaml:"embedding_model,omitempty"`
}

// New returns a profile with the defaults: those of the seed, and memory and
// recall as they are without a profile.
func New(name string) Profile {
	return Profile{
		Name: name, Group: DefaultGroup, Memory: Memory{Enabled: true}, RAG: RAG{Enabled: true},
		Mode: Interactive, MaxIterations: DefaultMaxIterations,
	}
}

// Every is how often the standing task runs; 0 for never.
func (p Profile) Every() time.Duration { return time.Duration(p.Interval) * time.Second }

// Often says in words how often the standing task runs: "every 2 hours".
func (p Profile) Often() string {
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"day", 24 * 3600}, {"hour", 3600}, {"minute", 60}, {"second", 1}} {
		switch n := p.Interval / unit.seconds; {
		case p.Interval <= 0:
			return "never"
		case p.Interval%unit.seconds != 0:
		case n == 1:
			return "every " + unit.name
		default:
			return fmt.Sprintf("every %d %ss", n, unit.name)
		}
	}
	return ""
}

// Title is how people call the profile: its name, with the group where that is
// not the default one.
func (p Profile) Title() string {
	if p.Group == "" || p.Group == DefaultGroup {
		return p.Name
	}
	return p.Group + "/" + p.Name
}

// Same reports whether two profiles say the same, whatever their rows are.
func (p Profile) Same(q Profile) bool {
	a, errA := Format(p)
	b, errB := Format(q)
	return errA == nil && errB == nil && slices.Equal(a, b)
}
