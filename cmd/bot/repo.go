package main

import (
	"context"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
)

// repoCommand is about the repositories that conversations work on.
type repoCommand struct {
	Add  repoAddCommand  `cmd:"" help:"Clone a repository or register a local folder."`
	List repoListCommand `cmd:"" help:"List the repositories."`
	Sync repoSyncCommand `cmd:"" help:"Fetch, and reload the command files."`
	Rm   repoRmCommand   `cmd:"" help:"Remove a repository and its clone; refused while conversations use it."`
}

type repoAddCommand struct {
	Source string `arg:"" help:"An https:// address, owner/repo, or a folder."`
}

func (c repoAddCommand) Run(p *program) error { return p.repo(app.RepoAdd, c.Source) }

type repoListCommand struct{}

func (c repoListCommand) Run(p *program) error { return p.repo(app.RepoList, "") }

type repoSyncCommand struct {
	Name string `arg:"" optional:"" help:"Name or number. Default: all."`
}

func (c repoSyncCommand) Run(p *program) error { return p.repo(app.RepoSync, c.Name) }

type repoRmCommand struct {
	Name string `arg:"" help:"Name or number."`
	Yes  bool   `help:"Do not ask." short:"y"`
}

// Run asks first.
func (c repoRmCommand) Run(p *program) error {
	return p.command(func(ctx context.Context, cfg config.Config, env app.Env) error {
		if !c.Yes {
			question, err := app.RemovalQuestion(ctx, cfg, env, c.Name)
			if err != nil {
				return err
			}
			if !p.confirm(question) {
				return fault.New(fault.Invalid, "nothing was removed; answer y, or use --yes")
			}
		}
		return app.Repo(ctx, cfg, env, app.RepoRemove, c.Name)
	})
}

func (p *program) repo(action app.RepoAction, what string) error {
	return p.command(func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.Repo(ctx, cfg, env, action, what)
	})
}
