package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const maxTitle = 256

// pulls opens pull requests and finds their branches.
type pulls struct {
	client  *client
	site    *site
	render  *renderer
	poll    bool // nothing tells of a comment that was deleted
	observe func(string)
}

// OpenPullRequest implements platform.PullRequester. In the text only lines that
// close the issue of the conversation itself ("Closes #42") keep their meaning.
// Where drafts are not to be had the pull request is an ordinary one.
func (ps *pulls) OpenPullRequest(ctx context.Context, key messages.ConversationKey, pr platform.PullRequest) (string, error) {
	at, err := pullPlace(key)
	if err != nil {
		return "", err
	}
	if !isBranch(pr.Head) || pr.Base != "" && !isBranch(pr.Base) {
		return "", fault.Newf(fault.Invalid, "%q is not the name of a branch.", platform.Cut(pr.Head+" "+pr.Base, 100))
	}
	title, body := cmp.Or(quietTitle(pr.Title), pr.Head), ps.render.pullBody(pr.Body, at.number)
	if platform.UTF16Len(body) > maxComment {
		return "", fault.Newf(fault.Invalid, "The description is longer than the %d characters that GitHub allows.", maxComment)
	}
	if pr.Base == "" {
		repo, err := ps.client.askRepository(ctx, at.repo)
		if err != nil {
			return "", err
		}
		pr.Base = repo.GetDefaultBranch()
	}
	return ps.openOrUpdate(ctx, at, &github.NewPullRequest{Title: &title, Body: &body, Head: &pr.Head, Base: &pr.Base, Draft: &pr.Draft})
}

func (ps *pulls) openOrUpdate(ctx context.Context, at place, want *github.NewPullRequest) (string, error) {
	// One that a lost answer left behind is found by its head.
	made, _, err := inRepo(ctx, ps.client, at.repo, op{name: "opening a pull request"}, func(g api) (*github.PullRequest, *github.Response, error) {
		return g.PullRequests.Create(g.ctx, g.owner, g.repo, want)
	})
	switch {
	case err == nil:
		ps.observe("pull_opened")
		return made.GetHTMLURL(), nil
	case want.GetDraft() && refusedWith(err, http.StatusUnprocessableEntity, "draft"):
		want.Draft = nil
		return ps.openOrUpdate(ctx, at, want)
	case refusedWith(err, http.StatusUnprocessableEntity, "already exists"):
		return ps.updateExisting(ctx, at, want)
	case refusedWith(err, http.StatusUnprocessableEntity, "no commits between"):
		return "", &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("There is nothing to merge: %s has no commits that %s lacks.", want.GetHead(), want.GetBase()), Err: err}
	case refusedWith(err, http.StatusUnprocessableEntity, "head"), refusedWith(err, http.StatusUnprocessableEntity, "base"):
		return "", &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("GitHub does not know the branch %s or %s.", want.GetHead(), want.GetBase()), Err: err}
	}
	return "", err
}

func (ps *pulls) updateExisting(ctx context.Context, at place, want *github.NewPullRequest) (string, error) {
	repo, err := ps.client.askRepository(ctx, at.repo) // it may belong to somebody else by now
	if err != nil {
		return "", err
	}
	open, _, err := inRepo(ctx, ps.client, at.repo, op{name: "finding a pull request"}, func(g api) ([]*github.PullRequest, *github.Response, error) {
		return g.PullRequests.List(g.ctx, g.owner, g.repo, &github.PullRequestListOptions{State: "open", Head: repo.GetOwner().GetLogin() + ":" + want.GetHead(), Base: want.GetBase()})
	})
	if err != nil {
		return "", err
	}
	for _, p := range open {
		if p.GetHead().GetRef() != want.GetHead() || p.GetBase().GetRef() != want.GetBase() {
			continue
		}
		if !marked(p.GetBody()) {
			return p.GetHTMLURL(), nil // a person's, who has said what it is about
		}
		_, _, err := inRepo(ctx, ps.client, at.repo, op{name: "changing a pull request"}, func(g api) (*github.PullRequest, *github.Response, error) {
			return g.PullRequests.Edit(g.ctx, g.owner, g.repo, p.GetNumber(), &github.PullRequest{Title: want.Title, Body: want.Body})
		})
		if err != nil {
			return "", err
		}
		ps.observe("pull_updated")
		return p.GetHTMLURL(), nil
	}
	return "", fault.New(fault.Conflict, "GitHub says that there is a pull request of the branch already, and shows none.")
}

// quietTitle returns a title in one line that closes nothing when the commits are
// squashed under it.
func quietTitle(title string) string {
	title = platform.ClosingNothing(strings.Join(strings.Fields(visible(normal(title))), " "))
	if r := []rune(title); len(r) > maxTitle {
		title = string(r[:maxTitle-1]) + "…"
	}
	return title
}

// Locate implements platform.Locator. It completes what in.Repository says of a pull request. A webhook about a
// comment in its conversation does not tell which branch it is of; without this
// such a conversation is read-only. The head is that of now, unless the event
// told it: ask once, before work begins, and keep the answer. For an issue it
// returns in.Repository as it is. Where the conversation was locked and the bot cannot
// comment there, it returns fault.Gone: nobody would see an answer. Where the bot polls it
// returns platform.ErrWithdrawn for a comment that was deleted.
func (ps *pulls) Locate(ctx context.Context, in messages.Inbound) (messages.Repository, error) {
	if in.Repository == nil {
		return messages.Repository{}, fault.New(fault.Invalid, "The message is about no repository.")
	}
	at, err := parseKey(in.Conversation)
	if err != nil {
		return *in.Repository, err
	}
	if ps.poll && ps.deleted(ctx, at, in.Message) {
		return *in.Repository, platform.ErrWithdrawn
	}
	if in.Repository.Locked && ps.muted(ctx, at) {
		return *in.Repository, fault.New(fault.Gone, lockedText)
	}
	if !in.Repository.ReadOnly || in.Repository.Head != "" {
		return *in.Repository, nil
	}
	p, err := ps.client.askPull(ctx, at)
	if err != nil {
		return *in.Repository, err
	}
	return *ps.site.repositoryOf(said{number: at.number, isPull: true, locked: p.GetLocked(), pull: p, repo: &github.Repository{
		FullName: &at.repo, CloneURL: &in.Repository.URL, ID: p.GetBase().GetRepo().ID,
	}}), nil
}

// deleted reports whether a message was a comment that is gone.
func (ps *pulls) deleted(ctx context.Context, at place, id messages.MessageID) bool {
	p, ok := parsePost(id)
	if !ok || p.kind != postComment && p.kind != postLine {
		return false
	}
	_, err := ps.client.askComment(ctx, at, p, false)
	return fault.Is(err, fault.NotFound)
}

// muted reports whether the bot cannot comment in a locked conversation. No App can. An
// account can that may write in the repository.
func (ps *pulls) muted(ctx context.Context, at place) bool {
	if refused, _ := ps.client.locked.Get(at); refused || ps.client.appID != "" {
		return true
	}
	r, err := ps.client.askRepository(ctx, at.repo)
	push, told := r.GetPermissions()["push"]
	return err == nil && told && !push
}

// pullPlace reads the key of a conversation, or what RepositoryID returned: then
// the number is zero.
func pullPlace(key messages.ConversationKey) (place, error) {
	if repo, ok := repoName(key.ID); ok && key.Platform == Name {
		return place{repo: repo}, nil
	}
	return parseKey(key)
}
