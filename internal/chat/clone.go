package chat

import (
	"context"
	"fmt"

	"remote-agent/internal/codebase"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/wording"
)

func (re *repositories) cloneCommand() *command.Command {
	return &command.Command{
		Name:    "clone",
		Usage:   "clone <url>",
		Summary: "clone a repository and work on it here",
		Example: "clone https://github.com/acme/shop",
		Lane:    command.Job,
		Needs:   command.Repositories,
		Run:     re.runClone,
	}
}

// runClone gets a repository, registers it with its command files, and makes
// the conversation work on it. The same URL again links: nothing is cloned
// twice. It is safe to repeat after a crash.
func (re *repositories) runClone(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, "Specify one repository: `/clone https://github.com/owner/repo` or `/clone owner/repo`.")
	}
	repo, err := re.space.Clone(ctx, r.Call.Args[0], func(p codebase.Progress) { r.Show(progressText(p)) })
	if err != nil {
		return command.Reply{}, fmt.Errorf("clone: %w", err)
	}
	c, _, problems, err := re.work.Register(ctx, repo)
	if err != nil {
		return command.Reply{}, err
	}
	cwd := ""
	if own, err := re.work.Codebase(ctx, r.Conv); err == nil && own.RepositoryURL != "" && own.RepositoryURL == repo.URL {
		c, cwd = own, r.Conv.Cwd // of several of one repository the conversation keeps its own
	}
	ended, err := re.useCodebase(ctx, r, c.ID, cwd)
	if err != nil {
		return command.Reply{}, err
	}
	verb := "Cloned"
	if repo.Existing {
		verb = "Already cloned; linked to"
	}
	text := fmt.Sprintf("%s **%s**.%s", verb, c.Name, ended)
	if files, err := re.work.Commands(ctx, c.ID); err == nil && len(files) > 0 {
		text += fmt.Sprintf(" It has %s: `/commands`.", wording.Count(len(files), "command", "commands"))
	}
	return command.Reply{Text: withProblems(text, problems)}, nil
}

// progressText says how far a clone is.
func progressText(p codebase.Progress) string {
	if p.Percent < 0 {
		return "◐ " + p.Stage
	}
	return fmt.Sprintf("◐ %s: %d %%", p.Stage, p.Percent)
}
