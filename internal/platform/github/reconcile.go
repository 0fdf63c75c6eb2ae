package github

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
)

// hookDelivery is an entry of the log of webhooks.
type hookDelivery struct {
	ID        int64  `json:"id"`
	GUID      string `json:"guid"`
	Delivered stamp  `json:"delivered_at"`
	Code      int    `json:"status_code"`
	Event     string `json:"event"`
}

const (
	// maxRedeliver is how often one delivery is asked for again.
	maxRedeliver = 5

	// redeliverOverlap is how far the log is read back behind the last look.
	redeliverOverlap = 10 * time.Minute
)

// redeliver asks GitHub to deliver again what did not arrive; by itself it never
// does (contract C2, C4). What arrived after all has the same id and changes
// nothing. Only an App can read its log.
func (a *Adapter) redeliver(ctx context.Context) error {
	if a.cfg.AppID == "" {
		return nil
	}
	const key = "deliveries"
	at, err := a.position(ctx, key)
	if err != nil {
		return err
	}
	started := time.Now()
	failed, err := a.failedDeliveries(ctx, at.Add(-redeliverOverlap))
	if err != nil {
		return err
	}
	until := started
	for _, d := range slices.Backward(failed) { // oldest first
		if n, _ := a.retried.Get(d.GUID); n >= maxRedeliver {
			continue
		}
		a.retried.Change(d.GUID, func(n int) int { return n + 1 })
		// It answers 202, which the library takes for an error of its own.
		_, err := a.limited(ctx, asApp, request{route: routeRedeliver, args: []any{d.ID}, idempotent: true}, nil)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		a.observe("redelivered")
		a.log.InfoContext(ctx, "asked github to deliver an event again", "delivery", d.GUID, "event", d.Event, "status", d.Code)
		if d.Delivered.Before(until) {
			until = d.Delivered.Time // look at it again next time
		}
	}
	return a.advance(ctx, key, at, until)
}

// failedDeliveries returns, newest first, the last attempts of deliveries of
// which none succeeded.
func (a *Adapter) failedDeliveries(ctx context.Context, since time.Time) ([]hookDelivery, error) {
	arrived := make(map[string]bool)
	listed := make(map[string]bool)
	var failed []hookDelivery
	q := url.Values{"per_page": {strconv.Itoa(pageSize)}}
	for range sweepPages {
		var out many[hookDelivery]
		header, err := a.limited(ctx, asApp, request{route: routeDeliveries, query: q, idempotent: true}, &out)
		if err != nil {
			return nil, err
		}
		old := len(out.all) == 0
		for _, d := range out.all {
			old = old || d.Delivered.Before(since)
			switch {
			case d.Code >= http.StatusOK && d.Code < http.StatusMultipleChoices:
				arrived[d.GUID] = true
			case d.Delivered.Before(since) || d.ID < 1 || listed[d.GUID]:
			default:
				listed[d.GUID] = true
				failed = append(failed, d)
			}
		}
		cursor := nextCursor(header.Get("Link"))
		if old || cursor == "" {
			break
		}
		q.Set("cursor", cursor)
	}
	return slices.DeleteFunc(failed, func(d hookDelivery) bool { return arrived[d.GUID] }), nil
}

// nextCursor returns the cursor of the next page from a Link header.
func nextCursor(header string) string {
	for part := range strings.SplitSeq(header, ",") {
		target, rel, _ := strings.Cut(part, ";")
		if !strings.Contains(rel, `rel="next"`) {
			continue
		}
		if u, err := url.Parse(strings.Trim(strings.TrimSpace(target), "<>")); err == nil {
			return u.Query().Get("cursor")
		}
	}
	return ""
}
