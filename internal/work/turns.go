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
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// maxInlineDiff is how much of a patch is shown in the chat, in bytes.
const maxInlineDiff = 12_000

var _ orchestrator.Workshop = (*Shop)(nil)

// Lookup implements orchestrator.Workshop.
func (s *Shop) Lookup(ctx context.Context, tx orchestrator.Tx, conv sessions.Conversation, name string) (bool, error) {
	if conv.CodebaseID == "" {
		return false, nil
	}
	all, err := tx.CodebaseCommands(ctx, conv.CodebaseID)
	_, ok := all[name]
	return ok, err
}

// Prepare implements orchestrator.Workshop: the worktree, a checkpoint of its
// files, and the command file that the entry names, read now and not when it
// was registered.
func (s *Shop) Prepare(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, call command.Call) (orchestrator.Prepared, error) {
	var p orchestrator.Prepared
	conv, err := s.adopt(ctx, conv, entry)
	if err != nil {
		return p, err
	}
	c, err := s.codebaseOf(ctx, conv)
	if err != nil {
		return p, err
	}
	if c, conv, err = s.obtain(ctx, c, conv, entry.In.Repository); err != nil {
		return p, err
	}
	tree, err := s.treeFor(ctx, c, conv, entry.In.Repository)
	if err != nil {
		return p, err
	}
	cwd, err := folderOf(c, conv, tree)
	if err != nil {
		return p, err
	}
	p.Dir, p.Tree, p.GitData = path.Join(tree.Dir, cwd), tree.Dir, tree.GitData()
	p.Notice, p.Codebase, p.Branch = tree.Note, c.Name, tree.Branch
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

// prompt reads the command file that a call names; nil if it names none.
func (s *Shop) prompt(ctx context.Context, c sessions.Codebase, conv sessions.Conversation, tree codebase.Tree, call command.Call) (*command.Prompt, error) {
	name := call.Invoked().Name
	if name == "" {
		return nil, nil
	}
	all, err := s.registry(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	def, ok := all[name]
	switch {
	case !ok:
		return nil, nil
	case def.Path == "":
		return nil, fault.Newf(fault.Invalid, "Two files have the name `/%s`. Rename one of them, or choose with `/command-set %s <path>`.", name, name)
	}
	root, err := openCwd(tree, "")
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	file, err := commandfile.Read(root, def.Path)
	if err != nil {
		return nil, err
	}
	if commandfile.Fold(file.Name) == name {
		name = file.Name // as its author writes it
	}
	return &command.Prompt{
		Meta:    sessions.MetaOf(name, sessions.Artifact(file.Produces), sessions.Artifact(file.Consumes)),
		Model:   file.Model,
		Summary: file.Description,
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

func (s *Shop) runBranch(ctx context.Context, r command.Request) (command.Reply, error) {
	c, tree, err := s.workOf(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	head, err := s.space.Head(ctx, tree)
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the branch: %w", err)
	}
	return command.Reply{Text: fmt.Sprintf("**%s**, branch `%s` at `%.10s`, begun from `%.10s`.", c.Name, tree.Branch, head, tree.Base)}, nil
}

// workOf returns the codebase of a conversation and its worktree.
func (s *Shop) workOf(ctx context.Context, conv sessions.Conversation) (sessions.Codebase, codebase.Tree, error) {
	c, err := s.codebaseOf(ctx, conv)
	if err != nil {
		return c, codebase.Tree{}, err
	}
	tree, err := s.tree(ctx, c, conv)
	return c, tree, err
}

// Status implements orchestrator.Workshop: what /status says of the codebase. It
// makes no worktree.
func (s *Shop) Status(ctx context.Context, conv sessions.Conversation) []string {
	if conv.CodebaseID == "" {
		return []string{"codebase: none; `/clone <url>` or `/repo <name>`"}
	}
	c, err := s.codebaseOf(ctx, conv)
	if err != nil {
		return []string{"codebase: " + fault.Public(err)}
	}
	lines := []string{fmt.Sprintf("codebase: %s, folder `%s`", c.Name, shownCwd(conv.Cwd))}
	if branch := s.branchOf(ctx, c, conv); branch != "" {
		lines = append(lines, fmt.Sprintf("branch: `%s`", branch))
	}
	return lines
}

// branchOf returns the branch of a conversation that has worked in its worktree
// already, or nothing.
func (s *Shop) branchOf(ctx context.Context, c sessions.Codebase, conv sessions.Conversation) string {
	worked := false
	err := s.storage.InRead(ctx, func(tx orchestrator.Tx) error {
		var err error
		_, worked, err = tx.LastCheckpoint(ctx, conv.ID)
		return err
	})
	if err != nil || !worked {
		return ""
	}
	tree, err := s.tree(ctx, c, conv)
	if err != nil {
		return ""
	}
	return tree.Branch
}

func (s *Shop) runDiff(ctx context.Context, r command.Request) (command.Reply, error) {
	_, tree, err := s.workOf(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	changes, err := s.space.Diff(ctx, tree)
	if err != nil {
		return command.Reply{}, fmt.Errorf("compare: %w", err)
	}
	if len(changes.Patch) == 0 {
		return command.Reply{Text: fmt.Sprintf("No changes on `%s`.", tree.Branch)}, nil
	}
	text := fmt.Sprintf("Changes on `%s`:\n\n%s\n\n", tree.Branch, wording.Fenced("", changes.Stat))
	body := string(changes.Patch)
	// A file is for everybody to see, so what one person asked aside stands in the text.
	if _, ok := s.adapters[r.Conv.Key.Platform].(platform.Filer); ok && !r.Entry.In.Aside() {
		return command.Reply{
			Text: strings.TrimSpace(text), Files: []command.File{{Name: "changes.patch", Data: changes.Patch}},
		}, nil
	}
	var reply command.Reply
	if len(body) > maxInlineDiff {
		cut := strings.LastIndexByte(body[:maxInlineDiff], '\n') + 1
		reply.Text = text + wording.Fenced("diff", body[:cut]) + fmt.Sprintf("\n\n%d more bytes of the patch are not shown; they are on the branch.", len(body)-cut)
		return reply, nil
	}
	reply.Text = text + wording.Fenced("diff", body)
	return reply, nil
}
