package chat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// commands are all there are, in the order in which people read them: talking
// first, then work, the rest after it.
func (h *Handler) commands() []*command.Command {
	return []*command.Command{
		h.newSessions.newCommand(),
		h.overview.statusCommand(),
		h.turns.stopCommand(),
		h.turns.fullCommand(),
		planCommand(),
		executeCommand(),
		h.decisions.approveCommand(),
		h.decisions.editCommand(),
		h.decisions.rejectCommand(),
		h.repositories.cloneCommand(),
		h.repositories.reposCommand(),
		h.repositories.repoCommand(),
		h.repositories.commandsCommand(),
		h.branches.diffCommand(),
		h.turns.undoCommand(),
		h.branches.pullCommand(),
		h.turns.retryCommand(),
		h.branches.branchCommand(),
		h.repositories.setCwdCommand(),
		h.repositories.getCwdCommand(),
		h.repositories.loadCommandsCommand(),
		h.repositories.commandSetCommand(),
		invokeCommand(),
		h.history.sessionsCommand(),
		h.memories.memoryCommand(),
		h.memories.rememberCommand(),
		h.memories.forgetCommand(),
		h.memories.linkCommand(),
		h.memories.unlinkCommand(),
		h.access.peopleCommand(),
		h.access.ownerCommand(),
		h.overview.doctorCommand(),
		h.access.haltCommand(),
		h.access.resumeCommand(),
		h.preferences.modeCommand(),
		h.preferences.modelCommand(),
		h.preferences.agentCommand(),
		h.schedules.scheduleCommand(),
		h.preferences.verboseCommand(),
		h.costs.costCommand(),
		h.decisions.approvalsCommand(),
		h.decisions.denyCommand(),
		h.decisions.allowCommand(),
		h.newSessions.forkCommand(),
		h.newSessions.handoffCommand(),
		whoamiCommand(),
		webCommand(h.link),
		h.startCommand(),
		h.helpCommand(),
	}
}

// register takes the commands that this installation can run.
func (h *Handler) register(all []*command.Command) error {
	for _, written := range all {
		c := *written
		if c.Needs != command.Nothing && !h.has[c.Needs] {
			continue
		}
		if c.Takes != command.Any {
			c.Run = noMore(c)
		}
		switch {
		case c.Owners:
			c.Run = forOwners(c.Run)
		case c.Run != nil && c.Reading != command.ReadingAnywhere:
			c.Run = notForReaders(c.Run, c.Reading)
		}
		h.list = append(h.list, c)
		for _, name := range c.Names() {
			if canonical, ok := command.Canonical(name); !ok || canonical != name {
				return fmt.Errorf("%q is not a valid command name", name)
			}
			if _, twice := h.byName[name]; twice {
				return fmt.Errorf("command %q is defined twice", name)
			}
			h.byName[name] = c
		}
	}
	h.names = slices.Sorted(maps.Keys(h.byName))
	return nil
}

// noMore refuses a command behind which more stands than it takes. What stands on the
// lines below it is the person's next message, unless it is a command: comments say why
// they give one.
func noMore(c command.Command) command.Run {
	most := int(c.Takes - command.NoWord)
	return func(ctx context.Context, r command.Request) (command.Reply, error) {
		line, below, _ := strings.Cut(strings.TrimSpace(r.Entry.In.Text), "\n")
		below = strings.TrimSpace(below)
		call, _ := command.Parse(line)
		if _, another := command.Parse(below); another || len(call.Args) > most {
			return command.Reply{}, fault.Newf(fault.Invalid, "%q was not understood, so nothing was done. Usage: `/%s`.",
				wording.Cut(strings.Join(r.Call.Args[min(len(call.Args), most):], " "), 40), c.Usage)
		}
		r.Call = call
		reply, err := c.Run(ctx, r)
		if err == nil {
			reply.Then = below
		}
		return reply, err
	}
}

// forOwners refuses a command to everybody else.
func forOwners(run command.Run) command.Run {
	return func(ctx context.Context, r command.Request) (command.Reply, error) {
		if r.Role != sessions.Owner {
			return command.Reply{}, fault.New(fault.Forbidden, "Only an owner of the bot can do that.")
		}
		return run(ctx, r)
	}
}

// notForReaders refuses a command to people who may only ask; where they read alone
// they can give one that changes no more than their talk.
func notForReaders(run command.Run, reading command.Reading) command.Run {
	return func(ctx context.Context, r command.Request) (command.Reply, error) {
		switch {
		case r.Role != sessions.Reader, reading == command.ReadingAside && private(r.Entry.In):
			return run(ctx, r)
		case reading == command.ReadingAside:
			return command.Reply{}, fault.New(fault.Forbidden, "You have read-only access. Use this command in a private chat with me.")
		}
		return command.Reply{}, errReadOnly()
	}
}

// errReadOnly refuses what somebody with read-only access cannot do.
func errReadOnly() error {
	return fault.New(fault.Forbidden, "You have read-only access: you can ask questions but not change anything. An owner can give you full access.")
}

// may reports whether somebody with a role can give a command in a private chat, or
// in one that others read.
func may(c command.Command, role sessions.Role, alone bool) bool {
	switch {
	case role == sessions.Owner:
		return true
	case c.Owners:
		return false
	case role == sessions.Reader:
		return c.Reading == command.ReadingAnywhere || c.Reading == command.ReadingAside && alone
	}
	return true
}

// Find returns the command of a canonical name or an alias.
func (h *Handler) Find(name string) (command.Command, bool) {
	c, ok := h.byName[name]
	return c, ok
}

// isCode reports whether a name is of a command that no file of a repository replaces.
func (h *Handler) isCode(name string) bool {
	c, ok := h.Find(name)
	return ok && c.Prompt == nil
}

// Names lists every name that a person can type, sorted; those of command files in
// repositories are not among them. The caller must not change the list.
func (h *Handler) Names() []string { return h.names }

// offered returns the commands that a platform offers, in order.
func (h *Handler) offered(caps platform.Capabilities) []command.Command {
	return slices.DeleteFunc(slices.Clone(h.list), func(c command.Command) bool {
		return c.Hidden || c.Where == command.Aside && caps.Comments
	})
}

// Menu returns the commands for the menu of a platform, in the order to show.
func (h *Handler) Menu(caps platform.Capabilities) []platform.CommandInfo {
	var menu []platform.CommandInfo
	for _, c := range h.offered(caps) {
		if c.Menu {
			menu = append(menu, platform.CommandInfo{Name: c.Name, Description: c.Summary})
		}
	}
	return menu
}

// Unknown says what was probably meant by a name that no command has.
func (h *Handler) Unknown(ctx context.Context, r command.Request) (command.Reply, error) {
	prefix, name := h.prefix(r.Conv.Key), r.Call.Invoked().Name
	if name == command.Invoke {
		return reply("Specify a command: `%[1]scommand-invoke plan-feature add a flag`. `%[1]shelp` and `%[1]scommands` list them.", prefix)
	}
	if _, ok := h.Find(name); ok {
		return reply("Send `%[1]s%[2]s` without `%[1]scommand-invoke`.", prefix, name)
	}
	files, err := h.commandFiles(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	text := fmt.Sprintf("There is no command `%s%s`.", prefix, name)
	if near, ok := command.Nearest(name, slices.Concat(h.Names(), slices.Sorted(maps.Keys(files)))); ok {
		return reply("%s Did you mean `%s%s`?", text, prefix, near)
	}
	return reply("%s `%shelp` lists the commands.", text, prefix)
}
