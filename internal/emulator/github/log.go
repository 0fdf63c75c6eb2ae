package github

import (
	"cmp"
	"encoding/json"
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

// hookOf returns the hook that a call is about, or nil.
func (s *Server) hookOf(r *request) *hook {
	if r.repo == nil {
		return s.appHook
	}
	for _, h := range r.repo.hooks {
		if h.id == r.id("hook") {
			return h
		}
	}
	return nil
}

// entries returns the log of a hook, newest first.
func (s *Server) entries(h *hook) []entry {
	var out []entry
	for _, d := range s.deliveries.List {
		for _, a := range d.Attempts {
			if d.hook == h && s.opts.Now().Sub(a.At) < logAge {
				out = append(out, entry{d, a})
			}
		}
	}
	order.By(out, func(a, b entry) int { return cmp.Compare(b.a.ID, a.a.ID) }) // ids count up
	return out
}

func (s *Server) renderEntry(e entry, whole bool) obj {
	out := obj{
		"id": e.a.ID, "guid": e.d.GUID, "delivered_at": e.a.At.UTC().Format("2006-01-02T15:04:05.000Z"), "redelivery": e.a.Redelivery,
		"duration": e.a.Took.Seconds(), "status": e.a.Status, "status_code": e.a.StatusCode, "event": e.d.Event, "action": nullable(e.d.Action),
		"installation_id": nil, "repository_id": nil, "throttled_at": nil,
	}
	if e.d.repo != nil {
		out["repository_id"] = e.d.repo.id
		if i := s.findInstallation(e.d.repo); i != nil && e.d.hook.app {
			out["installation_id"] = i.id
		}
	}
	if whole {
		headers := obj{}
		for name, values := range e.a.header {
			headers[name] = values[0]
		}
		out["url"] = e.d.hook.url
		out["request"] = obj{"headers": headers, "payload": json.RawMessage(e.d.Payload)}
		out["response"] = obj{"headers": obj{}, "payload": string(e.a.Answer)}
	}
	return out
}

// listDeliveries answers with the log, a page at a time by cursor.
func (s *Server) listDeliveries(r *request) (*reply, *apiError) {
	h := s.hookOf(r)
	if h == nil {
		return nil, notFound()
	}
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
	for _, e := range s.entries(h) {
		switch {
		case e.a.ID >= before, r.query.Get("redelivery") != "" && r.query.Get("redelivery") != strconv.FormatBool(e.a.Redelivery):
			continue
		}
		if len(out) == per {
			query := r.http.URL.Query()
			query.Set("cursor", itoa64(before))
			answer.header["Link"] = fmt.Sprintf("<http://%s%s?%s>; rel=\"next\"", r.http.Host, r.http.URL.EscapedPath(), query.Encode())
			break
		}
		out = append(out, s.renderEntry(e, false))
		before = e.a.ID
	}
	answer.body = out
	return answer, nil
}

func (s *Server) entryOf(r *request) (entry, bool) {
	h := s.hookOf(r)
	if h == nil {
		return entry{}, false
	}
	for _, e := range s.entries(h) {
		if e.a.ID == r.id("delivery") {
			return e, true
		}
	}
	return entry{}, false
}

func (s *Server) getDelivery(r *request) (*reply, *apiError) {
	e, found := s.entryOf(r)
	if !found {
		return nil, notFound()
	}
	return ok(s.renderEntry(e, true))
}

func (s *Server) redeliver(r *request) (*reply, *apiError) {
	e, found := s.entryOf(r)
	if !found {
		return nil, notFound()
	}
	s.again(e.d)
	return &reply{status: http.StatusAccepted, body: obj{}}, nil
}

func (s *Server) renderHook(h *hook) obj {
	kind := "json"
	if h.form {
		kind = "form"
	}
	out := obj{
		"type": "Repository", "id": h.id, "name": "web", "active": true, "events": allEvents,
		"config": obj{"content_type": kind, "insecure_ssl": "0", "secret": "********", "url": h.url},
	}
	if h.app {
		out["type"], out["app_id"], out["events"] = "App", s.opts.App.ID, s.appEvents()
	}
	if h.events != nil {
		out["events"] = h.events
	}
	return out
}

func (s *Server) getHookConfig(*request) (*reply, *apiError) {
	return ok(s.renderHook(s.appHook)["config"])
}

func (s *Server) listHooks(r *request) (*reply, *apiError) {
	return paged(r, r.repo.hooks, func(h *hook) any { return s.renderHook(h) })
}
