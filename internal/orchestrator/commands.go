package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// stopPatience is how long /stop waits for the turn to end before it answers.
// An assistant returns within a second of its cancellation.
const stopPatience = 3 * time.Second

func controlCommands() map[string]controlCommand {
	all := []controlCommand{
		{name: "help", usage: "help [command]", summary: "what you can do here", menu: true, run: runHelp},
		{name: "start", usage: "start", summary: "say hello", hidden: true, run: runStart},
		{name: "new", usage: "new", summary: "end this session; the next message starts a fresh one", menu: true, run: runReset},
		{name: "reset", usage: "reset", summary: "the same as new", run: runReset},
		{name: "stop", usage: "stop", summary: "stop the running turn and drop what waits", menu: true, run: runStop},
		{name: "status", usage: "status", summary: "what runs and what waits", menu: true, run: runStatus},
		{name: "whoami", usage: "whoami", summary: "who you are to this bot", menu: true, run: runWhoami},
	}
	byName := make(map[string]controlCommand, len(all))
	for _, c := range all {
		byName[c.name] = c
	}
	return byName
}

// commandNames lists every name a person can type, sorted.
func (o *Orchestrator) commandNames() []string {
	names := []string{commandInvoke}
	for name := range o.commands {
		names = append(names, name)
	}
	for name := range o.prompts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Menu returns the commands for a platform's menu, in the order to show.
func (o *Orchestrator) Menu() []platform.CommandInfo {
	var menu []platform.CommandInfo
	for _, name := range []string{"help", "new", "status", "stop", "whoami"} {
		if c, ok := o.commands[name]; ok && c.menu {
			menu = append(menu, platform.CommandInfo{Name: c.name, Description: c.summary})
		}
	}
	for _, name := range promptNames(o.prompts) {
		menu = append(menu, platform.CommandInfo{Name: name, Description: o.prompts[name].summary})
	}
	return menu
}

// prefix returns what stands before a command's name on a platform.
func (o *Orchestrator) prefix(p messages.Platform) string {
	if a := o.adapters[p]; a != nil {
		if prefix := a.Capabilities().CommandPrefix; prefix != "" {
			return prefix
		}
	}
	return "/"
}

func runStart(_ context.Context, o *Orchestrator, r request) (string, error) {
	prefix := o.prefix(r.conv.Key.Platform)
	hello := "Hello."
	if r.role == sessions.Owner {
		hello = "Hello. You are the owner of this bot."
	}
	return fmt.Sprintf("%s Just write: every message is answered by **%s**. `%shelp` shows the commands.",
		hello, r.conv.Assistant, prefix), nil
}

func runHelp(_ context.Context, o *Orchestrator, r request) (string, error) {
	prefix := o.prefix(r.conv.Key.Platform)
	if len(r.call.Args) > 0 {
		return o.helpFor(strings.TrimPrefix(r.call.Args[0], "/"), prefix), nil
	}
	var b strings.Builder
	b.WriteString("Just write, for example:\n\n")
	b.WriteString("- Why would a Go map panic on write?\n")
	fmt.Fprintf(&b, "- `%splan_feature add a --json flag`, then `%sexecute`\n\n", prefix, prefix)
	b.WriteString("Commands:\n\n")
	for _, name := range []string{"new", "reset", "status", "stop", "whoami", "help"} {
		c := o.commands[name]
		fmt.Fprintf(&b, "- `%s%s` %s\n", prefix, c.usage, c.summary)
	}
	for _, name := range promptNames(o.prompts) {
		p := o.prompts[name]
		fmt.Fprintf(&b, "- `%s%s` %s\n", prefix, p.usage, p.summary)
	}
	b.WriteString("\nCommands work at any time, also while an answer is being written.")
	return b.String(), nil
}

func (o *Orchestrator) helpFor(name, prefix string) string {
	canonical, _ := command.Canonical(name)
	if c, ok := o.commands[canonical]; ok {
		return fmt.Sprintf("`%s%s`: %s.", prefix, c.usage, c.summary)
	}
	if p, ok := o.prompts[canonical]; ok {
		return fmt.Sprintf("`%s%s`: %s.", prefix, p.usage, p.summary)
	}
	return fmt.Sprintf("There is no command `%s%s`. `%shelp` lists what there is.", prefix, head(name, 40), prefix)
}

// runReset ends the active session. A repeat after a crash does not end a
// session that began since.
func runReset(ctx context.Context, o *Orchestrator, r request) (string, error) {
	var (
		ended   bool
		waiting int
	)
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		ended = false
		if _, _, err := tx.GetOrCreateConversation(ctx, r.conv.Key, r.conv.Assistant); err != nil { // locks it
			return err
		}
		s, active, err := tx.ActiveSession(ctx, r.conv.ID)
		if err != nil {
			return err
		}
		if waiting, err = tx.CountWaiting(ctx, r.conv.ID); err != nil {
			return err
		}
		if !active || s.StartedAt.After(r.entry.AcceptedAt) {
			return nil
		}
		ended = true
		if err := tx.DeactivateSession(ctx, s.ID, sessions.Completed, "reset"); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: actor(r.entry.In), Action: "session.reset", ConversationID: r.conv.ID, Target: s.ID,
		})
	})
	if err != nil {
		return "", err
	}
	_, runs := o.running.sinceOf(r.conv.ID)
	text := "Your next message starts a fresh session."
	if ended {
		text = "Session ended; nothing is deleted. " + text
	}
	switch {
	case runs && waiting > 1:
		text += fmt.Sprintf(" The running turn still finishes in the old one; %s.", count(waiting-1, "waiting message starts", "waiting messages start")+" the new one")
	case runs:
		text += " The running turn still finishes in the old one."
	}
	return text, nil
}

func runStop(ctx context.Context, o *Orchestrator, r request) (string, error) {
	var (
		dropped []sessions.Entry
		parked  bool
	)
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		if _, _, err := tx.GetOrCreateConversation(ctx, r.conv.Key, r.conv.Assistant); err != nil { // locks it
			return err
		}
		var err error
		if dropped, err = tx.StopEntries(ctx, r.conv.ID, r.entry.Seq); err != nil {
			return err
		}
		head, ok, err := tx.NextEntry(ctx, r.conv.ID)
		if err != nil {
			return err
		}
		parked = ok && head.Seq < r.entry.Seq
		return tx.Audit(ctx, sessions.AuditEntry{Actor: actor(r.entry.In), Action: "turn.stop", ConversationID: r.conv.ID})
	})
	if err != nil {
		return "", err
	}
	for _, e := range dropped {
		o.unmark(e)
	}
	text := o.stopRunning(ctx, r, parked)
	if len(dropped) > 0 {
		text += fmt.Sprintf(" %s not started; send what you still want again.",
			count(len(dropped), "waiting message was", "waiting messages were"))
	}
	return text, nil
}

// stopRunning ends the turn that runs here, or wakes the one that is parked or
// runs elsewhere, and says how it went.
func (o *Orchestrator) stopRunning(ctx context.Context, r request, active bool) string {
	handle := o.running.stop(r.conv.ID, r.entry.Seq)
	switch {
	case !active:
		return "Nothing is running here."
	case handle == nil:
		// Parked, or on another replica: its holder sees the stop at its next
		// heartbeat; a parked one is settled by whoever claims it now.
		if err := o.Ring(ctx, r.conv.ID); err != nil {
			o.config.Log.InfoContext(ctx, "A stop waits for a free slot", "conversation", r.conv.Key)
		}
		return "⏹ Stopping."
	}
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-handle.done:
		return "⏹ Stopped. What was said so far is kept."
	case <-patience.C:
		return "⏹ Stopping; the work does not end at once."
	case <-ctx.Done():
		return "⏹ Stopping."
	}
}

func runStatus(ctx context.Context, o *Orchestrator, r request) (string, error) {
	var (
		session sessions.Session
		active  bool
		waiting int
	)
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		if session, active, err = tx.ActiveSession(ctx, r.conv.ID); err != nil {
			return err
		}
		waiting, err = tx.CountWaiting(ctx, r.conv.ID)
		return err
	})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	state := "idle"
	since, here := o.running.sinceOf(r.conv.ID)
	switch {
	case here:
		state = "running for " + clock(time.Since(since))
	case waiting > 0:
		state = "waiting"
	}
	queued := waiting
	if here && queued > 0 {
		queued--
	}
	fmt.Fprintf(&b, "**%s**, %s\n\n", state, count(queued, "message waits", "messages wait"))
	model := ""
	if a := o.config.Assistants[assistant.Name(r.conv.Assistant)]; a != nil && a.Model() != "" {
		model = " (" + a.Model() + ")"
	}
	fmt.Fprintf(&b, "- assistant: %s%s\n", r.conv.Assistant, model)
	if active {
		fmt.Fprintf(&b, "- session: `%s`, %s, %s\n", session.ID[len(session.ID)-8:],
			count(int(session.LastSeq), "message", "messages"), clock(time.Since(session.StartedAt))+" old")
		if session.InputTokens+session.OutputTokens > 0 {
			fmt.Fprintf(&b, "- tokens: %d in, %d out\n", session.InputTokens, session.OutputTokens)
		}
	} else {
		b.WriteString("- session: none; the next message starts one\n")
	}
	fmt.Fprintf(&b, "- service: version %s, up %s, %s at work\n", o.config.Version,
		clock(time.Since(o.started)), count(o.running.count(), "conversation", "conversations"))
	return b.String(), nil
}

func runWhoami(_ context.Context, _ *Orchestrator, r request) (string, error) {
	return fmt.Sprintf("You are `%s` on %s, role **%s**.", r.entry.In.Sender.ID, r.conv.Key.Platform, r.role), nil
}

// count writes "1 thing" or "3 things".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
