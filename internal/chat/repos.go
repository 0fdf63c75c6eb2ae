package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func (re *repositories) reposCommand() *command.Command {
	return &command.Command{
		Name:    "repos",
		Usage:   "repos",
		Summary: "list the repositories",
		Example: "repos",
		Rank:    6,
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Needs:   command.Repositories,
		Run:     re.runRepos,
	}
}

func (re *repositories) runRepos(ctx context.Context, r command.Request) (command.Reply, error) {
	all, err := store.Within(ctx, re.store.InRead, func(tx *store.Tx) ([]sessions.Codebase, error) { return tx.Registry().List(ctx) })
	if err != nil {
		return command.Reply{}, err
	}
	if len(all) == 0 {
		return command.Reply{Text: "There are no repositories yet. Add one with `/clone owner/repo`."}, nil
	}
	var b strings.Builder
	for i, c := range all {
		mark := ""
		if c.ID == r.Conv.CodebaseID {
			mark = " ← here"
		}
		fmt.Fprintf(&b, "%d. **%s**%s\n", i+1, c.Name, mark)
	}
	b.WriteString("\nSwitch with `/repo <name|number>`.")
	return command.Reply{Text: b.String()}, nil
}
