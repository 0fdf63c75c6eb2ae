package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"remote-agent/internal/codebase"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/work"
)

const (
	// idleWorktree is how long a conversation may rest before its worktree is
	// put away. Its state is saved first and comes back when it is needed.
	idleWorktree = 14 * 24 * time.Hour
	sweepEvery   = 6 * time.Hour

	// maintainEvery is how often repositories are looked at that could be packed. It
	// is often, because those in which something works then are passed over.
	maintainEvery = time.Hour
)

// openWorkspace opens the folder of repositories. Without git there are none,
// and everything else works.
func (d *daemon) openWorkspace(ctx context.Context) error {
	space, err := newWorkspace(ctx, d.config, d.log, d.repoToken)
	if fault.Is(err, fault.Unsupported) {
		d.log.WarnContext(ctx, "There is no usable git: conversations cannot have repositories", "err", err)
		return nil
	}
	d.space = space
	return err
}

// newWorkspace opens the workspace that cfg names.
func newWorkspace(ctx context.Context, cfg config.Config, log *slog.Logger, repoToken func(context.Context, string) (string, error)) (*codebase.Workspace, error) {
	root, err := filepath.Abs(cfg.WorkspacePath)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "WORKSPACE_PATH")
	}
	return codebase.New(ctx, codebase.Config{
		Root:         root,
		AllowedHosts: cfg.Git.Hosts,
		Token: func(host string) string {
			if host == "github.com" {
				return cfg.Git.Token.Reveal()
			}
			return ""
		},
		RepoToken: repoToken,
		Log:       log,
	})
}

// sweepWorktrees puts worktrees of idle conversations away, now and then.
func (d *daemon) sweepWorktrees(ctx context.Context) {
	for sleep(ctx, time.Minute) { // not while everybody starts
		swept, err := d.work.Sweep(ctx, time.Now().Add(-idleWorktree))
		if err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "Could not put all idle worktrees away", "err", err)
		}
		if len(swept.Removed) > 0 {
			d.log.InfoContext(ctx, "Put idle worktrees away; their state is saved", "count", len(swept.Removed), "freed_bytes", swept.Freed)
		}
		if err := d.tools.sweep(time.Now().Add(-idleWorktree)); err != nil {
			d.log.WarnContext(ctx, "Could not remove all idle homes of programs", "err", err)
		}
		if !sleep(ctx, sweepEvery) {
			return
		}
	}
}

// maintainRepositories has git pack repositories at rest, now and then. Their files
// belong to this machine, so each replica sees to its own.
func (d *daemon) maintainRepositories(ctx context.Context) {
	for sleep(ctx, maintainEvery) {
		done, freed, err := d.work.Maintain(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "Could not pack all repositories", "err", err)
		}
		if done > 0 {
			d.log.InfoContext(ctx, "Packed repositories", "count", done, "freed_bytes", freed)
		}
	}
}

// RepoAction is what Repo does.
type RepoAction string

// The actions.
const (
	RepoAdd    RepoAction = "add"    // clone an address, or register a local folder
	RepoList   RepoAction = "list"   // list all
	RepoSync   RepoAction = "sync"   // fetch, and load the command files again
	RepoRemove RepoAction = "remove" // forget and delete; only if no conversation uses it
)

// Repo works on the registered repositories from the command line. On SQLite the
// daemon must not run at the same time, except for RepoList.
func Repo(ctx context.Context, cfg config.Config, env Env, action RepoAction, what string) error {
	if action != RepoList {
		if err := makeDataDir(cfg.DataDir); err != nil {
			return err
		}
	}
	s, err := openStore(ctx, cfg, env, action != RepoList)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // what was written is committed
	if action != RepoList {
		if _, err := s.Migrate(ctx); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
	space, err := newWorkspace(ctx, cfg, env.Log, nil)
	if err != nil {
		return err
	}
	defer space.Close() //nolint:errcheck // nothing is under way
	repos := work.New(work.Config{Store: s, Workspace: space, Log: env.Log})
	switch action {
	case RepoAdd:
		return addRepo(ctx, repos, space, env.Stdout, what)
	case RepoSync:
		return repos.SyncNamed(ctx, env.Stdout, what)
	case RepoRemove:
		return repos.RemoveNamed(ctx, env.Stdout, what)
	default:
		return listRepos(ctx, s, env.Stdout)
	}
}

func addRepo(ctx context.Context, repos *work.Service, space *codebase.Workspace, out io.Writer, what string) error {
	repo, err := space.Clone(ctx, what, func(p codebase.Progress) { fmt.Fprintf(out, "%s %d %%\n", p.Stage, p.Percent) }) //nolint:errcheck // a closed terminal
	if fault.Is(err, fault.Invalid) {
		local, localErr := space.AddLocal(ctx, what)
		if localErr != nil {
			return errors.Join(err, localErr)
		}
		repo, err = local, nil
	}
	if err != nil {
		return err
	}
	c, created, problems, err := repos.Register(ctx, repo)
	if err != nil {
		return err
	}
	verb := "added"
	if !created {
		verb = "was there already:"
	}
	fmt.Fprintf(out, "%s %s in %s\n", verb, c.Name, repo.Dir) //nolint:errcheck // as above
	for _, p := range problems {
		fmt.Fprintf(out, "  %s\n", p) //nolint:errcheck // as above
	}
	return nil
}

func listRepos(ctx context.Context, s *store.Store, out io.Writer) error {
	var all []sessions.Codebase
	err := s.InRead(ctx, func(tx *store.Tx) error {
		var err error
		all, err = tx.Codebases(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for i, c := range all {
		from := c.RepositoryURL
		if from == "" {
			from = "local folder"
		}
		fmt.Fprintf(out, "%d  %s  %s  %s\n", i+1, c.Name, from, c.DefaultCwd) //nolint:errcheck // as above
	}
	return nil
}
