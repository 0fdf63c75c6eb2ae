package github

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"remote-agent/internal/order"
)

// logAge is how long deliveries can be sent again.
const logAge = 3 * 24 * time.Hour

// entry is a line of the log of deliveries.
type entry struct {
	d *delivery
	a Attempt
}

// hookCalls are the operations on the log of what was sent to the App's hook.
type hookCalls struct{ hooks *webhooks }

// log returns the attempts of the deliveries to the App, newest first.
func (h *webhooks) log() []entry {
	var out []entry
	for _, d := range h.deliveries.List {
		for _, a := range d.Attempts {
			if d.hook == h.app && h.world.now().Sub(a.At) < logAge {
				out = append(out, entry{d, a})
			}
		}
	}
	order.By(out, func(a, b entry) int { return cmp.Compare(b.a.ID, a.a.ID) }) // ids count up
	return out
}

// deliveries answers with the log, a page at a time by cursor.
func (c hookCalls) deliveries(r *request) (*reply, *apiError) {
	per, err := strconv.Atoi(r.query.Get("per_page"))
	if err != nil || per < 1 || per > 100 {
		per = 30
	}
	before := int64(1) << 62
	if cursor := r.query.Get("cursor"); cursor != "" {
		if before, err = strconv.ParseInt(cursor, 10, 64); err != nil {
			return nil, refuse(http.StatusUnprocessableEntity, "Invalid cursor")
		}
	}
	out := []any{}
	answer := &reply{header: map[string]string{}}
	for _, e := range c.hooks.log() {
		if e.a.ID >= before || r.query.Get("redelivery") != "" && r.query.Get("redelivery") != strconv.FormatBool(e.a.Redelivery) {
			continue
		}
		if len(out) == per {
			query := r.http.URL.Query()
			query.Set("cursor", itoa64(before))
			answer.header["Link"] = fmt.Sprintf("<http://%s%s?%s>; rel=\"next\"", r.http.Host, r.http.URL.EscapedPath(), query.Encode())
			break
		}
		out = append(out, c.hooks.show.entry(e))
		before = e.a.ID
	}
	answer.body = out
	return answer, nil
}

// entryOf returns the line of the log that a call is about.
func (c hookCalls) entryOf(r *request) (entry, *apiError) {
	for _, e := range c.hooks.log() {
		if e.a.ID == r.id("delivery") {
			return e, nil
		}
	}
	return entry{}, notFound()
}

func (c hookCalls) redeliver(r *request) (*reply, *apiError) {
	e, refused := c.entryOf(r)
	if refused != nil {
		return nil, refused
	}
	c.hooks.again(e.d)
	return &reply{status: http.StatusAccepted, body: obj{}}, nil
}

func (s renderer) entry(e entry) obj {
	out := fields{
		{"id", e.a.ID}, {"guid", e.d.GUID}, {"delivered_at", e.a.At.UTC().Format("2006-01-02T15:04:05.000Z")}, {"redelivery", e.a.Redelivery},
		{"duration", 0}, {"status", e.a.Status}, {"status_code", e.a.StatusCode}, {"event", e.d.Event}, {"action", nullable(e.d.Action)},
		{"installation_id", nil}, {"repository_id", nil}, {"throttled_at", nil},
	}.Object()
	if e.d.repo != nil {
		out["repository_id"] = e.d.repo.id
		if i := s.world.findInstallation(e.d.repo); i != nil {
			out["installation_id"] = i.id
		}
	}
	return out
}

func (s renderer) hook(h *hook) obj {
	return fields{
		{"type", "App"}, {"app_id", s.world.opts.App.ID}, {"id", h.id}, {"name", "web"}, {"active", true}, {"events", s.world.opts.App.events()},
		{"config", obj{"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": h.url}},
	}.Object()
}
