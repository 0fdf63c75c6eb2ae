package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
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
func profileByID(ctx context.Context, tx port.Tx, id string) (*profile.Profile, error) {
	if id == "" {
		return nil, nil //nolint:nilnil // no profile is no error
	}
	p, err := tx.Profiles().Agent(ctx, id)
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
func (r *run) applyProfile(ctx context.Context, tx port.Tx) error {
	entry, b := r.d.entry, &r.d.begun
	s := &b.session
	var err error
	if b.profile, err = profileByID(ctx, tx, s.AgentID); err != nil {
		return err
	}
	r.describe()
	name := profile.Default
	switch {
	case b.profile != nil:
		name = b.profile.Title()
	case s.AgentName == profile.Default || s.AgentName == "":
		return nil
	default:
		text := fmt.Sprintf("The profile **%s** was removed; continuing without one.", s.AgentName)
		if err := r.w.notice(ctx, tx, entry, text); err != nil {
			return err
		}
	}
	if name == s.AgentName {
		return nil
	}
	s.AgentName = name
	return tx.Sessions().UpdateSession(ctx, s.ID, sessions.SessionUpdate{AgentName: &name})
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
func (r *run) maxRounds() int64 {
	rounds := r.w.o.config.Live().MaxRounds
	if p := r.d.begun.profile; p != nil && p.MaxIterations > 0 {
		rounds = min(rounds, p.MaxIterations)
	}
	return int64(rounds)
}

// profileModel returns the model that a profile wants in a conversation; empty for
// the assistant's own, with the reason if the profile wants another one.
func (o *Turns) profileModel(p *profile.Profile, conv sessions.Conversation) (model, problem string) {
	if p == nil || p.ModelTier+p.Model == "" {
		return "", ""
	}
	const goesOn = " The conversation's own model is used."
	wanted, provider := p.Model, ""
	if p.ModelTier != "" {
		tier, ok := o.config.Live().Tiers[p.ModelTier]
		if !ok || tier.Model == "" {
			return "", fmt.Sprintf("its model tier %s is not configured here.", p.ModelTier) + goesOn
		}
		wanted, provider = tier.Model, tier.Provider
	} else if before, model, ok := strings.Cut(wanted, ":"); ok && o.config.Assistants[assistant.Name(before)] != nil {
		wanted, provider = model, before
	}
	a := o.config.Assistants[assistant.Name(conv.Assistant)]
	_, agent := a.(assistant.Agent) // says itself if it cannot use a model
	switch {
	case provider != "" && provider != conv.Assistant:
		return "", fmt.Sprintf("its model %s belongs to %s, but this conversation uses %s.", wanted, provider, conv.Assistant) + goesOn
	case a == nil || a.Model() == "" && !agent:
		return "", fmt.Sprintf("its model %s is ignored, because %s chooses its own model.", wanted, conv.Assistant)
	}
	return wanted, ""
}

// ModelProblem says why a profile cannot have the model that it wants in a
// conversation; empty if it can.
func (o *Turns) ModelProblem(p *profile.Profile, conv sessions.Conversation) string {
	_, problem := o.profileModel(p, conv)
	return problem
}

// tellOfProfile tells the person, once for a session, what of the turn's profile
// does not hold here: tools that are gone, a model that cannot be used.
func (h *host) tellOfProfile(ctx context.Context) error {
	p := h.r.d.begun.profile
	if p == nil {
		return nil
	}
	var problems []string
	if _, problem := h.r.w.o.profileModel(p, h.r.w.conv); problem != "" {
		problems = append(problems, problem)
	}
	if len(h.missing) > 0 {
		problems = append(problems, fmt.Sprintf("the tool %s is not available here.", strings.Join(h.missing, ", ")))
	}
	if h.agent && len(p.Plugins) > 0 {
		problems = append(problems, fmt.Sprintf("%s has its own tools, which plugins does not limit, but mode does. It limits only the tools of mcp_servers.", h.r.w.conv.Assistant))
	}
	text := strings.Join(problems, " And ")
	session := &h.r.d.begun.session
	if told, _ := session.Metadata[metaTold].(string); text == "" || told == text {
		return nil
	}
	return h.r.tell(ctx, fmt.Sprintf("⚠ The profile **%s**: %s", p.Title(), text), func(tx port.Tx) error {
		return tx.Sessions().UpdateSession(ctx, session.ID, sessions.SessionUpdate{Metadata: sessions.Metadata{metaTold: text}})
	})
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
