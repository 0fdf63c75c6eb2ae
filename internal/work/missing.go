package work

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"remote-agent/internal/codebase"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// A codebase that was imported may be in a folder that is not on this machine.

// absent says why a codebase cannot be used here, nil if its folder is there:
// with orchestrator.NeedsClone if its repository can be cloned, and else with
// what an operator has to do.
func (s *Service) absent(c sessions.Codebase) error {
	url, cannot, why := s.gone(c)
	switch {
	case why == nil:
		return nil
	case url == "" && cannot == "":
		return why
	case url != "":
		return &orchestrator.NeedsClone{Codebase: "**" + c.Name + "**", URL: url, Why: fmt.Sprintf("**%s** is not on this machine: %s", c.Name, lower(fault.Public(why)))}
	}
	return &fault.Error{Kind: fault.NotFound, Err: why, Public: fmt.Sprintf(
		"**%s** is not on this machine: %s It cannot be cloned, because %s. An operator can restore the folder, or add another one with `bot repo add FOLDER`; then choose it here with `/repo`. To use another repository: `/clone <url>`.",
		c.Name, lower(fault.Public(why)), cannot)}
}

// absentFrom is absent for an operator at a terminal.
func (s *Service) absentFrom(c sessions.Codebase) error {
	url, cannot, why := s.gone(c)
	switch {
	case why == nil || url == "" && cannot == "":
		return why
	case url != "":
		return fault.Newf(fault.NotFound, "It is not on this machine: %s `bot repo add %s` clones it.", lower(fault.Public(why)), url)
	}
	return fault.Newf(fault.NotFound, "It is not on this machine: %s It cannot be cloned, because %s. Restore the folder, or remove it with `bot repo rm %s`.",
		lower(fault.Public(why)), cannot, c.Name)
}

// gone returns why the folder of a codebase is not here, nil if it is, after the address that it
// can be cloned from, or why it cannot. Without either nothing can be cloned here.
func (s *Service) gone(c sessions.Codebase) (url, cannot string, why error) {
	if why = codebase.Present(s.space.Root(), c.DefaultCwd); why == nil {
		return "", "", nil
	}
	if err := s.space.Usable(); err != nil {
		return "", "", err
	}
	if c.RepositoryURL == "" {
		return "", "its repository is not known", why
	}
	r, err := s.space.Parse(c.RepositoryURL)
	if err != nil {
		return "", strings.TrimSuffix(lower(fault.Public(err)), "."), why
	}
	return r.URL(), "", why
}

// lower begins a sentence in the middle of another one.
func lower(text string) string {
	if rest, ok := strings.CutPrefix(text, "There is"); ok {
		return "there is" + rest
	}
	return text
}

// Clone implements orchestrator.Worktrees.
func (s *Service) Clone(ctx context.Context, url string) error {
	repo, err := s.space.Clone(ctx, url, nil)
	if err != nil {
		return fmt.Errorf("clone: %w", err)
	}
	_, _, _, err = s.Register(ctx, repo)
	return err
}

// obtain returns a conversation and its codebase, which can be used here, or why
// it cannot. It clones the one that the platform says the conversation is about: there nobody has to be
// asked.
func (s *Service) obtain(ctx context.Context, c sessions.Codebase, conv sessions.Conversation, about *messages.Repository) (sessions.Codebase, sessions.Conversation, error) {
	err := s.absent(c)
	need, ok := errors.AsType[*orchestrator.NeedsClone](err)
	if !ok || about == nil || !sameRepository(need.URL, about.URL) {
		return c, conv, err
	}
	if err = s.Clone(ctx, need.URL); err != nil {
		return c, conv, err
	}
	err = s.store.InRead(ctx, func(tx *store.Tx) error { // it has moved
		var err error
		if conv, err = tx.Conversations().Conversation(ctx, conv.ID); err != nil {
			return err
		}
		c, err = tx.Registry().Codebase(ctx, c.ID)
		return err
	})
	return c, conv, err
}

// bringHome notes where the codebases of a repository are whose folder is not on
// this machine: in repo, which is. It returns them all.
func (s *Service) bringHome(ctx context.Context, tx *store.Tx, repo codebase.Repo) ([]sessions.Codebase, error) {
	if repo.URL == "" {
		return nil, nil
	}
	all, err := tx.Registry().List(ctx)
	if err != nil {
		return nil, err
	}
	var of []sessions.Codebase
	for _, c := range all {
		if r, err := s.space.Parse(c.RepositoryURL); err != nil || r.URL() != repo.URL { // an earlier import may have spelled it otherwise
			continue
		}
		if c.DefaultCwd != repo.Dir && codebase.Present(s.space.Root(), c.DefaultCwd) != nil {
			if err := tx.Registry().Move(ctx, c.ID, repo.Dir); err != nil {
				return nil, err
			}
			c.DefaultCwd = repo.Dir
		}
		of = append(of, c)
	}
	return of, nil
}

// folderOf returns the folder of a conversation relative to the worktree. An
// absolute one, which an import of an earlier version left, is inside of the
// codebase's own folder or refused, and so is one that is not in the worktree.
func folderOf(c sessions.Codebase, conv sessions.Conversation, tree codebase.Tree) (string, error) {
	cwd := conv.Cwd
	outside := fault.Newf(fault.Invalid, "This conversation's folder `%s` is not in **%s**. Use `/setcwd .` for the top folder, or `/repo` for another repository.", cwd, c.Name)
	if path.IsAbs(cwd) {
		rel, err := filepath.Rel(c.DefaultCwd, cwd)
		if err != nil || !filepath.IsLocal(rel) {
			return "", outside
		}
		if cwd = filepath.ToSlash(rel); cwd == "." {
			cwd = ""
		}
	}
	if cwd == "" {
		return "", nil
	}
	root, err := os.OpenRoot(tree.Dir)
	if err != nil {
		return "", fault.Wrap(err, fault.NotFound, "open the worktree")
	}
	defer root.Close() //nolint:errcheck // only read
	switch info, err := root.Stat(filepath.FromSlash(cwd)); {
	case err == nil && info.IsDir():
		return cwd, nil
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", fault.Newf(fault.NotFound, "The folder `%s` no longer exists in **%s**. Use `/setcwd .` for the top folder.", cwd, c.Name)
	}
	return "", outside // a link that leads out, of which os.Root has no error value, or no permission
}
