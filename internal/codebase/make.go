package codebase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// maker makes the worktrees of conversations and moves them to what was pushed.
type maker struct {
	*worktrees
	fetches   *fetches
	snapshots *snapshots
	guard     *guard
}

// Worktree returns the worktree of a conversation. On first need it is made from
// the default branch, freshly fetched; if fetching fails, from what was fetched
// last, and Note says so. If it was swept it comes back as it was saved. An
// existing one is returned without running git, unless its branch was deleted or packed: a
// deleted one comes back. It is idempotent and safe to call
// at once for any number of conversations: they wait for each other only while
// git notes a new worktree, which takes milliseconds, and share their fetches.
func (m *maker) Worktree(ctx context.Context, repo Repo, conversation string) (Tree, error) {
	return m.WorktreeAt(ctx, repo, conversation, Start{})
}

// WorktreeAt is Worktree for a conversation about a branch or a pull request:
// start says where the worktree begins and where it is pushed to. It matters when
// the worktree is made, also after it was swept. Of one that exists only a new
// Start.Head counts, and once it was pushed what others have pushed to Start.Branch: the
// worktree moves there if nothing in it would be lost, and otherwise Note says that it did not.
//
// Besides the errors of Worktree: Invalid for names that git or this package does
// not take, NotFound if the origin has no such branch or ref, Conflict if Head is
// no longer part of it, Unsupported for a codebase without an origin.
func (m *maker) WorktreeAt(ctx context.Context, repo Repo, conversation string, start Start) (Tree, error) {
	if conversation == "" {
		return Tree{}, fault.New(fault.Invalid, "A worktree belongs to a conversation.")
	}
	if err := start.check(); err != nil {
		return Tree{}, err
	}
	p, err := m.place(ctx, repo)
	if err != nil {
		return Tree{}, err
	}
	short := Short(conversation)
	t := m.treeOf(p, conversation, short)
	unlock, err := m.lockTree(ctx, t)
	if err != nil {
		return Tree{}, err
	}
	defer unlock()
	was, found, err := m.readMeta(p.rel, short)
	if err == nil && !found {
		was, found, err = m.renew(ctx, t)
	}
	if err != nil {
		return Tree{}, err
	}
	if found && (was.Conversation != conversation || was.Dir != repo.Dir) {
		return Tree{}, fault.New(fault.Conflict, "Another conversation has the same short ID; start a new one.")
	}
	if from := m.beside(t); from != "" {
		if err := m.bring(ctx, &t, from); err != nil {
			return Tree{}, err
		}
		found = false // what is here is older
	}
	if found && m.intact(t) {
		if err := m.relink(ctx, t); err != nil {
			return Tree{}, err
		}
		t.Base = was.Base
		t.set(was.origins)
		if err = m.revive(ctx, &t); err == nil {
			err = m.catchUp(ctx, &t, start)
		}
		return t, err
	}
	if found {
		// Somebody deleted the directory by hand. What a ref holds comes back.
		m.log.WarnContext(ctx, "a worktree has vanished", "conversation_id", conversation, "codebase", p.repo.Name)
		t.tell("The files of this conversation were deleted from the bot's disk. They are back as last committed or put away; what changed since is lost.")
	}
	return m.make(ctx, t, start)
}

// renew makes the notes of a worktree again that are there and cannot be read, as after
// a power failure. The worktree is whole then: notes are written last and go first.
func (m *maker) renew(ctx context.Context, t Tree) (meta, bool, error) {
	if _, err := m.root.Lstat(t.rel() + ".json"); err != nil || !m.intact(t) {
		return meta{}, false, nil //nolint:nilerr // as if they were not there
	}
	base, err := m.resolve(ctx, t.place, t.ref("base")+"^{commit}")
	if err != nil || base == "" {
		return meta{}, false, err
	}
	t.Base = base
	if err := m.recall(ctx, &t); err != nil {
		return meta{}, false, err
	}
	m.log.WarnContext(ctx, "the notes of a worktree were damaged; they are made again", "conversation_id", t.Conversation, "codebase", t.Repo.Name)
	return meta{Conversation: t.Conversation, Dir: t.Repo.Dir, Base: t.Base, origins: t.from}, true, m.writeMeta(t)
}

// make makes the worktree of t, whose lock the caller holds. What a process that
// died left half made was never given to anybody, and goes.
func (m *maker) make(ctx context.Context, t Tree, start Start) (Tree, error) {
	saved, err := m.resolve(ctx, t.place, t.ref("saved")+"^{commit}")
	if err != nil {
		return Tree{}, err
	}
	branch, err := m.resolve(ctx, t.place, "refs/heads/"+t.Branch+"^{commit}")
	if err != nil {
		return Tree{}, err
	}
	t.Base, err = m.resolve(ctx, t.place, t.ref("base")+"^{commit}")
	if err != nil {
		return Tree{}, err
	}
	if branch == "" && t.Base != "" {
		if branch, err = m.rebranch(ctx, &t); err != nil {
			return Tree{}, err
		}
	}
	over, err := m.over(ctx, t, start, branch, saved)
	if err != nil {
		return Tree{}, err
	}
	if over {
		branch, saved = "", ""
	}
	if branch == "" || t.Base == "" {
		if err := m.start(ctx, &t, start); err != nil {
			return Tree{}, err
		}
		t.Created = true
	} else {
		t.Reopened = true
		if err := m.recall(ctx, &t); err != nil {
			return Tree{}, err
		}
		if saved, err = m.unlessOlder(ctx, t.place, saved, branch); err != nil {
			return Tree{}, err
		}
	}
	if err := m.note(ctx, t); err != nil {
		return Tree{}, err
	}
	if err := m.fill(ctx, t, saved); err != nil {
		return Tree{}, err
	}
	if err := m.guard.protect(ctx, t); err != nil {
		return Tree{}, err
	}
	if err := m.writeMeta(t); err != nil {
		return Tree{}, err
	}
	if t.Reopened {
		err = m.catchUp(ctx, &t, start)
	}
	return t, err
}

// over reports whether the work of a worktree that was put away is done, and forgets it then:
// all of it was pushed, and its branch is gone from the origin since, as where it was merged.
// What comes next begins anew: on top of commits that were merged as others it could not be.
func (m *maker) over(ctx context.Context, t Tree, s Start, branch, saved string) (bool, error) {
	pushed, err := m.resolve(ctx, t.place, t.ref("pushed")+"^{commit}")
	if err != nil || pushed == "" || pushed != branch || s.foreign() || s.Branch == "" {
		return false, err
	}
	if saved != "" {
		if _, err := m.just(ctx, &t.place, "diff-tree", "--quiet", saved, branch); err != nil {
			return false, nil //nolint:nilerr // there are changes that were not pushed
		}
	}
	there, err := m.refsAtOrigin(ctx, t.place, branchRef(s.Branch))
	if err != nil || there.refs[branchRef(s.Branch)] != "" {
		return false, nil //nolint:nilerr // nothing shows that it is gone
	}
	refs := []string{"refs/heads/" + t.Branch, t.ref("base"), t.ref("saved"), t.ref("pushed")}
	script := "delete " + strings.Join(refs, "\ndelete ") + "\n"
	_, err = m.run(ctx, &t.place, &gitcmd.Call{Args: []string{"update-ref", "--stdin"}, Stdin: strings.NewReader(script)})
	return err == nil, err
}

// unlessOlder returns a saved state, or nothing if the branch has got commits since it
// was saved: it would take them back.
func (m *maker) unlessOlder(ctx context.Context, p place, saved, branch string) (string, error) {
	if saved == "" {
		return "", nil
	}
	head, err := m.resolve(ctx, p, saved+"^")
	if err != nil || head == "" || head == branch || !m.contains(ctx, p, branch, head) {
		return saved, err
	}
	return "", nil
}

// start finds the commit to start from and makes the branch there.
func (m *maker) start(ctx context.Context, t *Tree, start Start) error {
	commit, err := m.tip(ctx, t, start)
	if err != nil {
		return err
	}
	existing, err := m.resolve(ctx, t.place, "refs/heads/"+t.Branch+"^{commit}")
	if err != nil {
		return err
	}
	script := "create refs/heads/" + t.Branch + " " + commit + "\n"
	if existing != "" { // a branch of this name with commits of its own is continued
		script, commit = "", existing
	}
	script += "update " + t.ref("base") + " " + commit + "\n"
	// First: whoever finds the branch takes the worktree for begun, and recalls this.
	if err := m.remember(ctx, *t); err != nil {
		return err
	}
	if _, err := m.run(ctx, &t.place, &gitcmd.Call{Args: []string{"update-ref", "--stdin"}, Stdin: strings.NewReader(script)}); err != nil {
		if said(err, "'refs/heads/bot' exists") {
			return &fault.Error{Kind: fault.Conflict, Public: t.Repo.Name + " has a branch named bot, so there can be none named " + t.Branch + ". Rename that branch.", Err: err}
		}
		return fmt.Errorf("making the branch %s: %w", t.Branch, err)
	}
	t.Base = commit
	return nil
}

// fresh returns the tip of the default branch, freshly fetched, or as it was
// fetched last with a note about that.
func (m *maker) fresh(ctx context.Context, t *Tree) (string, error) {
	fetchErr := m.fetches.fetchFresh(ctx, t.place)
	if ctx.Err() != nil {
		return "", fetchErr
	}
	name, commit, err := m.fetches.base(ctx, t.place)
	if err != nil {
		return "", errors.Join(err, fetchErr)
	}
	if fetchErr != nil {
		m.log.WarnContext(ctx, "cannot fetch for a worktree", "codebase", t.Repo.Name, "err", fetchErr)
		t.tell(fmt.Sprintf("Could not fetch (%s), so this starts from %s as last fetched: %.10s of %s.",
			strings.TrimSuffix(fault.Public(fetchErr), "."), name, commit, m.fetches.age(ctx, t.place, commit)))
	}
	return commit, nil
}

// note lets git note the worktree, without writing files. This alone is serialized
// for a codebase.
func (m *maker) note(ctx context.Context, t Tree) error {
	unlock, err := m.locks.lock(ctx, "repo "+t.place.rel)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.root.Remove(t.rel() + ".json"); err != nil && !errors.Is(err, fs.ErrNotExist) { // until it is whole again
		return fault.Wrap(err, fault.Internal, "removing a worktree's notes")
	}
	if err := m.discard(t.rel()); err != nil {
		return err
	}
	if err := removeAdmin(t.place, t.short); err != nil {
		return err
	}
	if err := m.root.MkdirAll(path.Dir(t.rel()), 0o700); err != nil {
		return fault.Wrap(err, fault.Internal, "making the folder of the worktrees")
	}
	_, err = m.just(ctx, &t.place, "worktree", "add", "--quiet", "--no-checkout", "--", t.Dir, t.Branch)
	return fault.Note(err, "adding the worktree")
}

// fill writes the files: those of the branch, or of a saved state.
func (m *maker) fill(ctx context.Context, t Tree, saved string) error {
	from := cmp.Or(saved, "HEAD")
	if err := m.checkout(ctx, t.place, t.gitDir(), t.Dir, from); err != nil {
		return err
	}
	if saved == "" {
		return nil
	}
	// What differs from the branch has to show as changes, as before.
	if _, err := m.justIn(ctx, &t, "read-tree", "HEAD"); err != nil {
		return fmt.Errorf("making the index: %w", err)
	}
	if _, err := m.justIn(ctx, &t, "update-index", "-q", "--refresh"); err != nil && gitcmd.ExitCode(err) != 1 {
		return fmt.Errorf("making the index: %w", err)
	}
	return nil
}
