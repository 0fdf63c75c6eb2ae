package chat

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/order"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// inShort is how many commands the short help names. With what stands around them
// it has at most ten lines, also where a list is set apart by an empty one.
const inShort = 7

func (h *Handler) helpCommand() *command.Command {
	return &command.Command{
		Name:    "help",
		Usage:   "help [all|command]",
		Summary: "show what you can do here",
		Details: "`help all` lists every command.",
		Example: "help plan",
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Run:     h.runHelp,
	}
}

func (h *Handler) runHelp(ctx context.Context, r command.Request) (command.Reply, error) {
	caps, prefix := h.caps(r.Conv.Key.Platform), h.prefix(r.Conv.Key)
	offered := slices.DeleteFunc(h.offered(caps), func(c command.Command) bool { return !may(c, r.Role, private(r.Entry.In)) })
	switch {
	case len(r.Call.Args) == 0:
		return command.Reply{Text: folded(caps, "What you can do here", shortHelp(offered, prefix))}, nil
	case strings.EqualFold(r.Call.Args[0], "all"):
		return command.Reply{Text: folded(caps, "All commands", longHelp(offered, prefix))}, nil
	}
	files, err := h.commandFiles(ctx, r.Conv)
	return command.Reply{Text: h.helpFor(strings.TrimPrefix(r.Call.Args[0], "/"), prefix, files)}, err
}

// folded puts a text into a fold where messages are comments that stay in everybody's
// way.
func folded(caps platform.Capabilities, title, text string) string {
	if !caps.Comments {
		return text
	}
	return fmt.Sprintf("<details>\n<summary>%s</summary>\n\n%s\n\n</details>", title, text)
}

// shortHelp names the commands that people need first, in at most ten lines.
func shortHelp(offered []command.Command, prefix string) string {
	ranked := slices.DeleteFunc(slices.Clone(offered), func(c command.Command) bool { return c.Rank == 0 })
	order.By(ranked, func(a, b command.Command) int { return cmp.Compare(a.Rank, b.Rank) })
	var b strings.Builder
	b.WriteString("Just write what you want, such as *Why would a Go map panic on write?*\n")
	for _, c := range ranked[:min(inShort, len(ranked))] {
		fmt.Fprintf(&b, "- `%s%s` %s\n", prefix, c.Usage, c.Summary)
	}
	fmt.Fprintf(&b, "- `%[1]shelp all` every command, `%[1]shelp <command>` one of them with an example", prefix)
	return b.String()
}

// longHelp names all commands.
func longHelp(offered []command.Command, prefix string) string {
	var b strings.Builder
	for _, c := range offered {
		fmt.Fprintf(&b, "- `%s%s` %s%s\n", prefix, c.Usage, c.Summary, alsoCalled(c, prefix))
	}
	fmt.Fprintf(&b, "\nCommands work at any time, also while an answer is being written. `%shelp <command>` explains one.", prefix)
	return b.String()
}

// commandFiles returns the commands that the codebase of a conversation brings.
func (h *Handler) commandFiles(ctx context.Context, conv sessions.Conversation) (map[string]sessions.CommandDef, error) {
	if !h.has[command.Repositories] || conv.CodebaseID == "" {
		return nil, nil
	}
	return store.Within(ctx, h.store.InRead, func(tx *store.Tx) (map[string]sessions.CommandDef, error) {
		return tx.Registry().CodebaseCommands(ctx, conv.CodebaseID)
	})
}

func (h *Handler) helpFor(name, prefix string, files map[string]sessions.CommandDef) string {
	canonical, _ := command.Canonical(name)
	c, known := h.Find(canonical)
	if def, ok := files[canonical]; ok && (!known || c.Prompt != nil) { // a repository's own /plan goes first
		if def.Path == "" {
			return fmt.Sprintf("`%[1]s%[2]s`: %[3]s, so none of them runs. Choose with `%[1]scommand-set %[2]s <path>`.", prefix, canonical, def.Description)
		}
		return strings.TrimSpace(fmt.Sprintf("`%s%s [arguments]` runs `%s` of the repository. %s", prefix, canonical, def.Path, def.Description))
	}
	if !known {
		text := fmt.Sprintf("There is no command `%s%s`.", prefix, wording.Head(name, 40))
		if near, ok := command.Nearest(canonical, slices.Concat(h.Names(), slices.Sorted(maps.Keys(files)))); ok {
			return fmt.Sprintf("%s Did you mean `%s%s`?", text, prefix, near)
		}
		return fmt.Sprintf("%s `%shelp all` lists them.", text, prefix)
	}
	text := fmt.Sprintf("`%s%s`: %s%s.", prefix, c.Usage, c.Summary, alsoCalled(c, prefix))
	if c.Details != "" {
		text += " " + c.Details
	}
	return text + fmt.Sprintf("\n\n- Example: `%s%s`\n- Who: %s\n- Where: %s", prefix, c.Example, who(c), where(c))
}

// who says who may give a command.
func who(c command.Command) string {
	switch {
	case c.Owners:
		return "owners"
	case c.Reading == command.NotReading:
		return "everyone except people with read-only access"
	}
	return "everybody"
}

// where says where a command can be given.
func where(c command.Command) string {
	if c.Where == command.Aside {
		return "in private chats"
	}
	return "anywhere"
}

// alsoCalled names the aliases of a command.
func alsoCalled(c command.Command, prefix string) string {
	if len(c.Aliases) == 0 {
		return ""
	}
	return " (also `" + prefix + strings.Join(c.Aliases, "`, `"+prefix) + "`)"
}
