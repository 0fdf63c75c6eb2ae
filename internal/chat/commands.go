package chat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/sessions"
)

func (re *repositories) commandsCommand() *command.Command {
	return &command.Command{
		Name:    "commands",
		Usage:   "commands [search]",
		Summary: "list this repository's commands",
		Example: "commands review",
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Needs:   command.Repositories,
		Run:     re.runCommands,
	}
}

// maxListed is how many commands one list shows.
const maxListed = 50

// planNote says what a command has to do with plans, and that its front matter
// decides where its name says something else.
func planNote(name string, def sessions.CommandDef) string {
	is, byName := sessions.MetaOf(name, def.Produces, def.Consumes), sessions.MetaOf(name, "", "")
	does := func(m sessions.CommandMeta) string {
		switch {
		case m.Produces != "" && m.Consumes != "":
			return "executes a plan and writes the next one"
		case m.Produces != "":
			return "writes a plan"
		case m.Consumes != "":
			return "executes a plan"
		}
		return "does not use plans"
	}
	named := byName.Produces != "" || byName.Consumes != ""
	switch {
	case named && (is.Produces != byName.Produces || is.Consumes != byName.Consumes):
		return fmt.Sprintf(" (⚠ %s according to its front matter, although by its name it %s)", does(is), does(byName))
	case is.Produces != "" || is.Consumes != "":
		return " (" + does(is) + ")"
	}
	return ""
}

func (re *repositories) runCommands(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := re.work.Codebase(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	all, err := re.work.Commands(ctx, c.ID)
	if err != nil {
		return command.Reply{}, err
	}
	var b strings.Builder
	shown, search := 0, strings.ToLower(r.Call.Rest)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		def := all[name]
		if !strings.Contains(strings.ToLower(name+" "+def.Description+" "+def.Path), search) {
			continue
		}
		note := planNote(name, def)
		if re.code(name) {
			note = " (⚠ never runs, because the bot has a command of this name: rename the file)"
		}
		if shown++; shown <= maxListed {
			fmt.Fprintf(&b, "- `/%s` %s\n", name, strings.TrimSpace(def.Description+note))
		}
	}
	switch {
	case shown == 0 && search != "":
		return command.Reply{Text: fmt.Sprintf("No command of **%s** matches %q.", c.Name, r.Call.Rest)}, nil
	case shown == 0:
		return command.Reply{Text: fmt.Sprintf("**%s** has no command files. Add Markdown files in `.claude/commands` or `.agents/commands`, or use `/load-commands <folder>`.", c.Name)}, nil
	case shown > maxListed:
		fmt.Fprintf(&b, "\n%d more: `/commands <search>`.", shown-maxListed)
	}
	return command.Reply{Text: b.String()}, nil
}
