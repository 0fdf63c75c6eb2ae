// Package codebase holds the repositories and folders that conversations work
// on: it clones and fetches them, gives every conversation a worktree of its own,
// saves and restores the state of one, and opens the paths inside.
//
// Nothing is ever lost by it: no reset, no clean, no checkout that another
// conversation or a person works in, and a worktree is removed only after its
// state is in a ref. Nothing of a repository is executed. It knows neither
// conversations, beyond their ids, nor storage, chats or models.
//
// The workspace below Root:
//
//	owner/repo              a clone from GitHub
//	host[+port]/owner/repo  a clone from another host
//	.worktrees/…/<id>       worktrees, beside <id>.json, which says whose they are
//	.plain/<key>            git's data for folders that are not repositories
//	.locks, .tmp            as they say
package codebase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/fault"
)

const (
	worktreesDir = ".worktrees"
	plainDir     = ".plain"
	locksDir     = ".locks"
	tmpDir       = ".tmp"

	oldestGit = 2*1000 + 36
)

// Config is what New needs. Only Root is required.
type Config struct {
	Root string // an absolute path; made if it does not exist

	// AllowedHosts is GIT_ALLOWED_HOSTS; see remote.ParseHosts.
	AllowedHosts []string

	// Token returns the credential for a host (as in AllowedHosts), or nothing.
	// It is asked at each use, so that a rotated token counts at once.
	Token func(host string) string

	// RepoToken, if it is set, is asked first, with the canonical address of a
	// repository, for a credential that is for it alone, such as the token of an
	// App's installation. Nothing means that Token is asked. An error ends the
	// call.
	RepoToken func(ctx context.Context, url string) (string, error)

	// Name and Email are who commits; see Commit.
	Name  string // zero: Remote Agent
	Email string // zero: remote-agent@localhost

	MaxBytes     int64         // of a clone, and again of its files; zero: 2 GiB
	CloneTimeout time.Duration // zero: 15 minutes
	FetchTimeout time.Duration // zero: 2 minutes
	MaxPatch     int64         // of the patch that Diff returns; zero: 4 MiB
	MaxFile      int64         // of a file that a checkpoint saves; zero: 64 MiB

	Log *slog.Logger
	Git gitcmd.Config // Log is set from above if it is nil
}

// Workspace is safe for concurrent use, also by several processes on one Root.
// Close it when done. Its parts have one purpose each; what they export is its own.
type Workspace struct {
	*folder
	*clones
	*fetches
	*worktrees
	*maker
	*states
	*commits
	*pushes
	*care
}

// Repo is a codebase. It is plain data: Open makes one from what was stored.
type Repo struct {
	Name  string // owner/repo, host/owner/repo, or a local folder's name
	URL   string // canonical; empty for a local folder
	Dir   string // absolute; the clone, or the local folder itself
	Plain bool   // a local folder that is not a git repository

	// Existing is set by Clone if the repository was there already.
	Existing bool
}

// New opens the workspace. The error is of kind Unsupported if git is missing or
// too old, and Invalid for a bad configuration.
func New(ctx context.Context, cfg Config) (*Workspace, error) {
	if !supported {
		return nil, fault.New(fault.Unsupported, "Repositories need a Unix system: Linux, macOS or WSL.")
	}
	cfg = withDefaults(cfg)
	if !filepath.IsAbs(cfg.Root) {
		return nil, fault.New(fault.Invalid, "The workspace must be an absolute path (WORKSPACE_PATH).")
	}
	hosts, err := remote.ParseHosts(cfg.AllowedHosts)
	if err != nil {
		return nil, err
	}
	root, err := openWorkspace(cfg.Root)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("WORKSPACE_PATH: cannot use %q; choose a folder that this user can write to.", cfg.Root), Err: err}
	}
	// git prints and stores paths without links.
	if cfg.Root, err = filepath.EvalSymlinks(cfg.Root); err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Invalid, "resolving the workspace"), root.Close())
	}
	git, err := gitcmd.New(cfg.Git)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	version, err := git.Version(ctx)
	if err == nil && version < oldestGit {
		err = fault.Newf(fault.Unsupported, "git %d.%d is too old; version %d.%d or newer is needed.", version/1000, version%1000, oldestGit/1000, oldestGit%1000)
	}
	if err != nil {
		return nil, errors.Join(err, git.Close(), root.Close())
	}
	f := &folder{cfg: cfg, root: root, hosts: hosts, git: git, log: cfg.Log, locks: newLocks(filepath.Join(cfg.Root, locksDir))}
	f.clearTemporary(ctx)
	return assemble(ctx, f), nil
}

// assemble makes the parts of a workspace and gives each what it works with.
func assemble(ctx context.Context, f *folder) *Workspace {
	s := &snapshots{folder: f}
	w := &worktrees{folder: f}
	g := &guard{worktrees: w}
	fetched := &fetches{folder: f, snapshots: s, byRepo: map[string]*fetchState{}}
	fetched.stopped, fetched.stop = context.WithCancel(context.WithoutCancel(ctx))
	saved := &states{worktrees: w, snapshots: s, guard: g}
	making := &maker{worktrees: w, fetches: fetched, snapshots: s, guard: g}
	return &Workspace{
		folder: f, worktrees: w, fetches: fetched, states: saved,
		clones:  &clones{folder: f, worktrees: w},
		maker:   making,
		commits: &commits{worktrees: w, snapshots: s, guard: g},
		pushes:  &pushes{worktrees: w, maker: making},
		care:    &care{worktrees: w, states: saved},
	}
}

func withDefaults(cfg Config) Config {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&cfg.MaxBytes, 2<<30)
	def(&cfg.MaxPatch, 4<<20)
	def(&cfg.MaxFile, 64<<20)
	if cfg.CloneTimeout <= 0 {
		cfg.CloneTimeout = 15 * time.Minute
	}
	if cfg.FetchTimeout <= 0 {
		cfg.FetchTimeout = 2 * time.Minute
	}
	cfg.Name = cmp.Or(cfg.Name, "Remote Agent")
	cfg.Email = cmp.Or(cfg.Email, "remote-agent@localhost")
	if cfg.Token == nil {
		cfg.Token = func(string) string { return "" }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Git.Log == nil {
		cfg.Git.Log = cfg.Log
	}
	return cfg
}

func openWorkspace(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{worktreesDir, plainDir, locksDir, tmpDir} {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, root.Close())
		}
	}
	return root, nil
}

// Close ends what runs in the background and waits for it. No other method may
// be called afterwards.
func (w *Workspace) Close() error {
	w.stop()
	w.running.Wait()
	return errors.Join(w.git.Close(), w.root.Close())
}

// Detect returns the assistant type that a repository is made for: "codex" if it
// has a folder .codex, "claude" if it has .claude, otherwise nothing. It reads
// what is checked out at repo.Dir.
func (w *Workspace) Detect(repo Repo) string {
	root, err := os.OpenRoot(repo.Dir)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }()
	for _, kind := range []string{"codex", "claude"} {
		if info, err := root.Lstat("." + kind); err == nil && info.IsDir() {
			return kind
		}
	}
	return ""
}
