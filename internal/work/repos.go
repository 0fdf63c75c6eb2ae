package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/codebase"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

var errNoCodebase = fault.New(fault.Invalid, "This conversation has no repository yet. Use `/clone <url>` to get one, or `/repos` to list those available.")

// Register stores a repository as a codebase, or finds it, and loads its command
// files. It reports whether the codebase is new, and what could not be loaded.
func (s *Service) Register(ctx context.Context, repo codebase.Repo) (c sessions.Codebase, created bool, problems []string, err error) {
	commands, problems, err := loadDefaults(repo.Dir)
	if err != nil {
		return c, false, nil, err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		var ok bool
		of, err := s.bringHome(ctx, tx, repo)
		if err != nil {
			return err
		}
		if c, ok, err = s.findRegistered(ctx, tx, repo); err != nil {
			return err
		}
		if !ok && len(of) > 0 {
			c, ok = of[0], true
		}
		created = !ok
		if !ok {
			c, err = tx.Registry().Create(ctx, sessions.Codebase{
				Name: repo.Name, RepositoryURL: repo.URL, DefaultCwd: repo.Dir, Assistant: s.space.Detect(repo),
			})
			if err != nil {
				return err
			}
		}
		if !slices.ContainsFunc(of, func(one sessions.Codebase) bool { return one.ID == c.ID }) {
			of = append(of, c)
		}
		for _, one := range of {
			old, err := tx.Registry().CodebaseCommands(ctx, one.ID)
			if err == nil {
				err = tx.Registry().UpdateCodebaseCommands(ctx, one.ID, refreshed(old, commands))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return c, false, nil, fmt.Errorf("register the repository: %w", err)
	}
	return c, created, problems, nil
}

func (s *Service) findRegistered(ctx context.Context, tx *store.Tx, repo codebase.Repo) (sessions.Codebase, bool, error) {
	if repo.URL != "" {
		return tx.Registry().FindCodebase(ctx, repo.URL)
	}
	all, err := tx.Registry().List(ctx)
	if err != nil {
		return sessions.Codebase{}, false, err
	}
	for _, c := range all {
		if c.RepositoryURL == "" && c.DefaultCwd == repo.Dir {
			return c, true, nil
		}
	}
	return sessions.Codebase{}, false, nil
}

// Choose returns the codebase that a person means: by number in the list, by
// exact name, else by the beginning of the name or of its part after the slash.
// "2fa" is a name and not number 2. An ambiguous name lists the candidates; the
// command list shows all.
func Choose(all []sessions.Codebase, what, list string) (sessions.Codebase, error) {
	if n, err := strconv.Atoi(what); err == nil && strconv.Itoa(n) == what {
		if n < 1 || n > len(all) {
			return sessions.Codebase{}, fault.Newf(fault.NotFound, "There is no repository number %d; `%s` lists %s.", n, list, wording.Count(len(all), "repository", "repositories"))
		}
		return all[n-1], nil
	}
	var found []sessions.Codebase
	for _, c := range all {
		if strings.EqualFold(c.Name, what) {
			return c, nil
		}
		short := c.Name[strings.LastIndexByte(c.Name, '/')+1:]
		if hasPrefixFold(c.Name, what) || hasPrefixFold(short, what) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return sessions.Codebase{}, fault.Newf(fault.NotFound, "There is no repository %q; `%s` lists those available.", what, list)
	}
	names := lists.Map(found, func(c sessions.Codebase) string { return c.Name })
	return sessions.Codebase{}, fault.Newf(fault.Invalid, "%q matches %s. Which one?", what, strings.Join(names, ", "))
}

func hasPrefixFold(s, prefix string) bool {
	return prefix != "" && len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// Codebase returns the codebase of a conversation, or says how to get one.
func (s *Service) Codebase(ctx context.Context, conv sessions.Conversation) (c sessions.Codebase, err error) {
	if conv.CodebaseID == "" {
		return c, errNoCodebase
	}
	c, err = store.Within(ctx, s.store.InRead, func(tx *store.Tx) (sessions.Codebase, error) { return tx.Registry().Codebase(ctx, conv.CodebaseID) })
	return c, fault.Note(err, "read the codebase")
}

// repoOf returns the repository of a codebase as the workspace knows it.
func (s *Service) repoOf(ctx context.Context, c sessions.Codebase) (codebase.Repo, error) {
	if err := s.absent(c); err != nil {
		if need, ok := errors.AsType[*orchestrator.NeedsClone](err); ok {
			err = fault.Newf(fault.NotFound, "%s Use `/clone %s` to get it.", need.Why, need.URL)
		}
		return codebase.Repo{}, err
	}
	repo, err := s.space.Open(ctx, c.DefaultCwd)
	return repo, fault.Note(err, "open the repository")
}

// tree returns the worktree of a conversation, made on first need.
func (s *Service) tree(ctx context.Context, c sessions.Codebase, conv sessions.Conversation) (codebase.Tree, error) {
	repo, err := s.repoOf(ctx, c)
	if err != nil {
		return codebase.Tree{}, err
	}
	t, err := s.space.Worktree(ctx, repo, conv.WorkID())
	if err != nil {
		return t, fmt.Errorf("prepare the worktree: %w", err)
	}
	return t, s.registerNew(ctx, c, t)
}

// openTree opens a worktree. Everything below is reached through it, so that nothing
// outside can be.
func openTree(tree codebase.Tree) (*os.Root, error) {
	root, err := os.OpenRoot(tree.Dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "open the worktree")
	}
	return root, nil
}

// Describe returns the branch that worktrees of a codebase start from, which is empty if
// there is none, and the worktrees that are there.
func (s *Service) Describe(ctx context.Context, c sessions.Codebase) (branch string, trees []codebase.Kept, err error) {
	repo, err := s.repoOf(ctx, c)
	if err != nil {
		return "", nil, err
	}
	branch, err = s.space.DefaultBranch(ctx, repo)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", nil, fmt.Errorf("look for the default branch: %w", err)
	}
	if trees, err = s.space.Trees(ctx, repo); err != nil {
		return "", nil, fmt.Errorf("list the worktrees: %w", err)
	}
	return branch, trees, nil
}
