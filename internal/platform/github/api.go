package github

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
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

// nothing is what a call returns that returns nothing.
type nothing struct{}

// call makes one call when the limits allow it and classifies its error. A token of
// an installation that GitHub refuses is replaced once; a short refusal because of a
// limit is waited out.
func call[T any](ctx context.Context, a *Adapter, who caller, o op, f func(g api) (T, *github.Response, error)) (T, *github.Response, error) {
	var none T
	deadline := time.Now().Add(exchange.ShortWait)
	for renewed := false; ; {
		token, m, err := a.credential(ctx, who)
		if err != nil {
			return none, nil, err
		}
		seen := a.watch(who, o, token)
		out, resp, err := f(api{Client: a.client(who), ctx: seen.Context(ctx)})
		if _, accepted := errors.AsType[*github.AcceptedError](err); accepted {
			err = nil // status 202: GitHub is going to do it
		}
		if err == nil {
			a.limits.Calm(who.key())
			return out, resp, nil
		}
		if seen.Status() == http.StatusUnauthorized && !renewed {
			if m == nil && who == asApp && resp != nil && a.clock.Learn(resp.Response) >= assertionSkew/2 {
				m = &a.assertion // it was refused for its times
			}
			if m != nil {
				m.drop(token)
				renewed = true
				continue
			}
		}
		if ours, ok := errors.AsType[*fault.Error](err); ok {
			return none, nil, ours // it was not sent
		}
		err = a.classify(ctx, who, o, err, seen)
		if fault.Is(err, fault.RateLimited) {
			a.observe("rate_limited")
			if !o.shed && !time.Now().Add(exchange.RetryAfter(err)).After(deadline) {
				continue
			}
		}
		return none, resp, err
	}
}

// watch returns what watches over a call: its credentials, its costs, its outcome.
func (a *Adapter) watch(who caller, o op, token string) *exchange.Call {
	seen := &exchange.Call{Idempotent: !o.once, Scrub: a.scrub, Clock: &a.clock, Header: http.Header{"Authorization": {"Bearer " + token}}}
	if o.etag != "" {
		seen.Header.Set("If-None-Match", o.etag)
	}
	seen.Admit = func(req *http.Request) error {
		if !o.shed {
			return a.limits.Wait(req.Context(), who.key(), costOf(who, req)...)
		}
		err := a.limits.Try(req.Context(), who.key(), costOf(who, req)...)
		if err != nil {
			a.observe("shed")
		}
		return err
	}
	return seen
}

// client returns the library's client for a caller. It remembers GitHub's
// limits, which hold for each.
func (a *Adapter) client(who caller) *github.Client {
	if c, ok := a.clients.Load(who); ok {
		return c.(*github.Client)
	}
	c := github.NewClient(a.http)
	c.BaseURL = a.base
	c.UserAgent = "remote-agent"
	made, _ := a.clients.LoadOrStore(who, c)
	return made.(*github.Client)
}

// inRepo makes a call in a repository.
func inRepo[T any](ctx context.Context, a *Adapter, repo string, o op, f func(g api) (T, *github.Response, error)) (T, *github.Response, error) {
	who, err := a.callerFor(ctx, repo)
	if err != nil {
		var none T
		return none, nil, err
	}
	out, resp, err := call(ctx, a, who, o, func(g api) (T, *github.Response, error) {
		g.owner, g.repo, _ = strings.Cut(repo, "/")
		return f(g)
	})
	if fault.Is(err, fault.Gone) {
		a.homes.Put(repo, 0) // ask again where the App is installed
	}
	return out, resp, err
}

const pageSize = 100

// pages yields the elements of a list in GitHub's order, page by page.
func pages[T any](ctx context.Context, a *Adapter, repo string, o op, limit int, list func(g api, page github.ListOptions) ([]T, *github.Response, error)) func(yield func(T, error) bool) {
	return func(yield func(T, error) bool) {
		for page := 1; page <= limit; page++ {
			all, _, err := inRepo(ctx, a, repo, o, func(g api) ([]T, *github.Response, error) {
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
			if len(all) < pageSize {
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
	return &exchange.Budget{Platform: "GitHub", MaxQueue: 20 * time.Second, Reserve: 0.4, Shared: shared, Account: account}
}

// Headroom implements platform.Measured.
func (a *Adapter) Headroom() platform.Headroom { return a.limits.Headroom() }

// costOf returns what GitHub counts a request for (contract C6): of 900 points a
// minute reading takes one and writing five, of content there are 80 a minute and 500
// an hour. A reaction counts as content: what is published does not say otherwise.
// The buckets are filled so that a burst and what flows in until the end of the time
// stay below that: 300 + 540, 20 + 60, and 80 + 400.
func costOf(who caller, req *http.Request) []exchange.Share {
	points := exchange.Share{Bucket: who.key() + " points", Every: time.Second / 9, Burst: 300, Common: true}
	if req.Method == http.MethodGet {
		return []exchange.Share{points}
	}
	points.Take = 5
	if req.Method != http.MethodPost || !strings.Contains(req.URL.Path, "/repos/") {
		return []exchange.Share{points}
	}
	return []exchange.Share{
		points,
		{Bucket: who.key() + " content", Every: time.Second, Burst: 20, Common: true},
		{Bucket: who.key() + " content an hour", Every: 9 * time.Second, Burst: 80, Common: true},
	}
}
