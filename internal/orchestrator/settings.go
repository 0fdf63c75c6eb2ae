package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// workCommands are the commands about how assistants work.
func (o *Orchestrator) workCommands() []command.Command {
	return []command.Command{
		{Name: "mode", Usage: "mode [ask|edit|auto]", Summary: "how much may happen without asking", Lane: command.Ahead, Run: o.runMode},
		{Name: "model", Usage: "model [name|fast|smart|cheap]", Summary: "which model answers here", Lane: command.Ahead, Run: o.runModel},
		{Name: "agent", Usage: "agent [name|default]", Summary: "which profile answers here", Lane: command.Ahead, Run: o.runAgent},
		{Name: "schedule", Usage: "schedule [on|off|list]", Summary: "the standing task of the profile here", Run: o.runSchedule},
		{Name: "verbose", Usage: "verbose 0|1|2", Summary: "how much you see while I work", Run: o.runVerbose},
		{Name: "cost", Usage: "cost [week] [by model]", Summary: "what was used here, by you, and today, or by day, model, codebase, person", Run: o.runCost},
		{Name: "approvals", Usage: "approvals", Summary: "what waits for a decision", Run: o.runApprovals},
		{Name: "deny", Usage: "deny a-7 [why]", Summary: "do not allow what was asked", Run: o.runDeny},
		{Name: "allow", Usage: "allow [revoke n]", Summary: "what is always allowed in this codebase", Run: o.runAllow},
		{Name: "fork", Usage: "fork [n] [here|thread]", Summary: "go on from message n of this session, in a fresh one; thread: in a thread or topic of its own, with its own files", Lane: command.Ahead, Run: o.runFork},
		{Name: "handoff", Usage: "handoff <assistant>", Summary: "go on with another assistant, with all that was said", Run: o.runHandoff},
	}
}

// choose changes the settings of a conversation and audits it.
func (o *Orchestrator) choose(ctx context.Context, r command.Request, what, value string, change func(s *sessions.Settings)) error {
	return o.config.Storage.InTx(ctx, func(tx Tx) error {
		conv, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		next := conv.Settings
		change(&next)
		if err := tx.UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{Settings: &next}); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Actor(), Action: "settings." + what, ConversationID: conv.ID, Target: value,
		})
	})
}

// modeText says what a mode means.
func modeText(m approval.Mode) string {
	switch m {
	case approval.ModeAsk:
		return "I only read; nothing is changed and nothing is run"
	case approval.ModeAuto:
		return "nothing asks, for owners; for everybody else as in edit"
	default:
		return "files of the worktree may change, everything else asks first"
	}
}

func (o *Orchestrator) runMode(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) == 0 {
		mode, err := approval.ParseMode(r.Conv.Settings.Mode)
		if err != nil {
			mode = o.config.Mode
		}
		return command.Reply{Text: fmt.Sprintf("Mode **%s**: %s. `%smode ask|edit|auto` changes it.", mode, modeText(mode), o.prefix(r.Conv.Key.Platform))}, nil
	}
	mode, err := approval.ParseMode(r.Call.Args[0])
	if err != nil {
		return command.Reply{}, err
	}
	if mode == approval.ModeAuto && r.Role != sessions.Owner {
		return command.Reply{}, fault.New(fault.Forbidden, "Only an owner of the bot can switch to auto.")
	}
	err = o.choose(ctx, r, "mode", string(mode), func(s *sessions.Settings) { s.Mode = string(mode) })
	return command.Reply{Text: fmt.Sprintf("Mode **%s** from now on: %s.", mode, modeText(mode))}, err
}

func (o *Orchestrator) runVerbose(ctx context.Context, r command.Request) (command.Reply, error) {
	const usage = "Say how much: 0 is the result only, 1 a line for each step, 2 every call with its output."
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, usage)
	}
	level, err := strconv.Atoi(r.Call.Args[0])
	if err != nil || level < verboseResult || level > verboseAll {
		return command.Reply{}, fault.New(fault.Invalid, usage)
	}
	err = o.choose(ctx, r, "verbose", r.Call.Args[0], func(s *sessions.Settings) { s.Verbose = &level })
	return command.Reply{Text: fmt.Sprintf("Level %d from the next turn on.", level)}, err
}

// tierNames are the tiers that a model can be chosen by.
var tierNames = []string{"fast", "smart", "cheap"}

// runModel shows or chooses the model of a conversation. Its assistant stays:
// that is what /handoff is for.
func (o *Orchestrator) runModel(ctx context.Context, r command.Request) (command.Reply, error) {
	a := o.config.Assistants[assistant.Name(r.Conv.Assistant)]
	if len(r.Call.Args) == 0 {
		return command.Reply{Text: o.listModels(r, a)}, nil
	}
	if a == nil || a.Model() == "" {
		return command.Reply{}, fault.Newf(fault.Unsupported, "The assistant %s chooses its model itself.", r.Conv.Assistant)
	}
	wanted := r.Call.Args[0]
	tier, ok := o.live().Tiers[strings.ToLower(wanted)]
	if name := strings.ToLower(wanted); tier.Model == "" && slices.Contains(tierNames, name) {
		return command.Reply{}, fault.Newf(fault.Unsupported, "No model is configured for %s here, so the model stays as it is. An operator sets `MODEL_%s`; `%smodel` lists what there is.",
			name, strings.ToUpper(name), o.prefix(r.Conv.Key.Platform))
	}
	if ok {
		wanted = tier.Model
		if tier.Provider != "" {
			wanted = tier.Provider + ":" + tier.Model
		}
	}
	if provider, model, ok := strings.Cut(wanted, ":"); ok && o.config.Assistants[assistant.Name(provider)] != nil {
		if provider != r.Conv.Assistant {
			return command.Reply{}, fault.Newf(fault.Invalid, "%s is a model of %s, and this conversation belongs to %s. `%shandoff %s` goes on there.",
				model, provider, r.Conv.Assistant, o.prefix(r.Conv.Key.Platform), provider)
		}
		wanted = model
	}
	if len(wanted) > 100 || strings.ContainsFunc(wanted, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return command.Reply{}, fault.New(fault.Invalid, "That is not the name of a model.")
	}
	chosen := wanted
	if strings.EqualFold(wanted, "default") || wanted == a.Model() {
		chosen, wanted = "", a.Model()
	}
	err := o.choose(ctx, r, "model", wanted, func(s *sessions.Settings) { s.Model = chosen })
	return command.Reply{Text: fmt.Sprintf("**%s** answers here from the next turn on. Thoughts of another model are not passed on to it; everything else is.", wanted)}, err
}

func (o *Orchestrator) listModels(r command.Request, a assistant.Assistant) string {
	var b strings.Builder
	now := r.Conv.Settings.Model
	if now == "" && a != nil {
		now = a.Model()
	}
	if now == "" {
		now = "its own choice"
	}
	fmt.Fprintf(&b, "Assistant **%s**, model **%s**%s.\n\n", r.Conv.Assistant, now, priceText(now))
	for _, name := range tierNames {
		if t, ok := o.live().Tiers[name]; ok {
			fmt.Fprintf(&b, "- `%s`: %s%s %s\n", name, t.Model, priceText(t.Model), t.Description)
		}
	}
	prefix := o.prefix(r.Conv.Key.Platform)
	fmt.Fprintf(&b, "\n`%smodel <name>` changes it here, `%smodel default` goes back.", prefix, prefix)
	if others := o.others(r.Conv.Assistant); len(others) > 0 {
		fmt.Fprintf(&b, " `%shandoff %s` goes on with another assistant.", prefix, strings.Join(others, "|"))
	}
	return b.String()
}

func priceText(model string) string {
	p, ok := spend.PriceOf(model)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" ($%g in, $%g out for a million tokens, as of %s)", p.Input, p.Output, spend.List().Date)
}

// others lists the assistants that a conversation could be handed to.
func (o *Orchestrator) others(than string) []string {
	var names []string
	for name := range o.config.Assistants {
		if string(name) != than && !o.config.Placeholder[name] {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// runAllow lists and revokes what is always allowed in the codebase.
func (o *Orchestrator) runAllow(ctx context.Context, r command.Request) (command.Reply, error) {
	if r.Conv.CodebaseID == "" {
		return command.Reply{Text: "There is no codebase here, so nothing is always allowed."}, nil
	}
	if len(r.Call.Args) == 2 && strings.EqualFold(r.Call.Args[0], "revoke") {
		id, err := strconv.ParseInt(r.Call.Args[1], 10, 64)
		if err != nil {
			return command.Reply{}, fault.New(fault.Invalid, "Say which by its number: `/allow revoke 3`.")
		}
		err = o.config.Storage.InTx(ctx, func(tx Tx) error {
			if err := tx.DeleteRule(ctx, r.Conv.CodebaseID, id); err != nil {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "allow.revoke", ConversationID: r.Conv.ID, Target: r.Call.Args[1]})
		})
		if fault.Is(err, fault.NotFound) {
			return command.Reply{}, fault.Newf(fault.NotFound, "There is no rule %d in this codebase. `/allow` lists them.", id)
		}
		return command.Reply{Text: fmt.Sprintf("Rule %d is revoked: the next time I ask again.", id)}, err
	}
	if len(r.Call.Args) > 0 {
		return command.Reply{}, fault.New(fault.Invalid, "`/allow` lists what is always allowed, `/allow revoke 3` takes one back. New ones come from the button under a question.")
	}
	var rules []approval.Rule
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		rules, err = tx.Rules(ctx, r.Conv.CodebaseID)
		return err
	})
	if err != nil || len(rules) == 0 {
		return command.Reply{Text: "Nothing is always allowed in this codebase."}, err
	}
	var b strings.Builder
	b.WriteString("Always allowed in this codebase:\n\n")
	for _, rule := range rules {
		fmt.Fprintf(&b, "- %d: %s `%s` (by %s)\n", rule.ID, rule.Tool, strings.ReplaceAll(rule.Rule, "`", "'"), rule.CreatedBy)
	}
	fmt.Fprintf(&b, "\n`%sallow revoke <number>` takes one back.", o.prefix(r.Conv.Key.Platform))
	return command.Reply{Text: b.String()}, nil
}

const stopPrefix = "stop-"

// stopButton is the id of the button that stops the turn of an entry. It needs
// no record: it does what /stop does, for turns up to that one.
func stopButton(conv sessions.Conversation, seq int64) string {
	return stopPrefix + conv.ID[len(conv.ID)-12:] + "-" + strconv.FormatInt(seq, 10)
}

// pressedStop answers the stop button; ok is false for another button.
func (o *Orchestrator) pressedStop(ctx context.Context, r command.Request) (reply command.Reply, ok bool, err error) {
	rest, ok := strings.CutPrefix(r.Entry.In.Action, stopPrefix)
	if !ok {
		return command.Reply{}, false, nil
	}
	where, digits, _ := strings.Cut(rest, "-")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !strings.HasSuffix(r.Conv.ID, where) || len(where) != 12 || seq > r.Conv.InboxSeq {
		return command.Reply{}, true, fault.New(fault.NotFound, "This button does nothing any more.")
	}
	r.Entry.Seq, r.Call = seq, command.Call{Name: "stop"}
	reply, err = o.runStop(ctx, r)
	if _, whispers := o.adapters[r.Conv.Key.Platform].(platform.Whisperer); whispers && err == nil {
		reply = command.Reply{Note: reply.Text} // the turn itself says that it was stopped
	}
	return reply, true, err
}
