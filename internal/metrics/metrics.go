// Package metrics counts what the program does, for Prometheus.
//
// Labels are bounded: platforms, assistants, models that the operator or the price list
// names, kinds and outcomes, never people, repositories, conversations or texts. All
// methods can be called on a nil *Metrics and then do nothing, so that nobody has to ask.
// It imports nothing else of this module.
package metrics

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	victoria "github.com/VictoriaMetrics/metrics"

	"remote-agent/internal/pattern"
)

// Metrics is a set of metrics of its own. It is safe for concurrent use.
type Metrics struct {
	set    *victoria.Set
	labels labels

	running, waiting, halted                   *victoria.Gauge
	sweepRings, leaseLost, statements, commits *victoria.Counter

	figures   func(context.Context) Figures // nil: none
	nameModel func(model string) string     // nil: all of them are "other"
}

// Buckets in seconds: an acknowledgement takes milliseconds, a turn minutes, a person hours.
var (
	ackBuckets  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 3, 10}
	turnBuckets = []float64{.05, .25, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	waitBuckets = []float64{5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600} // of people
)

// The names of all metrics.
//
//nolint:gosec // tokens are what models count, no credentials
const (
	received        = "bot_messages_received_total"
	deduplicated    = "bot_messages_deduplicated_total"
	refused         = "bot_messages_refused_total"
	overflowed      = "bot_messages_overflowed_total"
	keptRaw         = "bot_messages_kept_raw_total"
	webhookRejected = "bot_webhook_rejected_total"
	ackSeconds      = "bot_ack_seconds"
	connected       = "bot_platform_connected"
	platformEvents  = "bot_platform_events_total"
	runs            = "bot_runs_total"
	runSeconds      = "bot_run_seconds"
	halted          = "bot_halted"
	active          = "bot_runs_active"
	waiting         = "bot_runs_waiting"
	stalled         = "bot_runs_stalled"
	queueDepth      = "bot_queue_depth"
	queueOldest     = "bot_queue_oldest_seconds"
	outboxOldest    = "bot_outbox_oldest_seconds"
	diskFree        = "bot_disk_free_bytes"
	diskTotal       = "bot_disk_total_bytes"
	lastBackup      = "bot_backup_last_success_timestamp_seconds"
	budgetUsed      = "bot_budget_used_ratio"
	sweepRings      = "bot_sweep_rings_total"
	leaseLost       = "bot_lease_lost_total"
	sends           = "bot_outbox_sends_total"
	rateLimited     = "bot_rate_limited_total"
	toolCalls       = "bot_tool_calls_total"
	toolSeconds     = "bot_tool_seconds"
	requests        = "bot_provider_requests_total"
	firstToken      = "bot_provider_first_token_seconds"
	tokens          = "bot_tokens_total"
	cost            = "bot_cost_usd_total"
	approvals       = "bot_approvals_total"
	approvalSeconds = "bot_approval_wait_seconds"
	statements      = "bot_database_statements_total"
	commits         = "bot_database_commits_total"
	egressTotal     = "bot_egress_total"
	buildInfo       = "bot_build_info"
)

//nolint:gosec // as above
const help = "\n" +
	received + " Events stored for the first time.\n" +
	deduplicated + " Events that were stored before and changed nothing.\n" +
	refused + " Messages of people who may not talk to the bot.\n" +
	overflowed + " Messages that were not taken because too many of the same person wait.\n" +
	keptRaw + " Events that could not be understood and were kept as they came.\n" +
	webhookRejected + " Webhook calls that were refused.\n" +
	ackSeconds + " Time from receiving events to having stored them.\n" +
	connected + " 1 while a platform is connected.\n" +
	platformEvents + " Things that adapters noticed, by name.\n" +
	runs + " Turns that ended.\n" +
	runSeconds + " Duration of turns.\n" +
	halted + " 1 while nothing may start.\n" +
	active + " Turns that run in this process.\n" +
	waiting + " Conversations that wait for a free slot in this process.\n" +
	stalled + " Turns of this process from which nothing was heard for 3 minutes and that wait for no person, by what they wait for.\n" +
	queueDepth + " Messages that wait for their turn, and answers that wait to be sent, in the whole service.\n" +
	queueOldest + " Age of the oldest message that waits and could run now.\n" +
	outboxOldest + " Age of the oldest answer that waits to be sent.\n" +
	diskFree + " Free space where DATA_DIR is.\n" +
	diskTotal + " Size of the disk where DATA_DIR is.\n" +
	lastBackup + " When the newest backup in BACKUP_DIR was made.\n" +
	budgetUsed + " The part of the day's budget that is used.\n" +
	sweepRings + " Conversations with work that a sweep found without a live lease.\n" +
	leaseLost + " Turns that were stopped because another process took their conversation.\n" +
	sends + " Attempts to send or edit a platform message.\n" +
	rateLimited + " Calls that a platform refused because there were too many.\n" +
	toolCalls + " Tools that the bot ran for a model; all tools of MCP servers count as \"mcp\".\n" +
	toolSeconds + " Duration of the tools that the bot ran for a model.\n" +
	requests + " Requests to model APIs: ok, canceled, overflow (too long for the model) or the kind of error. Those of external agents are not seen.\n" +
	firstToken + " Time from a model request to the first text.\n" +
	tokens + " Tokens that providers counted; cached ones are among the input.\n" +
	cost + " What models cost in US dollars, as far as prices are known.\n" +
	approvals + " Questions whether something may run or go on, when they were settled: approved, denied, expired or withdrawn (the turn ended).\n" +
	approvalSeconds + " Time from such a question until it was settled.\n" +
	statements + " Statements given to the database; begin, commit and rollback are not among them.\n" +
	commits + " Transactions that were committed to the database.\n" +
	egressTotal + " Connections that programs of assistants asked the proxy for: connected, refused or failed.\n" +
	buildInfo + " Always 1.\n"

// New returns metrics that start at zero. version labels bot_build_info.
func New(version string) *Metrics {
	victoria.ExposeMetadata(true)
	set := victoria.NewSet()
	set.GetOrCreateGauge(fmt.Sprintf("%s{version=%q}", buildInfo, version), nil).Set(1)
	return &Metrics{
		set:        set,
		halted:     set.GetOrCreateGauge(halted, nil),
		running:    set.GetOrCreateGauge(active, nil),
		waiting:    set.GetOrCreateGauge(waiting, nil),
		sweepRings: set.GetOrCreateCounter(sweepRings),
		leaseLost:  set.GetOrCreateCounter(leaseLost),
		statements: set.GetOrCreateCounter(statements),
		commits:    set.GetOrCreateCounter(commits),
	}
}

// Handler serves the metrics in the text format of Prometheus, with those of Go and of
// the process; of a nil Metrics it answers 404.
func (m *Metrics) Handler() http.Handler {
	if m == nil {
		return http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var text bytes.Buffer
		m.set.WritePrometheus(&text)
		if m.figures != nil {
			m.figures(r.Context()).write(&text)
		}
		victoria.WriteProcessMetrics(&text)
		victoria.WriteFDMetrics(&text)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		for line := range bytes.Lines(text.Bytes()) {
			if name, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("# HELP ")); ok {
				if _, text, ok := strings.Cut(help, "\n"+string(name)+" "); ok {
					text, _, _ = strings.Cut(text, "\n")
					line = fmt.Appendf(nil, "# HELP %s %s\n", name, text)
				}
			}
			if _, err := w.Write(line); err != nil {
				return // whoever asked is gone
			}
		}
	})
}

// series returns a metric with labels, which are names with their values, in the order
// of the alphabet.
func (m *Metrics) series(name string, labels ...string) string {
	var b strings.Builder
	b.WriteString(name)
	separator := "{"
	for pair := range slices.Chunk(labels, 2) {
		b.WriteString(separator + pair[0] + `="` + m.labels.get(pair[1]) + `"`)
		separator = ","
	}
	b.WriteByte('}')
	return b.String()
}

func (m *Metrics) count(n int, name string, labels ...string) {
	if m != nil {
		m.set.GetOrCreateCounter(m.series(name, labels...)).Add(n)
	}
}

func (m *Metrics) took(d time.Duration, name string, buckets []float64, labels ...string) {
	if m != nil {
		m.set.GetOrCreatePrometheusHistogramExt(m.series(name, labels...), buckets).Update(d.Seconds())
	}
}

// Received counts an event that was stored for the first time.
func (m *Metrics) Received(platform, kind string) {
	m.count(1, received, "kind", kind, "platform", platform)
}

// Deduplicated counts an event that was stored before.
func (m *Metrics) Deduplicated(platform, kind string) {
	m.count(1, deduplicated, "kind", kind, "platform", platform)
}

// Refused counts a message of a stranger.
func (m *Metrics) Refused(platform string) { m.count(1, refused, "platform", platform) }

// Overflowed counts a message that was not taken because too many of the same
// person wait.
func (m *Metrics) Overflowed(platform string) { m.count(1, overflowed, "platform", platform) }

// Egress counts a connection that a program asked for. kind is one of agent, mcp
// and tool, outcome one of connected, refused and failed.
func (m *Metrics) Egress(kind, outcome string) {
	m.count(1, egressTotal, "kind", kind, "outcome", outcome)
}

// KeptRaw counts an event that could not be understood.
func (m *Metrics) KeptRaw(platform string) { m.count(1, keptRaw, "platform", platform) }

// WebhookRejected counts a webhook call that was refused with an HTTP status, whose name
// is the reason.
func (m *Metrics) WebhookRejected(platform string, status int) {
	m.count(1, webhookRejected, "platform", platform, "reason", strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_"))
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
	m.took(took, ackSeconds, ackBuckets, "platform", platform)
}

// Connected records whether a platform is connected.
func (m *Metrics) Connected(platform string, on bool) {
	if m == nil {
		return
	}
	value := 0.0
	if on {
		value = 1
	}
	m.set.GetOrCreateGauge(m.series(connected, "platform", platform), nil).Set(value)
}

// Platform counts something that the adapter of a platform noticed. event is one of its few
// fixed names; all adapters say "rate_limited" of a call that was refused as one too many.
func (m *Metrics) Platform(platform, event string) {
	m.count(1, platformEvents, "event", event, "platform", platform)
	if event == "rate_limited" {
		m.count(1, rateLimited, "platform", platform)
	}
}

// TurnEnded counts a run of a turn. trigger is "message", "command", "button" or "schedule".
// outcome is "answered", "stopped" or "failed", or, if the turn runs again, "retried", "parked",
// "waiting" or "interrupted".
func (m *Metrics) TurnEnded(assistant, trigger, outcome string, took time.Duration) {
	m.count(1, runs, "assistant", assistant, "outcome", outcome, "trigger", trigger)
	m.took(took, runSeconds, turnBuckets, "assistant", assistant, "outcome", outcome, "trigger", trigger)
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

// ToolRan counts a tool that the program ran for a model. outcome is "ok" or "error".
func (m *Metrics) ToolRan(tool, outcome string, took time.Duration) {
	if strings.HasPrefix(tool, "mcp__") { // each server has its own, and labels are bounded
		tool = "mcp"
	}
	m.count(1, toolCalls, "outcome", outcome, "tool", tool)
	m.took(took, toolSeconds, turnBuckets, "outcome", outcome, "tool", tool)
}

// Approval counts a question to a person that was settled. outcome is "approved", "denied",
// "expired" or "withdrawn".
func (m *Metrics) Approval(outcome string, waited time.Duration) {
	m.count(1, approvals, "outcome", outcome)
	m.took(waited, approvalSeconds, waitBuckets, "outcome", outcome)
}

// SweepRang counts conversations that a sweep found with work and no lease.
func (m *Metrics) SweepRang(n int) {
	if m != nil && n > 0 {
		m.sweepRings.Add(n)
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
	m.count(1, sends, "outcome", outcome, "platform", platform)
}

// NameModels has models labeled with what name returns, few different names for whatever
// people choose, without what stands before a slash and in lower case. It is called before
// anything is counted; until then all are "other".
func (m *Metrics) NameModels(name func(model string) string) {
	if m != nil {
		m.nameModel = name
	}
}

// model is the label of a model: a word without the prefix of a provider.
func (m *Metrics) model(name string) string {
	if m == nil || m.nameModel == nil {
		return "other"
	}
	name = m.nameModel(name)
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	name = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' {
			return c
		}
		return '-'
	}, name)
	return name[:min(len(name), maxLabel)]
}

// Requested counts a request to a model API. outcome is "ok", "canceled", "overflow", if it was
// too long for the model, or another kind of fault.
func (m *Metrics) Requested(provider, model, outcome string) {
	m.count(1, requests, "model", m.model(model), "outcome", outcome, "provider", provider)
}

// FirstToken records how long a model took to say its first word.
func (m *Metrics) FirstToken(provider, model string, took time.Duration) {
	m.took(took, firstToken, turnBuckets, "model", m.model(model), "provider", provider)
}

// Used is what a model used: tokens, of which the cached ones are among the input, and what
// they cost in millionths of a US dollar, zero if that is not known.
type Used struct{ Input, Output, Cached, Micros int64 }

// Use counts what a model used.
func (m *Metrics) Use(provider, model string, u Used) {
	if m == nil {
		return
	}
	model = m.model(model)
	for _, kind := range []struct {
		name string
		n    int64
	}{{"input", u.Input}, {"output", u.Output}, {"cached", u.Cached}} {
		if kind.n > 0 {
			m.count(int(kind.n), tokens, "kind", kind.name, "model", model, "provider", provider)
		}
	}
	if u.Micros > 0 {
		m.set.GetOrCreateFloatCounter(m.series(cost, "model", model, "provider", provider)).Add(float64(u.Micros) / 1e6)
	}
}

// maxLabels is how many different label values there may be in all.
const maxLabels = 200

// maxLabel is the most bytes of one.
const maxLabel = 40

var labelPattern = pattern.Lazy(`^[a-z][a-z0-9_.-]{0,39}$`)

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
