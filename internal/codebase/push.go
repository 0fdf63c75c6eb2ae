package codebase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/fault"
)

// pushes pushes worktrees to their origins.
type pushes struct {
	*worktrees
	maker *maker
}

// PushOptions say where to push to.
type PushOptions struct {
	Branch string // at the origin; empty: Tree.Remote

	// Begin is called when there is something to push, before it is: what it refuses
	// is not pushed. It may be nil.
	Begin func(ctx context.Context, p PushResult) error
}

// PushResult is what Push did.
type PushResult struct {
	Branch   string // at the origin
	Commit   string // what it is at now
	Before   string // what it was at; empty if there was none
	UpToDate bool   // there was nothing to push
}

// Push pushes HEAD of a worktree to a branch of its origin, which it makes if
// there is none. It never overwrites anything there: what others have pushed to the
// branch is merged before, also into the worktree. It pushes neither to the
// default branch nor to the one that the work is to be merged into. Pushing what
// is there already does nothing, so it may be repeated.
//
// Errors: Invalid for the name of the branch, Unsupported for a codebase without
// an origin, Forbidden for a read-only worktree, for those two branches and if
// the origin refuses, Unauthorized without a credential that the origin takes,
// Conflict if somebody pushes to the branch at the same time, Invalid if what they
// have pushed cannot be merged, and Unavailable. If it cannot be found out whether the push was taken, the error is
// Uncertain.
func (p *pushes) Push(ctx context.Context, t Tree, o PushOptions) (PushResult, error) {
	branch := cmp.Or(o.Branch, t.Remote)
	if err := ValidBranch(branch); err != nil {
		return PushResult{}, err
	}
	switch {
	case t.place.local || t.place.repo.Plain:
		return PushResult{}, fault.Newf(fault.Unsupported, "%s is a local folder, so there is nowhere to push to.", t.Repo.Name)
	case t.ReadOnly:
		return PushResult{}, fault.New(fault.Forbidden, "This pull request comes from a fork, or was merged or closed, so the bot does not push to it.")
	case branch == t.BaseBranch:
		return PushResult{}, fault.Newf(fault.Forbidden, "Not pushed: %s is the branch to merge into.", branch)
	}
	unlock, err := p.lockTree(ctx, t)
	if err != nil {
		return PushResult{}, err
	}
	defer unlock()
	if !p.intact(t) {
		return PushResult{}, fault.New(fault.NotFound, "The worktree no longer exists.")
	}
	commit, err := p.Head(ctx, t)
	if err != nil {
		return PushResult{}, fmt.Errorf("reading HEAD: %w", err)
	}
	there, err := p.refsAtOrigin(ctx, t.place, branchRef(branch))
	if err != nil {
		return PushResult{}, err
	}
	if branch == there.branch {
		return PushResult{}, fault.Newf(fault.Forbidden, "Not pushed: %s is the default branch.", branch)
	}
	result := PushResult{Branch: branch, Commit: commit, Before: there.refs[branchRef(branch)]}
	if result.Before != "" && !p.maker.contains(ctx, t.place, commit, result.Before) {
		if result.Commit, err = p.join(ctx, t, result); err != nil {
			return PushResult{}, err
		}
	}
	if result.Before == result.Commit {
		result.UpToDate = true
		return result, nil
	}
	if o.Begin != nil {
		if err := o.Begin(ctx, result); err != nil {
			return PushResult{}, err
		}
	}
	if err := p.push(ctx, t, result); err != nil {
		return PushResult{}, err
	}
	if err := p.maker.keep(ctx, t, "pushed", result.Commit); err != nil {
		p.log.WarnContext(ctx, "could not note what was pushed", "conversation_id", t.Conversation, "err", err)
	}
	return result, nil
}

// join brings what somebody else pushed to the branch together with what is here, and returns
// the commit that has both. Without that nothing could be pushed there any more.
func (p *pushes) join(ctx context.Context, t Tree, want PushResult) (string, error) {
	theirs, err := p.maker.theirs(ctx, t, want.Branch, want.Commit)
	if err != nil || theirs == "" { // it went away, or somebody else pushed this commit
		return want.Commit, err
	}
	commit, err := p.maker.both(ctx, t, want, theirs)
	if err != nil {
		return "", err
	}
	switch clean, err := p.maker.clean(ctx, t); {
	case err != nil:
		return "", err
	case !clean:
		return "", fault.Newf(fault.Invalid, "Not pushed: someone else pushed new commits to the branch %s, and not all changes here are committed.", want.Branch)
	}
	if err := p.maker.jump(ctx, t, want.Commit, commit); err != nil {
		return "", err
	}
	if err := p.maker.keep(ctx, t, "pushed", theirs); err != nil {
		return "", err
	}
	return commit, p.maker.guard.protect(ctx, t)
}

// push pushes a commit and, if it remains unclear whether that worked, asks.
func (p *pushes) push(ctx context.Context, t Tree, want PushResult) error {
	r, endpoint, err := p.reach(ctx, t.place)
	if err != nil {
		return err
	}
	out, err := p.run(ctx, &t.place, &gitcmd.Call{
		Args: []string{
			"push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-recurse-submodules", "--no-signed",
			"--", r.CloneURL(), want.Commit + ":" + branchRef(want.Branch),
		},
		Remote: endpoint, Timeout: p.cfg.CloneTimeout,
	})
	if err == nil {
		return nil
	}
	if refused := judgePush(out, err, r, want.Branch, endpoint.Token != ""); refused != nil {
		return refused
	}
	return p.ask(ctx, t, want, err)
}

// askTimeout bounds the question whether a push was taken, which is asked even if
// the caller has given up.
const askTimeout = 10 * time.Second

// ask finds out whether a push was taken whose answer got lost.
func (p *pushes) ask(ctx context.Context, t Tree, want PushResult, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	there, err := p.refsAtOrigin(ctx, t.place, branchRef(want.Branch))
	now := there.refs[branchRef(want.Branch)]
	switch {
	case err == nil && now == want.Commit:
		p.log.InfoContext(ctx, "a push was taken although its answer got lost", "codebase", t.Repo.Name, "conversation_id", t.Conversation)
		return nil
	case err == nil && now == want.Before && ctx.Err() == nil:
		// Nothing that is still on its way can be excluded, but it would push
		// the same commit to the same place.
		return fmt.Errorf("pushing to %s: %w", want.Branch, cause)
	}
	e := &fault.Error{Kind: fault.KindOf(cause), Public: fault.Public(cause), Uncertain: true, Err: errors.Join(cause, err)}
	return fmt.Errorf("pushing to %s: %w", want.Branch, e)
}

// judgePush returns the error for a push that was surely refused, or nil. out is
// what git printed for programs: a line for the ref, with a sign in front.
func judgePush(out string, err error, r remote.Remote, branch string, hasToken bool) error {
	reason := ""
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(fields) == 3 && fields[0] == "!" {
			reason = fields[2]
		}
	}
	failed, _ := errors.AsType[*gitcmd.Error](err)
	stderr, told := "", ""
	if failed != nil {
		stderr, told = failed.Stderr, failed.Told
	}
	refuse := func(kind fault.Kind, text string, args ...any) error {
		return &fault.Error{Kind: kind, Public: fmt.Sprintf(text, args...), Err: err}
	}
	host, _, _ := strings.Cut(r.Host, ":")
	switch {
	case strings.HasPrefix(reason, "[rejected]"):
		return refuse(fault.Conflict, "Not pushed: someone else pushed new commits to the branch %s.", branch)
	case strings.Contains(reason, "cannot lock ref"), strings.Contains(reason, "failed to update ref"):
		return refuse(fault.Conflict, "Someone else pushed to %s at the same time. Try again.", branch)
	case strings.HasPrefix(reason, "[remote rejected]"):
		why := oneLine(strings.TrimPrefix(reason, "[remote rejected]"))
		if told != "" { // which rule it goes by, or that it found a secret
			why += ": " + told
		}
		return refuse(fault.Forbidden, "%s refused the push to %s: %s", host, branch, why)
	case fault.Is(err, fault.RateLimited): // with 403, too
	case strings.Contains(stderr, "returned error: 403"), strings.Contains(stderr, "denied to"):
		return refuse(fault.Forbidden, "%s does not allow pushing to %s: the token lacks write permission for contents.", host, r.FullName())
	case !hasToken && fault.Is(err, fault.NotFound):
		return refuse(fault.Unauthorized, "No token is configured for pushing to %s.", r.FullName())
	case fault.Passing(err), fault.Is(err, fault.Canceled), fault.Is(err, fault.Internal):
		return nil
	}
	return fmt.Errorf("pushing to %s: %w", branch, err)
}
