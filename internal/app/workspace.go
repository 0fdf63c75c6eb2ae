package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
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
	space, err := newWorkspace(ctx, d.config, d.log, d.platforms.repoToken)
	if fault.Is(err, fault.Unsupported) {
		d.log.WarnContext(ctx, "no usable git: repositories are off", "err", err)
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
		Token:        func(host string) string { return gitToken(cfg, host) },
		RepoToken:    repoToken,
		Log:          log,
	})
}

// gitToken returns what git shows to a host: the personal token is that of one GitHub.
func gitToken(cfg config.Config, host string) string {
	for _, k := range kindsOf(cfg) {
		if known, ok := k.(platform.RepoCredentials); ok && strings.EqualFold(host, known.CredentialHost()) {
			return cfg.Git.Token.Reveal()
		}
	}
	return ""
}

// sweepWorktrees puts worktrees of idle conversations away, now and then.
func (c caretaker) sweepWorktrees(ctx context.Context) {
	for wait := time.Minute; sleep(ctx, wait); wait = sweepEvery { // not while everybody starts
		swept, err := c.work.Sweep(ctx, time.Now().Add(-idleWorktree))
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "could not remove all idle worktrees", "err", err)
		}
		if len(swept.Removed) > 0 {
			c.log.InfoContext(ctx, "removed idle worktrees; their state is saved", "count", len(swept.Removed), "freed_bytes", swept.Freed)
		}
		if err := c.tools.sweep(time.Now().Add(-idleWorktree)); err != nil {
			c.log.WarnContext(ctx, "could not remove all idle homes of programs", "err", err)
		}
	}
}

// maintainRepositories has git pack repositories at rest, now and then. Their files
// belong to this machine, so each replica sees to its own.
func (c caretaker) maintainRepositories(ctx context.Context) {
	for sleep(ctx, maintainEvery) {
		done, freed, err := c.work.Maintain(ctx)
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "could not pack all repositories", "err", err)
		}
		if done > 0 {
			c.log.InfoContext(ctx, "packed repositories", "count", done, "freed_bytes", freed)
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

// Repo works on the registered repositories from the command line. A folder is relative
// to the one that the process is in.
func Repo(ctx context.Context, cfg config.Config, env Env, action RepoAction, what string) error {
	here, err := os.Getwd()
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "find the current folder")
	}
	c := repoCall{action, what, here}
	if action != RepoList {
		if done, err := inDaemon(ctx, cfg, env, callRepo, c); done {
			return err
		}
	}
	return repo(ctx, cfg, env, c)
}

// RemovalQuestion asks whether a repository shall be removed. There has to be one.
func RemovalQuestion(ctx context.Context, cfg config.Config, env Env, name string) (question string, err error) {
	err = withStore(ctx, cfg, env, false, func(s *store.Store) error {
		return s.InRead(ctx, func(tx *store.Tx) error {
			all, err := tx.Registry().List(ctx)
			if err != nil {
				return err
			}
			c, err := work.Choose(all, name, work.ListOnMachine)
			question = "Remove " + c.Name + " and delete its clone?"
			if c.RepositoryURL == "" {
				question = "Remove " + c.Name + "? Its folder stays."
			}
			return err
		})
	})
	return question, err
}

// repo does it, here or in the daemon.
func repo(ctx context.Context, cfg config.Config, env Env, c repoCall) error {
	return withStore(ctx, cfg, env, c.Action != RepoList, func(s *store.Store) error {
		if c.Action == RepoList {
			return listRepos(ctx, s, env.Stdout)
		}
		space, repos, done, err := workspaceOf(ctx, cfg, env, s)
		if err != nil {
			return err
		}
		defer done()
		switch c.Action {
		case RepoSync:
			return repos.SyncNamed(ctx, env.Stdout, c.What)
		case RepoRemove:
			return repos.RemoveNamed(ctx, env.Stdout, c.What)
		case RepoAdd:
			if err := ambiguous(cfg.Git.Hosts, c); err != nil {
				return err
			}
			return addRepo(ctx, repos, space, env.Stdout, c)
		case RepoList:
		}
		return fault.Newf(fault.Invalid, "There is no action %q on repositories.", c.Action)
	})
}

// workspaceOf returns the workspace of the daemon that does a command, or one for this
// process; done gives it back.
func workspaceOf(ctx context.Context, cfg config.Config, env Env, s *store.Store) (space *codebase.Workspace, repos *work.Service, done func(), err error) {
	if d := env.daemon; d != nil {
		if d.space == nil {
			return nil, nil, nil, fault.New(fault.Unsupported, "There is no usable git on this machine.")
		}
		return d.space, d.work, func() {}, nil
	}
	space, err = newWorkspace(ctx, cfg, env.Log, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	return space, work.New(work.Config{Store: s, Workspace: space, Log: env.Log}), func() { _ = space.Close() }, nil // nothing is under way
}

// ambiguous refuses what names a repository elsewhere and a folder here: who means the
// folder wants nobody else to be asked for it.
func ambiguous(hosts []string, c repoCall) error {
	allowed, err := remote.ParseHosts(hosts)
	if err != nil {
		return err
	}
	r, err := allowed.Parse(c.What)
	if info, none := os.Stat(filepath.Join(c.Folder, c.What)); err != nil || none != nil || !info.IsDir() {
		return nil //nolint:nilerr // it is one of them at most
	}
	return fault.Newf(fault.Invalid, "%q is a folder here, and may mean %s. Use ./%[1]s or %[2]s.", c.What, r.URL())
}

func addRepo(ctx context.Context, repos *work.Service, space *codebase.Workspace, out io.Writer, c repoCall) error {
	repo, err := space.Clone(ctx, c.What, func(p codebase.Progress) { fmt.Fprintf(out, "%s %d %%\n", p.Stage, p.Percent) }) //nolint:errcheck // a closed terminal
	if fault.Is(err, fault.Invalid) {
		folder := c.What
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(c.Folder, folder)
		}
		local, localErr := space.AddLocal(ctx, folder)
		switch {
		case localErr != nil && strings.IndexAny(c.What, "/.~") == 0: // nobody takes that for an address
			return localErr
		case localErr != nil:
			return errors.Join(err, localErr)
		}
		repo, err = local, nil
	}
	if err != nil {
		return err
	}
	added, created, problems, err := repos.Register(ctx, repo)
	if err != nil {
		return err
	}
	verb := "added"
	if !created {
		verb = "already registered:"
	}
	fmt.Fprintf(out, "%s %s in %s\n", verb, added.Name, repo.Dir) //nolint:errcheck // as above
	for _, p := range problems {
		fmt.Fprintf(out, "  %s\n", p) //nolint:errcheck // as above
	}
	return nil
}

func listRepos(ctx context.Context, s *store.Store, out io.Writer) error {
	all, err := store.Within(ctx, s.InRead, func(tx *store.Tx) ([]sessions.Codebase, error) { return tx.Registry().List(ctx) })
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintf(out, "there are no repositories; add one with `bot repo add`\n") //nolint:errcheck // as above
	}
	for i, c := range all {
		from := cmp.Or(c.RepositoryURL, "local folder")
		fmt.Fprintf(out, "%d  %s  %s  %s\n", i+1, c.Name, from, c.DefaultCwd) //nolint:errcheck // as above
	}
	return nil
}
