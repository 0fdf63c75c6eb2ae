package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

// translator reads what people wrote, whichever way it was heard of.
type translator struct {
	client   *client
	me       *account
	site     *site
	guard    *loopGuard
	mention  string // without @, lower case
	commands func() []string
	log      *slog.Logger
	observe  func(string)
}

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
// same for every redelivery (contract C3). But only the payload is signed: whoever has
// got hold of one can send it again under any id and kind of event. So what it says has a
// name of its own, too, in its aliases: that of the comment or whatever else it tells of, or
// where that has none, the payload's.
func (t *translator) translate(ctx context.Context, event string, guid messages.EventID, raw []byte) platform.Meaning {
	r := t.meaning(ctx, event, guid, raw)
	if r.Reason == "" && len(r.Events) == 0 {
		return r
	}
	sum := sha256.Sum256(raw)
	r.Event = messages.EventID("payload:" + hex.EncodeToString(sum[:])) // if it is kept as it is
	for i := range r.Events {
		if in := &r.Events[i]; len(in.Aliases) == 0 {
			in.Aliases = []messages.EventID{messages.EventID(fmt.Sprintf("%s:%d", r.Event, i))}
		}
	}
	return r
}

// meaning is what a payload says, under the id of its delivery.
func (t *translator) meaning(ctx context.Context, event string, guid messages.EventID, raw []byte) platform.Meaning {
	r := platform.Meaning{Raw: raw}
	var p payload
	if err := lenient(raw, &p); err != nil {
		r.Reason = "not a JSON object: " + platform.Cut(err.Error(), 200)
		return r
	}
	if _, known := handled[event]; !known {
		if !t.housekeeping(ctx, event, p) {
			t.observe("foreign_event") // nobody here asked for it: it is counted and not kept
			t.log.DebugContext(ctx, "github sent an event of a kind that is not used", "event", platform.Cut(event, 40))
		}
		return r
	}
	repo, ok := repoName(p.Repository.GetFullName())
	if !ok {
		r.Reason = "the event lacks its repository"
		return r
	}
	if id := p.Installation.GetID(); id > 0 {
		t.client.homes.Put(repo, id)
	}
	if len(t.site.only) > 0 && !t.site.only[repo] {
		return r
	}
	in := messages.Inbound{Account: t.site.name(), Event: guid, Raw: raw}
	var err error
	switch event {
	case "issues":
		r.Events, err = t.issueEvent(p, in)
	case "pull_request":
		r.Events, err = t.pullEvent(p, in)
	case "issue_comment":
		r.Events, err = t.commentEvent(p, in)
	case "pull_request_review":
		r.Events, err = t.reviewEvent(p, in)
	case "pull_request_review_comment":
		r.Events, err = t.lineEvent(p, in)
	}
	if err != nil {
		r.Reason = err.Error()
	}
	return r
}

// housekeeping reads events that concern no conversation. It reports false for
// those that it does not know.
func (t *translator) housekeeping(ctx context.Context, event string, p payload) bool {
	switch event {
	case "ping", "github_app_authorization", "installation_target":
		return true
	case "installation":
		if p.Action == "deleted" || p.Action == "suspend" {
			t.client.tokens.Put(tokenKey{installation: p.Installation.GetID()}, nil)
		}
		t.log.InfoContext(ctx, "the installation of the github app changed", "action", platform.Cut(p.Action, 40), "account", platform.Cut(p.Installation.GetAccount().GetLogin(), 100))
		return true
	case "installation_repositories":
		for _, r := range p.Removed {
			if repo, ok := repoName(r.GetFullName()); ok {
				t.client.homes.Put(repo, 0)
			}
		}
		return true
	}
	return false
}

const errIncomplete = platform.Malformed("the event lacks its number, author or id")

// said is something that a person wrote, whichever way it was heard of.
type said struct {
	repo   *github.Repository
	number int
	title  string
	url    string
	isPull bool
	locked bool
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
		isPull: p.Issue.PullRequestLinks != nil, locked: p.Issue.GetLocked(), sender: p.Sender,
	}
}

// ofPull returns what p says of its pull request, without a text.
func ofPull(p payload) said {
	return said{
		repo: p.Repository, number: p.Pull.GetNumber(), title: p.Pull.GetTitle(), url: p.Pull.GetHTMLURL(),
		isPull: true, locked: p.Pull.GetLocked(), pull: p.Pull, sender: p.Sender,
	}
}

// opened completes what the text of an issue or pull request says.
func (s said) opened(author *github.User, association, body string, at time.Time) said {
	s.author, s.member, s.body, s.at = author, member(association), body, at
	s.post, s.alias = post{kind: postBody, id: int64(s.number)}, "opened:"+s.place().key().ID
	return s
}

func (t *translator) issueEvent(p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Issue == nil || p.Issue.GetNumber() < 1 {
		return nil, errIncomplete
	}
	if p.Comment != nil {
		return nil, platform.Malformed("the event is one of a comment") // which may be deleted, too
	}
	switch p.Action {
	case "opened":
		if p.Changes != nil && p.Changes.OldIssue != nil {
			return nil, nil // it was transferred: its text was said, and maybe answered, elsewhere
		}
		return t.heard(ofOpened(p), in)
	case "closed", "deleted", "transferred": // what is said at its new place is about another repository
		when := p.Issue.GetClosedAt()
		if p.Action != "closed" {
			when = github.Timestamp{} // it may have been closed before, and gone on
		}
		return t.closed(ofIssue(p), when, in), nil
	}
	return nil, nil
}

// ofOpened returns what the text of the issue of p says.
func ofOpened(p payload) said {
	s := ofIssue(p).opened(p.Issue.User, p.Issue.GetAuthorAssociation(), p.Issue.GetBody(), p.Issue.GetCreatedAt().Time)
	s.via = p.Issue.Via
	return s
}

func (t *translator) pullEvent(p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Pull.GetNumber() < 1 {
		return nil, errIncomplete
	}
	s := ofPull(p)
	switch p.Action {
	case "opened":
		return t.heard(s.opened(p.Pull.User, p.Pull.GetAuthorAssociation(), p.Pull.GetBody(), p.Pull.GetCreatedAt().Time), in)
	case "closed":
		return t.closed(s, p.Pull.GetClosedAt(), in), nil
	}
	return nil, nil
}

func (t *translator) commentEvent(p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Issue == nil || p.Issue.GetNumber() < 1 || p.Comment == nil || p.Comment.GetID() < 1 {
		return nil, errIncomplete
	}
	return t.commented(ofComment(ofIssue(p), p.Comment), p, in)
}

// commented reads what happened to a comment, on an issue or on lines.
func (t *translator) commented(s said, p payload, in messages.Inbound) ([]messages.Inbound, error) {
	switch p.Action {
	case "created":
		return t.heard(s, in)
	case "edited":
		return t.ticked(s, p, in), nil
	case "deleted":
		return t.deleted(s, in), nil
	}
	return nil, nil
}

func (t *translator) reviewEvent(p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Pull.GetNumber() < 1 || p.Review.GetID() < 1 {
		return nil, errIncomplete
	}
	if p.Action != "submitted" {
		return nil, nil
	}
	return t.heard(ofReview(ofPull(p), p.Review), in)
}

func (t *translator) lineEvent(p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Pull.GetNumber() < 1 || p.Comment == nil || p.Comment.GetID() < 1 {
		return nil, errIncomplete
	}
	return t.commented(ofLine(ofPull(p), p.Comment), p, in)
}

func ofComment(s said, c *comment) said {
	s.member = member(c.GetAuthorAssociation())
	s.author, s.via, s.body, s.at = c.User, c.Via, c.GetBody(), c.GetCreatedAt().Time
	s.post, s.alias = post{kind: postComment, id: c.GetID()}, "comment:"+strconv.FormatInt(c.GetID(), 10)
	return s
}

// ofLine completes what a comment on lines says. It is created when it is begun; that its
// review is submitted, maybe much later, changes it.
func ofLine(s said, c *comment) said {
	s = ofComment(s, c)
	if submitted := c.GetUpdatedAt().Time; submitted.After(s.at) {
		s.at = submitted
	}
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
func (t *translator) heard(s said, in messages.Inbound) ([]messages.Inbound, error) {
	if s.author.GetID() < 1 || s.author.GetLogin() == "" {
		return nil, errIncomplete
	}
	if !t.byPerson(s) {
		return nil, nil
	}
	text, addressed := t.order(s.body)
	if !addressed {
		return nil, nil
	}
	at := s.place()
	sender := strconv.FormatInt(s.author.GetID(), 10)
	in.Conversation = at.key()
	if !t.guard.admits(in.Conversation.ID, sender, s.alias, s.at) {
		t.observe("loop_ended")
		t.log.Warn("github: somebody answers the bot at once, again and again; what they write is left unanswered", "conversation", in.Conversation, "sender", sender)
		in.Unanswered = true
	}
	in.Kind = messages.KindMessage
	in.Aliases = []messages.EventID{messages.EventID(s.alias)}
	in.Message = s.post.message()
	in.Sender = t.site.senderOf(s.author)
	in.Sender.Member = s.member
	in.SentAt = s.at
	in.Text = text
	if text == "" {
		in.Text = "Please look at this " + s.subject() + " and help with it."
	}
	in.Attachments = t.site.attachments(at.repo, s.body)
	in.Repository = t.site.repositoryOf(s)
	in.Reference = reference(s)
	return []messages.Inbound{in}, nil
}

// byPerson reports whether a person wrote s. Bots do not count, nor does what
// carries a mark of this program: with a personal token the bot writes under a
// person's account. Who did it must be who wrote it; else the one's words would
// have the other's authority (an issue that somebody transferred).
func (t *translator) byPerson(s said) bool {
	switch {
	case s.author.GetType() != "User", strings.HasSuffix(s.author.GetLogin(), "[bot]"), marked(s.body), t.me.isOurApp(s.via):
		return false
	case s.sender.GetID() != s.author.GetID(), s.sender.GetType() != "User":
		return false
	}
	return true
}

func (s said) subject() string {
	if s.isPull {
		return "pull request"
	}
	return "issue"
}

// closed tells that an issue or pull request was closed.
func (t *translator) closed(s said, when github.Timestamp, in messages.Inbound) []messages.Inbound {
	in.Kind = messages.KindClosed
	in.Conversation = s.place().key()
	in.SentAt = when.Time
	if when.IsZero() {
		in.SentAt = t.client.clock.At(time.Now())
	} else {
		in.Aliases = []messages.EventID{messages.EventID(fmt.Sprintf("closed:%s:%d", in.Conversation.ID, when.Unix()))}
	}
	in.Repository = t.site.repositoryOf(s)
	in.Reference = reference(s)
	return []messages.Inbound{in}
}

// deleted reads that a comment is gone which was for the bot, whoever deleted it. It may be
// heard of first, where the comment's own event was lost and is delivered again.
func (t *translator) deleted(s said, in messages.Inbound) []messages.Inbound {
	s.sender = s.author
	if _, addressed := t.order(s.body); !addressed || !t.byPerson(s) {
		return nil
	}
	in.Kind = messages.KindDeleted
	in.Aliases = []messages.EventID{messages.EventID(s.alias)}
	in.Conversation = s.place().key()
	in.Message = s.post.message()
	in.SentAt = time.Now()
	return []messages.Inbound{in}
}

// wroteButtons reports whether a comment with buttons is the bot's own. With a
// personal token that takes knowing who we are; before that is known nothing is
// pressed.
func (t *translator) wroteButtons(c *comment) bool {
	if t.me.isOurApp(c.Via) {
		return true
	}
	me := t.me.self.Load()
	return me != nil && t.me.isOurs(*me, c)
}

// buttonsOf returns the tasks at the end of a comment of ours, with whether each
// is done.
func buttonsOf(body string) map[string]bool {
	body = normal(body)
	if m := deliveryMark.FindStringIndex(body); m != nil {
		body = body[:m[0]]
	}
	states := make(map[string]bool)
	for _, line := range slices.Backward(splitLines(body)) {
		m := buttonLine.FindStringSubmatch(line)
		if m == nil {
			break
		}
		states[m[2]] = m[1] != " "
	}
	return states
}

// ticked turns the ticking of a task in a comment of the bot into the press of a
// button. What else somebody changes there means nothing.
func (t *translator) ticked(s said, p payload, in messages.Inbound) []messages.Inbound {
	if p.Changes == nil || p.Changes.Body == nil || p.Sender.GetID() < 1 || p.Sender.GetType() != "User" {
		return nil
	}
	before, after := buttonsOf(p.Changes.Body.GetFrom()), buttonsOf(p.Comment.GetBody())
	var pressed []string
	for id, done := range after {
		if was, had := before[id]; done && had && !was {
			pressed = append(pressed, id)
		}
	}
	if len(pressed) == 0 || !t.wroteButtons(p.Comment) {
		return nil
	}
	slices.Sort(pressed)
	in.Kind = messages.KindAction
	in.Conversation = s.place().key()
	in.Message = s.post.message()
	in.Sender = t.site.senderOf(p.Sender)
	in.SentAt = p.Comment.GetUpdatedAt().Time
	in.Repository, in.Reference = t.site.repositoryOf(s), reference(s)
	var events []messages.Inbound
	for i, id := range pressed {
		one := in
		one.Action = id
		if i > 0 {
			one.Event = messages.EventID(fmt.Sprintf("%s:%d", in.Event, i))
		}
		events = append(events, one)
	}
	return events
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

// store makes durable what an event means; see platform.Store.
func (t *translator) store(ctx context.Context, sink platform.Sink, r platform.Meaning) error {
	kept, err := platform.Store(ctx, sink, Name, t.site.name(), r)
	if kept {
		t.observe("malformed")
	}
	return err
}
