package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const maxTitle = 256

type newPull struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Head  string `json:"head,omitempty"`
	Base  string `json:"base,omitempty"`
	Draft bool   `json:"draft,omitempty"`
}

// OpenPullRequest implements platform.PullRequester. In the text only lines that
// close the issue of the conversation itself ("Closes #42") keep their meaning.
// Where drafts are not to be had the pull request is an ordinary one.
func (a *Adapter) OpenPullRequest(ctx context.Context, key messages.ConversationKey, pr platform.PullRequest) (string, error) {
	at, err := pullPlace(key)
	if err != nil {
		return "", err
	}
	if !isBranch(pr.Head) || pr.Base != "" && !isBranch(pr.Base) {
		return "", fault.Newf(fault.Invalid, "%q is not the name of a branch.", cut(pr.Head+" "+pr.Base, 100))
	}
	want := newPull{Title: quietTitle(pr.Title), Body: a.pullBody(pr.Body, at.number), Head: pr.Head, Base: pr.Base, Draft: pr.Draft}
	if units(want.Body) > maxComment {
		return "", fault.Newf(fault.Invalid, "The description is longer than the %d characters that GitHub takes.", maxComment)
	}
	if want.Title == "" {
		want.Title = pr.Head
	}
	if want.Base == "" {
		var repo repository
		if _, err := a.inRepo(ctx, at.repo, request{route: routeRepo, args: repoArgs(at.repo), idempotent: true}, &repo); err != nil {
			return "", err
		}
		want.Base = repo.DefaultBranch
	}
	return a.openOrUpdate(ctx, at, want)
}

func (a *Adapter) openOrUpdate(ctx context.Context, at place, want newPull) (string, error) {
	// One that a lost answer left behind is found by its head.
	r := request{route: routeAddPull, args: repoArgs(at.repo), body: want, idempotent: true}
	var made pull
	_, err := a.inRepo(ctx, at.repo, r, &made)
	switch {
	case err == nil:
		a.observe("pull_opened")
		return made.URL, nil
	case want.Draft && refusedWith(err, http.StatusUnprocessableEntity, "draft"):
		want.Draft = false
		return a.openOrUpdate(ctx, at, want)
	case refusedWith(err, http.StatusUnprocessableEntity, "already exists"):
		return a.updateExisting(ctx, at, want)
	case refusedWith(err, http.StatusUnprocessableEntity, "no commits between"):
		return "", &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("There is nothing to merge: %s has no commits that %s lacks.", want.Head, want.Base), Err: err}
	case refusedWith(err, http.StatusUnprocessableEntity, "head"), refusedWith(err, http.StatusUnprocessableEntity, "base"):
		return "", &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("GitHub does not know the branch %s or %s.", want.Head, want.Base), Err: err}
	}
	return "", err
}

func (a *Adapter) updateExisting(ctx context.Context, at place, want newPull) (string, error) {
	owner, _, _ := strings.Cut(at.repo, "/")
	r := request{route: routePulls, args: repoArgs(at.repo), idempotent: true, query: url.Values{
		"head": {owner + ":" + want.Head}, "base": {want.Base}, "state": {"open"},
	}}
	var open many[pull]
	if _, err := a.inRepo(ctx, at.repo, r, &open); err != nil {
		return "", err
	}
	for _, p := range open.all {
		if p.Head.Ref != want.Head || p.Base.Ref != want.Base {
			continue
		}
		change := newPull{Title: want.Title, Body: want.Body}
		r := request{route: routeEditPull, args: repoArgs(at.repo, p.Number), body: change, idempotent: true}
		var made pull
		if _, err := a.inRepo(ctx, at.repo, r, &made); err != nil {
			return "", err
		}
		a.observe("pull_updated")
		return p.URL, nil
	}
	return "", fault.New(fault.Conflict, "GitHub says that there is a pull request of the branch already, and shows none.")
}

var closesLine = regexp.MustCompile(`(?im)^[ \t]*(?:closes|fixes|resolves):? #(\d+)\.?[ \t]*$`)

// pullBody writes the description of a pull request: quieted but for the line
// that closes the conversation's own issue, and marked so that it does not call
// the bot.
func (a *Adapter) pullBody(body string, number int) string {
	own := fmt.Sprint(number)
	closes := false
	body = closesLine.ReplaceAllStringFunc(normal(body), func(line string) string {
		if number == 0 || closesLine.FindStringSubmatch(line)[1] != own {
			return line
		}
		closes = true
		return ""
	})
	body = strings.TrimSpace(a.defused(body))
	if closes {
		body = strings.TrimSpace(body + "\n\nCloses #" + own)
	}
	return strings.TrimSpace(body + "\n\n" + markPrefix + "pull -->")
}

var closesInTitle = regexp.MustCompile(`(?i)\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?\s+(?:[\w.-]+/[\w.-]+)?)#(\d)`)

// quietTitle returns a title in one line that closes nothing when the commits are
// squashed under it.
func quietTitle(title string) string {
	title = strings.Join(strings.Fields(visible(normal(title))), " ")
	title = closesInTitle.ReplaceAllString(title, "$1${2}no. $3")
	if r := []rune(title); len(r) > maxTitle {
		title = string(r[:maxTitle-1]) + "…"
	}
	return title
}

// Locate implements platform.Locator. It completes what in.Repository says of a pull request. A webhook about a
// comment in its conversation does not tell which branch it is of; without this
// such a conversation is read-only. The head is that of now, unless the event
// told it: ask once, before work begins, and keep the answer. For an issue it
// returns in.Repository as it is.
func (a *Adapter) Locate(ctx context.Context, in messages.Inbound) (messages.Repository, error) {
	if in.Repository == nil {
		return messages.Repository{}, fault.New(fault.Invalid, "The message is about no repository.")
	}
	if !in.Repository.ReadOnly || in.Repository.Head != "" {
		return *in.Repository, nil
	}
	at, err := parseKey(in.Conversation)
	if err != nil {
		return *in.Repository, err
	}
	p, err := a.askPull(ctx, at)
	if err != nil {
		return *in.Repository, err
	}
	s := said{number: at.number, isPull: true, pull: &p, repo: repository{FullName: at.repo, CloneURL: in.Repository.URL}}
	if p.Base.Repo != nil {
		s.repo.ID = p.Base.Repo.ID
	}
	return *a.repositoryOf(s), nil
}

func (a *Adapter) askPull(ctx context.Context, at place) (pull, error) {
	var p pull
	_, err := a.inRepo(ctx, at.repo, request{route: routePull, args: repoArgs(at.repo, at.number), idempotent: true}, &p)
	if err == nil && p.Number != at.number {
		err = fault.Wrap(errNoID, fault.Unavailable, "reading a pull request")
	}
	return p, err
}
