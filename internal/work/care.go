package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/codebase"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// maxIdle bounds one look for idle conversations. Those that were put away before
// are found again, so it is far above what one installation has.
const maxIdle = 200_000

// Sweep puts the worktrees of conversations away that have rested since before
// and have no open work. Their state is saved; the next turn brings it back.
func (s *Service) Sweep(ctx context.Context, before time.Time) (codebase.Swept, error) {
	idle := make(map[string]bool)
	err := s.store.InRead(ctx, func(tx *store.Tx) error {
		clear(idle)
		ids, err := tx.Registry().IdleConversations(ctx, before, maxIdle)
		if err != nil {
			return err
		}
		for _, id := range ids {
			idle[id] = true
		}
		shared, err := tx.Registry().SharedWorktrees(ctx)
		for conversation, owner := range shared {
			if !idle[conversation] {
				delete(idle, owner) // it works where an archived one began
			}
		}
		return err
	})
	if err != nil {
		return codebase.Swept{}, fmt.Errorf("look for idle conversations: %w", err)
	}
	if len(idle) == 0 {
		return codebase.Swept{}, nil
	}
	return s.space.Sweep(ctx, func(conversation string) bool { return !idle[conversation] })
}

// Maintain has git pack what it stored for the repositories, of those in which
// nothing works right now. It returns how many it was worth it for and how many
// bytes that freed. One that fails does not stop the others; their errors are joined.
func (s *Service) Maintain(ctx context.Context) (done int, freed int64, err error) {
	all, busy := []sessions.Codebase(nil), []string(nil)
	err = s.store.InRead(ctx, func(tx *store.Tx) (err error) {
		if all, err = tx.Registry().List(ctx); err != nil {
			return err
		}
		busy, err = tx.Registry().CodebasesAtWork(ctx)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("look for repositories at rest: %w", err)
	}
	var errs []error
	for _, c := range all {
		if slices.Contains(busy, c.ID) || s.absent(c) != nil { // what is not there needs no care
			continue
		}
		repo, err := s.repoOf(ctx, c)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		packed, n, err := s.space.Maintain(ctx, repo)
		if errs = append(errs, err); packed {
			done, freed = done+1, freed+n
		}
		if ctx.Err() != nil {
			break
		}
	}
	return done, freed, errors.Join(errs...)
}

// ListOnMachine is the command that shows an operator the repositories.
const ListOnMachine = "bot repo list"

// SyncNamed fetches a repository, or all of them without a name, and loads the
// command files again. One that fails keeps no other from being fetched: out says why, and
// the error, a fault.Unavailable, names each of them.
func (s *Service) SyncNamed(ctx context.Context, out io.Writer, name string) error {
	chosen, err := s.chosen(ctx, name)
	if err != nil {
		return err
	}
	var failed []string
	for _, c := range chosen {
		if err := s.sync(ctx, out, c); err != nil {
			failed = append(failed, c.Name)
			fmt.Fprintf(out, "%s failed: %s\n", c.Name, fault.Explain(err)) //nolint:errcheck // a closed terminal
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if len(failed) > 0 {
		return fault.Newf(fault.Unavailable, "Not fetched: %s.", strings.Join(failed, ", "))
	}
	return nil
}

// sync does it with one of them.
func (s *Service) sync(ctx context.Context, out io.Writer, c sessions.Codebase) error {
	if err := s.absentFrom(c); err != nil {
		return err
	}
	repo, err := s.repoOf(ctx, c)
	if err != nil {
		return err
	}
	synced, err := s.space.Sync(ctx, repo)
	if err != nil {
		return err
	}
	_, _, problems, err := s.Register(ctx, repo)
	if err != nil {
		return err
	}
	state := "is up to date"
	if synced.Changed {
		state = "was updated"
	}
	fmt.Fprintf(out, "%s %s (%s at %.10s)\n", c.Name, state, synced.Branch, synced.Commit) //nolint:errcheck // a closed terminal
	if synced.Note != "" {
		problems = append(problems, synced.Note)
	}
	for _, p := range problems {
		fmt.Fprintf(out, "  %s\n", p) //nolint:errcheck // as above
	}
	return nil
}

// RemoveNamed forgets a repository and deletes its clone. It refuses while
// conversations use it.
func (s *Service) RemoveNamed(ctx context.Context, out io.Writer, name string) error {
	if name == "" {
		return fault.New(fault.Invalid, "Specify a repository; `bot repo list` lists them.")
	}
	chosen, err := s.chosen(ctx, name)
	if err != nil {
		return err
	}
	c := chosen[0]
	repo, openErr := s.repoOf(ctx, c)
	shared := false
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		n, err := tx.Registry().CodebaseUse(ctx, c.ID)
		if err != nil {
			return err
		}
		if n > 0 {
			return fault.Newf(fault.Conflict, "%s is used by %s; switch them to another repository first.", c.Name, wording.Count(n, "conversation", "conversations"))
		}
		all, err := tx.Registry().List(ctx)
		if err != nil {
			return err
		}
		shared = slices.ContainsFunc(all, func(other sessions.Codebase) bool { return other.ID != c.ID && other.DefaultCwd == c.DefaultCwd })
		if err := tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "codebase.remove", Target: c.Name}); err != nil {
			return err
		}
		return tx.Registry().Delete(ctx, c.ID)
	})
	if err != nil {
		return err
	}
	if openErr == nil && !shared { // else another codebase works on these files
		if err := s.space.Remove(ctx, repo); err != nil {
			return fmt.Errorf("delete the files of %s: %w", c.Name, err)
		}
	}
	fmt.Fprintf(out, "removed %s\n", c.Name) //nolint:errcheck // a closed terminal
	return nil
}

// chosen returns the codebase of a name or number, or all without one.
func (s *Service) chosen(ctx context.Context, name string) (all []sessions.Codebase, err error) {
	all, err = store.Within(ctx, s.store.InRead, func(tx *store.Tx) ([]sessions.Codebase, error) { return tx.Registry().List(ctx) })
	if err != nil || name == "" {
		return all, err
	}
	c, err := Choose(all, name, ListOnMachine)
	return []sessions.Codebase{c}, err
}
