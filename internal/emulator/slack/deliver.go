package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Outbox is what Slack sends to the app: events, commands and interactions, to
// its request URLs or over Socket Mode.
type Outbox struct {
	*platform

	sockets    *Sockets
	ends       Endpoints
	deliveries platformapi.Deliveries[delivery]
}

// UseHTTP sends everything to the request URLs. Deliveries in flight go on where
// they are; their repetitions go to the new place.
func (o *Outbox) UseHTTP(ends Endpoints) {
	o.mu.Lock()
	defer o.unlock()
	o.ends, o.sockets.on = ends, false
}

// UseSocketMode sends everything over Socket Mode, which is how a new Server
// begins. Envelopes wait for the first connection.
func (o *Outbox) UseSocketMode() {
	o.mu.Lock()
	defer o.unlock()
	o.sockets.on = true
}

// VerifyURL sends a signed url_verification to the events endpoint and checks
// that the challenge comes back, as Slack does before it takes a URL.
func (o *Outbox) VerifyURL(ctx context.Context) error {
	o.mu.Lock()
	challenge := o.id("challenge-")
	endpoint := o.ends.Events
	o.mu.Unlock()
	body, err := json.Marshal(map[string]string{"token": verificationToken, "challenge": challenge, "type": "url_verification"})
	if err != nil {
		return err
	}
	status, answer, err := o.Post(ctx, endpoint, Sign(o.opts.SigningSecret, o.opts.Now(), body), body)
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

// deliver sends deliveries, one after the other has been answered or all
// at once, and returns their ids. The lock must be held.
func (o *Outbox) deliver(atOnce bool, list ...*delivery) []string {
	var ids []string
	for _, d := range list {
		d.ID = o.id("delivery-")
		o.deliveries.Add(d.ID, d)
		ids = append(ids, d.ID)
	}
	if atOnce {
		for _, d := range list {
			o.Go(func() { o.pursue(d, 0) })
		}
		return ids
	}
	o.Go(func() {
		for _, d := range list {
			if o.attempt(d, 0) {
				o.Go(func() { o.pursue(d, 1) })
			}
		}
	})
	return ids
}

// pursue delivers until it is acknowledged or the attempts are used up.
func (o *Outbox) pursue(d *delivery, n int) {
	for {
		if n > 0 && emulator.Sleep(o.Context(), o.opts.Retries[n-1]) != nil || !o.attempt(d, n) {
			return
		}
		n++
	}
}

// attempt delivers once and reports whether to try again.
func (o *Outbox) attempt(d *delivery, n int) (again bool) {
	a := Attempt{Retry: n, At: o.opts.Now()}
	o.mu.Lock()
	if n > 0 && len(d.Attempts) > 0 {
		a.Reason = d.Attempts[len(d.Attempts)-1].Error
	}
	lost, socket := n < d.lost, o.sockets.on
	o.mu.Unlock()

	var answer []byte
	stop := false
	start := time.Now()
	switch {
	case lost:
		a.Error = "http_timeout"
	case socket:
		var sent bool
		if answer, a, sent = o.sockets.send(d, a); !sent {
			answer, a, _ = o.sendHTTP(d, a)
		}
	default:
		answer, a, stop = o.sendHTTP(d, a)
	}
	a.Took = time.Since(start)
	if o.Context().Err() != nil {
		return false
	}

	o.mu.Lock()
	defer o.unlock()
	d.Attempts = append(d.Attempts, a)
	switch {
	case a.Error == "":
		d.Acked, d.Answer = true, answer
		if d.taken != nil {
			d.taken(answer)
		}
	case !d.repeated || stop || n >= len(o.opts.Retries):
		d.Lost = true
		if d.failed != nil {
			d.failed(a.Error)
		}
	default:
		return true
	}
	o.deliveries.Forget(o.opts.KeepCalls, func(d *delivery) (string, bool) { return d.ID, d.Acked || d.Lost })
	return false
}

// sendHTTP posts a delivery once. stop means that the bot wants no retries.
func (o *Outbox) sendHTTP(d *delivery, a Attempt) (answer []byte, after Attempt, stop bool) {
	defer o.Turn(o.Context())()
	ctx, cancel := context.WithTimeout(o.Context(), o.opts.AckTimeout)
	defer cancel()
	endpoint, contentType, body := o.encodeHTTP(d)
	header := Sign(o.opts.SigningSecret, o.opts.Now(), body)
	header.Set("Content-Type", contentType)
	header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	if a.Retry > 0 {
		header.Set("X-Slack-Retry-Num", strconv.Itoa(a.Retry))
		header.Set("X-Slack-Retry-Reason", a.Reason)
	}
	resp, answer, err := o.Submit(ctx, endpoint, header, body) //nolint:bodyclose // Submit closes it
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
func (o *Outbox) encodeHTTP(d *delivery) (endpoint, contentType string, body []byte) {
	const form = "application/x-www-form-urlencoded"
	o.mu.Lock()
	ends := o.ends
	o.mu.Unlock()
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

// Redeliver sends a delivery again as it was, with the same ids, as Slack
// sometimes does after an acknowledgement.
func (o *Outbox) Redeliver(id string) string {
	o.mu.Lock()
	defer o.unlock()
	old := o.deliveries.Get(id)
	if old == nil {
		return ""
	}
	d := &delivery{Delivery: old.Delivery, form: old.form, repeated: old.repeated}
	d.Attempts, d.Acked, d.Answer, d.Lost = nil, false, nil, false
	return o.deliver(false, d)[0]
}

// Deliveries returns all deliveries in the order in which they came up.
func (o *Outbox) Deliveries() []Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	return platformapi.Views(&o.deliveries, (*delivery).copy)
}

// Delivery returns a delivery by its id, or the zero Delivery.
func (o *Outbox) Delivery(id string) Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d := o.deliveries.Get(id); d != nil {
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
func (o *Outbox) Acknowledged(ids ...string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id string) bool {
		d := o.deliveries.Get(id)
		return d == nil || !d.Acked
	})
}

// Pending returns the ids of the deliveries that are neither acknowledged nor
// lost.
func (o *Outbox) Pending() []string {
	return o.which(func(d *delivery) bool { return !d.Acked && !d.Lost })
}

// Lost returns the ids of the deliveries that the bot never acknowledged and
// that are not sent again.
func (o *Outbox) Lost() []string { return o.which(func(d *delivery) bool { return d.Lost }) }

func (o *Outbox) which(match func(*delivery) bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deliveries.Which(func(d *delivery) string {
		if match(d) {
			return d.ID
		}
		return ""
	})
}

// WaitSettled returns nil as soon as all deliveries of what a person did are
// acknowledged or lost, and the cause of ctx if that ends first.
func (o *Outbox) WaitSettled(ctx context.Context, sent Sent) error {
	return o.WaitFor(ctx, func() bool {
		return !slices.ContainsFunc(sent.Deliveries, func(id string) bool { d := o.Delivery(id); return !d.Acked && !d.Lost })
	})
}

// WaitIdle returns nil as soon as nothing is on its way to the bot.
func (o *Outbox) WaitIdle(ctx context.Context) error {
	return o.WaitFor(ctx, func() bool { return len(o.Pending()) == 0 })
}
