package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (pf *preferences) agentCommand() *command.Command {
	return &command.Command{
		Name:    "agent",
		Usage:   "agent [name|default]",
		Summary: "show or choose the agent profile",
		Example: "agent reviewer",
		Lane:    command.Ahead,
		Run:     pf.runAgent,
	}
}

// runAgent shows the profiles, or has the conversation use another one.
func (pf *preferences) runAgent(ctx context.Context, r command.Request) (command.Reply, error) {
	prefix := pf.prefix(r.Conv.Key)
	switch {
	case len(r.Call.Args) == 0:
		return pf.listAgents(ctx, r)
	case len(r.Call.Args) > 1:
		return command.Reply{}, fault.Newf(fault.Invalid, "Specify one profile: `%sagent reviewer`. `%sagent` lists them.", prefix, prefix)
	case strings.EqualFold(r.Call.Args[0], profile.Default):
		return pf.switchTo(ctx, r, nil)
	}
	ref, err := profile.ParseRef(r.Call.Args[0])
	if err != nil {
		return command.Reply{}, err
	}
	p, err := store.Within(ctx, pf.store.InRead, func(tx *store.Tx) (profile.Profile, error) { return tx.Profiles().Find(ctx, ref) })
	if err != nil {
		return command.Reply{}, err
	}
	return pf.switchTo(ctx, r, &p)
}

func (pf *preferences) listAgents(ctx context.Context, r command.Request) (command.Reply, error) {
	all, err := store.Within(ctx, pf.store.InRead, func(tx *store.Tx) ([]profile.Profile, error) { return tx.Profiles().List(ctx, "") })
	if err != nil {
		return command.Reply{}, err
	}
	if len(all) == 0 {
		return command.Reply{Text: "There are no profiles yet, so the default is used. An operator can create one with `bot agent create`."}, nil
	}
	prefix := pf.prefix(r.Conv.Key)
	var b strings.Builder
	b.WriteString("Profiles:\n\n")
	line := func(used bool, name, about string) {
		mark := ""
		if used {
			mark = ", in use here"
		}
		if about = wording.Head(strings.Join(strings.Fields(about), " "), 100); about != "" {
			about = ": " + about
		}
		fmt.Fprintf(&b, "- **%s**%s%s\n", name, mark, about)
	}
	line(r.Conv.AgentID == "", profile.Default, "")
	for _, p := range all {
		line(p.ID == r.Conv.AgentID, p.Title(), p.Description)
	}
	fmt.Fprintf(&b, "\n`%sagent <name>` switches to one, in a new session.", prefix)
	return command.Reply{Text: b.String()}, nil
}

// switchTo has a conversation use a profile, nil for the default. Its session ends
// as by a reset. A repeat after a crash does not end a session that began since.
func (pf *preferences) switchTo(ctx context.Context, r command.Request, p *profile.Profile) (command.Reply, error) {
	id, title := "", profile.Default
	if p != nil {
		id, title = p.ID, p.Title()
	}
	was, err := store.Within(ctx, pf.store.InTx, func(tx *store.Tx) (switched, error) {
		was, err := switchProfile(ctx, tx, r, id, p)
		if err != nil || was.same {
			return was, err
		}
		return was, tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "settings.agent", ConversationID: was.conversation, Target: title})
	})
	if err != nil {
		return command.Reply{}, err
	}
	if was.same {
		return command.Reply{Text: fmt.Sprintf("**%s** is already in use here.", title)}, nil
	}
	text := fmt.Sprintf("**%s** is in use here now, in a new session.", title)
	if was.ended {
		text += " The previous session ended; nothing is deleted."
	}
	if _, runs := pf.engine.Running(r.Conv.ID); runs {
		text += " The running turn finishes as it started."
	}
	if was.unscheduled {
		text += " The previous profile's standing task is off."
	}
	if p != nil && p.Interval > 0 {
		text += fmt.Sprintf(" It has a standing task, %s: `%sschedule on` runs it here.", p.Often(), pf.prefix(r.Conv.Key))
	}
	if problem := pf.engine.ModelProblem(p, r.Conv); problem != "" {
		text += " ⚠ But " + problem
	}
	return command.Reply{Text: text}, nil
}

// switched is what a change of profiles met and ended.
type switched struct {
	conversation             string
	same, ended, unscheduled bool
}

// switchProfile gives a conversation another profile, nil for none, and ends its session,
// unless that began with a message that came after the request.
func switchProfile(ctx context.Context, tx *store.Tx, r command.Request, id string, p *profile.Profile) (was switched, err error) {
	conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
	if err != nil {
		return was, err
	}
	was.conversation = conv.ID
	if was.same = conv.AgentID == id; was.same {
		return was, nil
	}
	settings := conv.Settings
	if p != nil && p.ModelTier+p.Model != "" {
		settings.Model = "" // the profile decides, until somebody chooses again
	}
	if err := tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{AgentID: &id, Settings: &settings}); err != nil {
		return was, err
	}
	if was.unscheduled, err = tx.Tasks().EndSchedule(ctx, conv.ID); err != nil {
		return was, err
	}
	s, active, err := tx.Sessions().ActiveSession(ctx, conv.ID)
	if err != nil || !active {
		return was, err
	}
	since, err := tx.Inbox().BegunBehind(ctx, s, r.Entry.Seq)
	if err != nil || since {
		return was, err
	}
	was.ended = true
	return was, tx.Sessions().DeactivateSession(ctx, s.ID, "agent")
}

// profileOf returns the profile of a conversation, or nil where there is none: it
// chose none, or it was deleted.
func profileOf(ctx context.Context, tx *store.Tx, conv sessions.Conversation) (*profile.Profile, error) {
	if conv.AgentID == "" {
		return nil, nil //nolint:nilnil // no profile is no error
	}
	p, err := tx.Profiles().Agent(ctx, conv.AgentID)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil //nolint:nilnil // as above
	case err != nil:
		return nil, err
	}
	return &p, nil
}
