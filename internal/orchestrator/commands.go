package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// stopPatience is how long /stop waits for the turn to end before it answers.
// An assistant returns within a second of its cancellation.
const stopPatience = 3 * time.Second

// registry is the commands by name.
type registry struct {
	o        *Orchestrator
	commands map[string]command.Command
}

// Find implements Commands.
func (all registry) Find(name string) (command.Command, bool) {
	c, ok := all.commands[name]
	return c, ok
}

// Unknown says what was probably meant.
func (all registry) Unknown(ctx context.Context, r command.Request) (command.Reply, error) {
	o := all.o
	prefix, name := o.prefix(r.Conv.Key.Platform), r.Call.Invoked().Name
	if name == command.Invoke {
		return command.Reply{Text: fmt.Sprintf("Name a command: `%[1]scommand-invoke plan-feature add a flag`. `%[1]shelp` and `%[1]scommands` list what there is.", prefix)}, nil
	}
	if _, ok := all.commands[name]; ok {
		return command.Reply{Text: fmt.Sprintf("`%[1]s%[2]s` is sent as it is, without `%[1]scommand-invoke`.", prefix, name)}, nil
	}
	files, err := o.commandFiles(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	text := fmt.Sprintf("There is no command `%s%s`.", prefix, name)
	if near, ok := command.Nearest(name, slices.Concat(o.CommandNames(), slices.Sorted(maps.Keys(files)))); ok {
		return command.Reply{Text: text + fmt.Sprintf(" Did you mean `%s%s`?", prefix, near)}, nil
	}
	return command.Reply{Text: text + fmt.Sprintf(" `%shelp` lists what there is.", prefix)}, nil
}

// Press implements Commands.
func (all registry) Press(ctx context.Context, r command.Request) (command.Reply, error) {
	o := all.o
	if reply, ok, err := o.pressedStop(ctx, r); ok {
		return reply, err
	}
	if o.config.Pressed == nil {
		return command.Reply{}, fault.New(fault.NotFound, "This button does nothing any more.")
	}
	return o.config.Pressed(ctx, r)
}

func (o *Orchestrator) builtinCommands() []command.Command {
	return []command.Command{
		{Name: "help", Usage: "help [command]", Summary: "what you can do here", Menu: true, Run: o.runHelp},
		{Name: "start", Usage: "start", Summary: "say hello", Hidden: true, Run: o.runStart},
		{Name: "new", Usage: "new", Summary: "end this session; the next message starts a fresh one", Menu: true, Lane: command.Ahead, Run: o.runReset},
		{Name: "reset", Usage: "reset", Summary: "the same as new", Lane: command.Ahead, Run: o.runReset},
		{Name: "stop", Usage: "stop", Summary: "stop the running turn and drop what waits", Menu: true, Run: o.runStop},
		{Name: "status", Usage: "status [verbose]", Summary: "what runs and what waits; verbose: also the system prompt", Menu: true, Run: o.runStatus},
		{Name: "whoami", Usage: "whoami", Summary: "who you are to this bot", Menu: true, Run: o.runWhoami},
	}
}

// CommandNames lists every name of a command that a person can type, sorted;
// those of command files in repositories are not among them.
func (o *Orchestrator) CommandNames() []string {
	names := []string{command.Invoke}
	for name := range o.commands.(registry).commands {
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
	for _, c := range o.listed() {
		if c.Menu {
			menu = append(menu, platform.CommandInfo{Name: c.Name, Description: c.Summary})
		}
	}
	return menu
}

// listed returns the commands in the order in which people read them: talking
// first, then work, the rest after it.
func (o *Orchestrator) listed() []command.Command {
	var list []command.Command
	for _, name := range []string{"new", "status", "stop"} {
		c, _ := o.commands.Find(name)
		list = append(list, c)
	}
	for _, name := range []string{"plan", "execute"} {
		p := o.prompts[name]
		list = append(list, command.Command{Name: name, Usage: p.Usage, Summary: p.Summary, Menu: true})
	}
	for _, c := range slices.Concat(o.config.Commands, o.workCommands()) {
		if !c.Hidden {
			list = append(list, c)
		}
	}
	for _, name := range []string{"whoami", "reset", "help"} {
		c, _ := o.commands.Find(name)
		list = append(list, c)
	}
	return list
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

func (o *Orchestrator) runStart(_ context.Context, r command.Request) (command.Reply, error) {
	prefix := o.prefix(r.Conv.Key.Platform)
	hello := "Hello."
	if r.Role == sessions.Owner {
		hello = "Hello. You are the owner of this bot."
	}
	return command.Reply{Text: fmt.Sprintf("%s Just write: every message is answered by **%s**. `%shelp` shows the commands.",
		hello, r.Conv.Assistant, prefix)}, nil
}

func (o *Orchestrator) runHelp(ctx context.Context, r command.Request) (command.Reply, error) {
	prefix := o.prefix(r.Conv.Key.Platform)
	if len(r.Call.Args) > 0 {
		files, err := o.commandFiles(ctx, r.Conv)
		return command.Reply{Text: o.helpFor(strings.TrimPrefix(r.Call.Args[0], "/"), prefix, files)}, err
	}
	var b strings.Builder
	b.WriteString("Just write, for example:\n\n")
	b.WriteString("- Why would a Go map panic on write?\n")
	fmt.Fprintf(&b, "- `%splan add a --json flag`, then `%sexecute`\n\n", prefix, prefix)
	b.WriteString("Commands:\n\n")
	for _, c := range o.listed() {
		fmt.Fprintf(&b, "- `%s%s` %s\n", prefix, c.Usage, c.Summary)
	}
	b.WriteString("\nCommands work at any time, also while an answer is being written.")
	return command.Reply{Text: b.String()}, nil
}

// commandFiles returns the commands that the codebase of a conversation brings.
func (o *Orchestrator) commandFiles(ctx context.Context, conv sessions.Conversation) (files map[string]sessions.CommandDef, err error) {
	if o.config.Workshop == nil || conv.CodebaseID == "" {
		return nil, nil
	}
	err = o.config.Storage.InRead(ctx, func(tx Tx) error {
		files, err = tx.CodebaseCommands(ctx, conv.CodebaseID)
		return err
	})
	return files, err
}

func (o *Orchestrator) helpFor(name, prefix string, files map[string]sessions.CommandDef) string {
	canonical, _ := command.Canonical(name)
	if c, ok := o.commands.Find(canonical); ok {
		return fmt.Sprintf("`%s%s`: %s.", prefix, c.Usage, c.Summary)
	}
	if canonical == command.Invoke {
		return fmt.Sprintf("`%scommand-invoke <name> [arguments]`: run a command of the repository, or `plan-feature` or `execute`, by its name.", prefix)
	}
	if def, ok := files[canonical]; ok {
		if def.Path == "" {
			return fmt.Sprintf("`%[1]s%[2]s`: %[3]s, so none of them runs. `%[1]scommand-set %[2]s <path>` chooses.", prefix, canonical, def.Description)
		}
		return strings.TrimSpace(fmt.Sprintf("`%s%s [arguments]` runs `%s` of the repository. %s", prefix, canonical, def.Path, def.Description))
	}
	if p, ok := o.prompts[canonical]; ok {
		return fmt.Sprintf("`%s%s`: %s.", prefix, p.Usage, p.Summary)
	}
	return fmt.Sprintf("There is no command `%s%s`. `%shelp` lists what there is.", prefix, wording.Head(name, 40), prefix)
}

// endedSession is the note on the entry of a command that has ended a session.
const endedSession = "ended the session"

// runReset ends the active session. A repeat after a crash does not end a
// session that began since, and says the same.
func (o *Orchestrator) runReset(ctx context.Context, r command.Request) (command.Reply, error) {
	var (
		ended   bool
		waiting int
	)
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		ended = false
		if _, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant); err != nil { // locks it
			return err
		}
		s, active, err := tx.ActiveSession(ctx, r.Conv.ID)
		if err != nil {
			return err
		}
		if waiting, err = tx.CountWaiting(ctx, r.Conv.ID); err != nil {
			return err
		}
		if current, err := tx.Entry(ctx, r.Entry.ID); err != nil || current.Error == endedSession {
			ended = err == nil
			return err
		}
		if !active || s.StartedAt.After(r.Entry.AcceptedAt) {
			return nil
		}
		ended = true
		if err := tx.UpdateEntry(ctx, r.Entry.ID, sessions.EntryUpdate{Error: new(endedSession)}); err != nil {
			return err
		}
		if err := tx.DeactivateSession(ctx, s.ID, "reset"); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Entry.In.Actor(), Action: "session.reset", ConversationID: r.Conv.ID, Target: s.ID,
		})
	})
	if err != nil {
		return command.Reply{}, err
	}
	_, runs := o.running.sinceOf(r.Conv.ID)
	text := "Your next message starts a fresh session."
	if ended {
		text = "Session ended; nothing is deleted. " + text
	}
	switch {
	case runs && waiting > 1:
		text += fmt.Sprintf(" The running turn still finishes in the old one; %s.", wording.Count(waiting-1, "waiting message starts", "waiting messages start")+" the new one")
	case runs:
		text += " The running turn still finishes in the old one."
	}
	return command.Reply{Text: text}, nil
}

func (o *Orchestrator) runStop(ctx context.Context, r command.Request) (command.Reply, error) {
	var (
		dropped []sessions.Entry
		parked  bool
	)
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		if _, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant); err != nil { // locks it
			return err
		}
		var err error
		if dropped, err = tx.StopEntries(ctx, r.Conv.ID, r.Entry.Seq); err != nil {
			return err
		}
		for _, e := range dropped { // one that waits to begin may have asked whether to clone
			if err := o.cancelQuestions(ctx, tx, e); err != nil {
				return err
			}
		}
		head, ok, err := tx.NextEntry(ctx, r.Conv.ID)
		if err != nil {
			return err
		}
		parked = ok && head.Seq <= r.Entry.Seq
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Entry.In.Actor(), Action: "turn.stop", ConversationID: r.Conv.ID})
	})
	if err != nil {
		return command.Reply{}, err
	}
	for _, e := range dropped {
		o.unmark(e)
	}
	text := o.stopRunning(ctx, r, parked)
	if len(dropped) > 0 {
		_ = o.Ring(ctx, r.Conv.ID) // shows what became of questions; else the sweep does
		text += fmt.Sprintf(" %s not started; send what you still want again.",
			wording.Count(len(dropped), "waiting message was", "waiting messages were"))
	}
	return command.Reply{Text: text}, nil
}

// stopRunning ends the turn that runs here, or wakes the one that is parked or
// runs elsewhere, and says how it went.
func (o *Orchestrator) stopRunning(ctx context.Context, r command.Request, active bool) string {
	handle := o.running.stop(r.Conv.ID, r.Entry.Seq)
	switch {
	case !active:
		return "Nothing is running here."
	case handle == nil:
		// Parked, or on another replica: its holder sees the stop at its next
		// heartbeat; a parked one is settled by whoever claims it now.
		if err := o.Ring(ctx, r.Conv.ID); err != nil {
			o.config.Log.InfoContext(ctx, "A stop waits for a free slot", "conversation", r.Conv.Key)
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

func (o *Orchestrator) runStatus(ctx context.Context, r command.Request) (command.Reply, error) {
	var (
		session sessions.Session
		active  bool
		waiting int
		used    *profile.Profile
		halt    sessions.ServiceState
	)
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		if session, active, err = tx.ActiveSession(ctx, r.Conv.ID); err != nil {
			return err
		}
		if used, err = profileByID(ctx, tx, r.Conv.AgentID); err != nil {
			return err
		}
		if halt, err = tx.ServiceState(ctx); err != nil {
			return err
		}
		waiting, err = tx.CountWaiting(ctx, r.Conv.ID)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	var b strings.Builder
	state := "idle"
	since, here := o.running.sinceOf(r.Conv.ID)
	switch {
	case here:
		state = "running for " + wording.Clock(time.Since(since))
	case waiting > 0:
		state = "waiting"
	}
	queued := waiting
	if here && queued > 0 {
		queued--
	}
	fmt.Fprintf(&b, "**%s**, %s\n\n", state, wording.Count(queued, "message waits", "messages wait"))
	if halt.Halted() {
		fmt.Fprintf(&b, "- %s\n", haltLine(halt))
	}
	model := ""
	if a := o.config.Assistants[assistant.Name(r.Conv.Assistant)]; a != nil && a.Model() != "" {
		model = " (" + cmp.Or(r.Conv.Settings.Model, a.Model()) + ")"
	}
	fmt.Fprintf(&b, "- assistant: %s%s\n", r.Conv.Assistant, model)
	if active {
		fmt.Fprintf(&b, "- session: `%s`, %s, %s\n", session.ID[len(session.ID)-8:],
			wording.Count(int(session.LastSeq), "message", "messages"), wording.Clock(time.Since(session.StartedAt))+" old")
		if session.InputTokens+session.OutputTokens > 0 {
			fmt.Fprintf(&b, "- tokens: %d in, %d out\n", session.InputTokens, session.OutputTokens)
		}
	} else {
		b.WriteString("- session: none; the next message starts one\n")
	}
	if used != nil {
		fmt.Fprintf(&b, "- profile: %s, version %d\n", used.Title(), used.Version)
	}
	if o.config.Workshop != nil {
		for _, line := range o.config.Workshop.Status(ctx, r.Conv) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	if o.config.Toolroom != nil {
		mode, err := approval.ParseMode(r.Conv.Settings.Mode)
		if err != nil {
			mode = o.config.Mode
		}
		fmt.Fprintf(&b, "- mode: %s, %s\n", mode, modeText(mode))
		for _, line := range o.config.Toolroom.Status() {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	fmt.Fprintf(&b, "- service: version %s, up %s, %s at work\n", o.config.Version,
		wording.Clock(time.Since(o.started)), wording.Count(o.running.count(), "conversation", "conversations"))
	if len(r.Call.Args) > 0 && strings.EqualFold(r.Call.Args[0], "verbose") {
		b.WriteString(o.promptStatus(r, session, used))
	}
	return command.Reply{Text: b.String()}, nil
}

func (o *Orchestrator) runWhoami(_ context.Context, r command.Request) (command.Reply, error) {
	return command.Reply{Text: fmt.Sprintf("You are `%s` on %s, role **%s**.", r.Entry.In.Sender.ID, r.Conv.Key.Platform, r.Role)}, nil
}
