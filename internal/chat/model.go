package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

func (pf *preferences) modelCommand() *command.Command {
	return &command.Command{
		Name:    "model",
		Usage:   "model [name|fast|smart|cheap]",
		Summary: "show or choose the model",
		Example: "model smart",
		Rank:    13,
		Lane:    command.Ahead,
		Takes:   command.OneWord,
		Run:     pf.runModel,
	}
}

// tierNames are the tiers that a model can be chosen by.
var tierNames = []string{"fast", "smart", "cheap"}

// runModel shows or chooses the model of a conversation. Its assistant stays:
// that is what /handoff is for.
func (pf *preferences) runModel(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) == 0 {
		return command.Reply{Text: pf.listModels(ctx, r)}, nil
	}
	a := pf.assistants[assistant.Name(r.Conv.Assistant)]
	offered := offeredBy(ctx, a)
	if a == nil || a.Model() == "" && len(offered) == 0 && r.Conv.Settings.Model == "" {
		return command.Reply{}, fault.Newf(fault.Unsupported, "The assistant %s chooses its model itself. If it offers others, `%smodel` lists them once it has begun to answer.",
			r.Conv.Assistant, pf.prefix(r.Conv.Key))
	}
	wanted, err := pf.modelNamed(r)
	if err != nil {
		return command.Reply{}, err
	}
	chosen, doubt := wanted, ""
	switch {
	case strings.EqualFold(wanted, "default") || wanted == a.Model():
		chosen, wanted = "", cmp.Or(a.Model(), ownChoice)
	case len(offered) > 0:
		i := slices.IndexFunc(offered, func(m string) bool { return strings.EqualFold(m, wanted) })
		if i < 0 {
			return command.Reply{}, fault.Newf(fault.Invalid, "%s does not offer the model %s. %s", r.Conv.Assistant, wanted, offers(offered, wanted))
		}
		chosen, wanted = offered[i], offered[i]
	default:
		doubt = unlisted(ctx, a, wanted, pf.prefix(r.Conv.Key))
	}
	text := "**%s** answers from the next message on. It gets the whole history except the other model's thinking."
	if a.Model() == "" { // what it was told stays in its session
		text = "Model **%s** from the next message on."
	}
	err = choose(ctx, pf.store, r, "model", wanted, func(s *sessions.Settings) { s.Model = chosen })
	return command.Reply{Text: fmt.Sprintf(text, wanted) + doubt}, err
}

// modelNamed returns the name of the model that a person chooses, by name or by tier.
func (pf *preferences) modelNamed(r command.Request) (string, error) {
	wanted := r.Call.Args[0]
	tier, ok := pf.engine.Live().Tiers[strings.ToLower(wanted)]
	if name := strings.ToLower(wanted); tier.Model == "" && slices.Contains(tierNames, name) {
		return "", fault.Newf(fault.Unsupported, "No model is configured for %s, so the model is unchanged. An operator can set `MODEL_%s`. `%smodel` lists the models.",
			name, strings.ToUpper(name), pf.prefix(r.Conv.Key))
	}
	if ok {
		wanted = tier.Model
		if tier.Provider != "" {
			wanted = tier.Provider + ":" + tier.Model
		}
	}
	if provider, model, ok := strings.Cut(wanted, ":"); ok && pf.assistants[assistant.Name(provider)] != nil {
		if provider != r.Conv.Assistant {
			return "", fault.Newf(fault.Invalid, "%s is a model of %s, but this conversation uses %s. To switch: `%shandoff %s`.",
				model, provider, r.Conv.Assistant, pf.prefix(r.Conv.Key), provider)
		}
		wanted = model
	}
	if pf.placeholder[assistant.Name(r.Conv.Assistant)] {
		return "", fault.New(fault.Unsupported, "This is the demo, which has no model. An operator can set one up with `bot setup model`.")
	}
	if noModel(wanted) {
		return "", fault.New(fault.Invalid, "That is not a model name.")
	}
	return wanted, nil
}

func (pf *preferences) listModels(ctx context.Context, r command.Request) string {
	a := pf.assistants[assistant.Name(r.Conv.Assistant)]
	var b strings.Builder
	now := r.Conv.Settings.Model
	if now == "" && a != nil {
		now = a.Model()
	}
	now = cmp.Or(now, ownChoice)
	fmt.Fprintf(&b, "Assistant **%s**, model **%s**%s.\n", r.Conv.Assistant, now, priceText(now))
	gap := "\n"
	for _, name := range tierNames {
		if t, ok := pf.engine.Live().Tiers[name]; ok {
			fmt.Fprintf(&b, "%s- `%s`: %s%s %s\n", gap, name, t.Model, priceText(t.Model), t.Description)
			gap = ""
		}
	}
	prefix := pf.prefix(r.Conv.Key)
	var ways []string
	offered := offeredBy(ctx, a)
	if len(offered) > 0 {
		ways = append(ways, offers(offered, ""))
	}
	if a != nil && a.Model() != "" || len(offered) > 0 || r.Conv.Settings.Model != "" { // any other agent chooses its model itself
		ways = append(ways, fmt.Sprintf("`%smodel <name>` changes it here; `%smodel default` resets it.", prefix, prefix))
	}
	if others := others(pf.assistants, pf.placeholder, r.Conv.Assistant); len(others) > 0 {
		ways = append(ways, fmt.Sprintf("`%shandoff %s` continues with another assistant.", prefix, strings.Join(others, "|")))
	}
	b.WriteString("\n" + strings.Join(ways, " "))
	return b.String()
}

func priceText(model string) string {
	p, ok := spend.PriceOf(model)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" ($%g in, $%g out per million tokens, as of %s)", p.Input, p.Output, spend.List().Date)
}

// others lists the assistants that a conversation could be handed to.
func others(all map[assistant.Name]assistant.Assistant, placeholder map[assistant.Name]bool, than string) []string {
	var names []string
	for name := range all {
		if string(name) != than && !placeholder[name] {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}
