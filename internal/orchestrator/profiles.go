package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// metaTold is the key of a session's metadata under which it stands what the
// person was told of the profile, so that they are told once.
const metaTold = "profileTold"

// RecallLimits is what a profile says about recall; the zero value limits
// nothing.
type RecallLimits struct {
	Max            int    // memories at most; 0: as many as usual
	WordsOnly      bool   // embeddings are not used
	EmbeddingModel string // embeddings of another model are not used; empty: those of any
}

// LimitsOf returns what a profile says about recall; nil is no profile.
func LimitsOf(p *profile.Profile) RecallLimits {
	if p == nil {
		return RecallLimits{}
	}
	return RecallLimits{Max: p.Memory.Size, WordsOnly: !p.RAG.Enabled, EmbeddingModel: p.RAG.EmbeddingModel}
}

// profileByID returns a profile, or nil where there is none: no id, or one that
// was deleted.
func profileByID(ctx context.Context, tx Tx, id string) (*profile.Profile, error) {
	if id == "" {
		return nil, nil //nolint:nilnil // no profile is no error
	}
	p, err := tx.Agent(ctx, id)
	wrong, _ := errors.AsType[*fault.Error](err)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil //nolint:nilnil // as above
	case wrong != nil && wrong.Kind == fault.Internal && wrong.Public != "": // a row that somebody wrote by hand
		return nil, &refusal{err}
	case err != nil:
		return nil, err
	}
	return &p, nil
}

// applyProfile gives a turn the profile of its session as it is now: what somebody
// changed holds from here on. The person is told of a profile that is gone.
func (w *worker) applyProfile(ctx context.Context, tx Tx, entry sessions.Entry, b *begunTurn) error {
	s := &b.session
	var err error
	if b.profile, err = profileByID(ctx, tx, s.AgentID); err != nil {
		return err
	}
	w.describe(entry, b)
	name := profile.Default
	switch {
	case b.profile != nil:
		name = b.profile.Title()
	case s.AgentName == profile.Default || s.AgentName == "":
		return nil
	default:
		text := fmt.Sprintf("The profile **%s** is gone; I go on here without one.", s.AgentName)
		if err := addNotice(ctx, tx, w.conv.ID, entry.ID, text); err != nil {
			return err
		}
	}
	if name == s.AgentName {
		return nil
	}
	s.AgentName = name
	return tx.UpdateSessionAgent(ctx, s.ID, name)
}

// capped returns a mode as far as the profile lets it go.
func capped(mode approval.Mode, p *profile.Profile) approval.Mode {
	switch {
	case p == nil:
		return mode
	case p.Mode == profile.Ask:
		return approval.ModeAsk
	case p.Mode == profile.Edit && mode == approval.ModeAuto:
		return approval.ModeEdit
	}
	return mode
}

// maxRounds is how many requests a turn makes before a person is asked.
func (w *worker) maxRounds(d decision) int64 {
	rounds := w.o.live().MaxRounds
	if p := d.begun.profile; p != nil && p.MaxIterations > 0 {
		rounds = min(rounds, p.MaxIterations)
	}
	return int64(rounds)
}

// profileModel returns the model that a profile wants in a conversation; empty for
// the assistant's own, with the reason if the profile wants another one.
func (o *Orchestrator) profileModel(p *profile.Profile, conv sessions.Conversation) (model, problem string) {
	if p == nil || p.ModelTier+p.Model == "" {
		return "", ""
	}
	const goesOn = " The conversation's own model answers."
	wanted, provider := p.Model, ""
	if p.ModelTier != "" {
		tier, ok := o.live().Tiers[p.ModelTier]
		if !ok || tier.Model == "" {
			return "", fmt.Sprintf("its model tier %s is not configured here.", p.ModelTier) + goesOn
		}
		wanted, provider = tier.Model, tier.Provider
	} else if before, model, ok := strings.Cut(wanted, ":"); ok && o.config.Assistants[assistant.Name(before)] != nil {
		wanted, provider = model, before
	}
	a := o.config.Assistants[assistant.Name(conv.Assistant)]
	switch {
	case provider != "" && provider != conv.Assistant:
		return "", fmt.Sprintf("its model %s is one of %s, and this conversation belongs to %s.", wanted, provider, conv.Assistant) + goesOn
	case a == nil || a.Model() == "":
		return "", fmt.Sprintf("it wants the model %s, and %s chooses its model itself.", wanted, conv.Assistant)
	}
	return wanted, ""
}

// tellOfProfile tells the person, once for a session, what of the turn's profile
// does not hold here: tools that are gone, a model that cannot be used.
func (h *host) tellOfProfile(ctx context.Context) error {
	p := h.d.begun.profile
	if p == nil {
		return nil
	}
	var problems []string
	if _, problem := h.w.o.profileModel(p, h.w.conv); problem != "" {
		problems = append(problems, problem)
	}
	if len(h.missing) > 0 {
		problems = append(problems, fmt.Sprintf("there is no tool %s here; it works without.", strings.Join(h.missing, ", ")))
	}
	if h.agent && len(p.Plugins)+len(p.MCPServers) > 0 {
		problems = append(problems, fmt.Sprintf("%s brings tools of its own, which plugins do not limit and mcp_servers do not reach; mode does.", h.w.conv.Assistant))
	}
	text := strings.Join(problems, " And ")
	session := &h.d.begun.session
	if told, _ := session.Metadata[metaTold].(string); text == "" || told == text {
		return nil
	}
	return h.w.hold(ctx, func(tx Tx) error {
		if err := addNotice(ctx, tx, h.w.conv.ID, h.d.entry.ID, fmt.Sprintf("⚠ The profile **%s**: %s", p.Title(), text)); err != nil {
			return err
		}
		return tx.UpdateSessionMetadata(ctx, session.ID, sessions.Metadata{metaTold: text})
	})
}

// runAgent shows the profiles, or has the conversation use another one.
func (o *Orchestrator) runAgent(ctx context.Context, r command.Request) (command.Reply, error) {
	prefix := o.prefix(r.Conv.Key.Platform)
	switch {
	case len(r.Call.Args) == 0:
		return o.listAgents(ctx, r)
	case len(r.Call.Args) > 1:
		return command.Reply{}, fault.Newf(fault.Invalid, "Name one profile: `%sagent reviewer`; `%sagent` lists them.", prefix, prefix)
	case strings.EqualFold(r.Call.Args[0], profile.Default):
		return o.switchTo(ctx, r, nil)
	}
	ref, err := profile.ParseRef(r.Call.Args[0])
	if err != nil {
		return command.Reply{}, err
	}
	var p profile.Profile
	err = o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		p, err = tx.FindAgent(ctx, ref)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	return o.switchTo(ctx, r, &p)
}

func (o *Orchestrator) listAgents(ctx context.Context, r command.Request) (command.Reply, error) {
	var all []profile.Profile
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		all, err = tx.ListAgents(ctx, "")
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	if len(all) == 0 {
		return command.Reply{Text: "There are no profiles yet, so the default answers. An operator makes one with `bot agent create`."}, nil
	}
	prefix := o.prefix(r.Conv.Key.Platform)
	var b strings.Builder
	b.WriteString("Profiles:\n\n")
	line := func(used bool, name, about string) {
		mark := ""
		if used {
			mark = ", used here"
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
	fmt.Fprintf(&b, "\n`%sagent <name>` has one answer here, in a fresh session.", prefix)
	return command.Reply{Text: b.String()}, nil
}

// switchTo has a conversation use a profile, nil for the default. Its session ends
// as by a reset. A repeat after a crash does not end a session that began since.
func (o *Orchestrator) switchTo(ctx context.Context, r command.Request, p *profile.Profile) (command.Reply, error) {
	id, title := "", profile.Default
	if p != nil {
		id, title = p.ID, p.Title()
	}
	var same, ended, unscheduled bool
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		same, ended, unscheduled = false, false, false
		conv, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		if same = conv.AgentID == id; same {
			return nil
		}
		settings := conv.Settings
		if p != nil && p.ModelTier+p.Model != "" {
			settings.Model = "" // the profile decides, until somebody chooses again
		}
		if err := tx.UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{AgentID: &id, Settings: &settings}); err != nil {
			return err
		}
		if unscheduled, err = tx.EndSchedule(ctx, conv.ID); err != nil {
			return err
		}
		s, active, err := tx.ActiveSession(ctx, conv.ID)
		if err != nil {
			return err
		}
		if ended = active && !s.StartedAt.After(r.Entry.AcceptedAt); ended {
			if err := tx.DeactivateSession(ctx, s.ID, "agent"); err != nil {
				return err
			}
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "settings.agent", ConversationID: conv.ID, Target: title})
	})
	if err != nil {
		return command.Reply{}, err
	}
	if same {
		return command.Reply{Text: fmt.Sprintf("**%s** is used here already.", title)}, nil
	}
	text := fmt.Sprintf("**%s** answers here from now on, in a fresh session.", title)
	if ended {
		text += " The session before it ended; nothing is deleted."
	}
	if _, runs := o.running.sinceOf(r.Conv.ID); runs {
		text += " The running turn still finishes as it was."
	}
	if unscheduled {
		text += " The standing task of the profile before is off."
	}
	if p != nil && p.Interval > 0 {
		text += fmt.Sprintf(" It has a standing task, %s: `%sschedule on` runs it here.", p.Often(), o.prefix(r.Conv.Key.Platform))
	}
	if _, problem := o.profileModel(p, r.Conv); problem != "" {
		text += " ⚠ But " + problem
	}
	return command.Reply{Text: text}, nil
}

// takeAlong has a conversation go on as another one did whose place it takes: with
// its profile and its standing task.
func takeAlong(ctx context.Context, tx Tx, from, to sessions.Conversation) error {
	if from.AgentID == "" {
		return nil
	}
	if err := tx.UpdateConversation(ctx, to.ID, sessions.ConversationUpdate{AgentID: &from.AgentID}); err != nil {
		return err
	}
	s, ok, err := tx.Schedule(ctx, from.ID)
	if err != nil || !ok {
		return err
	}
	if _, err := tx.EndSchedule(ctx, from.ID); err != nil {
		return err
	}
	s.ConversationID = to.ID
	return tx.SaveSchedule(ctx, &s)
}

// remembersHere reports whether the profile of a turn lets it remember.
func remembersHere(p *profile.Profile) bool { return p == nil || p.Memory.Enabled }

// shortTerm is the array of a turn with no more messages than its profile wants.
func shortTerm(array []messages.Message, p *profile.Profile) []messages.Message {
	if p == nil || p.Memory.ShortTerm == 0 {
		return array
	}
	return messages.Newest(array, p.Memory.ShortTerm)
}
