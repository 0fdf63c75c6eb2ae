package github

import (
	"cmp"
	"context"
	"crypto/rsa"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// op is how a call is made.
type op struct {
	name string // for errors
	once bool   // doing it again does harm
	shed bool   // it is worth nothing later: at once or not at all
	etag string // of the answer that is known already
}

// api is the library for one call, with the repository that it is about.
type api struct {
	*github.Client
	ctx         context.Context // of this one call
	owner, repo string
}

// client makes GitHub's calls, each with the credentials of its caller and within the
// limits, and classifies their errors.
type client struct {
	appID   string          // of the App
	token   string          // a personal one
	key     *rsa.PrivateKey // nil with a personal token
	base    *url.URL        // of the API, with a slash at the end
	http    *http.Client
	clients sync.Map // caller -> *github.Client
	limits  *exchange.Budget
	free    atomic.Bool // the server has no limits, as far as was heard
	scrub   *exchange.Scrubber
	clock   exchange.Clock
	observe func(string)

	assertion minted                              // of the App
	tokens    *platform.Recent[tokenKey, *minted] // of installations
	homes     *platform.Recent[string, int64]     // repository -> installation
	locked    *platform.Recent[place, bool]       // where no comment was taken, because it is locked
}

func newClient(cfg Config) *client {
	c := &client{
		appID: cfg.AppID, token: cfg.Token, observe: cfg.Observe,
		http:   exchange.Client(exchange.Transport(cmp.Or(cfg.MaxConns, 50))),
		limits: newBudget(cfg.Limits, exchange.AccountOf(cmp.Or(cfg.AppID, cfg.Token))),
		scrub:  exchange.NewScrubber(secretForm.Regexp(), cfg.Token, cfg.WebhookSecret),
		tokens: platform.NewRecent[tokenKey, *minted](1024),
		homes:  platform.NewRecent[string, int64](4096),
		locked: platform.NewRecent[place, bool](1024),
	}
	c.assertion.lock = make(chan struct{}, 1)
	c.base, _ = url.Parse(strings.TrimRight(cfg.APIURL, "/") + "/") // checked
	if cfg.AppID != "" {
		c.key, _ = parseKeyPEM(cfg.PrivateKey) // checked
	}
	return c
}

// call makes one call when the limits allow it and classifies its error. A token of
// an installation that GitHub refuses is replaced once; a short refusal because of a
// limit is waited out.
func (c *client) call(ctx context.Context, who caller, o op, f func(g api) (*github.Response, error)) (*github.Response, error) {
	deadline := time.Now().Add(exchange.ShortWait)
	for renewed := false; ; {
		token, m, err := c.credential(ctx, who)
		if err != nil {
			return nil, err
		}
		seen := c.watch(who, o, token)
		resp, err := f(api{Client: c.library(who), ctx: seen.Context(ctx)})
		if _, accepted := errors.AsType[*github.AcceptedError](err); accepted {
			err = nil // status 202: GitHub is going to do it
		}
		if err == nil {
			c.limits.Calm(who.key())
			c.hearLimits(who, resp)
			return resp, nil
		}
		if seen.Status() == http.StatusUnauthorized && !renewed {
			if m == nil && who == asApp && resp != nil && c.outOfTime(token, resp.Response) {
				m = &c.assertion // it was refused for its times
			}
			if m != nil {
				m.drop(token)
				renewed = true
				continue
			}
		}
		if ours, ok := errors.AsType[*fault.Error](err); ok {
			return nil, ours // it was not sent
		}
		err = c.classify(ctx, who, o, err, seen)
		if fault.Is(err, fault.RateLimited) {
			c.observe("rate_limited")
			if !o.shed && !time.Now().Add(exchange.RetryAfter(err)).After(deadline) {
				continue
			}
		}
		return resp, err
	}
}

// watch returns what watches over a call: its credentials, its costs, its outcome.
func (c *client) watch(who caller, o op, token string) *exchange.Call {
	seen := &exchange.Call{Idempotent: !o.once, Scrub: c.scrub, Clock: &c.clock, Header: http.Header{"Authorization": {"Bearer " + token}}}
	if o.etag != "" {
		seen.Header.Set("If-None-Match", o.etag)
	}
	seen.Admit = func(req *http.Request) error {
		if !o.shed {
			return c.limits.Wait(req.Context(), who.key(), c.costs(who, req)...)
		}
		err := c.limits.Try(req.Context(), who.key(), c.costs(who, req)...)
		if err != nil {
			c.observe("shed")
		}
		return err
	}
	return seen
}

// library returns the library's client for a caller. It remembers GitHub's
// limits, which hold for each, until one is met.
func (c *client) library(who caller) *github.Client {
	if known, ok := c.clients.Load(who); ok {
		return known.(*github.Client)
	}
	made := github.NewClient(c.http)
	made.BaseURL = c.base
	made.UserAgent = "remote-agent"
	first, _ := c.clients.LoadOrStore(who, made)
	return first.(*github.Client)
}

// inRepo makes a call in a repository.
func (c *client) inRepo(ctx context.Context, repo string, o op, f func(g api) (*github.Response, error)) (*github.Response, error) {
	who, err := c.callerFor(ctx, repo)
	if err != nil {
		return nil, err
	}
	resp, err := c.call(ctx, who, o, func(g api) (*github.Response, error) {
		g.owner, g.repo, _ = strings.Cut(repo, "/")
		return f(g)
	})
	if fault.Is(err, fault.Gone) {
		c.homes.Put(repo, 0) // ask again where the App is installed
	}
	return resp, err
}

// call is client.call for a call that returns something.
func call[T any](ctx context.Context, c *client, who caller, o op, f func(g api) (T, *github.Response, error)) (out T, resp *github.Response, err error) {
	if resp, err = c.call(ctx, who, o, keeping(&out, f)); err != nil {
		return *new(T), resp, err
	}
	return out, resp, nil
}

// inRepo is client.inRepo for a call that returns something.
func inRepo[T any](ctx context.Context, c *client, repo string, o op, f func(g api) (T, *github.Response, error)) (out T, resp *github.Response, err error) {
	if resp, err = c.inRepo(ctx, repo, o, keeping(&out, f)); err != nil {
		return *new(T), resp, err
	}
	return out, resp, nil
}

// keeping keeps in out what a call returns.
func keeping[T any](out *T, f func(g api) (T, *github.Response, error)) func(g api) (*github.Response, error) {
	return func(g api) (resp *github.Response, err error) {
		*out, resp, err = f(g)
		return resp, err
	}
}

const pageSize = 100

// isLast reports whether a page of n elements is the last of its list. One that is not
// full may have others behind it: GitHub leaves out what may not be shown.
func isLast(n int, resp *github.Response) bool { return n < pageSize && resp.NextPage == 0 }

// pages yields the elements of a list in GitHub's order, page by page.
func pages[T any](ctx context.Context, c *client, repo string, o op, limit int, list func(g api, page github.ListOptions) ([]T, *github.Response, error)) func(yield func(T, error) bool) {
	return func(yield func(T, error) bool) {
		for page := 1; page <= limit; page++ {
			all, resp, err := inRepo(ctx, c, repo, o, func(g api) ([]T, *github.Response, error) {
				return list(g, github.ListOptions{Page: page, PerPage: pageSize})
			})
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range all {
				if !yield(v, nil) {
					return
				}
			}
			if isLast(len(all), resp) {
				return
			}
		}
	}
}

// key names a caller in the rate budget.
func (c caller) key() string { return strconv.FormatInt(int64(c), 10) }

// newBudget returns the rates of GitHub, which hold for each installation and each
// token.
func newBudget(shared platform.SharedLimits, account string) *exchange.Budget {
	return &exchange.Budget{Platform: "GitHub", MaxQueue: 20 * time.Second, Shared: shared, Account: account}
}

// Headroom implements platform.Measured.
func (a *Adapter) Headroom() platform.Headroom { return a.client.limits.Headroom() }

// costs returns what a call costs: as good as nothing where the server has no limits, so
// that only silences are heard of.
func (c *client) costs(who caller, req *http.Request) []exchange.Share {
	if c.free.Load() {
		return []exchange.Share{share(who, "all", time.Microsecond, 1000)}
	}
	return costOf(who, req)
}

// costOf returns what GitHub counts a request for (contract C6): of 900 points a
// minute reading takes one and writing five, of content there are 80 a minute and 500
// an hour. A reaction counts as content: what is published does not say otherwise.
// The buckets are filled so that a burst and what flows in until the end of the time
// stay below that: 300 + 540, 20 + 60, and 170 + 320, so that some eighty messages of a
// busy hour are answered at once.
func costOf(who caller, req *http.Request) []exchange.Share {
	points := share(who, "points", time.Second/9, 300)
	if req.Method == http.MethodGet {
		return []exchange.Share{points}
	}
	points.Take = 5
	if req.Method != http.MethodPost || !strings.Contains(req.URL.Path, "/repos/") {
		return []exchange.Share{points}
	}
	return []exchange.Share{
		points,
		share(who, "content", time.Second, 20),
		share(who, "content an hour", time.Hour/320, 170),
	}
}

// share is what a call takes of a caller's bucket. Calls that may be dropped leave some of
// a burst to those which may not.
func share(who caller, bucket string, every time.Duration, burst int) exchange.Share {
	return exchange.Share{Bucket: who.key() + " " + bucket, Every: every, Burst: burst, Keep: 0.4 * float64(burst), Common: true}
}

// hearLimits notes whether the server has limits. GitHub Enterprise Server has none unless
// its administrators want some, and its answers tell of none then; secondary limits that it
// has all the same are heard of as they are met. What an App does as itself says nothing.
func (c *client) hearLimits(who caller, resp *github.Response) {
	if c.base.Host != publicHost && who != asApp && resp != nil {
		c.free.Store(resp.Header.Get("X-Ratelimit-Limit") == "")
	}
}

func (c *client) askRepository(ctx context.Context, repo string) (*github.Repository, error) {
	out, _, err := inRepo(ctx, c, repo, op{name: "reading a repository"}, func(g api) (*github.Repository, *github.Response, error) {
		return g.Repositories.Get(g.ctx, g.owner, g.repo)
	})
	return out, err
}

// askIssue returns an issue. From one that was transferred GitHub leads to its new place,
// which may be a repository that the readers of this one may not see: that is fault.NotFound.
func (c *client) askIssue(ctx context.Context, at place) (*github.Issue, error) {
	i, _, err := inRepo(ctx, c, at.repo, op{name: "reading an issue"}, func(g api) (*github.Issue, *github.Response, error) {
		return g.Issues.Get(g.ctx, g.owner, g.repo, at.number)
	})
	if err != nil {
		return nil, err
	}
	here := i.GetNumber() == at.number
	if _, home, ok := strings.Cut(i.GetRepositoryURL(), "/repos/"); here && ok && !strings.EqualFold(home, at.repo) {
		now, err := c.askRepository(ctx, at.repo) // it may have been renamed
		if err != nil {
			return nil, err
		}
		here = strings.EqualFold(home, now.GetFullName())
	}
	if !here {
		return nil, fault.Wrap(errMoved, fault.NotFound, "reading an issue")
	}
	return i, nil
}

var errMoved = errors.New("it was transferred to another repository")

func (c *client) askPull(ctx context.Context, at place) (*github.PullRequest, error) {
	p, _, err := inRepo(ctx, c, at.repo, op{name: "reading a pull request"}, func(g api) (*github.PullRequest, *github.Response, error) {
		return g.PullRequests.Get(g.ctx, g.owner, g.repo, at.number)
	})
	if err == nil && (p.GetNumber() != at.number || p.GetBase().GetRepo() == nil) {
		err = fault.Wrap(errNoID, fault.Unavailable, "reading a pull request")
	}
	return p, err
}

// editedBy is what GraphQL says of who changed a text last. REST does not tell.
const editedBy = "query($id:ID!){node(id:$id){...on Comment{lastEditedAt editor{login}}}}"

// askEditor returns the login of who changed last what somebody wrote: that of its author
// if nobody did, or on a server that has no GraphQL, and none if GitHub does not tell.
func (c *client) askEditor(ctx context.Context, repo, node, author string) (string, error) {
	type answer struct {
		Data struct {
			Node *struct {
				LastEditedAt string
				Editor       struct{ Login string } // empty if their account is gone
			}
		}
		Errors []struct{ Type, Message string } // with the status of success
	}
	out, _, err := inRepo(ctx, c, repo, op{name: "asking who changed a text"}, func(g api) (a answer, resp *github.Response, err error) {
		// Beside REST's api/v3/ on a server of GitHub Enterprise.
		req, err := g.NewRequest(http.MethodPost, "../graphql", map[string]any{"query": editedBy, "variables": map[string]string{"id": node}})
		if err == nil {
			resp, err = g.Do(g.ctx, req, &a)
		}
		for _, e := range a.Errors {
			if e.Type == "RATE_LIMITED" || strings.HasPrefix(e.Message, "Something went wrong") {
				err = fault.Wrap(errors.New(e.Type+" "+e.Message), fault.Unavailable, "asking who changed a text")
			}
		}
		return a, resp, err
	})
	text := out.Data.Node
	switch {
	case fault.Is(err, fault.NotFound):
		return author, nil
	case fault.Is(err, fault.Forbidden), fault.Is(err, fault.Invalid), err == nil && text == nil:
		return "", nil
	case err != nil:
		return "", err
	case text.LastEditedAt != "":
		return text.Editor.Login, nil
	}
	return author, nil
}

func (c *client) askReview(ctx context.Context, at place, id int64) (*github.PullRequestReview, error) {
	v, _, err := inRepo(ctx, c, at.repo, op{name: "reading a review"}, func(g api) (*github.PullRequestReview, *github.Response, error) {
		return g.PullRequests.GetReview(g.ctx, g.owner, g.repo, at.number, id)
	})
	return v, err
}

// reviewsOf yields the reviews of a pull request, oldest first: the newest count.
func (c *client) reviewsOf(ctx context.Context, at place) iter.Seq2[*github.PullRequestReview, error] {
	return pages(ctx, c, at.repo, op{name: "reading reviews"}, 30, func(g api, p github.ListOptions) ([]*github.PullRequestReview, *github.Response, error) {
		return g.PullRequests.ListReviews(g.ctx, g.owner, g.repo, at.number, &p)
	})
}

func (c *client) installations(ctx context.Context) ([]*github.Installation, error) {
	return collect(ctx, c, asApp, op{name: "listing installations"}, func(g api, page *github.ListOptions) ([]*github.Installation, *github.Response, error) {
		return g.Apps.ListInstallations(g.ctx, page)
	})
}

// installed returns the repositories of an installation.
func (c *client) installed(ctx context.Context, id int64) ([]*github.Repository, error) {
	all, err := collect(ctx, c, caller(id), op{name: "listing repositories"}, func(g api, page *github.ListOptions) ([]*github.Repository, *github.Response, error) {
		out, resp, err := g.Apps.ListRepos(g.ctx, page)
		if err != nil {
			return nil, resp, err
		}
		return out.Repositories, resp, nil
	})
	for _, r := range all {
		if name, ok := repoName(r.GetFullName()); ok {
			c.homes.Put(name, id)
		}
	}
	return all, err
}

// listPages bounds what is read of such a list: 10,000 repositories, or installations.
const listPages = 100

// collect returns a list that is not that of a repository.
func collect[T any](ctx context.Context, c *client, who caller, o op, list func(g api, page *github.ListOptions) ([]T, *github.Response, error)) ([]T, error) {
	var all []T
	for page := 1; page <= listPages; page++ {
		some, resp, err := call(ctx, c, who, o, func(g api) ([]T, *github.Response, error) {
			return list(g, &github.ListOptions{Page: page, PerPage: pageSize})
		})
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); isLast(len(some), resp) {
			break
		}
	}
	return all, nil
}
