package github

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
)

const (
	// maxRedeliver is how often one delivery is asked for again.
	maxRedeliver = 5

	// redeliverOverlap is how far the log is read back behind the last look.
	redeliverOverlap = 10 * time.Minute
)

// redeliver asks GitHub to deliver again what did not arrive; by itself it never
// does (contract C2, C4). What arrived after all has the same id and changes
// nothing. Only an App can read its log.
func (p *poller) redeliver(ctx context.Context) error {
	if p.client.appID == "" {
		return nil
	}
	const key = "deliveries"
	at, err := p.position(ctx, key)
	if err != nil {
		return err
	}
	started := p.client.clock.At(time.Now())
	failed, err := p.failedDeliveries(ctx, at.Add(-redeliverOverlap))
	if err != nil {
		return err
	}
	until, broken := started, []error(nil)
	for _, d := range slices.Backward(failed) { // oldest first
		if n, _ := p.retried.Get(d.GetGUID()); n >= maxRedeliver {
			continue
		}
		p.retried.Change(d.GetGUID(), func(n int) int { return n + 1 })
		_, _, err := call(ctx, p.client, asApp, op{name: "redelivering an event"}, func(g api) (*github.HookDelivery, *github.Response, error) {
			return g.Apps.RedeliverHookDelivery(g.ctx, d.GetID())
		})
		switch {
		case err == nil || fault.Is(err, fault.NotFound):
			p.observe("redelivered")
			p.log.InfoContext(ctx, "asked github to deliver an event again", "delivery", d.GetGUID(), "event", d.GetEvent(), "status", d.GetStatusCode())
		case fault.Is(err, fault.Unauthorized), fault.Is(err, fault.RateLimited), ctx.Err() != nil, len(broken) == maxBroken:
			return err
		default:
			broken = append(broken, err)
		}
		if at := d.GetDeliveredAt(); at.Before(until) {
			until = at.Time // look at it again next time
		}
	}
	return errors.Join(append(broken, p.advance(ctx, key, at, until))...)
}

// took reports whether an attempt to deliver was answered with success.
func took(d *github.HookDelivery) bool {
	code := d.GetStatusCode()
	return code >= http.StatusOK && code < http.StatusMultipleChoices
}

// failedDeliveries returns, newest first, the last attempts of deliveries of
// which none succeeded.
func (p *poller) failedDeliveries(ctx context.Context, since time.Time) ([]*github.HookDelivery, error) {
	arrived := make(map[string]bool)
	listed := make(map[string]bool)
	var failed []*github.HookDelivery
	opts := &github.ListCursorOptions{PerPage: pageSize}
	for range sweepPages {
		all, resp, err := call(ctx, p.client, asApp, op{name: "listing deliveries"}, func(g api) ([]*github.HookDelivery, *github.Response, error) {
			return g.Apps.ListHookDeliveries(g.ctx, opts)
		})
		if err != nil {
			return nil, err
		}
		old := len(all) == 0
		for _, d := range all {
			before := d.GetDeliveredAt().Before(since)
			old = old || before
			switch {
			case took(d):
				arrived[d.GetGUID()] = true
			case before || d.GetID() < 1 || listed[d.GetGUID()]:
			default:
				listed[d.GetGUID()] = true
				failed = append(failed, d)
			}
		}
		if old || resp.Cursor == "" {
			break
		}
		opts.Cursor = resp.Cursor
	}
	return slices.DeleteFunc(failed, func(d *github.HookDelivery) bool { return arrived[d.GetGUID()] }), nil
}

// maxAge is how far back is looked after the bot was away: as long as GitHub
// keeps deliveries (contract C2). Nobody waits longer for an answer.
const maxAge = 72 * time.Hour

// position returns up to when something was read; fresh if it never was, in
// which case it begins now: what was said before is not for the bot. All of it is by
// GitHub's clock, which dates what is read.
func (p *poller) position(ctx context.Context, key string) (at time.Time, err error) {
	text, err := p.cursor.Load(ctx, key)
	if err != nil {
		return at, err
	}
	now := p.client.clock.At(time.Now()).UTC().Truncate(time.Second)
	at, bad := time.Parse(time.RFC3339, text)
	if text == "" || bad != nil {
		return now, p.cursor.Save(ctx, key, now.Format(time.RFC3339))
	}
	if oldest := now.Add(-maxAge); at.Before(oldest) {
		at = oldest
	}
	return at, nil
}

// positionOf names the position of a list of a repository.
func positionOf(repo, list string) string { return "sweep:" + repo + ":" + list }

// follow has a repository that has a new name read on from where it was read under the one
// before. What was read is not looked at again: under the new name it would be something else.
func (p *poller) follow(ctx context.Context, r repository) error {
	if known, _ := p.followed.Get(r.name); known {
		return nil
	}
	begun, err := p.cursor.Load(ctx, positionOf(r.name, "issues"))
	if err != nil {
		return err
	}
	if r.id == 0 && begun == "" {
		now, err := p.client.askRepository(ctx, r.name)
		if err != nil {
			return err
		}
		r.id = now.GetID()
	}
	if r.id > 0 {
		if err := p.moveTo(ctx, r); err != nil {
			return err
		}
	}
	p.followed.Put(r.name, true)
	return nil
}

// moveTo notes the name of a repository, and if it had another one, where its lists were read to.
func (p *poller) moveTo(ctx context.Context, r repository) error {
	key := "repository:" + strconv.FormatInt(r.id, 10)
	before, err := p.cursor.Load(ctx, key)
	if err != nil || before == r.name {
		return err
	}
	for _, list := range []string{"issues", "comments", "lines"} {
		text, err := p.cursor.Load(ctx, positionOf(before, list))
		if err != nil {
			return err
		}
		at, bad := time.Parse(time.RFC3339, text)
		if bad != nil {
			continue // it had no other name, or was not read
		}
		if err := p.cursor.Save(ctx, positionOf(r.name, list), at.Add(overlap+time.Second).Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return p.cursor.Save(ctx, key, r.name)
}

func (p *poller) advance(ctx context.Context, key string, from, to time.Time) error {
	if !to.After(from) {
		return nil
	}
	return p.cursor.Save(ctx, key, to.UTC().Format(time.RFC3339))
}

// memoryCursor forgets with the process.
type memoryCursor struct {
	mu     sync.Mutex // guards values
	values map[string]string
}

// Load implements Cursor.
func (m *memoryCursor) Load(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

// Save implements Cursor.
func (m *memoryCursor) Save(_ context.Context, key, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
	return nil
}
