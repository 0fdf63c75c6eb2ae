package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/codebase"
	"remote-agent/internal/command"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (br *branches) pullCommand() *command.Command {
	return &command.Command{
		Name:    "pr",
		Usage:   "pr [title]",
		Summary: "commit, push, and open or update a draft pull request",
		Example: "pr Add a --json flag",
		Rank:    7,
		Menu:    true,
		Lane:    command.Job,
		Needs:   command.Repositories,
		Past:    true,
		Run:     br.runPull,
	}
}

// runPull commits what a conversation changed, pushes its branch and opens or
// updates a draft pull request. Every step may be repeated: nothing to commit,
// nothing to push and a request that is open already are all fine.
func (br *branches) runPull(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := br.work.Codebase(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	tree, err := br.work.WorktreeFor(ctx, c, r.Conv, r.Entry.In.Repository)
	if err != nil {
		return command.Reply{}, err
	}
	about := r.Entry.In.Repository
	title := platform.ClosingNothing(br.pullTitle(ctx, r, about))
	r.Show("◐ Committing and pushing …")
	commit, changed, err := br.space.Commit(ctx, tree, codebase.CommitOptions{
		Message: title, CoAuthors: coAuthors(r.Entry.In), Trailers: []string{"Agent-Session: " + r.Conv.ID},
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("commit: %w", err)
	}
	if commit == tree.Base && !changed {
		return command.Reply{Text: "No pull request: there are no changes on this conversation's branch."}, nil
	}
	pushed, err := br.space.Push(ctx, tree, codebase.PushOptions{
		Branch: tree.Known(),
		Begin:  func(ctx context.Context, p codebase.PushResult) error { return br.auditPush(ctx, r, p) },
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("push: %w", err)
	}
	failpoint.Hit(failpoint.Pushed)
	if tree.Protected { // not about: a comment of a pull request does not say which branch it is of
		return command.Reply{Text: fmt.Sprintf("⇡ Pushed `%.10s` to `%s`, the branch of this pull request.", pushed.Commit, pushed.Branch)}, nil
	}
	opener, key, ok := br.pullRequester(r.Conv, c)
	if !ok {
		return command.Reply{Text: fmt.Sprintf("⇡ Pushed `%.10s` to `%s`. Open the pull request yourself; this host is not supported.", pushed.Commit, pushed.Branch)}, nil
	}
	body := br.pullBody(ctx, r, tree, about)
	if err := br.auditPull(ctx, r, c, pushed); err != nil {
		return command.Reply{}, err
	}
	url, err := opener.OpenPullRequest(ctx, key, platform.PullRequest{
		Head: pushed.Branch, Base: baseOf(about), Title: title, Body: body, Draft: true,
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("open the pull request: %w", err)
	}
	failpoint.Hit(failpoint.PullOpened)
	return command.Reply{Text: fmt.Sprintf("⇡ Pushed `%s`; draft pull request: %s", pushed.Branch, url)}, nil
}

func baseOf(about *messages.Repository) string {
	if about == nil {
		return ""
	}
	return about.Base
}

// pullRequester finds who opens pull requests for a codebase: the conversation's
// own platform, else the one that has them.
func (br *branches) pullRequester(conv sessions.Conversation, c sessions.Codebase) (platform.PullRequester, messages.ConversationKey, bool) {
	if p, ok := br.platforms[conv.Key.Platform].(platform.PullRequester); ok {
		return p, conv.Key, true
	}
	for name, a := range br.platforms {
		p, ok := a.(platform.PullRequester)
		if ok && p.Hosts(c.RepositoryURL) {
			return p, messages.ConversationKey{Platform: name, ID: p.RepositoryID(c.RepositoryURL)}, true
		}
	}
	return nil, messages.ConversationKey{}, false
}

// pullTitle is what a person gave, else the goal of the conversation in one line, in
// which nobody meant to publish a credential.
func (br *branches) pullTitle(ctx context.Context, r command.Request, about *messages.Repository) string {
	if title := strings.TrimSpace(r.Call.Rest); title != "" {
		first, _, _ := strings.Cut(title, "\n")
		return wording.Cut(first, 200)
	}
	if session := br.active(ctx, r.Conv.ID); strings.TrimSpace(session.UserPrompt) != "" {
		first, _, _ := strings.Cut(br.redact.String(strings.TrimSpace(session.UserPrompt)), "\n")
		return wording.Cut(first, 72)
	}
	if about != nil && about.Closes != "" {
		return "Work on " + about.Closes
	}
	return "Changes of this conversation"
}

// active returns the active session of a conversation; an empty one if it cannot be read.
func (br *branches) active(ctx context.Context, conversationID string) sessions.Session {
	s, _ := store.Within(ctx, br.store.InRead, func(tx *store.Tx) (sessions.Session, error) {
		s, _, err := tx.Sessions().ActiveSession(ctx, conversationID)
		return s, err
	})
	return s
}

// pullBody says what the request is about: the last answer, what changed, and
// what it closes.
func (br *branches) pullBody(ctx context.Context, r command.Request, tree codebase.Tree, about *messages.Repository) string {
	var b strings.Builder
	if session := br.active(ctx, r.Conv.ID); session.Result != "" {
		b.WriteString(session.Result + "\n\n")
	}
	if changes, err := br.space.Diff(ctx, tree); err == nil && changes.Stat != "" {
		b.WriteString(wording.Fenced("", br.redact.String(changes.Stat)) + "\n\n")
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
func (br *branches) auditPush(ctx context.Context, r command.Request, p codebase.PushResult) error {
	return br.auditEffect(ctx, failpoint.PushRecorded, sessions.AuditEntry{
		Actor: r.Actor(), Action: "branch.push", ConversationID: r.Conv.ID, Target: p.Branch,
		Detail: fmt.Sprintf(`{"commit":%q,"before":%q,"entry":%q}`, p.Commit, p.Before, r.Entry.ID), Effect: "push:" + r.Entry.ID + ":" + p.Commit,
	})
}

// auditPull does the same for a pull request that is about to be opened or updated.
func (br *branches) auditPull(ctx context.Context, r command.Request, c sessions.Codebase, p codebase.PushResult) error {
	return br.auditEffect(ctx, failpoint.PullRecorded, sessions.AuditEntry{
		Actor: r.Actor(), Action: "pull.open", ConversationID: r.Conv.ID, Target: c.Name,
		Detail: fmt.Sprintf(`{"branch":%q,"commit":%q,"entry":%q}`, p.Branch, p.Commit, r.Entry.ID), Effect: "pull:" + r.Entry.ID,
	})
}

func (br *branches) auditEffect(ctx context.Context, then failpoint.Point, e sessions.AuditEntry) error {
	err := br.store.InTx(ctx, func(tx *store.Tx) error { return tx.Audit(ctx, e) })
	if err != nil {
		return fmt.Errorf("record what is about to be done: %w", err)
	}
	failpoint.Hit(then)
	return nil
}
