package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (h *Handler) helpCommand() command.Command {
	return command.Command{
		Name:    "help",
		Usage:   "help [command]",
		Summary: "what you can do here",
		Menu:    true,
		Run:     h.runHelp,
	}
}

func (h *Handler) runHelp(ctx context.Context, r command.Request) (command.Reply, error) {
	prefix := h.prefix(r.Conv.Key.Platform)
	if len(r.Call.Args) > 0 {
		files, err := h.commandFiles(ctx, r.Conv)
		return command.Reply{Text: h.helpFor(strings.TrimPrefix(r.Call.Args[0], "/"), prefix, files)}, err
	}
	var b strings.Builder
	b.WriteString("Just write, for example:\n\n")
	b.WriteString("- Why would a Go map panic on write?\n")
	fmt.Fprintf(&b, "- `%splan add a --json flag`, then `%sexecute`\n\n", prefix, prefix)
	b.WriteString("Commands:\n\n")
	for _, c := range h.offered(h.caps(r.Conv.Key.Platform)) {
		fmt.Fprintf(&b, "- `%s%s` %s%s\n", prefix, c.Usage, c.Summary, alsoCalled(c, prefix))
	}
	b.WriteString("\nCommands work at any time, also while an answer is being written.")
	return command.Reply{Text: b.String()}, nil
}

// commandFiles returns the commands that the codebase of a conversation brings.
func (h *Handler) commandFiles(ctx context.Context, conv sessions.Conversation) (files map[string]sessions.CommandDef, err error) {
	if h.config.Work == nil || conv.CodebaseID == "" {
		return nil, nil
	}
	err = h.store.InRead(ctx, func(tx *store.Tx) error {
		files, err = tx.CodebaseCommands(ctx, conv.CodebaseID)
		return err
	})
	return files, err
}

func (h *Handler) helpFor(name, prefix string, files map[string]sessions.CommandDef) string {
	canonical, _ := command.Canonical(name)
	c, known := h.Find(canonical)
	if def, ok := files[canonical]; ok && (!known || c.Prompt != nil) { // a repository's own /plan goes first
		if def.Path == "" {
			return fmt.Sprintf("`%[1]s%[2]s`: %[3]s, so none of them runs. `%[1]scommand-set %[2]s <path>` chooses.", prefix, canonical, def.Description)
		}
		return strings.TrimSpace(fmt.Sprintf("`%s%s [arguments]` runs `%s` of the repository. %s", prefix, canonical, def.Path, def.Description))
	}
	if !known {
		return fmt.Sprintf("There is no command `%s%s`. `%shelp` lists what there is.", prefix, wording.Head(name, 40), prefix)
	}
	text := fmt.Sprintf("`%s%s`: %s%s.", prefix, c.Usage, c.Summary, alsoCalled(c, prefix))
	if c.Details != "" {
		text += " " + c.Details
	}
	return text
}

// alsoCalled names the aliases of a command.
func alsoCalled(c command.Command, prefix string) string {
	if len(c.Aliases) == 0 {
		return ""
	}
	return " (also `" + prefix + strings.Join(c.Aliases, "`, `"+prefix) + "`)"
}
