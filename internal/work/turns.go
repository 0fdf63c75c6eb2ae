package work

import (
	"context"
	"fmt"
	"path"
	"strings"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/commandfile"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

var _ orchestrator.Worktrees = (*Service)(nil)

// Prepare implements orchestrator.Worktrees: the worktree, a checkpoint of its
// files, and the command file that the entry names, read now and not when it
// was registered.
func (s *Service) Prepare(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, call command.Call) (orchestrator.Prepared, error) {
	var p orchestrator.Prepared
	conv, err := s.adopt(ctx, conv, entry)
	if err != nil {
		return p, err
	}
	c, err := s.Codebase(ctx, conv)
	if err != nil {
		return p, err
	}
	if c, conv, err = s.obtain(ctx, c, conv, entry.In.Repository); err != nil {
		return p, err
	}
	tree, err := s.WorktreeFor(ctx, c, conv, entry.In.Repository)
	if err != nil {
		return p, err
	}
	cwd, err := folderOf(c, conv, tree)
	if err != nil {
		return p, err
	}
	p.Dir, p.Tree, p.GitData = path.Join(tree.Dir, cwd), tree.Dir, tree.GitData()
	p.Notice, p.Codebase, p.Branch = tree.Note, c.Name, tree.Branch
	if tree.Created {
		if p.Notice, err = s.lost(ctx, c, conv, tree.Note); err != nil {
			return p, err
		}
	}
	s.guide(ctx, tree, cwd, &p)
	if p.Head, err = s.space.Head(ctx, tree); err != nil {
		return p, fmt.Errorf("read the branch: %w", err)
	}
	saved, err := s.space.Checkpoint(ctx, tree, entry.ID)
	if err != nil {
		return p, fmt.Errorf("save the files: %w", err)
	}
	p.Checkpoint = saved.Ref
	p.Prompt, err = s.prompt(ctx, c, conv, tree, call)
	return p, err
}

// lost adds to what is noted of a new worktree, if a conversation has worked on the codebase
// before: with another worktree, which is gone with its branch, or on another machine.
func (s *Service) lost(ctx context.Context, c sessions.Codebase, conv sessions.Conversation, note string) (string, error) {
	err := s.store.InRead(ctx, func(tx *store.Tx) error {
		before, err := tx.Lists().Sessions(ctx, store.SessionFilter{ConversationID: conv.ID, CodebaseID: c.ID, Limit: 1})
		if err == nil && len(before) > 0 {
			note = strings.TrimSpace("What this conversation changed before is not on this machine: its files begin again as they are in the repository. " + note)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("look for earlier work: %w", err)
	}
	return note, nil
}

// prompt reads the command file that a call names; nil if it names none.
func (s *Service) prompt(ctx context.Context, c sessions.Codebase, conv sessions.Conversation, tree codebase.Tree, call command.Call) (*command.Prompt, error) {
	name := call.Invoked().Name
	if name == "" {
		return nil, nil
	}
	all, err := s.Commands(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	def, ok := all[name]
	switch {
	case !ok:
		return nil, nil
	case def.Path == "":
		return nil, fault.Newf(fault.Invalid, "Two files are named `/%s`. Rename one, or choose with `/command-set %s <path>`.", name, name)
	}
	root, err := openTree(tree)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	file, err := commandfile.Read(root, def.Path)
	if fault.Is(err, fault.NotFound) { // registered from another branch
		return nil, fault.Newf(fault.NotFound, "The branch of this conversation does not have `%s`, the file of `/%s`. If the file is newer than the branch, "+
			"use the command in a new chat, topic, thread or issue, which starts from the repository as it is now.", def.Path, name)
	}
	if err != nil {
		return nil, err
	}
	if commandfile.Fold(file.Name) == name {
		name = file.Name // as its author writes it
	}
	return &command.Prompt{
		Meta:  sessions.MetaOf(name, sessions.Artifact(file.Produces), sessions.Artifact(file.Consumes)),
		Model: file.Model,
		Expand: func(call command.Call, plan string) (string, []string) {
			return expand(file, call, plan)
		},
	}, nil
}

// expand fills in a command file.
func expand(file commandfile.Command, call command.Call, plan string) (string, []string) {
	rest := call.Invoked().Rest
	text, warnings, err := commandfile.Expand(file.Body, call.Invoked().Args, rest, plan)
	if err != nil {
		return file.Body, []string{fault.Public(err)}
	}
	return text, warnings
}

// Worktree returns the codebase of a conversation and its worktree, which is made
// on first need. Its note says if earlier work is not in it.
func (s *Service) Worktree(ctx context.Context, conv sessions.Conversation) (sessions.Codebase, codebase.Tree, error) {
	c, err := s.Codebase(ctx, conv)
	if err != nil {
		return c, codebase.Tree{}, err
	}
	tree, err := s.tree(ctx, c, conv)
	if err == nil && tree.Created {
		tree.Note, err = s.lost(ctx, c, conv, tree.Note)
	}
	return c, tree, err
}

// Branch returns the branch that people know a conversation's work by; empty if it has no
// worktree here at this moment. None is made.
func (s *Service) Branch(ctx context.Context, conv sessions.Conversation) string {
	tree, _, err := s.existing(ctx, conv)
	if err != nil {
		return ""
	}
	return tree.Known()
}

// existing returns the worktree that a conversation has here at this moment; ok is false if
// it has none.
func (s *Service) existing(ctx context.Context, conv sessions.Conversation) (t codebase.Tree, ok bool, err error) {
	if conv.CodebaseID == "" {
		return t, false, nil
	}
	base, err := s.Codebase(ctx, conv)
	if err != nil || s.absent(base) != nil {
		return t, false, err // it is not here: there is nothing to see
	}
	repo, err := s.repoOf(ctx, base)
	if err != nil {
		return t, false, err
	}
	return s.space.Existing(ctx, repo, conv.WorkID())
}

// Changes returns what a conversation has changed on its branch, as it stands now. ok is
// false if it has no worktree at this moment; none is made.
func (s *Service) Changes(ctx context.Context, conv sessions.Conversation) (branch string, c codebase.Changes, ok bool, err error) {
	tree, ok, err := s.existing(ctx, conv)
	if err != nil || !ok {
		return "", c, false, err
	}
	if c, err = s.space.Diff(ctx, tree); err != nil {
		return "", c, false, fmt.Errorf("compare: %w", err)
	}
	return tree.Known(), c, true, nil
}
