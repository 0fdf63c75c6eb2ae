package codebase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

// Start says where a worktree begins. The zero value is the default branch,
// without a branch to push to.
type Start struct {
	// Branch is the branch at the origin that the work is for, such as
	// "bot/issue-42". If the origin has one of that name already, for instance
	// because this worktree was lost, it is continued.
	Branch string

	// Base is the branch that a new Branch starts from and that the work is to
	// be merged into; empty is the default branch.
	Base string

	// Existing means that Branch is that of a pull request, or otherwise not
	// ours: it has to exist, and Protected files are those of Base.
	Existing bool

	// Fetch is a ref of the origin to start from in place of Branch, such as
	// "refs/pull/7/head" for a pull request from a fork. The worktree is then
	// read-only in that nothing can be pushed from it, and Protected files are
	// those of Base. Branch does not count then, and Existing may not be set.
	Fetch string

	// Head is the commit to start at, which Branch or Fetch contains; empty is
	// their tip.
	Head string
}

var (
	fetchForm  = pattern.Lazy(`^refs/(?:pull|merge-requests)/[1-9][0-9]{0,9}/(?:head|merge)$`)
	objectForm = pattern.Lazy(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
)

// foreign reports whether somebody else decides what is in the worktree.
func (s Start) foreign() bool { return s.Existing || s.Fetch != "" }

// origins returns what a worktree has to know of a start.
func (s Start) origins() origins {
	o := origins{Remote: s.Branch, BaseBranch: s.Base, ReadOnly: s.Fetch != "", Protected: s.foreign(), Fetched: s.Fetch, Head: s.Head}
	if o.ReadOnly {
		o.Remote = ""
	}
	return o
}

func (s Start) check() error {
	for _, name := range []string{s.Branch, s.Base} {
		if name != "" {
			if err := ValidBranch(name); err != nil {
				return err
			}
		}
	}
	switch {
	case s.Existing && s.Branch == "":
		return fault.New(fault.Invalid, "An existing branch needs a name.")
	case s.Fetch != "" && s.Existing:
		return fault.New(fault.Invalid, "A worktree starts from an existing branch or from a ref, not from both.")
	case s.Fetch != "" && !fetchForm.MatchString(s.Fetch):
		return fault.Newf(fault.Invalid, "%.80q is not a supported ref; use one like refs/pull/7/head.", s.Fetch)
	case s.Head != "" && !objectForm.MatchString(s.Head):
		return fault.Newf(fault.Invalid, "%.80q is not the full name of a commit.", s.Head)
	case s.Head != "" && !s.foreign():
		return fault.New(fault.Invalid, "A commit to start at belongs to an existing branch or a ref.")
	}
	return nil
}

const maxBranch = 200

// ValidBranch returns an error of kind Invalid if a name cannot be that of a
// branch, or looks like an option, a ref or a revision. It takes fewer names than
// git does.
func ValidBranch(name string) error {
	wrong := func(why string) error {
		return fault.Newf(fault.Invalid, "%.80q cannot be the name of a branch: %s.", name, why)
	}
	switch {
	case name == "":
		return wrong("it is empty")
	case len(name) > maxBranch:
		return wrong("it is too long")
	case strings.HasPrefix(name, "-"):
		return wrong("it begins with a dash")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\uFFFD' }):
		return wrong("it contains a space or a control character")
	case strings.ContainsAny(name, `~^:?*[\`):
		return wrong("it contains one of ~ ^ : ? * [ \\")
	case strings.Contains(name, "..") || strings.Contains(name, "@{") || name == "@":
		return wrong("it is a revision")
	case name == "HEAD" || strings.HasPrefix(name, "refs/"):
		return wrong("it is a ref")
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return wrong("it begins or ends with a slash, or has two in a row")
		case strings.HasPrefix(part, ".") || strings.HasSuffix(part, "."):
			return wrong("a part of it begins or ends with a dot")
		case strings.HasSuffix(strings.ToLower(part), ".lock"):
			return wrong("a part of it ends in .lock")
		}
	}
	return nil
}

// tip finds the commit to start from, fetches it, and sets what t is for.
func (m *maker) tip(ctx context.Context, t *Tree, s Start) (string, error) {
	t.set(s.origins())
	if t.place.local || t.place.repo.Plain {
		if s.Base != "" || s.foreign() {
			return "", fault.Newf(fault.Unsupported, "%s has no origin, so only what is checked out there can be used.", t.Repo.Name)
		}
		return m.fresh(ctx, t)
	}
	if s == (Start{}) {
		return m.fresh(ctx, t)
	}
	commit, err := m.fetchStart(ctx, t, s)
	if err == nil {
		t.from.Head = commit
		return commit, nil
	}
	if s.foreign() || s.Base != "" || ctx.Err() != nil || !offline(err) {
		return "", err
	}
	return m.fresh(ctx, t) // which says that there could be no fetch
}

func offline(err error) bool {
	return fault.Passing(err) || fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.RateLimited)
}

// fetchStart fetches what a worktree starts from and the base branch, and returns
// the commit to work on. Both are kept by refs of the worktree, "start" and
// "into", so that nothing another conversation fetches takes them away.
func (m *maker) fetchStart(ctx context.Context, t *Tree, s Start) (string, error) {
	p := t.place
	unlock, err := m.locks.lock(ctx, "fetch "+p.rel)
	if err != nil {
		return "", err
	}
	defer unlock()
	there, err := m.refsAtOrigin(ctx, p, branchRef(s.Branch), branchRef(s.Base), s.Fetch)
	if err != nil {
		return "", err
	}
	base := cmp.Or(s.Base, there.branch)
	baseTip := there.refs[branchRef(base)]
	if base == "" || baseTip == "" {
		return "", fault.Newf(fault.NotFound, "%s has no branch %s.", t.Repo.Name, base)
	}
	ref := s.Fetch
	if ref == "" {
		ref = branchRef(s.Branch)
	}
	headTip := there.refs[ref]
	if headTip == "" && s.foreign() {
		return "", fault.Newf(fault.NotFound, "%s no longer has %s.", t.Repo.Name, strings.TrimPrefix(ref, "refs/heads/"))
	}
	specs := []string{"+" + branchRef(base) + ":" + t.ref("into")}
	if headTip != "" {
		specs = append(specs, "+"+ref+":"+t.ref("start"))
	}
	if err := m.fetches.fetch(ctx, p, specs...); err != nil {
		return "", err
	}
	from := t.ref("into")
	if headTip != "" {
		from = t.ref("start")
	}
	// The branch may have moved since it was asked for.
	head, err := m.resolve(ctx, p, from+"^{commit}")
	if err != nil {
		return "", err
	}
	if head == "" {
		return "", fault.Newf(fault.Invalid, "%s is not a commit.", strings.TrimPrefix(ref, "refs/heads/"))
	}
	if s.Head != "" && s.Head != head {
		if !m.contains(ctx, p, head, s.Head) {
			return "", fault.Newf(fault.Conflict, "%s no longer contains the commit %.10s: it was replaced by a force push.", strings.TrimPrefix(ref, "refs/heads/"), s.Head)
		}
		head = s.Head
	}
	return head, m.checkSize(ctx, p, head)
}

// contains reports whether a commit is part of the history of another.
func (m *maker) contains(ctx context.Context, p place, tip, commit string) bool {
	_, err := m.just(ctx, &p, "merge-base", "--is-ancestor", commit, tip)
	return err == nil
}

// catchUp brings a worktree of somebody else's branch to the commit that start
// names, and one of a branch of ours to what others pushed there, if nothing in it would be lost by
// that. Where the branch is may be known
// better by now: it may turn out not to be a fork's. A start that names no commit
// knows less than the worktree does. The caller holds its lock.
func (m *maker) catchUp(ctx context.Context, t *Tree, s Start) error {
	switch {
	case s.Head != "" && s.origins() != t.from:
		if err := m.move(ctx, t, s); err != nil {
			return err
		}
	case s.Branch != "" && !s.foreign():
		if err := m.follow(ctx, t, s.Branch); err != nil {
			return err
		}
		if err := m.goOn(ctx, t, s.Base); err != nil {
			return err
		}
	}
	return m.guard.protect(ctx, *t)
}

// follow brings a worktree that was pushed to what others pushed to its branch since, or notes
// why not: the next push merges it. Where the origin does not answer, it stays as it is.
func (m *maker) follow(ctx context.Context, t *Tree, branch string) error {
	head, err := m.pushedHead(ctx, *t)
	if err != nil || head == "" {
		return err
	}
	theirs, err := m.theirs(ctx, *t, branch, head)
	if err != nil {
		m.log.WarnContext(ctx, "cannot fetch what was pushed to a branch", "codebase", t.Repo.Name, "conversation_id", t.Conversation, "err", err)
		return ctx.Err()
	}
	if theirs == "" || m.contains(ctx, t.place, head, theirs) {
		return nil
	}
	clean, err := m.clean(ctx, *t)
	switch {
	case err != nil:
		return err
	case !clean:
		t.tell("Others pushed commits to " + branch + ", but the files here have changes that are not committed, so they were left unchanged.")
		return nil
	case !m.contains(ctx, t.place, theirs, head):
		if known, _, err := m.replaced(ctx, *t, head, theirs); err != nil || known != head {
			t.tell("Others pushed commits to " + branch + ", but this worktree has commits that are not pushed, so it was left unchanged.")
			return err
		}
		t.tell(fmt.Sprintf("The branch %s was replaced by a force push: the files here are as it is now, and no longer at %.10s.", branch, head))
	}
	if err := m.jump(ctx, *t, head, theirs); err != nil {
		return err
	}
	return m.keep(ctx, *t, "pushed", theirs)
}

// pushedHead returns what a worktree is at that was pushed, and nothing for one that was not.
func (m *maker) pushedHead(ctx context.Context, t Tree) (string, error) {
	pushed, err := m.resolve(ctx, t.place, t.ref("pushed")+"^{commit}")
	if err != nil || pushed == "" {
		return "", err
	}
	return m.Head(ctx, t)
}

// goOn brings a worktree that was pushed, and whose work is part of its base branch by now, to what
// that branch is at: on top of commits that were merged as others, as by a squash, the next pull
// request would conflict with them. The commits stay below, so that the branch can still be pushed.
// Where the origin does not answer, or something here is not part of the base branch, it stays as it is.
func (m *maker) goOn(ctx context.Context, t *Tree, base string) error {
	head, err := m.pushedHead(ctx, *t)
	if err != nil || head == "" {
		return err
	}
	tip, err := m.into(ctx, *t, base)
	if err != nil {
		m.log.WarnContext(ctx, "cannot fetch what a branch is to be merged into", "codebase", t.Repo.Name, "conversation_id", t.Conversation, "err", err)
		return ctx.Err()
	}
	if m.contains(ctx, t.place, head, tip) {
		return nil
	}
	files, err := m.just(ctx, &t.place, "merge-tree", "--write-tree", "--no-messages", tip, head)
	if err != nil {
		return ctx.Err() // they cannot be merged, so not all is there
	}
	there, err := m.resolve(ctx, t.place, tip+"^{tree}")
	if err != nil || files != there {
		return err
	}
	if clean, err := m.clean(ctx, *t); err != nil || !clean {
		return err
	}
	if !m.contains(ctx, t.place, tip, head) {
		if tip, err = m.commitTree(ctx, *t, files, "Merge the base branch", head, tip); err != nil {
			return err
		}
	}
	t.Base = tip // is noted first: what ends here is done again, and behind the jump it would not be
	if err := errors.Join(m.keep(ctx, *t, "base", t.Base), m.writeMeta(*t)); err != nil {
		return err
	}
	return m.jump(ctx, *t, head, tip)
}

// into fetches what a branch is at that work is to be merged into, the default branch if it is
// empty, and returns it.
func (m *maker) into(ctx context.Context, t Tree, base string) (string, error) {
	unlock, err := m.locks.lock(ctx, "fetch "+t.place.rel)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := m.fetches.fetch(ctx, t.place, "+"+cmp.Or(branchRef(base), "HEAD")+":"+t.ref("into")); err != nil {
		return "", err
	}
	return m.resolve(ctx, t.place, t.ref("into")+"^{commit}")
}

// theirs fetches what a branch is at and returns it; nothing if there is no such branch, or it
// is at head.
func (m *maker) theirs(ctx context.Context, t Tree, branch, head string) (string, error) {
	unlock, err := m.locks.lock(ctx, "fetch "+t.place.rel)
	if err != nil {
		return "", err
	}
	defer unlock()
	there, err := m.refsAtOrigin(ctx, t.place, branchRef(branch))
	if now := there.refs[branchRef(branch)]; err != nil || now == "" || now == head {
		return "", err
	}
	if err := m.fetches.fetch(ctx, t.place, "+"+branchRef(branch)+":"+t.ref("theirs")); err != nil {
		return "", err
	}
	return m.resolve(ctx, t.place, t.ref("theirs")+"^{commit}")
}

// move moves a worktree to a newer commit of its branch, or notes why not.
func (m *maker) move(ctx context.Context, t *Tree, s Start) error {
	target, err := m.fetchStart(ctx, t, s)
	if err != nil {
		if !offline(err) {
			return err
		}
		t.tell("Could not fetch (" + strings.TrimSuffix(fault.Public(err), ".") + "), so the files here are older than the last push.")
		return nil
	}
	head, err := m.Head(ctx, *t)
	if err != nil {
		return err
	}
	switch {
	case head == target:
		t.Base = target
	case head != t.Base && m.contains(ctx, t.place, head, target):
		// Commits of our own on top of it, which are not pushed yet.
	default:
		clean, err := m.clean(ctx, *t)
		if err != nil {
			return err
		}
		known, _, err := m.replaced(ctx, *t, head, target)
		if err != nil {
			return err
		}
		if !clean || head != t.Base && head != known && !m.contains(ctx, t.place, target, head) {
			t.tell(fmt.Sprintf("The branch is at %.10s now, but the files here have local changes, so they were left unchanged.", target))
			return nil
		}
		if err := m.jump(ctx, *t, head, target); err != nil {
			return err
		}
		t.Base = target
	}
	o := s.origins()
	o.Head = target
	t.set(o)
	if err := m.keep(ctx, *t, "base", t.Base); err != nil {
		return err
	}
	if err := m.remember(ctx, *t); err != nil {
		return err
	}
	return m.writeMeta(*t)
}

// clean reports whether a worktree is as its HEAD, and HEAD its own branch.
func (m *maker) clean(ctx context.Context, t Tree) (bool, error) {
	branch, err := m.Branch(ctx, t)
	if err != nil || branch != t.Branch {
		return false, err
	}
	s, err := m.snapshots.of(ctx, t)
	if err != nil {
		return false, err
	}
	tree, err := m.justIn(ctx, &t, "rev-parse", "--verify", "HEAD^{tree}")
	return err == nil && tree == s.tree && len(s.unsaved) == 0, err
}

// jump moves branch and files of a clean worktree.
func (m *maker) jump(ctx context.Context, t Tree, from, to string) error {
	if err := m.guard.unprotect(ctx, t); err != nil {
		return err
	}
	_, err := m.runIn(ctx, &t, &gitcmd.Call{
		Args:   []string{"read-tree", "--reset", "-u", "--no-recurse-submodules", to},
		Config: parallel(), Timeout: m.cfg.CloneTimeout,
	})
	if err != nil {
		return fmt.Errorf("writing the files: %w", err)
	}
	if _, err := m.justIn(ctx, &t, "update-ref", "refs/heads/"+t.Branch, to, from); err != nil {
		return fmt.Errorf("moving the branch: %w", err)
	}
	m.log.InfoContext(ctx, "moved a worktree to what was pushed", "codebase", t.Repo.Name, "conversation_id", t.Conversation, "commit", path.Base(to))
	return nil
}
