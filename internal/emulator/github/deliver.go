package github

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"time"

	"remote-agent/internal/emulator"

	"remote-agent/internal/emulator/platformapi"
)

// DefaultSecret signs deliveries unless a Hook has a secret of its own.
const DefaultSecret = "webhook-secret-of-tests"

// Hook is where deliveries go.
type Hook struct {
	URL    string // empty: deliveries wait for Send
	Secret string // default DefaultSecret
}

type hook struct {
	id     int64
	app    bool
	url    string
	secret string
}

func (h *hook) set(options Hook) {
	h.url, h.secret = options.URL, cmp.Or(options.Secret, DefaultSecret)
}

// webhooks send to the hooks what is told to them, and keep a log of that.
type webhooks struct {
	core  *core
	world *world
	show  renderer

	// The world's lock guards all that follows.
	app        *hook // of the App
	deliveries platformapi.Deliveries[delivery]
	network    Network
	dice       *mathrand.Rand
}

func newWebhooks(w *world) *webhooks {
	return &webhooks{
		core: w.core, world: w, show: renderer{w}, app: &hook{id: w.id(), app: true},
		dice: mathrand.New(mathrand.NewPCG(1, 1)), //nolint:gosec // deterministic on purpose
	}
}

// SetHook says where the App's deliveries go from now on.
func (h *webhooks) SetHook(to Hook) {
	defer h.world.writing()()
	h.app.set(to)
}

// AddRepoHook gives a repository a hook of its own, as a bot without an App
// uses, and returns its id.
func (h *webhooks) AddRepoHook(repoName string, to Hook) int64 {
	defer h.world.writing()()
	r := h.world.mustRepo(repoName)
	added := &hook{id: h.world.id()}
	added.set(to)
	r.hooks = append(r.hooks, added)
	return added.id
}

// Network is what happens to deliveries on their way. Fractions are between 0
// and 1, drawn from Seed.
type Network struct {
	Drop   float64 // does not arrive; the log has it as failed
	Vanish float64 // does not arrive and is not in the log
	Double float64 // arrives twice
	Late   float64 // arrives up to LateBy later, so after others
	LateBy time.Duration
	Seed   uint64
}

// SetNetwork sets what happens to first deliveries from now on. Those that
// somebody asked for again arrive.
func (h *webhooks) SetNetwork(n Network) {
	defer h.world.writing()()
	h.network = n
	h.dice = mathrand.New(mathrand.NewPCG(n.Seed, n.Seed)) //nolint:gosec // deterministic on purpose
}

// Delivery is an event that GitHub sends to a hook.
type Delivery struct {
	GUID    string
	Event   string
	Action  string
	Payload []byte // JSON

	Attempts []Attempt
	Acked    bool // an attempt was answered with 2xx
	Vanished bool // not even in the log
	InFlight bool
}

// Attempt is one try to deliver, which has an id of its own in the log.
type Attempt struct {
	ID         int64
	At         time.Time
	Redelivery bool
	Status     string // "OK" or what went wrong
	StatusCode int
}

type delivery struct {
	Delivery
	hook     *hook
	repo     *repo
	inFlight int
	twice    bool
	dropped  bool
	late     time.Duration
}

func (d *delivery) copy() Delivery {
	out := d.Delivery
	out.Attempts, out.InFlight = slices.Clone(out.Attempts), d.inFlight > 0
	return out
}

func newGUID() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

// enlist makes a delivery, which is sent when the lock is given back.
func (h *webhooks) enlist(to *hook, event, action string, r *repo, body obj) string {
	return h.enlistRaw(to, event, action, "", r, platformapi.MustJSON(body))
}

func (h *webhooks) enlistRaw(to *hook, event, action, guid string, r *repo, body []byte) string {
	guid = cmp.Or(guid, newGUID())
	d := &delivery{hook: to, repo: r, Delivery: Delivery{GUID: guid, Event: event, Action: action, Payload: body}}
	h.deliveries.Add(guid, d)
	n := h.network
	d.Vanished = h.dice.Float64() < n.Vanish
	d.dropped = !d.Vanished && h.dice.Float64() < n.Drop
	d.twice = h.dice.Float64() < n.Double
	if h.dice.Float64() < n.Late {
		d.late = time.Duration(h.dice.Float64() * float64(n.LateBy))
	}
	if to.url != "" && !d.Vanished {
		d.inFlight++
		h.world.due = append(h.world.due, func() { h.send(d) })
	}
	return guid
}

// send sends a delivery, a late one after those that came up after it.
func (h *webhooks) send(d *delivery) {
	if d.late == 0 {
		h.first(d)
		return
	}
	h.core.Go(func() {
		if emulator.Sleep(h.core.Context(), d.late) == nil {
			h.first(d)
		}
	})
}

// first makes the first attempt of a delivery.
func (h *webhooks) first(d *delivery) {
	a := Attempt{At: h.world.now()}
	if d.dropped {
		a.Status, a.StatusCode = "failed to connect to host", http.StatusBadGateway
		h.record(d, a)
		return
	}
	a = h.post(h.core.Context(), d, "", a)
	if d.twice && h.core.Context().Err() == nil {
		h.post(h.core.Context(), d, "", Attempt{At: h.world.now()})
	}
	h.record(d, a)
}

func (h *webhooks) record(d *delivery, a Attempt) {
	if h.core.Context().Err() != nil {
		return
	}
	defer h.world.writing()()
	a.ID = h.world.id()
	d.inFlight--
	d.Attempts = append(d.Attempts, a)
	d.Acked = d.Acked || a.StatusCode >= 200 && a.StatusCode <= 299
	h.deliveries.Forget(h.world.opts.KeepCalls, func(d *delivery) (string, bool) { return d.GUID, d.Acked && d.inFlight == 0 })
}

// wire returns what is sent for a delivery, and where.
func (h *webhooks) wire(d *delivery, to string) (where string, header http.Header) {
	done := h.world.reading()
	at := *d.hook
	done()
	header = Headers(cmp.Or(at.secret, DefaultSecret), d.Event, d.GUID, d.Payload)
	header.Set("Accept", "*/*")
	header.Set("X-GitHub-Hook-ID", itoa64(at.id))
	target, id := "repository", int64(0)
	switch {
	case at.app:
		target, id = "integration", h.world.opts.App.ID
	case d.repo != nil:
		id = d.repo.id
	}
	header.Set("X-GitHub-Hook-Installation-Target-Type", target)
	header.Set("X-GitHub-Hook-Installation-Target-ID", itoa64(id))
	return cmp.Or(to, at.url), header
}

// post sends a delivery once and notes how that went.
func (h *webhooks) post(ctx context.Context, d *delivery, to string, a Attempt) Attempt {
	defer h.core.Turn(ctx)()
	ctx, cancel := context.WithTimeout(ctx, h.world.opts.AckTimeout)
	defer cancel()
	a.Status, a.StatusCode = "failed to connect to host", http.StatusBadGateway
	to, header := h.wire(d, to)
	resp, _, err := h.core.Submit(ctx, to, header, d.Payload) //nolint:bodyclose // Submit closes it
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		a.Status, a.StatusCode = "timed out", http.StatusGatewayTimeout
	case err != nil:
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		a.Status, a.StatusCode = fmt.Sprintf("Invalid HTTP Response: %d", resp.StatusCode), resp.StatusCode
	default:
		a.Status, a.StatusCode = "OK", resp.StatusCode
	}
	return a
}

// Send sends a delivery to a URL, or with an empty one to its hook, waits for
// the answer and notes it in the log.
func (h *webhooks) Send(ctx context.Context, guid, to string) (Attempt, error) {
	done := h.world.reading()
	d, again := h.deliveries.Get(guid), false
	if d != nil {
		d.inFlight++
		again = len(d.Attempts) > 0
	}
	done()
	if d == nil {
		return Attempt{}, fmt.Errorf("there is no delivery %s", guid)
	}
	a := h.post(ctx, d, to, Attempt{At: h.world.now(), Redelivery: again})
	h.record(d, a)
	return a, nil
}

// Redeliver sends a delivery again, with the same GUID, as a person does with
// the button. It reports whether there is such a delivery.
func (h *webhooks) Redeliver(guid string) bool {
	defer h.world.writing()()
	d := h.deliveries.Get(guid)
	if d != nil {
		h.again(d)
	}
	return d != nil
}

// again sends a delivery once more. The lock must be held.
func (h *webhooks) again(d *delivery) {
	if d.hook.url == "" {
		return
	}
	d.inFlight++
	h.core.Go(func() { h.record(d, h.post(h.core.Context(), d, "", Attempt{At: h.world.now(), Redelivery: true})) })
}

// Deliveries returns all deliveries in the order in which they came up.
func (h *webhooks) Deliveries() []Delivery {
	defer h.world.reading()()
	return platformapi.Views(&h.deliveries, (*delivery).copy)
}

// Delivery returns a delivery by its GUID, or the zero Delivery.
func (h *webhooks) Delivery(guid string) Delivery {
	defer h.world.reading()()
	if d := h.deliveries.Get(guid); d != nil {
		return d.copy()
	}
	return Delivery{}
}

// Lost returns the GUIDs of the deliveries that the bot never acknowledged and
// that are not on their way.
func (h *webhooks) Lost() []string {
	defer h.world.reading()()
	return h.deliveries.Which(func(d *delivery) string {
		if d.Acked || d.inFlight > 0 {
			return ""
		}
		return d.GUID
	})
}

// WaitSettled returns nil as soon as no delivery of what a person did is on its
// way, and the cause of ctx if that ends first.
func (h *webhooks) WaitSettled(ctx context.Context, sent Sent) error {
	return h.core.WaitFor(ctx, func() bool {
		return !slices.ContainsFunc(sent.Deliveries, func(guid string) bool { return h.Delivery(guid).InFlight })
	})
}

// WaitIdle returns nil as soon as nothing is on its way to the bot.
func (h *webhooks) WaitIdle(ctx context.Context) error {
	return h.core.WaitFor(ctx, func() bool {
		defer h.world.reading()()
		return !slices.ContainsFunc(h.deliveries.List, func(d *delivery) bool { return d.inFlight > 0 })
	})
}

// Ping sends what GitHub sends when the hook of the App is made.
func (h *webhooks) Ping() Sent {
	defer h.world.writing()()
	return Sent{Deliveries: []string{h.enlist(h.app, "ping", "", nil, obj{
		"zen": "Keep it logically awesome.", "hook_id": h.app.id, "hook": h.show.hook(h.app),
	})}}
}

// DeliverRaw sends any body as an event, correctly signed, and returns its GUID.
// An empty guid gets a new one.
func (h *webhooks) DeliverRaw(event, guid string, body []byte) string {
	defer h.world.writing()()
	return h.enlistRaw(h.app, event, "", guid, nil, body)
}
