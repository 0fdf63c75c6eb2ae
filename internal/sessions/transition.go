package sessions

// Artifact names what a prompt command leaves behind for another one.
type Artifact string

// Plan is the artifact of planning commands.
const Plan Artifact = "plan"

// CommandMeta is what the front matter of a prompt command says about its place
// in a workflow ("produces: plan", "consumes: plan").
type CommandMeta struct {
	Name     string // canonical
	Produces Artifact
	Consumes Artifact
}

// Transition says in which session a message runs.
type Transition string

// The transitions.
const (
	Continue Transition = "continue"     // the active session, or a first one
	Restart  Transition = "plan-execute" // end the active session, start a fresh one
)

// MetaLastProduced remembers the artifact of the last command, so that the rule
// still holds after the command's file has changed or gone.
const MetaLastProduced = "lastProduced"

// transitions is the whole rule of seed 002: executing a plan must not see the
// talk that led to it, so a command that consumes what the session's last
// command produced starts a fresh session. Everything else continues.
var transitions = map[struct{ last, next Artifact }]Transition{
	{last: Plan, next: Plan}: Restart,
}

// Next returns the transition for running cmd after what m remembers. A plain
// message is the zero CommandMeta.
func Next(m Metadata, cmd CommandMeta) Transition {
	produced, _ := m[MetaLastProduced].(string)
	if t, ok := transitions[struct{ last, next Artifact }{Artifact(produced), cmd.Consumes}]; ok && cmd.Consumes != "" {
		return t
	}
	return Continue
}

// Remember returns what a session's metadata keeps of having run cmd.
func Remember(cmd CommandMeta) Metadata {
	return Metadata{MetaLastCommand: cmd.Name, MetaLastProduced: string(cmd.Produces)}
}
