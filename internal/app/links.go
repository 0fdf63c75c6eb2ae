package app

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/pages"
	"remote-agent/internal/platform"
	"remote-agent/internal/web"
)

// maxHooks is how many calls of a webhook are kept for the pages.
const maxHooks = 20

// links are how this process is connected to the platforms. It is safe for concurrent
// use.
type links struct {
	mu  sync.Mutex // guards all
	all map[messages.Platform]pages.Connection
}

func (l *links) change(name messages.Platform, change func(c *pages.Connection)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.all[name]
	change(&c)
	if l.all == nil {
		l.all = make(map[messages.Platform]pages.Connection)
	}
	l.all[name] = c
}

// of returns what is known of a platform.
func (l *links) of(name messages.Platform) pages.Connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.all[name]
	c.Hooks = slices.Clone(c.Hooks)
	return c
}

// connected notes since when a platform is received from; the zero time is not any more.
func (l *links) connected(name messages.Platform, since time.Time) {
	l.change(name, func(c *pages.Connection) { c.Since = since })
}

func (l *links) failed(name messages.Platform, err error, now time.Time) {
	l.change(name, func(c *pages.Connection) { c.Error, c.ErrorAt = fault.Public(err), now })
}

// watch returns a webhook whose calls are counted, for the pages and for Prometheus.
func (l *links) watch(name messages.Platform, hook http.Handler, m *metrics.Metrics) http.Handler {
	return watchedHook{hook, func(status int) {
		if status >= http.StatusBadRequest {
			m.WebhookRejected(string(name), status)
		}
		l.change(name, func(c *pages.Connection) {
			if status < http.StatusBadRequest {
				c.Taken++
			} else {
				c.Refused++
			}
			c.Hooks = slices.Insert(c.Hooks, 0, pages.Hook{At: time.Now(), Status: status})
			c.Hooks = c.Hooks[:min(len(c.Hooks), maxHooks)]
		})
	}}
}

// watchedHook tells the status of each answer.
type watchedHook struct {
	http.Handler

	tell func(status int)
}

// MaxBody is that of the webhook itself.
func (h watchedHook) MaxBody() int64 {
	if l, ok := h.Handler.(interface{ MaxBody() int64 }); ok {
		return l.MaxBody()
	}
	return web.DefaultMaxBody
}

// ServeHTTP implements http.Handler.
func (h watchedHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := &answered{ResponseWriter: w, status: http.StatusOK}
	h.Handler.ServeHTTP(seen, r)
	h.tell(seen.status)
}

type answered struct {
	http.ResponseWriter

	status int
}

func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// connections say how the platforms stand, and how this process is connected to them.
func (pl *platforms) connections(cfg config.Config) (list []pages.Connection) {
	ways := map[platform.Intake]string{platform.Polled: "fetched by one process at a time", platform.OverHTTP: "sent to the webhook", platform.OverSocket: "sent over a socket"}
	for i, light := range pl.lights(cfg) {
		k := kindsOf(cfg)[i]
		c := pl.links.of(k.Platform())
		c.Light, c.Receives = light, ways[k.Intake()]
		pl.mu.Lock()
		trouble := pl.troubles[k.Platform()]
		pl.mu.Unlock()
		if trouble != nil && c.Error == "" {
			c.Error = fault.Public(trouble) // of the start
		}
		if m, ok := pl.adapterOf(k.Platform()).(platform.Measured); ok {
			h := m.Headroom()
			c.Measured, c.Left, c.Silent, c.Until = true, h.Left, h.Silent, h.Until
		}
		list = append(list, c)
	}
	return list
}
