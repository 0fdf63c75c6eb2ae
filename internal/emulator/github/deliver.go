package github

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
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
	Form   bool   // as application/x-www-form-urlencoded, else as JSON

	// Unsigned leaves the signature out.
	Unsigned bool

	// Events are those of a repository's hook; nil is all. Those of the App are
	// in App.Events.
	Events []string
}

type hook struct {
	id             int64
	app            bool
	repo           *repo
	url            string
	secret         string
	form, unsigned bool
	events         []string
}

func (h *hook) set(options Hook) {
	h.url, h.secret, h.form, h.unsigned, h.events = options.URL, options.Secret, options.Form, options.Unsigned, options.Events
	h.secret = cmp.Or(h.secret, DefaultSecret)
}

// SetHook says where the App's deliveries go from now on.
func (s *Server) SetHook(h Hook) {
	s.mu.Lock()
	defer s.unlock()
	s.appHook.set(h)
}

// AddRepoHook gives a repository a hook of its own, as a bot without an App
// uses, and returns its id.
func (s *Server) AddRepoHook(repoName string, h Hook) int64 {
	s.mu.Lock()
	defer s.unlock()
	r := s.mustRepo(repoName)
	added := &hook{id: s.id(), repo: r}
	added.set(h)
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
func (s *Server) SetNetwork(n Network) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.network = n
	s.dice = mathrand.New(mathrand.NewPCG(n.Seed, n.Seed)) //nolint:gosec // deterministic on purpose
}

// Delivery is an event that GitHub sends to a hook.
type Delivery struct {
	GUID    string
	Hook    int64
	Event   string
	Action  string
	Repo    string
	Payload []byte // JSON, also if it is sent as a form

	Attempts []Attempt
	Acked    bool // an attempt was answered with 2xx
	Vanished bool // not even in the log
	InFlight bool
}

// Attempt is one try to deliver, which has an id of its own in the log.
type Attempt struct {
	ID         int64
	At         time.Time
	Took       time.Duration
	Redelivery bool
	Status     string // "OK" or what went wrong
	StatusCode int
	Answer     []byte

	header http.Header // as sent
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
func (s *Server) enlist(h *hook, event, action string, r *repo, body obj) string {
	return s.enlistRaw(h, event, action, "", r, platformapi.MustJSON(body))
}

func (s *Server) enlistRaw(h *hook, event, action, guid string, r *repo, body []byte) string {
	guid = cmp.Or(guid, newGUID())
	d := &delivery{hook: h, repo: r, Delivery: Delivery{GUID: guid, Hook: h.id, Event: event, Action: action, Payload: body}}
	if r != nil {
		d.Repo = r.fullName()
	}
	s.deliveries.Add(guid, d)
	n := s.network
	d.Vanished = s.dice.Float64() < n.Vanish
	d.dropped = !d.Vanished && s.dice.Float64() < n.Drop
	d.twice = s.dice.Float64() < n.Double
	if s.dice.Float64() < n.Late {
		d.late = time.Duration(s.dice.Float64() * float64(n.LateBy))
	}
	if h.url != "" && !d.Vanished {
		d.inFlight++
		s.outgoing = append(s.outgoing, d)
	}
	return guid
}

// sendAll sends deliveries one after the other, but late ones on their own.
func (s *Server) sendAll(list []*delivery) {
	for _, d := range list {
		if d.late > 0 {
			s.Go(func() {
				if emulator.Sleep(s.Context(), d.late) == nil {
					s.first(d)
				}
			})
			continue
		}
		s.first(d)
	}
}

// first makes the first attempt of a delivery.
func (s *Server) first(d *delivery) {
	a := Attempt{At: s.opts.Now()}
	if d.dropped {
		a.Status, a.StatusCode = "failed to connect to host", http.StatusBadGateway
		s.record(d, a)
		return
	}
	a = s.post(s.Context(), d, "", a)
	if d.twice && s.Context().Err() == nil {
		s.post(s.Context(), d, "", Attempt{At: s.opts.Now()})
	}
	s.record(d, a)
}

func (s *Server) record(d *delivery, a Attempt) {
	if s.Context().Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.unlock()
	a.ID = s.id()
	d.inFlight--
	d.Attempts = append(d.Attempts, a)
	d.Acked = d.Acked || a.StatusCode >= 200 && a.StatusCode <= 299
	s.deliveries.Forget(s.opts.KeepCalls, func(d *delivery) (string, bool) { return d.GUID, d.Acked && d.inFlight == 0 })
}

// wire returns what is sent for a delivery, and where.
func (s *Server) wire(d *delivery, to string) (where string, header http.Header, body []byte) {
	s.mu.Lock()
	h := *d.hook
	s.mu.Unlock()
	body = d.Payload
	kind := "application/json"
	if h.form {
		body, kind = []byte(url.Values{"payload": {string(body)}}.Encode()), "application/x-www-form-urlencoded"
	}
	secret := cmp.Or(h.secret, DefaultSecret)
	if h.unsigned {
		secret = ""
	}
	header = Headers(secret, d.Event, d.GUID, body)
	header.Set("Content-Type", kind)
	header.Set("Accept", "*/*")
	header.Set("X-GitHub-Hook-ID", itoa64(h.id))
	target, id := "repository", int64(0)
	switch {
	case h.app:
		target, id = "integration", s.opts.App.ID
	case d.repo != nil:
		id = d.repo.id
	}
	header.Set("X-GitHub-Hook-Installation-Target-Type", target)
	header.Set("X-GitHub-Hook-Installation-Target-ID", itoa64(id))
	return cmp.Or(to, h.url), header, body
}

// post sends a delivery once and notes how that went.
func (s *Server) post(ctx context.Context, d *delivery, to string, a Attempt) Attempt {
	defer s.Turn(ctx)()
	ctx, cancel := context.WithTimeout(ctx, s.opts.AckTimeout)
	defer cancel()
	start := time.Now()
	defer func() { a.Took = time.Since(start) }()
	a.Status, a.StatusCode = "failed to connect to host", http.StatusBadGateway
	to, header, body := s.wire(d, to)
	a.header = header
	resp, answer, err := s.Submit(ctx, to, a.header, body) //nolint:bodyclose // Submit closes it
	a.Answer = answer
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
func (s *Server) Send(ctx context.Context, guid, to string) (Attempt, error) {
	s.mu.Lock()
	d := s.deliveries.Get(guid)
	if d != nil {
		d.inFlight++
	}
	s.mu.Unlock()
	if d == nil {
		return Attempt{}, fmt.Errorf("there is no delivery %s", guid)
	}
	a := s.post(ctx, d, to, Attempt{At: s.opts.Now(), Redelivery: len(d.copyOf(s).Attempts) > 0})
	s.record(d, a)
	return a, nil
}

func (d *delivery) copyOf(s *Server) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return d.copy()
}

// Request returns the request of a delivery, for a test that hands it to a
// handler itself.
func (s *Server) Request(ctx context.Context, guid, to string) (*http.Request, error) {
	s.mu.Lock()
	d := s.deliveries.Get(guid)
	s.mu.Unlock()
	if d == nil {
		return nil, fmt.Errorf("there is no delivery %s", guid)
	}
	to, header, body := s.wire(d, to)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	return req, nil
}

// Redeliver sends a delivery again, with the same GUID, as a person does with
// the button. It reports whether there is such a delivery.
func (s *Server) Redeliver(guid string) bool {
	s.mu.Lock()
	defer s.unlock()
	d := s.deliveries.Get(guid)
	if d != nil {
		s.again(d)
	}
	return d != nil
}

// again sends a delivery once more. The lock must be held.
func (s *Server) again(d *delivery) {
	if d.hook.url == "" {
		return
	}
	d.inFlight++
	s.Go(func() { s.record(d, s.post(s.Context(), d, "", Attempt{At: s.opts.Now(), Redelivery: true})) })
}

// Deliveries returns all deliveries in the order in which they came up.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return platformapi.Views(&s.deliveries, (*delivery).copy)
}

// Delivery returns a delivery by its GUID, or the zero Delivery.
func (s *Server) Delivery(guid string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.deliveries.Get(guid); d != nil {
		return d.copy()
	}
	return Delivery{}
}

// Lost returns the GUIDs of the deliveries that the bot never acknowledged and
// that are not on their way.
func (s *Server) Lost() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliveries.Which(func(d *delivery) string {
		if d.Acked || d.inFlight > 0 {
			return ""
		}
		return d.GUID
	})
}

// WaitSettled returns nil as soon as no delivery of what a person did is on its
// way, and the cause of ctx if that ends first.
func (s *Server) WaitSettled(ctx context.Context, sent Sent) error {
	return s.WaitFor(ctx, func() bool {
		return !slices.ContainsFunc(sent.Deliveries, func(guid string) bool { return s.Delivery(guid).InFlight })
	})
}

// WaitIdle returns nil as soon as nothing is on its way to the bot.
func (s *Server) WaitIdle(ctx context.Context) error {
	return s.WaitFor(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(s.deliveries.List, func(d *delivery) bool { return d.inFlight > 0 })
	})
}
