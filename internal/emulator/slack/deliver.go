package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"remote-agent/internal/emulator"

	"remote-agent/internal/emulator/platformapi"
)

// Endpoints are the request URLs of the app.
type Endpoints struct {
	Events, Commands, Interactions string
}

// UseHTTP sends everything to the request URLs. Deliveries in flight go on where
// they are; their repetitions go to the new place.
func (s *Server) UseHTTP(ends Endpoints) {
	s.mu.Lock()
	defer s.unlock()
	s.ends, s.socketMode = ends, false
}

// UseSocketMode sends everything over Socket Mode, which is how a new Server
// begins. Envelopes wait for the first connection.
func (s *Server) UseSocketMode() {
	s.mu.Lock()
	defer s.unlock()
	s.socketMode = true
}

// VerifyURL sends a signed url_verification to the events endpoint and checks
// that the challenge comes back, as Slack does before it takes a URL.
func (s *Server) VerifyURL(ctx context.Context) error {
	s.mu.Lock()
	challenge := s.id("challenge-")
	endpoint := s.ends.Events
	s.mu.Unlock()
	body, err := json.Marshal(map[string]string{"token": verificationToken, "challenge": challenge, "type": "url_verification"})
	if err != nil {
		return err
	}
	status, answer, err := s.Post(ctx, endpoint, Sign(s.opts.SigningSecret, s.opts.Now(), body), body)
	if err != nil {
		return fmt.Errorf("verifying the events URL: %w", err)
	}
	var reply struct{ Challenge string }
	if json.Unmarshal(answer, &reply) != nil {
		reply.Challenge = string(bytes.TrimSpace(answer))
	}
	if status != http.StatusOK || reply.Challenge != challenge {
		return fmt.Errorf("verifying the events URL: status %d and %q instead of the challenge", status, answer)
	}
	return nil
}

// verificationToken is the deprecated token in every delivery.
const verificationToken = "deprecated-verification-token" //nolint:gosec // protects nothing

// Kind is where a delivery goes.
type Kind string

// The kinds of deliveries, as Socket Mode names them.
const (
	Events       Kind = "events_api"
	Commands     Kind = "slash_commands"
	Interactions Kind = "interactive"
)

// Delivery is something that Slack sends to the app.
type Delivery struct {
	ID       string
	Kind     Kind
	Team     string
	Type     string // of the event or interaction, such as "app_mention"; the command
	EventID  string // of events
	Payload  []byte // JSON, or whatever DeliverRaw was given
	Attempts []Attempt
	Acked    bool
	Answer   []byte // body or payload of the acknowledgement
	Lost     bool   // not acknowledged, and not sent again
}

// Attempt is one try to deliver.
type Attempt struct {
	Retry      int    // 0 for the first
	Reason     string // of the retry, as sent
	At         time.Time
	Took       time.Duration
	Status     int    // of the answer over HTTP
	Connection int    // over Socket Mode
	Error      string // empty if it was acknowledged; else the reason for the next
}

// delivery is a Delivery on its way.
type delivery struct {
	Delivery
	form     url.Values          // of commands
	lost     int                 // attempts that get lost before the bot
	repeated bool                // tried again after failures
	taken    func(answer []byte) // called with the lock when it is acknowledged
	failed   func(reason string) // called with the lock when it is lost
}

// enlist gives a delivery its id. The lock must be held.
func (s *Server) enlist(d *delivery) {
	d.ID = s.id("delivery-")
	s.deliveries.Add(d.ID, d)
}

// deliverCopies sends deliveries, one after the other has been answered or all
// at once, and returns their ids. The lock must be held.
func (s *Server) deliverCopies(list []*delivery, atOnce bool) []string {
	var ids []string
	for _, d := range list {
		s.enlist(d)
		ids = append(ids, d.ID)
	}
	if atOnce {
		for _, d := range list {
			s.Go(func() { s.pursue(d, 0) })
		}
		return ids
	}
	s.Go(func() {
		for _, d := range list {
			if s.attempt(d, 0) {
				s.mu.Lock()
				s.Go(func() { s.pursue(d, 1) })
				s.mu.Unlock()
			}
		}
	})
	return ids
}

// pursue delivers until it is acknowledged or the attempts are used up.
func (s *Server) pursue(d *delivery, n int) {
	for {
		if n > 0 && emulator.Sleep(s.Context(), s.opts.Retries[n-1]) != nil {
			return
		}
		if !s.attempt(d, n) {
			return
		}
		n++
	}
}

// attempt delivers once and reports whether to try again.
func (s *Server) attempt(d *delivery, n int) (again bool) {
	a := Attempt{Retry: n, At: s.opts.Now()}
	s.mu.Lock()
	if n > 0 && len(d.Attempts) > 0 {
		a.Reason = d.Attempts[len(d.Attempts)-1].Error
	}
	lost, socket := n < d.lost, s.socketMode
	s.mu.Unlock()

	var answer []byte
	stop := false
	start := time.Now()
	switch {
	case lost:
		a.Error = "http_timeout"
	case socket:
		answer, a = s.sendSocket(d, a)
	default:
		answer, a, stop = s.sendHTTP(d, a)
	}
	a.Took = time.Since(start)
	if s.Context().Err() != nil {
		return false
	}

	s.mu.Lock()
	defer s.unlock()
	d.Attempts = append(d.Attempts, a)
	switch {
	case a.Error == "":
		d.Acked, d.Answer = true, answer
		if d.taken != nil {
			d.taken(answer)
		}
	case !d.repeated || stop || n >= len(s.opts.Retries):
		d.Lost = true
		if d.failed != nil {
			d.failed(a.Error)
		}
	default:
		return true
	}
	s.deliveries.Forget(s.opts.KeepCalls, func(d *delivery) (string, bool) { return d.ID, d.Acked || d.Lost })
	return false
}

// sendHTTP posts a delivery once. stop means that the bot wants no retries.
func (s *Server) sendHTTP(d *delivery, a Attempt) (answer []byte, after Attempt, stop bool) {
	defer s.Turn(s.Context())()
	ctx, cancel := context.WithTimeout(s.Context(), s.opts.AckTimeout)
	defer cancel()
	endpoint, contentType, body := s.encodeHTTP(d)
	header := Sign(s.opts.SigningSecret, s.opts.Now(), body)
	header.Set("Content-Type", contentType)
	header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	if a.Retry > 0 {
		header.Set("X-Slack-Retry-Num", strconv.Itoa(a.Retry))
		header.Set("X-Slack-Retry-Reason", a.Reason)
	}
	resp, answer, err := s.Submit(ctx, endpoint, header, body) //nolint:bodyclose // Submit closes it
	if resp == nil {
		a.Error = "connection_failed"
		if errors.Is(err, context.DeadlineExceeded) {
			a.Error = "http_timeout"
		}
		return nil, a, false
	}
	a.Status = resp.StatusCode
	switch {
	case err != nil && ctx.Err() != nil:
		a.Error = "http_timeout"
	case err != nil:
		a.Error = "connection_failed"
	case resp.StatusCode >= 300 && resp.StatusCode <= 399:
		a.Error = "too_many_redirects"
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		a.Error = "http_error"
	}
	return answer, a, a.Error != "" && resp.Header.Get("X-Slack-No-Retry") == "1"
}

// encodeHTTP returns where and how a delivery is posted.
func (s *Server) encodeHTTP(d *delivery) (endpoint, contentType string, body []byte) {
	const form = "application/x-www-form-urlencoded"
	s.mu.Lock()
	ends := s.ends
	s.mu.Unlock()
	switch {
	case d.Kind == Commands && d.form != nil:
		return ends.Commands, form, []byte(d.form.Encode())
	case d.Kind == Commands:
		return ends.Commands, form, d.Payload
	case d.Kind == Interactions:
		return ends.Interactions, form, []byte(url.Values{"payload": {string(d.Payload)}}.Encode())
	}
	return ends.Events, "application/json", d.Payload
}

// event returns a delivery of an inner event; outer fields are added to what is
// around it. The lock must be held.
func (w *Workspace) event(inner, outer map[string]any) *delivery {
	s, t := w.server, w.team
	id := s.id("Ev")
	now := s.opts.Now()
	setAbsent(inner, "event_ts", s.tsAt(now))
	var enterprise any
	if t.EnterpriseID != "" {
		enterprise = t.EnterpriseID
	}
	shared := false
	if c := w.channels[text(inner["channel"])]; c != nil {
		shared = c.info.Shared
	}
	body := map[string]any{
		"token": verificationToken, "team_id": t.ID, "context_team_id": t.ID, "context_enterprise_id": enterprise,
		"api_app_id": s.opts.AppID, "event": inner, "type": "event_callback", "event_id": id, "event_time": now.Unix(),
		"authorizations": []any{map[string]any{
			"enterprise_id": enterprise, "team_id": t.ID, "user_id": t.BotUserID, "is_bot": true,
			"is_enterprise_install": t.EnterpriseInstall,
		}},
		"is_ext_shared_channel": shared, "event_context": "4-" + id,
	}
	if enterprise != nil {
		body["enterprise_id"] = enterprise
	}
	maps.Copy(body, outer)
	return &delivery{
		Delivery: Delivery{Kind: Events, Team: t.ID, Type: text(inner["type"]), EventID: id, Payload: platformapi.MustJSON(body)},
		repeated: true,
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func setAbsent(m map[string]any, name string, value any) {
	if _, ok := m[name]; !ok {
		m[name] = value
	}
}

// DeliverEvent sends any inner event and returns the id of the delivery. Fields
// of outer are added to what is around it, or replace it.
func (w *Workspace) DeliverEvent(inner, outer map[string]any) string {
	s := w.server
	s.mu.Lock()
	defer s.unlock()
	return s.deliverCopies([]*delivery{w.event(maps.Clone(inner), outer)}, false)[0]
}

// DeliverRaw sends any bytes, correctly signed, and returns the id of the
// delivery. For commands over HTTP it is the form; over Socket Mode it becomes
// the payload and must be JSON. Events are repeated like any other.
func (w *Workspace) DeliverRaw(kind Kind, body []byte) string {
	s := w.server
	s.mu.Lock()
	defer s.unlock()
	d := &delivery{Delivery: Delivery{Kind: kind, Team: w.team.ID, Payload: bytes.Clone(body)}, repeated: kind == Events}
	return s.deliverCopies([]*delivery{d}, false)[0]
}

// Redeliver sends a delivery again as it was, with the same ids, as Slack
// sometimes does after an acknowledgement.
func (s *Server) Redeliver(id string) string {
	s.mu.Lock()
	defer s.unlock()
	old := s.deliveries.Get(id)
	if old == nil {
		return ""
	}
	d := &delivery{Delivery: old.Delivery, form: old.form, repeated: old.repeated}
	d.Attempts, d.Acked, d.Answer, d.Lost = nil, false, nil, false
	return s.deliverCopies([]*delivery{d}, false)[0]
}

// Deliveries returns all deliveries in the order in which they came up.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return platformapi.Views(&s.deliveries, (*delivery).copy)
}

// Delivery returns a delivery by its id, or the zero Delivery.
func (s *Server) Delivery(id string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.deliveries.Get(id); d != nil {
		return d.copy()
	}
	return Delivery{}
}

func (d *delivery) copy() Delivery {
	out := d.Delivery
	out.Attempts = slices.Clone(out.Attempts)
	return out
}

// Acknowledged reports whether the bot acknowledged all of the deliveries.
func (s *Server) Acknowledged(ids ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id string) bool {
		d := s.deliveries.Get(id)
		return d == nil || !d.Acked
	})
}

// Pending returns the ids of the deliveries that are neither acknowledged nor
// lost.
func (s *Server) Pending() []string {
	return s.which(func(d *delivery) bool { return !d.Acked && !d.Lost })
}

// Lost returns the ids of the deliveries that the bot never acknowledged and
// that are not sent again.
func (s *Server) Lost() []string { return s.which(func(d *delivery) bool { return d.Lost }) }

func (s *Server) which(match func(*delivery) bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliveries.Which(func(d *delivery) string {
		if match(d) {
			return d.ID
		}
		return ""
	})
}

// WaitSettled returns nil as soon as all deliveries of what a person did are
// acknowledged or lost, and the cause of ctx if that ends first.
func (s *Server) WaitSettled(ctx context.Context, sent Sent) error {
	return s.WaitFor(ctx, func() bool {
		for _, id := range sent.Deliveries {
			if d := s.Delivery(id); !d.Acked && !d.Lost {
				return false
			}
		}
		return true
	})
}

// WaitIdle returns nil as soon as nothing is on its way to the bot.
func (s *Server) WaitIdle(ctx context.Context) error {
	return s.WaitFor(ctx, func() bool { return len(s.Pending()) == 0 })
}
