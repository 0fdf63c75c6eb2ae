package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/metrics"
)

func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d", rec.Code)
	}
	return rec.Body.String()
}

func use(m *metrics.Metrics) {
	m.Received("telegram", "message")
	m.Deduplicated("telegram", "message")
	m.Refused("telegram")
	m.KeptRaw("telegram")
	m.WebhookRejected("telegram", http.StatusUnauthorized)
	m.Acknowledged("telegram", 2*time.Millisecond)
	m.Connected("telegram", true)
	m.Platform("telegram", "poll_conflict")
	m.Platform("telegram", "rate_limited")
	m.TurnEnded("demo", "message", "answered", time.Second)
	m.Running(2)
	m.Running(-1)
	m.Waiting(3)
	m.ToolRan("bash", "ok", time.Second)
	m.ToolRan("mcp__weather__forecast", "error", time.Second)
	m.Approval("approved", 10*time.Minute)
	m.SweepRang(4)
	m.LeaseLost()
	m.Delivered("telegram", "sent")
	m.NameModels(strings.ToLower)
	m.Requested("openai", "vendor/Model:8B", "ok")
	m.FirstToken("openai", "vendor/Model:8B", time.Second)
	m.Use("openai", "vendor/Model:8B", metrics.Used{Input: 55, Cached: 5, Micros: 1_250_000})
	m.Use("openai", "vendor/Model:8B", metrics.Used{Output: 7, Micros: 250_000})
	for _, asked := range []string{"begin", "SELECT 1", "SELECT 2", "commit", "begin", "SELECT 3", "rollback"} {
		m.Statement(asked)
	}
}

func TestEveryMetricIsServed(t *testing.T) {
	t.Parallel()
	m := metrics.New("v1")
	use(m)
	text := scrape(t, m)
	for _, want := range []string{
		`bot_messages_received_total{kind="message",platform="telegram"} 1`,
		`bot_messages_deduplicated_total{kind="message",platform="telegram"} 1`,
		`bot_messages_refused_total{platform="telegram"} 1`,
		`bot_messages_kept_raw_total{platform="telegram"} 1`,
		`bot_webhook_rejected_total{platform="telegram",reason="unauthorized"} 1`,
		`bot_ack_seconds_bucket{platform="telegram",le="0.0025"} 1`,
		`bot_platform_connected{platform="telegram"} 1`,
		`bot_platform_events_total{event="poll_conflict",platform="telegram"} 1`,
		`bot_rate_limited_total{platform="telegram"} 1`,
		`bot_tool_calls_total{outcome="ok",tool="bash"} 1`,
		`bot_tool_calls_total{outcome="error",tool="mcp"} 1`,
		`bot_tool_seconds_count{outcome="ok",tool="bash"} 1`,
		`bot_approvals_total{outcome="approved"} 1`,
		`bot_approval_wait_seconds_bucket{outcome="approved",le="900"} 1`,
		`bot_runs_total{assistant="demo",outcome="answered",trigger="message"} 1`,
		`bot_run_seconds_count{assistant="demo",outcome="answered",trigger="message"} 1`,
		`bot_runs_active 1`,
		`bot_runs_waiting 3`,
		`bot_sweep_rings_total 4`,
		`bot_lease_lost_total 1`,
		`bot_outbox_sends_total{outcome="sent",platform="telegram"} 1`,
		`bot_provider_requests_total{model="model-8b",outcome="ok",provider="openai"} 1`,
		`bot_provider_first_token_seconds_count{model="model-8b",provider="openai"} 1`,
		`bot_tokens_total{kind="input",model="model-8b",provider="openai"} 55`,
		`bot_tokens_total{kind="output",model="model-8b",provider="openai"} 7`,
		`bot_tokens_total{kind="cached",model="model-8b",provider="openai"} 5`,
		`bot_cost_usd_total{model="model-8b",provider="openai"} 1.5`,
		`bot_database_statements_total 3`,
		`bot_database_commits_total 1`,
		`bot_build_info{version="v1"} 1`,
		`go_goroutines `,
		`process_open_fds `,
		"# HELP bot_ack_seconds Time from receiving events to having stored them.\n# TYPE bot_ack_seconds histogram\n",
		"# TYPE bot_runs_active gauge\n",
		"# TYPE bot_runs_total counter\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestFiguresAreMeasuredWhenSomebodyAsks(t *testing.T) {
	t.Parallel()
	m, figures := metrics.New("v1"), metrics.Figures{
		Inbox: metrics.Backlog{Known: true, Depth: 3, Oldest: 90 * time.Second}, Outbox: metrics.Backlog{Known: true},
		Disk: metrics.Disk{Free: 10_000_000_000, Total: 40_000_000_000}, Backup: time.Unix(1_700_000_000, 0), Budget: 0.75,
		Stalled: metrics.Stalled{Model: 2, Tool: 1},
	}
	m.Measure(func(context.Context) metrics.Figures { return figures })
	text := scrape(t, m)
	for _, want := range []string{
		"# HELP bot_queue_depth Messages that wait for their turn, and answers that wait to be sent, in the whole service.\n# TYPE bot_queue_depth gauge\n" +
			"bot_queue_depth{queue=\"inbox\"} 3\nbot_queue_depth{queue=\"outbox\"} 0\n",
		"\nbot_queue_oldest_seconds{queue=\"inbox\"} 90\n", "\nbot_outbox_oldest_seconds 0\n",
		"\nbot_disk_free_bytes 10000000000\n", "\nbot_disk_total_bytes 40000000000\n",
		"\nbot_backup_last_success_timestamp_seconds 1700000000\n", "\nbot_budget_used_ratio{scope=\"day\"} 0.75\n",
		"\nbot_runs_stalled{reason=\"command\"} 0\nbot_runs_stalled{reason=\"model\"} 2\nbot_runs_stalled{reason=\"tool\"} 1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	figures = metrics.Figures{Budget: -1}
	text = scrape(t, m)
	for _, unknown := range []string{"bot_queue_", "bot_outbox_oldest", "bot_disk_", "bot_backup_", "bot_budget_"} {
		if strings.Contains(text, unknown) {
			t.Errorf("%s… is served although it is not known", unknown)
		}
	}
}

func TestNilDoesNothing(t *testing.T) {
	t.Parallel()
	var m *metrics.Metrics
	m.Measure(nil)
	use(m)
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusNotFound {
		t.Errorf("status %d, want 404", rec.Code)
	}
}

func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New("v1")
	for _, bad := range []string{"", "Alice Smith", "123456789", "a\xff", strings.Repeat("a", 41), "owner/repo"} {
		m.Refused(bad)
	}
	if text := scrape(t, m); !strings.Contains(text, `bot_messages_refused_total{platform="other"} 6`) {
		t.Error("odd labels are not counted as other")
	}
	m.Requested("openai", "whatever-people-choose", "ok")
	m.NameModels(func(string) string { return "Ünïted " + strings.Repeat("é", 50) })
	m.Requested("openai", "whatever-people-choose", "ok")
	if text := scrape(t, m); strings.Count(text, `bot_provider_requests_total{model="other",outcome="ok",provider="openai"} 2`) != 1 {
		t.Errorf("models that nobody has named are counted otherwise:\n%s", text)
	}
	for i := range 10_000 {
		m.Refused(fmt.Sprintf("p%d", i))
	}
	if n := strings.Count(scrape(t, m), "bot_messages_refused_total{"); n > 201 {
		t.Errorf("%d series", n)
	}
}
