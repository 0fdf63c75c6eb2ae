package github

import (
	"context"
	"net/http"
	"slices"
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
	started := time.Now()
	failed, err := p.failedDeliveries(ctx, at.Add(-redeliverOverlap))
	if err != nil {
		return err
	}
	until := started
	for _, d := range slices.Backward(failed) { // oldest first
		if n, _ := p.retried.Get(d.GetGUID()); n >= maxRedeliver {
			continue
		}
		p.retried.Change(d.GetGUID(), func(n int) int { return n + 1 })
		_, _, err := call(ctx, p.client, asApp, op{name: "redelivering an event"}, func(g api) (*github.HookDelivery, *github.Response, error) {
			return g.Apps.RedeliverHookDelivery(g.ctx, d.GetID())
		})
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		p.observe("redelivered")
		p.log.InfoContext(ctx, "asked github to deliver an event again", "delivery", d.GetGUID(), "event", d.GetEvent(), "status", d.GetStatusCode())
		if at := d.GetDeliveredAt(); at.Before(until) {
			until = at.Time // look at it again next time
		}
	}
	return p.advance(ctx, key, at, until)
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
