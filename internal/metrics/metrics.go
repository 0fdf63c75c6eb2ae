// Package metrics counts what the program does, for Prometheus.
//
// Labels are bounded: platforms, assistants, kinds and outcomes, never people,
// repositories, conversations or texts. All methods can be called on a nil
// *Metrics and then do nothing, so that nobody has to ask. It imports nothing
// else of this module.
package metrics

import (
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is a set of metrics in a registry of its own. It is safe for
// concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	labels   labels

	received, deduplicated *prometheus.CounterVec
	refused, keptRaw       *prometheus.CounterVec
	overflowed             *prometheus.CounterVec
	webhookRejected        *prometheus.CounterVec
	ack                    *prometheus.HistogramVec
	connected              *prometheus.GaugeVec
	events                 *prometheus.CounterVec

	turns            *prometheus.CounterVec
	turnSeconds      *prometheus.HistogramVec
	running, waiting prometheus.Gauge
	halted           prometheus.Gauge
	sweepRings       prometheus.Counter
	leaseLost        prometheus.Counter
	deliveries       *prometheus.CounterVec
	rateLimited      *prometheus.CounterVec
	firstToken       *prometheus.HistogramVec
	tokens           *prometheus.CounterVec

	statements, commits prometheus.Counter
	egress              *prometheus.CounterVec
}

// Buckets in seconds: an acknowledgement takes milliseconds, a turn minutes.
var (
	ackBuckets  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 3, 10}
	turnBuckets = []float64{.05, .25, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
)

// New returns metrics that start at zero. version labels bot_build_info.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(g)
		return g
	}

	m.received = counter("bot_messages_received_total", "Events stored for the first time.", "platform", "kind")
	m.deduplicated = counter("bot_messages_deduplicated_total", "Events that were stored before and changed nothing.", "platform", "kind")
	m.refused = counter("bot_messages_refused_total", "Messages of people who may not talk to the bot.", "platform")
	m.overflowed = counter("bot_messages_overflowed_total", "Messages that were not taken because too many of the same person wait.", "platform")
	m.keptRaw = counter("bot_messages_kept_raw_total", "Events that could not be understood and were kept as they came.", "platform")
	m.webhookRejected = counter("bot_webhook_rejected_total", "Webhook calls that were refused.", "platform", "reason")
	m.ack = histogram("bot_ack_seconds", "Time from receiving events to having stored them.", ackBuckets, "platform")
	m.connected = gauge("bot_platform_connected", "1 while a platform is connected.", "platform")
	m.events = counter("bot_platform_events_total", "Things that adapters noticed, by name.", "event")

	m.turns = counter("bot_runs_total", "Turns that ended.", "assistant", "outcome")
	m.turnSeconds = histogram("bot_run_seconds", "Duration of turns.", turnBuckets, "assistant", "outcome")
	m.halted = gauge("bot_halted", "1 while nothing may start.").WithLabelValues()
	m.running = gauge("bot_runs_active", "Turns that run in this process.").WithLabelValues()
	m.waiting = gauge("bot_runs_waiting", "Conversations that wait for a free slot in this process.").WithLabelValues()
	m.sweepRings = counter("bot_sweep_rings_total", "Conversations with work that a sweep found without a live lease.").WithLabelValues()
	m.leaseLost = counter("bot_lease_lost_total", "Turns that were stopped because another process took their conversation.").WithLabelValues()
	m.deliveries = counter("bot_outbox_sends_total", "Attempts to send or edit a platform message.", "platform", "outcome")
	m.rateLimited = counter("bot_rate_limited_total", "Times that another side asked to wait.", "source")
	m.firstToken = histogram("bot_provider_first_token_seconds", "Time from a model request to the first text.", turnBuckets, "assistant")
	m.tokens = counter("bot_tokens_total", "Tokens that providers counted.", "assistant", "kind")

	m.statements = counter("bot_database_statements_total", "Statements given to the database; begin, commit and rollback are not among them.").WithLabelValues()
	m.commits = counter("bot_database_commits_total", "Transactions that were committed to the database.").WithLabelValues()
	m.egress = counter("bot_egress_total", "Connections that programs of assistants asked the proxy for: connected, refused or failed.", "kind", "outcome")

	gauge("bot_build_info", "Always 1.", "version").WithLabelValues(version).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics in the Prometheus formats; of a nil Metrics it
// answers 404.
func (m *Metrics) Handler() http.Handler {
	if m == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Received counts an event that was stored for the first time.
func (m *Metrics) Received(platform, kind string) {
	if m != nil {
		m.received.WithLabelValues(m.labels.get(platform), m.labels.get(kind)).Inc()
	}
}

// Deduplicated counts an event that was stored before.
func (m *Metrics) Deduplicated(platform, kind string) {
	if m != nil {
		m.deduplicated.WithLabelValues(m.labels.get(platform), m.labels.get(kind)).Inc()
	}
}

// Refused counts a message of a stranger.
func (m *Metrics) Refused(platform string) {
	if m != nil {
		m.refused.WithLabelValues(m.labels.get(platform)).Inc()
	}
}

// Overflowed counts a message that was not taken because too many of the same
// person wait.
func (m *Metrics) Overflowed(platform string) {
	if m != nil {
		m.overflowed.WithLabelValues(m.labels.get(platform)).Inc()
	}
}

// Egress counts a connection that a program asked for. kind is one of agent, mcp
// and tool, outcome one of connected, refused and failed.
func (m *Metrics) Egress(kind, outcome string) {
	if m != nil {
		m.egress.WithLabelValues(m.labels.get(kind), m.labels.get(outcome)).Inc()
	}
}

// KeptRaw counts an event that could not be understood.
func (m *Metrics) KeptRaw(platform string) {
	if m != nil {
		m.keptRaw.WithLabelValues(m.labels.get(platform)).Inc()
	}
}

// WebhookRejected counts a webhook call that was refused. reason is one of a few
// fixed words.
func (m *Metrics) WebhookRejected(platform, reason string) {
	if m != nil {
		m.webhookRejected.WithLabelValues(m.labels.get(platform), m.labels.get(reason)).Inc()
	}
}

// Statement counts what the database was asked: a statement, or one of the words
// begin, commit and rollback.
func (m *Metrics) Statement(statement string) {
	if m == nil {
		return
	}
	switch statement {
	case "begin", "rollback":
	case "commit":
		m.commits.Inc()
	default:
		m.statements.Inc()
	}
}

// Acknowledged records how long it took to store what a platform delivered.
func (m *Metrics) Acknowledged(platform string, took time.Duration) {
	if m != nil {
		m.ack.WithLabelValues(m.labels.get(platform)).Observe(took.Seconds())
	}
}

// Connected records whether a platform is connected.
func (m *Metrics) Connected(platform string, connected bool) {
	if m == nil {
		return
	}
	value := 0.0
	if connected {
		value = 1
	}
	m.connected.WithLabelValues(m.labels.get(platform)).Set(value)
}

// Platform counts something that an adapter noticed. event is one of the few
// fixed names of the adapter.
func (m *Metrics) Platform(event string) {
	if m != nil {
		m.events.WithLabelValues(m.labels.get(event)).Inc()
	}
}

// TurnEnded counts a turn. outcome is "answered", "stopped", or the kind of a
// fault.
func (m *Metrics) TurnEnded(assistant, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	assistant, outcome = m.labels.get(assistant), m.labels.get(outcome)
	m.turns.WithLabelValues(assistant, outcome).Inc()
	m.turnSeconds.WithLabelValues(assistant, outcome).Observe(took.Seconds())
}

// Halted tells whether the service is halted.
func (m *Metrics) Halted(on bool) {
	if m == nil {
		return
	}
	m.halted.Set(0)
	if on {
		m.halted.Set(1)
	}
}

// Running changes the number of running turns by delta.
func (m *Metrics) Running(delta int) {
	if m != nil {
		m.running.Add(float64(delta))
	}
}

// Waiting changes the number of conversations that wait for a slot by delta.
func (m *Metrics) Waiting(delta int) {
	if m != nil {
		m.waiting.Add(float64(delta))
	}
}

// SweepRang counts conversations that a sweep found with work and no lease.
func (m *Metrics) SweepRang(n int) {
	if m != nil && n > 0 {
		m.sweepRings.Add(float64(n))
	}
}

// LeaseLost counts a turn that was fenced off.
func (m *Metrics) LeaseLost() {
	if m != nil {
		m.leaseLost.Inc()
	}
}

// Delivered counts an attempt to send or edit a message. outcome is "sent" or
// the kind of a fault.
func (m *Metrics) Delivered(platform, outcome string) {
	if m != nil {
		m.deliveries.WithLabelValues(m.labels.get(platform), m.labels.get(outcome)).Inc()
	}
}

// RateLimited counts that a platform or provider asked to wait.
func (m *Metrics) RateLimited(source string) {
	if m != nil {
		m.rateLimited.WithLabelValues(m.labels.get(source)).Inc()
	}
}

// FirstToken records how long a model took to say its first word.
func (m *Metrics) FirstToken(assistant string, took time.Duration) {
	if m != nil {
		m.firstToken.WithLabelValues(m.labels.get(assistant)).Observe(took.Seconds())
	}
}

// Tokens counts tokens of a kind: "input", "output" or "cached".
func (m *Metrics) Tokens(assistant, kind string, n int64) {
	if m != nil && n > 0 {
		m.tokens.WithLabelValues(m.labels.get(assistant), m.labels.get(kind)).Add(float64(n))
	}
}

// maxLabels is how many different label values there may be in all.
const maxLabels = 200

var labelPattern = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,39}$`)

// labels turns whatever is not a short fixed word, or comes after the first
// maxLabels words, into "other": a caller's mistake costs a label, not the
// memory of the metrics server.
type labels struct {
	mu   sync.RWMutex // guards seen
	seen map[string]bool
}

func (l *labels) get(value string) string {
	l.mu.RLock()
	known := l.seen[value]
	l.mu.RUnlock()
	if known {
		return value
	}
	if !labelPattern.MatchString(value) {
		return "other"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen) >= maxLabels {
		return "other"
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[value] = true
	return value
}
