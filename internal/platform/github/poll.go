package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const (
	// overlap is how far a sweep goes back behind what it saw last: lists may show
	// something late. What was seen is not stored twice.
	overlap = 30 * time.Second

	// unsettled is how new something is that may change once more without looking
	// different: GitHub's times are whole seconds. It is looked at again.
	unsettled = 3 * time.Second

	// sweepPages bounds what one sweep reads of a list. The next one goes on.
	sweepPages = 10

	// sweepers is how many repositories are read at once.
	sweepers = 4

	// maxGrace is how old something must be for a sweep to look at it where
	// webhooks are on: what is younger may be on its way.
	maxGrace = 15 * time.Second

	// secondSweep is when the sweep at the start is repeated, for what was too
	// young then.
	secondSweep = 30 * time.Second

	// maxReviewed is for how many pull requests of a sweep the reviews are read.
	maxReviewed = 20
)

// feedState is what is remembered of a list between sweeps.
type feedState struct {
	url  string // with which etag came
	etag string
	seen map[string]bool // what was passed on of the overlap
}

// sweep reads what is new in all repositories. It is how the bot hears without
// webhooks, and how it finds what webhooks did not bring. What is found twice
// has the same alias and is one event for the sink.
func (a *Adapter) sweep(ctx context.Context, sink platform.Sink) error {
	repos, err := a.repositories(ctx)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(sweepers)
	for _, repo := range repos {
		group.Go(func() error {
			err := a.sweepRepo(ctx, sink, repo)
			switch {
			case err == nil || ctx.Err() != nil:
				return nil //nolint:nilerr // the end of ctx is no failure
			case fault.Is(err, fault.Unauthorized), fault.Is(err, fault.RateLimited):
				return err
			}
			a.log.WarnContext(ctx, "could not read what is new in a repository", "repository", repo, "error", err)
			return nil
		})
	}
	return group.Wait()
}

// repositories returns those that the bot works in.
func (a *Adapter) repositories(ctx context.Context) ([]string, error) {
	if len(a.only) > 0 {
		var all []string
		for r := range a.only {
			all = append(all, r)
		}
		slices.Sort(all)
		return all, nil
	}
	var found []repository
	if a.cfg.AppID == "" {
		var out many[repository]
		q := url.Values{"per_page": {"100"}, "sort": {"pushed"}}
		if _, err := a.limited(ctx, asToken, request{route: routeUserRepos, query: q, idempotent: true}, &out); err != nil {
			return nil, err
		}
		found = out.all
	} else {
		all, err := a.installations(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range all {
			some, err := a.installed(ctx, i.ID)
			if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Gone) {
				continue // suspended, or removed just now
			}
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
		}
	}
	var names []string
	for _, r := range found {
		if name, ok := repoName(r.FullName); ok && !r.Archived {
			names = append(names, name)
		}
	}
	return names, nil
}

func (a *Adapter) installations(ctx context.Context) ([]installation, error) {
	var all []installation
	for page := 1; page <= sweepPages; page++ {
		var out many[installation]
		q := url.Values{"per_page": {"100"}, "page": {strconv.Itoa(page)}}
		if _, err := a.limited(ctx, asApp, request{route: routeInstallations, query: q, idempotent: true}, &out); err != nil {
			return nil, err
		}
		all = append(all, out.all...)
		if len(out.all) < pageSize {
			break
		}
	}
	return all, nil
}

// installed returns the repositories of an installation.
func (a *Adapter) installed(ctx context.Context, id int64) ([]repository, error) {
	var all []repository
	for page := 1; page <= sweepPages; page++ {
		var out struct {
			Repositories []repository `json:"repositories"`
		}
		q := url.Values{"per_page": {"100"}, "page": {strconv.Itoa(page)}}
		if _, err := a.limited(ctx, caller(id), request{route: routeInstalledRepos, query: q, idempotent: true}, &out); err != nil {
			return nil, err
		}
		for _, r := range out.Repositories {
			if name, ok := repoName(r.FullName); ok {
				a.homes.Put(name, id)
			}
		}
		all = append(all, out.Repositories...)
		if len(out.Repositories) < pageSize {
			break
		}
	}
	return all, nil
}

// sweepRepo reads what is new in one repository: issues and pull requests first,
// so that what opens a conversation comes before what is said in it.
func (a *Adapter) sweepRepo(ctx context.Context, sink platform.Sink, repo string) error {
	s := &sweeper{a: a, sink: sink, repo: repo, known: make(map[int]issue)}
	return errors.Join(
		feed(ctx, s, "issues", routeIssues, func(i issue) (string, time.Time) {
			return fmt.Sprintf("%d %s %d", i.Number, i.State, i.Updated.Unix()), i.Updated.Time
		}, s.issue),
		feed(ctx, s, "comments", routeRepoComments, func(c comment) (string, time.Time) {
			return strconv.FormatInt(c.ID, 10), c.Updated.Time
		}, s.comment),
		feed(ctx, s, "lines", routeRepoLines, func(c comment) (string, time.Time) {
			return strconv.FormatInt(c.ID, 10), c.Updated.Time
		}, s.line),
	)
}

// sweeper reads one repository.
type sweeper struct {
	a        *Adapter
	sink     platform.Sink
	repo     string
	known    map[int]issue // asked for in this sweep
	reviewed int
}

// feed passes on the elements of a list that came after what was seen of it,
// oldest first, and remembers how far it got. Each is stored before the position
// moves on.
func feed[T any](ctx context.Context, s *sweeper, name string, list route, id func(T) (string, time.Time), each func(ctx context.Context, v T, since time.Time) error) error {
	key := "sweep:" + s.repo + ":" + name
	at, err := s.a.position(ctx, key)
	if err != nil {
		return err
	}
	since := at.Add(-overlap)
	state, _ := s.a.feeds.Get(key)
	next := feedState{seen: make(map[string]bool)}
	newest := at
	early := false // met what is too young to be looked at
	for page := 1; page <= sweepPages; page++ {
		r := request{route: list, args: repoArgs(s.repo), idempotent: true, query: url.Values{
			"since": {since.UTC().Format(time.RFC3339)}, "sort": {"updated"}, "direction": {"asc"}, "state": {"all"},
			"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page)},
		}}
		if page == 1 && state.url == r.path() {
			r.etag = state.etag
		}
		var out many[T]
		header, err := s.a.inRepo(ctx, s.repo, r, &out)
		if errors.Is(err, errNotModified) {
			return nil
		}
		if err != nil {
			return err
		}
		if page == 1 {
			next.url, next.etag = r.path(), header.Get("Etag")
		}
		now := dateOf(header)
		settled := now.Add(-unsettled)
		for _, v := range out.all {
			name, updated := id(v)
			if early = s.a.grace > 0 && updated.After(now.Add(-s.a.grace)); early {
				next.etag = "" // the same list is to be looked at again
				break
			}
			if updated.After(settled) {
				next.etag = ""
			} else {
				next.seen[name] = true
			}
			if !state.seen[name] {
				if err := each(ctx, v, since); err != nil {
					return errors.Join(err, s.a.advance(ctx, key, at, newest.Add(-time.Second)))
				}
			}
			if updated.After(newest) {
				newest = updated
			}
		}
		if len(out.all) < pageSize || early {
			break
		}
	}
	s.a.feeds.Put(key, next)
	return s.a.advance(ctx, key, at, newest)
}

// dateOf returns the time that GitHub says it is.
func dateOf(h http.Header) time.Time {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		return at.Add(time.Second) // it was cut off
	}
	return time.Now()
}

// issue passes on what became of an issue or pull request.
func (s *sweeper) issue(ctx context.Context, i issue, since time.Time) error {
	if i.Number < 1 {
		return nil
	}
	s.known[i.Number] = i
	if !i.Created.Before(since) {
		p := s.payload("opened", i, i.User)
		if err := s.pass(ctx, p, func(x said) said {
			x.author, x.via, x.body, x.at = i.User, i.ViaApp, i.Body, i.Created.Time
			x.post, x.alias = post{kind: postBody, id: int64(i.Number)}, openedAlias(x)
			return x
		}); err != nil {
			return err
		}
	}
	if i.Pull != nil && i.State == "open" && s.reviewed < maxReviewed {
		s.reviewed++
		if err := s.reviews(ctx, i, since); err != nil {
			return err
		}
	}
	if i.State == "closed" && !i.Closed.Before(since) {
		x := ofIssue(s.payload("closed", i, i.User))
		return s.store(ctx, s.a.closed(x, i.Closed, messages.Inbound{Account: s.a.account()}))
	}
	return nil
}

// reviews passes on what reviews of a pull request say as a whole: there is no
// list of them for a repository.
func (s *sweeper) reviews(ctx context.Context, i issue, since time.Time) error {
	list := request{route: routeReviews, args: repoArgs(s.repo, i.Number), idempotent: true}
	for v, err := range pages[review](ctx, s.a, s.repo, list, 5) {
		if err != nil {
			return err
		}
		if v.Submitted.Before(since) || v.State == "PENDING" {
			continue
		}
		p := s.payload("submitted", i, v.User)
		p.Review = &v
		if err := s.pass(ctx, p, func(x said) said { return ofReview(x, v) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *sweeper) comment(ctx context.Context, c comment, since time.Time) error {
	return s.said(ctx, c, c.Issue, since, ofComment)
}

func (s *sweeper) line(ctx context.Context, c comment, since time.Time) error {
	return s.said(ctx, c, c.PullURL, since, ofLine)
}

// said passes on a comment. One that was only edited is none.
func (s *sweeper) said(ctx context.Context, c comment, address string, since time.Time, of func(said, comment) said) error {
	number, err := strconv.Atoi(address[strings.LastIndexByte(address, '/')+1:])
	if err != nil || number < 1 || c.ID < 1 || c.Created.Before(since) {
		return nil //nolint:nilerr // a comment of nothing that is known
	}
	if _, addressed := s.a.order(c.Body); !addressed {
		return nil
	}
	i, err := s.ask(ctx, number)
	if err != nil {
		return s.passOver(ctx, err)
	}
	p := s.payload("created", i, c.User)
	p.Comment = &c
	return s.pass(ctx, p, func(x said) said { return of(x, c) })
}

// ask returns an issue or pull request.
func (s *sweeper) ask(ctx context.Context, number int) (issue, error) {
	if i, ok := s.known[number]; ok {
		return i, nil
	}
	var i issue
	_, err := s.a.inRepo(ctx, s.repo, request{route: routeIssue, args: repoArgs(s.repo, number), idempotent: true}, &i)
	if err == nil {
		s.known[number] = i
	}
	return i, err
}

// passOver returns nil for the error of something that is not there any more, so
// that it does not hold up what came after it.
func (s *sweeper) passOver(ctx context.Context, err error) error {
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) || fault.Is(err, fault.Forbidden) {
		s.a.log.InfoContext(ctx, "an issue that somebody wrote in cannot be read", "repository", s.repo, "error", err)
		return nil
	}
	return err
}

// payload makes what a webhook would have brought.
func (s *sweeper) payload(action string, i issue, sender user) payload {
	return payload{Action: action, Issue: &i, Repository: repository{FullName: s.fullName(i)}, Sender: sender}
}

// fullName returns the repository's name as its owner writes it.
func (s *sweeper) fullName(i issue) string {
	u, err := url.Parse(i.URL)
	if err != nil {
		return s.repo
	}
	if parts := strings.SplitN(strings.TrimPrefix(u.Path, "/"), "/", 3); len(parts) == 3 && strings.EqualFold(parts[0]+"/"+parts[1], s.repo) {
		return parts[0] + "/" + parts[1]
	}
	return s.repo
}

// pass stores what somebody said, if it is for the bot.
func (s *sweeper) pass(ctx context.Context, p payload, of func(said) said) error {
	x := of(ofIssue(p))
	if x.author.ID < 1 || !s.a.byPerson(x) {
		return nil
	}
	if _, addressed := s.a.order(x.body); !addressed {
		return nil
	}
	if x.isPull {
		head, err := s.a.askPull(ctx, x.place())
		if err != nil {
			return s.passOver(ctx, err)
		}
		x.pull = &head
		if head.Base.Repo != nil {
			x.repo.ID = head.Base.Repo.ID
		}
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "writing down an event")
	}
	events, err := s.a.heard(x, messages.Inbound{Account: s.a.account(), Raw: raw})
	if err != nil {
		return nil //nolint:nilerr // a user who is not known any more
	}
	return s.store(ctx, events)
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
	s.a.observe("found")
	return s.a.store(ctx, s.sink, result{events: events, event: events[0].Event, raw: events[0].Raw})
}
