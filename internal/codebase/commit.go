package codebase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

// commits commits what is in worktrees.
type commits struct {
	*worktrees
	snapshots *snapshots
	guard     *guard
}

// CommitOptions say what a commit is called and whose it is.
type CommitOptions struct {
	// Message is the whole message without trailers; its first line is the
	// subject. It is required.
	Message string

	// Name and Email are the author; empty ones are those of Config. The
	// committer is always that of Config.
	Name, Email string

	CoAuthors []string // each "Name <email>"
	Trailers  []string // each "Key: value"
}

// maxMessage is how long a message may be, in bytes.
const maxMessage = 64 << 10

var (
	personForm  = pattern.Lazy(`^[^<>\x00-\x1f\x7f]{1,100} <[^<>\s\x00-\x1f\x7f]{1,200}>$`)
	trailerForm = pattern.Lazy(`^[A-Za-z][A-Za-z0-9-]{0,60}: [^\x00-\x1f\x7f]{1,500}$`)
	nameForm    = pattern.Lazy(`^[^<>\x00-\x1f\x7f]{1,100}$`)
	emailForm   = pattern.Lazy(`^[^<>\s\x00-\x1f\x7f]{1,200}$`)
)

// text returns the message with its trailers.
func (o CommitOptions) text() (string, error) {
	message := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.ReplaceAll(o.Message, "\r\n", "\n"), "?"))
	message = strings.TrimSpace(message)
	if message == "" {
		return "", fault.New(fault.Invalid, "A commit needs a message.")
	}
	if len(message) > maxMessage {
		return "", fault.Newf(fault.Invalid, "The commit's message is longer than %d KiB.", maxMessage>>10)
	}
	trailers := make([]string, 0, len(o.Trailers)+len(o.CoAuthors))
	for _, t := range o.Trailers {
		if !trailerForm.MatchString(t) {
			return "", fault.Newf(fault.Invalid, "%.80q is not a trailer like “Key: value”.", t)
		}
		trailers = append(trailers, t)
	}
	for _, c := range o.CoAuthors {
		if !personForm.MatchString(c) {
			return "", fault.Newf(fault.Invalid, "%.80q is not an author like “Name <email>”.", c)
		}
		trailers = append(trailers, "Co-authored-by: "+c)
	}
	if len(trailers) == 0 {
		return message + "\n", nil
	}
	return message + "\n\n" + strings.Join(trailers, "\n") + "\n", nil
}

func (c *commits) people(o CommitOptions) (author, committer *gitcmd.Author, err error) {
	committer = &gitcmd.Author{Name: c.cfg.Name, Email: c.cfg.Email}
	author = &gitcmd.Author{Name: o.Name, Email: o.Email}
	if o.Name == "" {
		author.Name = committer.Name
	}
	if o.Email == "" {
		author.Email = committer.Email
	}
	for _, a := range []*gitcmd.Author{author, committer} {
		if !nameForm.MatchString(a.Name) || !emailForm.MatchString(a.Email) {
			return nil, nil, fault.Newf(fault.Invalid, "%.80q with %.80q cannot be the author of a commit.", a.Name, a.Email)
		}
	}
	return author, committer, nil
}

// Commit commits everything in a worktree, but what git is told to ignore, to
// the branch that is checked out there, and returns the commit. No hook runs. If
// there is nothing to commit it returns HEAD and false, so it may be repeated.
//
// The error is Conflict while a merge or rebase waits for somebody to finish it,
// and Invalid for a bad message or person, or if there is something that cannot
// be committed (as in Saved.Unsaved): the text names it.
func (c *commits) Commit(ctx context.Context, t Tree, o CommitOptions) (commit string, changed bool, err error) {
	message, err := o.text()
	if err != nil {
		return "", false, err
	}
	author, committer, err := c.people(o)
	if err != nil {
		return "", false, err
	}
	unlock, err := c.lockTree(ctx, t)
	if err != nil {
		return "", false, err
	}
	defer unlock()
	if !c.intact(t) {
		return "", false, fault.New(fault.NotFound, "The worktree no longer exists.")
	}
	if err := c.unfinished(ctx, t); err != nil {
		return "", false, err
	}
	s, err := c.snapshots.of(ctx, t)
	if err != nil {
		return "", false, err
	}
	if len(s.unsaved) > 0 {
		return "", false, fault.Newf(fault.Invalid, "Cannot commit %s: it is too large, not a regular file, refused by git, or a nested repository or submodule. Delete it or add it to .gitignore; of a submodule, empty the folder.", some(s.unsaved))
	}
	head, err := c.Head(ctx, t)
	if err != nil {
		return "", false, fmt.Errorf("reading HEAD: %w", err)
	}
	tree, err := c.resolve(ctx, t.place, head+"^{tree}")
	if err != nil || tree == s.tree {
		return head, false, err
	}
	commit, err = c.runIn(ctx, &t, &gitcmd.Call{
		Args: []string{"commit-tree", s.tree, "-p", head}, Stdin: strings.NewReader(message), Author: author, Committer: committer,
	})
	if err != nil {
		return "", false, fmt.Errorf("writing the commit: %w", err)
	}
	if _, err := c.justIn(ctx, &t, "update-ref", "-m", "commit: "+oneLine(o.Message), "HEAD", commit, head); err != nil {
		return "", false, fmt.Errorf("moving the branch: %w", err)
	}
	return commit, true, c.reindex(ctx, t)
}

// reindex makes the index that of HEAD.
func (c *commits) reindex(ctx context.Context, t Tree) error {
	if _, err := c.justIn(ctx, &t, "read-tree", "HEAD"); err != nil {
		return fmt.Errorf("making the index: %w", err)
	}
	if t.Protected {
		if _, err := c.guard.hide(ctx, t); err != nil {
			return err
		}
	}
	if _, err := c.justIn(ctx, &t, "update-index", "-q", "--refresh"); err != nil && gitcmd.ExitCode(err) != 1 {
		return fmt.Errorf("making the index: %w", err)
	}
	return nil
}

// unfinished refuses a worktree in the middle of something.
func (c *commits) unfinished(ctx context.Context, t Tree) error {
	out, err := c.runIn(ctx, &t, &gitcmd.Call{Args: []string{"ls-files", "--unmerged", "-z"}, MaxOutput: 1 << 20, Truncate: true})
	if err != nil {
		return fmt.Errorf("looking for conflicts: %w", err)
	}
	if out != "" {
		return fault.New(fault.Conflict, "The worktree has unresolved merge conflicts. Resolve them first.")
	}
	for name, what := range map[string]string{
		"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert", "rebase-merge": "rebase", "rebase-apply": "rebase",
	} {
		if _, err := os.Lstat(filepath.Join(t.gitDir(), name)); !errors.Is(err, fs.ErrNotExist) {
			return fault.Newf(fault.Conflict, "A %s is in progress in the worktree. Finish or abort it first.", what)
		}
	}
	return nil
}

// some names the first few of a list.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
