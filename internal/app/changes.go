package app

import "remote-agent/internal/live"

// What open pages may cost: each has a connection and a few kilobytes. A browser shows a
// few at once and closes the streams of those that are in the background.
const (
	maxStreams        = 500
	maxBrowserStreams = 10
)

// followChanges has open pages, here and in other replicas, told of each transaction.
func (d *daemon) followChanges() {
	limits := live.Limits{Total: maxStreams, PerOwner: maxBrowserStreams}
	if n := d.plan.Web; n > 0 {
		limits.Total = min(limits.Total, n/2) // the others are for requests
	}
	d.changes = live.NewHub(limits)
	var wire live.Wire
	if d.store.Shared() {
		wire = d.store
	}
	d.relay = live.NewRelay(d.changes, wire, d.log)
	d.store.OnChange(d.relay.Changed)
}
