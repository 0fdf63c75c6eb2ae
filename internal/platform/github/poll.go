package github

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"
	"golang.org/x/sync/errgroup"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

const (
	// sweepers is how many repositories are read at once.
	sweepers = 4

	// maxGrace is how old something must be for a sweep to look at it where
	// webhooks are on: what is younger may be on its way.
	maxGrace = 15 * time.Second

	// secondSweep is when the sweep at the start is repeated, for what was too
	// young then.
	secondSweep = 30 * time.Second

	// maxReviewed is for how many pull requests of a sweep the reviews are read. The
	// next one goes on.
	maxReviewed = 20
)

// poller asks for what is new: everything where there are no webhooks, and else what they
// did not bring.
type poller struct {
	client     *client
	site       *site
	translator *translator
	cursor     platform.Cursor
	feeds      *platform.Recent[string, feedState]
	followed   *platform.Recent[string, bool] // repository -> it is read on from under an earlier name
	retried    *platform.Recent[string, int]  // delivery -> how often it was asked for again
	told       *platform.Recent[string, bool] // repository -> an operator was told of something about it
	webhooks   bool
	every      time.Duration
	grace      time.Duration // how old something must be for a sweep to look at it
	log        *slog.Logger
	observe    func(string)
}

// run reads what is new at once and then again and again until ctx is done. Only
// credentials that are refused the first time end it earlier. Those that were good may be
// good again: in an outage GitHub refuses all.
func (p *poller) run(ctx context.Context, sink platform.Sink) error {
	for soon := true; ; soon = false {
		begun := time.Now()
		err := p.look(ctx, sink)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is no failure
		}
		pause := jittered(p.every)
		if soon {
			pause = min(pause, secondSweep)
		}
		// While it reads it takes what GitHub's limits allow: as much is left for answers.
		if took := time.Since(begun); took > pause {
			pause = took
			if p.first("pause") {
				p.log.WarnContext(ctx, "reading all repositories takes long and is done less often; see GITHUB_REPOSITORIES")
			}
		}
		switch {
		case fault.Is(err, fault.Unauthorized) && soon:
			return err
		case fault.Is(err, fault.Unauthorized):
			p.log.ErrorContext(ctx, "github refuses the bot's credentials, trying again", "reason", fault.Public(err), "err", err)
		case err != nil:
			if p.client.appID == "" { // else it is one installation's, and the others go on
				pause = max(pause, exchange.RetryAfter(err))
			}
			p.log.WarnContext(ctx, "could not read what is new on github, trying again", "err", err)
		}
		if platform.Sleep(ctx, pause) != nil {
			return nil //nolint:nilerr // the end of ctx is no failure
		}
	}
}

// look reads what is new. Where there are webhooks it asks for those that did not arrive.
func (p *poller) look(ctx context.Context, sink platform.Sink) error {
	if p.webhooks {
		if err := p.redeliver(ctx); fault.Is(err, fault.Unauthorized) {
			return err
		} else if err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "could not look for failed deliveries of webhooks", "err", err)
		}
	}
	return p.sweep(ctx, sink)
}

// sweep reads what is new in all repositories. It is how the bot hears without
// webhooks, and how it finds what webhooks did not bring. What is found twice
// has the same alias and is one event for the sink.
func (p *poller) sweep(ctx context.Context, sink platform.Sink) error {
	repos, err := p.repositories(ctx)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(sweepers)
	for _, repo := range repos {
		group.Go(func() error {
			err := p.follow(ctx, repo)
			if err == nil {
				err = p.sweepRepo(ctx, sink, repo.name)
			}
			switch {
			case err == nil || ctx.Err() != nil:
				return nil //nolint:nilerr // the end of ctx is no failure
			case fault.Is(err, fault.Unauthorized), fault.Is(err, fault.RateLimited):
				return err
			}
			p.log.WarnContext(ctx, "could not read all that is new in a repository, trying again", "repository", repo.name, "err", err)
			return nil
		})
	}
	return group.Wait()
}

// repository is one to be read.
type repository struct {
	name string // "owner/repo"
	id   int64  // which stays when it is renamed; 0 if it is not known
}

// repositories returns those that the bot works in.
func (p *poller) repositories(ctx context.Context) (all []repository, err error) {
	for _, name := range slices.Sorted(maps.Keys(p.site.only)) {
		all = append(all, repository{name: name})
	}
	if len(all) > 0 {
		return all, nil
	}
	var found []*github.Repository
	if p.client.appID == "" {
		all, resp, err := call(ctx, p.client, asToken, op{name: "listing repositories"}, func(g api) ([]*github.Repository, *github.Response, error) {
			return g.Repositories.ListByAuthenticatedUser(g.ctx, &github.RepositoryListByAuthenticatedUserOptions{
				Sort: "pushed", ListOptions: github.ListOptions{PerPage: pageSize},
			})
		})
		if err != nil {
			return nil, err
		}
		if found = all; resp.NextPage > 0 && p.first("") {
			p.log.WarnContext(ctx, "github shows more repositories than are looked at: only the last that were pushed to; name those that matter in GITHUB_REPOSITORIES", "count", len(all))
		}
	} else {
		all, err := p.client.installations(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range all {
			some, err := p.client.installed(ctx, i.GetID())
			if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Gone) {
				if p.first(strconv.FormatInt(i.GetID(), 10)) {
					p.log.WarnContext(ctx, "the github app is suspended or removed", "account", i.GetAccount().GetLogin())
				}
				continue
			}
			if fault.Is(err, fault.Unauthorized) || ctx.Err() != nil {
				return nil, err
			}
			if err != nil {
				p.log.WarnContext(ctx, "could not list the repositories of an installation, trying again", "installation", i.GetID(), "err", err)
				continue
			}
			found = append(found, some...)
		}
	}
	for _, r := range found {
		if name, ok := repoName(r.GetFullName()); ok && !r.GetArchived() {
			all = append(all, repository{name, r.GetID()})
		}
	}
	return all, nil
}

// first reports whether an operator was not told yet of something about a repository, or of all.
func (p *poller) first(repo string) bool {
	told, _ := p.told.Take(repo, true)
	return !told
}

// sweepRepo reads what is new in one repository: issues and pull requests first,
// so that what opens a conversation comes before what is said in it.
func (p *poller) sweepRepo(ctx context.Context, sink platform.Sink, repo string) error {
	s := &sweeper{p: p, sink: sink, repo: repo, known: make(map[int]*github.Issue)}
	return errors.Join(
		feed(ctx, s, "issues", func(g api, since time.Time, p github.ListOptions) ([]*github.Issue, *github.Response, error) {
			return g.Issues.ListByRepo(g.ctx, g.owner, g.repo, &github.IssueListByRepoOptions{
				State: "all", Sort: "updated", Direction: "asc", Since: since, ListOptions: p,
			})
		}, func(i *github.Issue) element {
			return element{fmt.Sprintf("%d %s %d", i.GetNumber(), i.GetState(), i.GetUpdatedAt().Unix()), i.GetNumber(), i.GetUpdatedAt().Time}
		}, s.issue),
		feed(ctx, s, "comments", func(g api, since time.Time, p github.ListOptions) ([]*comment, *github.Response, error) {
			return listComments(0, since, p)(g)
		}, commentID, s.comment),
		feed(ctx, s, "lines", func(g api, since time.Time, p github.ListOptions) ([]*comment, *github.Response, error) {
			return asLines(g.PullRequests.ListComments(g.ctx, g.owner, g.repo, 0, &github.PullRequestListCommentsOptions{
				Sort: "updated", Direction: "asc", Since: since, ListOptions: p,
			}))
		}, commentID, s.line),
	)
}

func commentID(c *comment) element {
	return element{strconv.FormatInt(c.GetID(), 10), numberIn(cmp.Or(c.IssueURL, c.GetPullRequestURL())), c.GetUpdatedAt().Time}
}

// sweeper reads one repository.
type sweeper struct {
	p        *poller
	sink     platform.Sink
	repo     string
	known    map[int]*github.Issue // asked for in this sweep
	reviewed int
}

// issue passes on what became of an issue or pull request.
func (s *sweeper) issue(ctx context.Context, i *github.Issue, since time.Time) error {
	if i.GetNumber() < 1 {
		return nil
	}
	s.known[i.GetNumber()] = i
	if !i.GetCreatedAt().Before(since) {
		if err := s.pass(ctx, s.payload("opened", i, i.User), ofOpened); err != nil {
			return err
		}
	}
	if i.PullRequestLinks != nil {
		if s.reviewed++; s.reviewed > maxReviewed {
			return errEnough
		}
		if err := s.passOver(ctx, s.reviews(ctx, i, since)); err != nil {
			return err
		}
	}
	if i.GetState() != "closed" || i.GetClosedAt().Before(since) {
		return nil
	}
	if err := s.passOver(ctx, s.lastWords(ctx, i, since)); err != nil {
		return err
	}
	x := ofIssue(s.payload("closed", i, i.User))
	return s.store(ctx, s.p.translator.closed(x, i.GetClosedAt(), messages.Inbound{Account: s.p.site.name()}))
}

// lastWords passes on what was said in an issue before it was closed: the list with all that
// was said is read later.
func (s *sweeper) lastWords(ctx context.Context, i *github.Issue, since time.Time) error {
	if i.GetComments() == 0 {
		return nil
	}
	all, _, err := inRepo(ctx, s.p.client, s.repo, op{name: "reading comments"}, listComments(i.GetNumber(), since, github.ListOptions{PerPage: pageSize}))
	for _, c := range all {
		if err == nil && !c.GetCreatedAt().After(i.GetClosedAt().Time) {
			err = s.comment(ctx, c, since)
		}
	}
	return err
}

// listComments lists what was said in an issue, or where number is 0 in all of the repository,
// oldest first.
func listComments(number int, since time.Time, page github.ListOptions) func(g api) ([]*comment, *github.Response, error) {
	return func(g api) ([]*comment, *github.Response, error) {
		return asComments(g.Issues.ListComments(g.ctx, g.owner, g.repo, number, &github.IssueListCommentsOptions{
			Sort: new("updated"), Direction: new("asc"), Since: &since, ListOptions: page,
		}))
	}
}

// reviews passes on what reviews of a pull request say as a whole: there is no
// list of them for a repository.
func (s *sweeper) reviews(ctx context.Context, i *github.Issue, since time.Time) error {
	for v, err := range s.p.client.reviewsOf(ctx, place{repo: s.repo, number: i.GetNumber()}) {
		if err != nil {
			return err
		}
		if v.GetSubmittedAt().Before(since) || v.GetState() == "PENDING" {
			continue
		}
		p := s.payload("submitted", i, v.User)
		p.Review = v
		if err := s.pass(ctx, p, func(p payload) said { return ofReview(ofIssue(p), v) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *sweeper) comment(ctx context.Context, c *comment, since time.Time) error {
	return s.said(ctx, c, c.IssueURL, since, ofComment)
}

// line passes on a comment on lines. It is dated to when it was begun, and said when its
// review was submitted.
func (s *sweeper) line(ctx context.Context, c *comment, since time.Time) error {
	address := c.GetPullRequestURL()
	if _, addressed := s.p.translator.order(c.GetBody()); addressed && c.GetCreatedAt().Before(since) {
		v, err := s.p.client.askReview(ctx, place{repo: s.repo, number: numberIn(address)}, c.GetPullRequestReviewID())
		if err != nil {
			return s.passOver(ctx, err)
		}
		c.CreatedAt = v.SubmittedAt
	}
	return s.said(ctx, c, address, since, ofLine)
}

// numberIn returns the number at the end of the address of an issue, or 0.
func numberIn(address string) int {
	number, _ := strconv.Atoi(address[strings.LastIndexByte(address, '/')+1:])
	return number
}

// said passes on a comment. One that was only edited is none.
func (s *sweeper) said(ctx context.Context, c *comment, address string, since time.Time, of func(said, *comment) said) error {
	number := numberIn(address)
	if number < 1 || c.GetID() < 1 || c.GetCreatedAt().Before(since) {
		return nil // a comment of nothing that is known
	}
	if _, addressed := s.p.translator.order(c.GetBody()); !addressed {
		return nil
	}
	i, err := s.ask(ctx, number, since)
	if err != nil {
		return s.passOver(ctx, err)
	}
	p := s.payload("created", i, c.User)
	p.Comment = c
	return s.pass(ctx, p, func(p payload) said { return of(ofIssue(p), c) })
}

// ask returns an issue or pull request. What opened it comes before what is said in it, also
// where the list that has it failed, or was read before it was opened.
func (s *sweeper) ask(ctx context.Context, number int, since time.Time) (*github.Issue, error) {
	if i, ok := s.known[number]; ok {
		return i, nil
	}
	i, err := s.p.client.askIssue(ctx, place{repo: s.repo, number: number})
	if err == nil && !i.GetCreatedAt().Before(since) {
		err = s.pass(ctx, s.payload("opened", i, i.User), ofOpened)
	}
	if err == nil {
		s.known[number] = i
	}
	return i, err
}

// passOver returns nil for the error of something that is not there any more, so
// that it does not hold up what came after it.
func (s *sweeper) passOver(ctx context.Context, err error) error {
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) || fault.Is(err, fault.Forbidden) {
		s.p.log.InfoContext(ctx, "an issue that somebody wrote in cannot be read", "repository", s.repo, "err", err)
		return nil
	}
	return err
}

// payload makes what a webhook would have brought.
func (s *sweeper) payload(action string, i *github.Issue, sender *github.User) payload {
	return payload{Action: action, Issue: &issue{Issue: *i}, Repository: s.repository(i), Sender: sender}
}

// repository returns the repository with its name as its owner writes it. One that was renamed
// has its old name, by which it is asked for, and its new address: git follows no redirect.
func (s *sweeper) repository(i *github.Issue) *github.Repository {
	u, err := url.Parse(i.GetHTMLURL())
	if err != nil {
		return &github.Repository{FullName: &s.repo}
	}
	parts := strings.SplitN(strings.TrimPrefix(u.Path, "/"), "/", 3)
	if len(parts) != 3 {
		return &github.Repository{FullName: &s.repo}
	}
	now := parts[0] + "/" + parts[1]
	if strings.EqualFold(now, s.repo) {
		return &github.Repository{FullName: &now}
	}
	if s.p.site.only[s.repo] && s.p.first(s.repo) { // GitHub leads to it from the old name, but webhooks bear the new one
		s.p.log.Warn("a repository in GITHUB_REPOSITORIES has another name now: its webhooks are left out until the list has the new one", "repository", s.repo, "now", now)
	}
	return &github.Repository{FullName: &s.repo, CloneURL: new(s.p.site.web.String() + "/" + now + ".git")}
}

// pass stores what somebody said, if it is for the bot.
func (s *sweeper) pass(ctx context.Context, p payload, of func(payload) said) error {
	x := of(p)
	if x.author.GetID() < 1 || !s.p.translator.byPerson(x) {
		return nil
	}
	if _, addressed := s.p.translator.order(x.body); !addressed {
		return nil
	}
	if yes, err := s.rewritten(ctx, p, x); err != nil || yes {
		return s.passOver(ctx, err)
	}
	if x.isPull {
		head, err := s.p.client.askPull(ctx, x.place())
		if err != nil {
			return s.passOver(ctx, err)
		}
		x.pull = head
		x.repo.ID = head.GetBase().GetRepo().ID
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "writing down an event")
	}
	events, err := s.p.translator.heard(x, messages.Inbound{Account: s.p.site.name(), Raw: raw})
	if err != nil {
		return nil //nolint:nilerr // a user who is not known any more
	}
	return s.store(ctx, events)
}

// rewritten reports whether somebody else has changed what x says since, or may have: those are
// not its author's words any more. A webhook brings them as they were.
func (s *sweeper) rewritten(ctx context.Context, p payload, x said) (bool, error) {
	node, author := p.Issue.GetNodeID(), x.author.GetLogin()
	switch {
	case p.Comment != nil && p.Comment.GetUpdatedAt().Equal(p.Comment.GetCreatedAt()):
		return false, nil
	case p.Comment != nil:
		node = p.Comment.GetNodeID()
	case p.Review != nil:
		node = p.Review.GetNodeID()
	}
	if node == "" {
		return false, nil
	}
	editor, err := s.p.client.askEditor(ctx, x.place().repo, node, author)
	if err != nil || strings.EqualFold(editor, author) {
		return false, err
	}
	s.p.log.WarnContext(ctx, "somebody else changed what is addressed to the bot, or GitHub does not tell who did, so it is left unanswered",
		"conversation", x.place().key(), "author", author, "editor", editor)
	return true, nil
}

// store passes events on. Their ids say that they were found; their aliases are
// those of what a webhook brings.
func (s *sweeper) store(ctx context.Context, events []messages.Inbound) error {
	for i := range events {
		if len(events[i].Aliases) == 0 {
			return nil
		}
		events[i].Event = "found:" + events[i].Aliases[0]
	}
	if len(events) == 0 {
		return nil
	}
	s.p.observe("found")
	return s.p.translator.store(ctx, s.sink, platform.Meaning{Events: events, Event: events[0].Event, Raw: events[0].Raw})
}
