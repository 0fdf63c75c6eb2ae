package work

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/codebase"
	"remote-agent/internal/command"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// runPull commits what a conversation changed, pushes its branch and opens or
// updates a draft pull request. Every step may be repeated: nothing to commit,
// nothing to push and a request that is open already are all fine.
func (s *Shop) runPull(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := s.codebaseOf(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	tree, err := s.treeFor(ctx, c, r.Conv, r.Entry.In.Repository)
	if err != nil {
		return command.Reply{}, err
	}
	about := r.Entry.In.Repository
	title := s.pullTitle(ctx, r, about)
	r.Show("◐ Committing and pushing …")
	commit, changed, err := s.space.Commit(ctx, tree, codebase.CommitOptions{
		Message: title, CoAuthors: coAuthors(r.Entry.In), Trailers: []string{"Agent-Session: " + r.Conv.ID},
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("commit: %w", err)
	}
	if commit == tree.Base && !changed {
		return command.Reply{Text: "There is nothing to open a pull request for: no changes on this conversation's branch."}, nil
	}
	pushed, err := s.space.Push(ctx, tree, codebase.PushOptions{
		Branch: cmpOr(tree.Remote, tree.Branch),
		Begin:  func(ctx context.Context, p codebase.PushResult) error { return s.auditPush(ctx, r, p) },
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("push: %w", err)
	}
	failpoint.Hit(failpoint.Pushed)
	if about != nil && about.Existing {
		return command.Reply{Text: fmt.Sprintf("⇡ Pushed `%.10s` to `%s`, which this pull request is of.", pushed.Commit, pushed.Branch)}, nil
	}
	opener, key, ok := s.pullRequester(r.Conv, c)
	if !ok {
		return command.Reply{Text: fmt.Sprintf("⇡ Pushed `%.10s` to `%s`. Open the pull request there: I cannot do that on this host.", pushed.Commit, pushed.Branch)}, nil
	}
	body := s.pullBody(ctx, r, tree, about)
	if err := s.auditPull(ctx, r, c, pushed); err != nil {
		return command.Reply{}, err
	}
	url, err := opener.OpenPullRequest(ctx, key, platform.PullRequest{
		Head: pushed.Branch, Base: baseOf(about), Title: title, Body: body, Draft: true,
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("open the pull request: %w", err)
	}
	failpoint.Hit(failpoint.PullOpened)
	return command.Reply{Text: fmt.Sprintf("⇡ Pushed `%s`, and the draft pull request is at %s", pushed.Branch, url)}, nil
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func baseOf(about *messages.Repository) string {
	if about == nil {
		return ""
	}
	return about.Base
}

// pullRequester finds who opens pull requests for a codebase: the conversation's
// own platform, else the one that has them.
func (s *Shop) pullRequester(conv sessions.Conversation, c sessions.Codebase) (platform.PullRequester, messages.ConversationKey, bool) {
	if p, ok := s.adapters[conv.Key.Platform].(platform.PullRequester); ok {
		return p, conv.Key, true
	}
	for name, a := range s.adapters {
		p, ok := a.(platform.PullRequester)
		if ok && p.Hosts(c.RepositoryURL) {
			return p, messages.ConversationKey{Platform: name, ID: p.RepositoryID(c.RepositoryURL)}, true
		}
	}
	return nil, messages.ConversationKey{}, false
}

// pullTitle is what a person gave, else the goal of the conversation in one line.
func (s *Shop) pullTitle(ctx context.Context, r command.Request, about *messages.Repository) string {
	if title := strings.TrimSpace(r.Call.Rest); title != "" {
		first, _, _ := strings.Cut(title, "\n")
		return head(first, 200)
	}
	if session, ok := s.active(ctx, r.Conv.ID); ok && strings.TrimSpace(session.UserPrompt) != "" {
		first, _, _ := strings.Cut(strings.TrimSpace(session.UserPrompt), "\n")
		return head(first, 72)
	}
	if about != nil && about.Closes != "" {
		return "Work on " + about.Closes
	}
	return "Changes of this conversation"
}

func (s *Shop) active(ctx context.Context, conversationID string) (session sessions.Session, ok bool) {
	err := s.storage.InRead(ctx, func(tx orchestrator.Tx) error {
		var err error
		session, ok, err = tx.ActiveSession(ctx, conversationID)
		return err
	})
	return session, ok && err == nil
}

// pullBody says what the request is about: the last answer, what changed, and
// what it closes.
func (s *Shop) pullBody(ctx context.Context, r command.Request, tree codebase.Tree, about *messages.Repository) string {
	var b strings.Builder
	if session, ok := s.active(ctx, r.Conv.ID); ok && session.Result != "" {
		b.WriteString(session.Result + "\n\n")
	}
	if changes, err := s.space.Diff(ctx, tree); err == nil && changes.Stat != "" {
		b.WriteString(wording.Fenced("", changes.Stat) + "\n\n")
	}
	if about != nil && about.Closes != "" {
		fmt.Fprintf(&b, "Closes %s\n\n", about.Closes)
	}
	fmt.Fprintf(&b, "Asked for by %s.", r.Entry.In.Sender.Name)
	return b.String()
}

// coAuthors names the person who asked, where the platform gives an address for
// commits.
func coAuthors(in messages.Inbound) []string {
	if in.Sender.Email == "" {
		return nil
	}
	name := strings.Map(func(c rune) rune {
		if c < ' ' || c == '<' || c == '>' {
			return -1
		}
		return c
	}, in.Sender.Name)
	if name = strings.TrimSpace(name); name == "" {
		name = string(in.Sender.ID)
	}
	return []string{fmt.Sprintf("%s <%s>", name, in.Sender.Email)}
}

// auditPush writes down what is about to be pushed: once, also if a crash or a
// passing failure has it begun again.
func (s *Shop) auditPush(ctx context.Context, r command.Request, p codebase.PushResult) error {
	return s.auditEffect(ctx, failpoint.PushRecorded, sessions.AuditEntry{
		Actor: r.Actor(), Action: "branch.push", ConversationID: r.Conv.ID, Target: p.Branch,
		Detail: fmt.Sprintf(`{"commit":%q,"before":%q,"entry":%q}`, p.Commit, p.Before, r.Entry.ID), Effect: "push:" + r.Entry.ID + ":" + p.Commit,
	})
}

// auditPull does the same for a pull request that is about to be opened or updated.
func (s *Shop) auditPull(ctx context.Context, r command.Request, c sessions.Codebase, p codebase.PushResult) error {
	return s.auditEffect(ctx, failpoint.PullRecorded, sessions.AuditEntry{
		Actor: r.Actor(), Action: "pull.open", ConversationID: r.Conv.ID, Target: c.Name,
		Detail: fmt.Sprintf(`{"branch":%q,"commit":%q,"entry":%q}`, p.Branch, p.Commit, r.Entry.ID), Effect: "pull:" + r.Entry.ID,
	})
}

func (s *Shop) auditEffect(ctx context.Context, then failpoint.Point, e sessions.AuditEntry) error {
	err := s.storage.InTx(ctx, func(tx orchestrator.Tx) error { return tx.Audit(ctx, e) })
	if err != nil {
		return fmt.Errorf("record what is about to be done: %w", err)
	}
	failpoint.Hit(then)
	return nil
}

// treeFor returns the worktree of a conversation, begun where its platform says
// that the work belongs.
func (s *Shop) treeFor(ctx context.Context, c sessions.Codebase, conv sessions.Conversation, about *messages.Repository) (codebase.Tree, error) {
	if about == nil {
		return s.tree(ctx, c, conv)
	}
	repo, err := s.repoOf(ctx, c)
	if err != nil {
		return codebase.Tree{}, err
	}
	if repo.URL != "" && !sameRepository(repo.URL, about.URL) {
		return s.tree(ctx, c, conv) // the conversation was switched to another repository
	}
	start := codebase.Start{Branch: about.Branch, Base: about.Base, Existing: about.Existing, Head: about.Head}
	if about.ReadOnly {
		if about.Fetch == "" {
			return codebase.Tree{}, fault.New(fault.Unavailable, "I could not find out which branch this pull request is of. Try again in a minute.")
		}
		start = codebase.Start{Fetch: about.Fetch, Base: about.Base, Head: about.Head}
	}
	t, err := s.space.WorktreeAt(ctx, repo, conv.WorkID(), start)
	if err != nil {
		return t, fmt.Errorf("prepare the worktree: %w", err)
	}
	return t, nil
}

// sameRepository compares two addresses for git.
func sameRepository(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, ".git"), strings.TrimSuffix(b, ".git"))
}

// head returns the beginning of a text, at most n runes.
func head(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}
