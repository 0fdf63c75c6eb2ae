package codebase

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// Bundle is a file with work of conversations that no other repository has.
type Bundle struct {
	Repo    string // as it is called below the workspace: owner/repo, or .plain/...
	File    string // name of the file in the folder that Bundles was given
	Commits int
}

// ownRefs choose what conversations made: their branches, and the states that
// were saved before turns and when a worktree was put away. What the origin is
// known to have is left out.
var ownRefs = []string{"--branches=bot/*", "--glob=refs/bot/*", "--not", "--remotes"}

// Bundles writes, for each repository below the workspace, a git bundle of the
// commits of conversations that were not pushed, into a folder that exists. A
// repository without such commits gets no file. A bundle of a clone builds on
// commits of its origin: fetch from it in a clone, with
// "git fetch FILE 'refs/*:refs/*'". Files that were never committed or saved are
// not in it. It may run beside other processes that use the workspace. What
// cannot be read is in problems, and the rest goes on.
func (c *care) Bundles(ctx context.Context, folder string) (bundles []Bundle, problems []string, err error) {
	places, err := c.gitDirs()
	if err != nil {
		return nil, nil, err
	}
	for _, p := range places {
		b, err := c.bundle(ctx, p, folder)
		switch {
		case ctx.Err() != nil:
			return bundles, problems, ctx.Err()
		case err != nil:
			c.log.WarnContext(ctx, "could not bundle a repository", "repository", p.rel, "err", err)
			problems = append(problems, p.rel+": git cannot read this repository")
		case b.Commits > 0:
			bundles = append(bundles, b)
		}
	}
	return bundles, problems, nil
}

func (c *care) bundle(ctx context.Context, p place, folder string) (Bundle, error) {
	out, err := c.run(ctx, &p, &gitcmd.Call{Args: append([]string{"rev-list", "--count"}, ownRefs...)})
	if err != nil {
		return Bundle{}, err
	}
	commits, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || commits == 0 {
		return Bundle{}, err
	}
	b := Bundle{Repo: p.rel, File: bundleFile(p.rel), Commits: commits}
	_, err = c.run(ctx, &p, &gitcmd.Call{
		Args:    append([]string{"bundle", "create", "--quiet", filepath.Join(folder, b.File)}, ownRefs...),
		Timeout: c.cfg.CloneTimeout,
	})
	if err != nil {
		return Bundle{}, err
	}
	return b, os.Chmod(filepath.Join(folder, b.File), 0o600)
}

// bundleFile names the bundle of a repository, owner__repo.bundle as a rule. Where
// underscores could be taken for the slash, the slash is escaped, so that no two
// repositories have the same file.
func bundleFile(repo string) string {
	repo = strings.TrimPrefix(repo, ".")
	if strings.Contains(repo, "__") || strings.Contains(repo, "_/") || strings.Contains(repo, "/_") {
		return url.PathEscape(repo) + ".bundle"
	}
	return strings.ReplaceAll(repo, "/", "__") + ".bundle"
}

// gitDirs returns the clones below the workspace and the histories of plain
// folders.
func (c *care) gitDirs() ([]place, error) {
	var places []place
	below := func(rel string) ([]string, error) {
		entries, err := fs.ReadDir(c.root.FS(), rel)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		var names []string
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		return names, err
	}
	plain, err := below(plainDir)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "listing repositories")
	}
	for _, name := range plain {
		rel := path.Join(plainDir, name)
		places = append(places, place{rel: rel, gitDir: c.abs(rel)})
	}
	var walk func(rel string, depth int) error
	walk = func(rel string, depth int) error {
		names, err := below(rel)
		if err != nil {
			return fault.Wrap(err, fault.Unavailable, "listing repositories")
		}
		for _, name := range names {
			at := path.Join(rel, name)
			if depth == 0 || name[0] == '.' {
				continue
			}
			if info, err := c.root.Lstat(at + "/.git"); err == nil && info.IsDir() {
				dir := c.abs(at)
				if _, ok := cloneRel(c.cfg.Root, dir); ok {
					places = append(places, place{repo: Repo{Dir: dir}, rel: at, gitDir: filepath.Join(dir, ".git")})
				}
				continue
			}
			if err := walk(at, depth-1); err != nil {
				return err
			}
		}
		return nil
	}
	return places, walk(".", 3)
}
