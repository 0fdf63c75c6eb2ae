package github

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
)

const (
	// overlap is how far a sweep goes back behind what it saw last: lists may show
	// something late. What was seen is not stored twice.
	overlap = 30 * time.Second

	// maxLate is how late lists may show something. What is older than that when it is shown
	// first came from elsewhere: a transferred issue keeps the date of the old one.
	maxLate = 10 * time.Minute

	// unsettled is how new something is that may change once more without looking
	// different: GitHub's times are whole seconds. It is looked at again.
	unsettled = 3 * time.Second

	// sweepPages bounds what one sweep reads of a list. The next one goes on.
	sweepPages = 10

	// maxBroken is how many issues of a list may fail in one sweep while others are still
	// looked at. If more do, it is not for them that GitHub, or the database, fails.
	maxBroken = 5
)

// errEnough ends the reading of a list for this time.
var errEnough = errors.New("the next sweep goes on here")

// feedState is what is remembered of a list between sweeps.
type feedState struct {
	since time.Time // with which etag came
	etag  string
	seen  map[string]bool // what was passed on of the overlap
	whole time.Time       // when it was read to its end
}

// feed passes on the elements of a list that came after what was seen of it,
// oldest first, and remembers how far it got. Each is stored before the position
// moves on: while one fails, it stays where it is, and the others are known by what was seen.
func feed[T any](ctx context.Context, s *sweeper, name string, list func(g api, since time.Time, page github.ListOptions) ([]T, *github.Response, error), id func(T) element, each func(ctx context.Context, v T, since time.Time) error) error {
	key := positionOf(s.repo, name)
	at, err := s.p.position(ctx, key)
	if err != nil {
		return err
	}
	since := at.Add(-overlap).UTC()
	state, _ := s.p.feeds.Get(key)
	r := reading[T]{
		id: id, each: each, grace: s.p.grace, before: state.seen, newest: at, born: since,
		next: feedState{seen: make(map[string]bool), whole: state.whole}, broken: make(map[int]error),
	}
	if known := state.whole.Add(-maxLate); known.After(since) {
		r.born = known
	}
	from, page, more := since, 1, true
	for n := 0; n < sweepPages && more; n++ {
		o := op{name: "reading " + name}
		if n == 0 && state.since.Equal(since) {
			o.etag = state.etag
		}
		all, resp, err := inRepo(ctx, s.p.client, s.repo, o, func(g api) ([]T, *github.Response, error) {
			return list(g, from, github.ListOptions{Page: page, PerPage: pageSize})
		})
		if errors.Is(err, errNotModified) {
			state.whole = dateOf(resp.Header)
			s.p.feeds.Put(key, state)
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			r.next.since, r.next.etag = since, resp.Header.Get("Etag")
		}
		now := dateOf(resp.Header)
		last, early, err := r.page(ctx, all, now)
		if err != nil && len(r.broken) > 0 {
			return err
		}
		if err != nil {
			return errors.Join(err, s.p.advance(ctx, key, at, r.newest.Add(-time.Second)))
		}
		if more = !early && !isLast(len(all), resp); more {
			r.next.etag = "" // it tells of no page behind this one
		} else if !early {
			r.next.whole = now
		}
		from, page = onward(from, page, last)
	}
	failed := slices.Collect(maps.Values(r.broken))
	if len(failed) > 0 && !more { // else the list is too long to stay at its beginning
		r.newest, r.next.etag, r.next.whole = at, "", state.whole
	}
	s.p.feeds.Put(key, r.next)
	return errors.Join(append(failed, s.p.advance(ctx, key, at, r.newest))...)
}

// element is what a list is read by.
type element struct {
	name    string // another one after a change that counts
	number  int    // of its issue
	updated time.Time
}

// reading is how far a list was read.
type reading[T any] struct {
	id     func(T) element
	each   func(ctx context.Context, v T, since time.Time) error
	grace  time.Duration
	before map[string]bool // what was passed on by sweeps before
	next   feedState       // to be remembered
	newest time.Time       // up to when it was read
	born   time.Time       // since when what is new exists
	broken map[int]error   // why issues are left for the next sweep
}

// page passes on the elements of a page that came at now. It returns when the last of them
// was changed, and reports whether one is too young to be looked at, or it was enough.
func (r *reading[T]) page(ctx context.Context, all []T, now time.Time) (last time.Time, early bool, err error) {
	for _, v := range all {
		e := r.id(v)
		last = e.updated
		if r.grace > 0 && e.updated.After(now.Add(-r.grace)) {
			r.next.etag = "" // the same list is to be looked at again
			return last, true, nil
		}
		if !r.before[e.name] && !r.next.seen[e.name] {
			switch err := r.pass(ctx, e.number, v); {
			case errors.Is(err, errEnough):
				r.next.etag = ""
				return last, true, nil
			case err != nil && r.broken[e.number] == nil:
				return last, false, err
			case err != nil:
				continue
			}
		}
		if e.updated.After(now.Add(-unsettled)) {
			r.next.etag = ""
		} else {
			r.next.seen[e.name] = true
		}
		if e.updated.After(r.newest) {
			r.newest = e.updated
		}
	}
	return last, false, nil
}

// pass passes on an element. If that fails for its issue alone, it notes that: what else the
// list has of the issue is left for later, too, so that it stays in order.
func (r *reading[T]) pass(ctx context.Context, number int, v T) error {
	if err := r.broken[number]; err != nil {
		return err
	}
	err := r.each(ctx, v, r.born)
	if err == nil || ctx.Err() != nil || errors.Is(err, errEnough) || len(r.broken) == maxBroken ||
		fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.RateLimited) {
		return err
	}
	r.broken[number] = fmt.Errorf("number %d: %w", number, err)
	return r.broken[number]
}

// onward returns from when, and from which page of that, a list is read on behind its last
// element. What is changed meanwhile leaves its page, and what is behind it moves up, over
// the border of the page: the next page is right only for elements of one second.
func onward(from time.Time, page int, last time.Time) (since time.Time, next int) {
	if last.After(from.Add(time.Second)) {
		return last.Add(-time.Second).UTC(), 1
	}
	return from, page + 1
}

// dateOf returns the time that GitHub says it is.
func dateOf(h http.Header) time.Time {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		return at.Add(time.Second) // it was cut off
	}
	return time.Now()
}
