package sessions

import (
	"cmp"
	"strings"
)

// Artifact names what a prompt command leaves behind for another one.
type Artifact string

const (
	// Plan is the artifact of planning commands.
	Plan Artifact = "plan"

	// Nothing is how front matter says that there is no artifact, whatever the
	// name of the file would say.
	Nothing Artifact = "none"
)

// CommandMeta is the place of a prompt command in a workflow.
type CommandMeta struct {
	Name     string   // as people write it
	Produces Artifact // Plan or empty
	Consumes Artifact // Plan or empty
	Declared bool     // the front matter says so, and not the name
}

// MetaOf returns the place of a command: what its front matter says ("produces:
// plan", "consumes: none"), or where that says neither, what its name says.
// Files named plan* make a plan, execute and implement* carry one out. Names are
// compared without regard to case and to "-" and "_".
func MetaOf(name string, produces, consumes Artifact) CommandMeta {
	if produces == "" && consumes == "" {
		byName := strings.ReplaceAll(strings.ToLower(name), "-", "_")
		switch {
		case strings.HasPrefix(byName, "plan"):
			return CommandMeta{Name: name, Produces: Plan}
		case byName == "execute", strings.HasPrefix(byName, "implement"):
			return CommandMeta{Name: name, Consumes: Plan}
		}
		return CommandMeta{Name: name}
	}
	m := CommandMeta{Name: name, Declared: true}
	if produces == Plan {
		m.Produces = Plan
	}
	if consumes == Plan {
		m.Consumes = Plan
	}
	return m
}

// Transition says in which session a message runs.
type Transition string

// The transitions.
const (
	Continue Transition = "continue"     // the active session, or a first one
	Restart  Transition = "plan-execute" // end the active session, start a fresh one
)

// MetaLastProduced remembers the artifact of the last command, so that the rule
// still holds after the command's file has changed or gone. It is missing where
// seed 002's own program wrote the session.
const MetaLastProduced = "lastProduced"

// Next returns the transition for running cmd after what m remembers. A plain
// message is the zero CommandMeta.
//
// It is the whole rule of seed 002: executing a plan must not see the talk that
// led to it, so a command that consumes what the session's last command produced
// starts a fresh session. Everything else continues.
func Next(m Metadata, cmd CommandMeta) Transition {
	produced, _ := m[MetaLastProduced].(string)
	if produced == "" {
		produced = string(MetaOf(m.LastCommand(), "", "").Produces)
	}
	if cmd.Consumes == Plan && Artifact(produced) == Plan {
		return Restart
	}
	return Continue
}

// Remember returns what a session's metadata keeps of having run cmd.
func Remember(cmd CommandMeta) Metadata {
	produced := cmp.Or(cmd.Produces, Nothing)
	return Metadata{MetaLastCommand: cmd.Name, MetaLastProduced: string(produced)}
}
