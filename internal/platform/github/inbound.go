package github

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

// result is what an event means: events to accept, or, if it was not
// understood, the reason to keep it as it is. Neither: nothing for the bot.
type result struct {
	events []messages.Inbound
	reason string
	event  messages.EventID
	raw    []byte
}

// account names the GitHub that events come from. Ids of deliveries and comments
// are unique in it, whichever identity the bot has there.
func (a *Adapter) account() string { return a.web.Host }

// handled are the events that the App subscribes to, with the permission that
// lets it. Ping and those of installations come without.
var handled = map[string]permission{
	"issues":                      {"issues", "read"},
	"issue_comment":               {"issues", "read"},
	"pull_request":                {"pull_requests", "read"},
	"pull_request_review":         {"pull_requests", "read"},
	"pull_request_review_comment": {"pull_requests", "read"},
}

// translate reads the payload of a webhook. Its event id is the delivery's, the
// same for every redelivery (contract C3).
func (a *Adapter) translate(ctx context.Context, event string, guid messages.EventID, raw []byte) result {
	r := result{event: guid, raw: raw}
	var p payload
	if err := lenient(raw, &p); err != nil {
		r.reason = "not a JSON object: " + platform.Cut(err.Error(), 200)
		return r
	}
	if _, known := handled[event]; !known {
		if !a.housekeeping(ctx, event, p) {
			a.observe("foreign_event") // nobody here asked for it: it is counted and not kept
			a.log.DebugContext(ctx, "github sent an event of a kind that is not used", "event", platform.Cut(event, 40))
		}
		return r
	}
	repo, ok := repoName(p.Repository.GetFullName())
	if !ok {
		r.reason = "the event lacks its repository"
		return r
	}
	if id := p.Installation.GetID(); id > 0 {
		a.homes.Put(repo, id)
	}
	if len(a.only) > 0 && !a.only[repo] {
		return r
	}
	in := messages.Inbound{Account: a.account(), Event: guid, Raw: raw}
	var err error
	switch event {
	case "issues":
		r.events, err = a.issueEvent(p, in)
	case "pull_request":
		r.events, err = a.pullEvent(p, in)
	case "issue_comment":
		r.events, err = a.commentEvent(ctx, p, in)
	case "pull_request_review":
		r.events, err = a.reviewEvent(p, in)
	case "pull_request_review_comment":
		r.events, err = a.lineEvent(p, in)
	}
	if err != nil {
		r.reason = err.Error()
	}
	return r
}

// housekeeping reads events that concern no conversation. It reports false for
// those that it does not know.
func (a *Adapter) housekeeping(ctx context.Context, event string, p payload) bool {
	switch event {
	case "ping", "github_app_authorization", "installation_target":
		return true
	case "installation":
		if p.Action == "deleted" || p.Action == "suspend" {
			a.tokens.Put(tokenKey{installation: p.Installation.GetID()}, nil)
		}
		a.log.InfoContext(ctx, "the installation of the github app changed", "action", platform.Cut(p.Action, 40), "account", platform.Cut(p.Installation.GetAccount().GetLogin(), 100))
		return true
	case "installation_repositories":
		for _, r := range p.Removed {
			if repo, ok := repoName(r.GetFullName()); ok {
				a.homes.Put(repo, 0)
			}
		}
		return true
	}
	return false
}

// malformed is the reason why something was not understood.
type malformed string

func (m malformed) Error() string { return string(m) }

const errIncomplete = malformed("the event lacks its number, author or id")

// said is something that a person wrote, whichever way it was heard of.
type said struct {
	repo   *github.Repository
	number int
	title  string
	url    string
	isPull bool
	pull   *github.PullRequest // if what came tells of it

	author *github.User
	member bool         // GitHub shows the author as one who may have the right to write
	sender *github.User // who did it; the author
	via    *app
	body   string
	at     time.Time
	post   post
	alias  string // the same for every way to hear of it
}

func (s said) place() place {
	repo, _ := repoName(s.repo.GetFullName()) // checked
	return place{repo: repo, number: s.number}
}

// ofIssue returns what p says of its issue, without a text.
func ofIssue(p payload) said {
	return said{
		repo: p.Repository, number: p.Issue.GetNumber(), title: p.Issue.GetTitle(), url: p.Issue.GetHTMLURL(),
		isPull: p.Issue.PullRequestLinks != nil, sender: p.Sender,
	}
}

// ofPull returns what p says of its pull request, without a text.
func ofPull(p payload) said {
	return said{
		repo: p.Repository, number: p.Pull.GetNumber(), title: p.Pull.GetTitle(), url: p.Pull.GetHTMLURL(),
		isPull: true, pull: p.Pull, sender: p.Sender,
	}
}

// opened completes what the text of an issue or pull request says.
func (s said) opened(author *github.User, association, body string, at time.Time) said {
	s.author, s.member, s.body, s.at = author, member(association), body, at
	s.post, s.alias = post{kind: postBody, id: int64(s.number)}, "opened:"+s.place().key().ID
	return s
}

func (a *Adapter) issueEvent(p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Issue == nil || p.Issue.GetNumber() < 1 {
		return nil, errIncomplete
	}
	switch p.Action {
	case "opened":
		return a.heard(ofOpened(p), in)
	case "closed", "deleted":
		return a.closed(ofIssue(p), p.Issue.GetClosedAt(), in), nil
	}
	return nil, nil
}

// ofOpened returns what the text of the issue of p says.
func ofOpened(p payload) said {
	s := ofIssue(p).opened(p.Issue.User, p.Issue.GetAuthorAssociation(), p.Issue.GetBody(), p.Issue.GetCreatedAt().Time)
	s.via = p.Issue.Via
	return s
}

func (a *Adapter) pullEvent(p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Pull.GetNumber() < 1 {
		return nil, errIncomplete
	}
	s := ofPull(p)
	switch p.Action {
	case "opened":
		return a.heard(s.opened(p.Pull.User, p.Pull.GetAuthorAssociation(), p.Pull.GetBody(), p.Pull.GetCreatedAt().Time), in)
	case "closed":
		return a.closed(s, p.Pull.GetClosedAt(), in), nil
	}
	return nil, nil
}

func (a *Adapter) commentEvent(ctx context.Context, p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Issue == nil || p.Issue.GetNumber() < 1 || p.Comment == nil || p.Comment.GetID() < 1 {
		return nil, errIncomplete
	}
	switch p.Action {
	case "created":
		return a.heard(ofComment(ofIssue(p), *p.Comment), in)
	case "edited":
		return a.ticked(ctx, p, in)
	}
	return nil, nil
}

func (a *Adapter) reviewEvent(p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Pull.GetNumber() < 1 || p.Review.GetID() < 1 {
		return nil, errIncomplete
	}
	if p.Action != "submitted" {
		return nil, nil
	}
	return a.heard(ofReview(ofPull(p), p.Review), in)
}

func (a *Adapter) lineEvent(p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Pull.GetNumber() < 1 || p.Comment == nil || p.Comment.GetID() < 1 {
		return nil, errIncomplete
	}
	if p.Action != "created" {
		return nil, nil
	}
	return a.heard(ofLine(ofPull(p), *p.Comment), in)
}

func ofComment(s said, c comment) said {
	s.member = member(c.GetAuthorAssociation())
	s.author, s.via, s.body, s.at = c.User, c.Via, c.GetBody(), c.GetCreatedAt().Time
	s.post, s.alias = post{kind: postComment, id: c.GetID()}, "comment:"+strconv.FormatInt(c.GetID(), 10)
	return s
}

func ofLine(s said, c comment) said {
	s = ofComment(s, c)
	s.post, s.alias = post{kind: postLine, id: c.GetID(), root: c.GetInReplyTo()}, "line:"+strconv.FormatInt(c.GetID(), 10)
	return s
}

func ofReview(s said, r *github.PullRequestReview) said {
	s.member = member(r.GetAuthorAssociation())
	s.author, s.body, s.at = r.User, r.GetBody(), r.GetSubmittedAt().Time
	s.post, s.alias = post{kind: postReview, id: r.GetID()}, "review:"+strconv.FormatInt(r.GetID(), 10)
	return s
}

// heard turns what a person wrote into a message, if it is for the bot. What
// counts is the text that came with the event, whatever it is changed to later
// (contract C11).
func (a *Adapter) heard(s said, in messages.Inbound) ([]messages.Inbound, error) {
	if s.author.GetID() < 1 || s.author.GetLogin() == "" {
		return nil, errIncomplete
	}
	if !a.byPerson(s) {
		return nil, nil
	}
	text, addressed := a.order(s.body)
	if !addressed {
		return nil, nil
	}
	at := s.place()
	sender := strconv.FormatInt(s.author.GetID(), 10)
	in.Conversation = at.key()
	if !a.guard.admits(in.Conversation.ID, sender, s.alias, s.at) {
		a.observe("loop_ended")
		a.log.Warn("github: somebody answers the bot at once, again and again; what they write is left unanswered", "conversation", in.Conversation, "sender", sender)
		in.Unanswered = true
	}
	in.Kind = messages.KindMessage
	in.Aliases = []messages.EventID{messages.EventID(s.alias)}
	in.Message = s.post.message()
	in.Sender = a.senderOf(s.author)
	in.Sender.Member = s.member
	in.SentAt = s.at
	in.Text = text
	if text == "" {
		in.Text = "Please look at this " + s.subject() + " and help with it."
	}
	in.Attachments = a.attachments(at.repo, s.body)
	in.Repository = a.repositoryOf(s)
	in.Reference = reference(s)
	return []messages.Inbound{in}, nil
}

// senderOf returns a person with the address that GitHub gives everybody for
// commits (docs.github.com, Setting your commit email address).
func (a *Adapter) senderOf(u *github.User) messages.Sender {
	id := strconv.FormatInt(u.GetID(), 10)
	s := messages.Sender{ID: messages.UserID(id), Name: platform.Cut(u.GetLogin(), 100)}
	if loginForm.MatchString(u.GetLogin()) {
		s.Email = id + "+" + u.GetLogin() + "@users.noreply." + a.web.Hostname()
	}
	return s
}

// byPerson reports whether a person wrote s. Bots do not count, nor does what
// carries a mark of this program: with a personal token the bot writes under a
// person's account. Who did it must be who wrote it; else the one's words would
// have the other's authority (an issue that somebody transferred).
func (a *Adapter) byPerson(s said) bool {
	switch {
	case s.author.GetType() != "User", strings.HasSuffix(s.author.GetLogin(), "[bot]"), marked(s.body), a.isOurApp(s.via):
		return false
	case s.sender.GetID() != s.author.GetID(), s.sender.GetType() != "User":
		return false
	}
	return true
}

// isOurApp reports whether something was written through the bot's own App.
func (a *Adapter) isOurApp(via *app) bool {
	return via != nil && a.cfg.AppID != "" && (strconv.FormatInt(via.ID, 10) == a.cfg.AppID || via.ClientID == a.cfg.AppID)
}

func (s said) subject() string {
	if s.isPull {
		return "pull request"
	}
	return "issue"
}

// closed tells that an issue or pull request was closed.
func (a *Adapter) closed(s said, when github.Timestamp, in messages.Inbound) []messages.Inbound {
	in.Kind = messages.KindClosed
	in.Conversation = s.place().key()
	in.SentAt = when.Time
	if when.IsZero() {
		in.SentAt = time.Now()
	} else {
		in.Aliases = []messages.EventID{messages.EventID(fmt.Sprintf("closed:%s:%d", in.Conversation.ID, when.Unix()))}
	}
	in.Repository = a.repositoryOf(s)
	in.Reference = reference(s)
	return []messages.Inbound{in}
}

var blanks = pattern.Lazy(`\s+`)

// reference names an issue in one line. Its title is a stranger's.
func reference(s said) string {
	title := strings.TrimSpace(blanks.ReplaceAllString(Sanitize(platform.Cut(s.title, 1024)), " "))
	line := fmt.Sprintf("GitHub %s %s#%d: %s", s.subject(), s.repo.GetFullName(), s.number, platform.Cut(title, 256))
	if strings.HasPrefix(s.url, "https://") || strings.HasPrefix(s.url, "http://") {
		line += " (" + platform.Cut(blanks.ReplaceAllString(s.url, ""), 300) + ")"
	}
	return line
}

// repositoryOf says where work for a conversation belongs: an issue has a branch
// of its own, a pull request the branch that it is of. What is a fork's, or not
// known to be ours, is read-only; Locate finds out more.
func (a *Adapter) repositoryOf(s said) *messages.Repository {
	at := s.place()
	n := strconv.Itoa(s.number)
	r := &messages.Repository{URL: a.cloneURL(s.repo)}
	if !s.isPull {
		r.Branch, r.Closes = "bot/issue-"+n, "#"+n
		return r
	}
	r.Branch, r.ReadOnly, r.Fetch = "bot/pull-"+n, true, "refs/pull/"+n+"/head"
	p := s.pull
	if p == nil {
		return r
	}
	base, head := p.GetBase().GetRef(), p.GetHead()
	if isBranch(base) {
		r.Base = base
	}
	if shaForm.MatchString(head.GetSHA()) {
		r.Head = head.GetSHA()
	}
	if head.GetRepo() == nil || !isBranch(head.GetRef()) {
		return r
	}
	if home, ok := repoName(head.Repo.GetFullName()); ok && home == at.repo && head.Repo.GetID() == s.repo.GetID() {
		r.Branch, r.Existing, r.ReadOnly, r.Fetch = head.GetRef(), true, false, ""
	}
	return r
}

// cloneURL returns the address for git. One that is not on our GitHub is
// replaced: a token is going to be sent there.
func (a *Adapter) cloneURL(r *github.Repository) string {
	address := r.GetCloneURL()
	if strings.HasPrefix(address, a.web.String()+"/") && !strings.ContainsAny(address, " \t\r\n@?#") {
		return address
	}
	return a.web.String() + "/" + r.GetFullName() + ".git"
}
