package metrics_test

import (
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
	m.Platform("poll_conflict")
	m.TurnEnded("demo", "answered", time.Second)
	m.Running(2)
	m.Running(-1)
	m.SweepRang(4)
	m.LeaseLost()
	m.Delivered("telegram", "sent")
	m.FirstToken("demo", time.Second)
	m.Tokens("demo", "input", 55)
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
		`bot_platform_events_total{event="poll_conflict"} 1`,
		`bot_runs_total{assistant="demo",outcome="answered"} 1`,
		`bot_run_seconds_count{assistant="demo",outcome="answered"} 1`,
		`bot_runs_active 1`,
		`bot_sweep_rings_total 4`,
		`bot_lease_lost_total 1`,
		`bot_outbox_sends_total{outcome="sent",platform="telegram"} 1`,
		`bot_provider_first_token_seconds_count{assistant="demo"} 1`,
		`bot_tokens_total{assistant="demo",kind="input"} 55`,
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

func TestNilDoesNothing(t *testing.T) {
	t.Parallel()
	var m *metrics.Metrics
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
	for i := range 10_000 {
		m.Refused(fmt.Sprintf("p%d", i))
	}
	if n := strings.Count(scrape(t, m), "bot_messages_refused_total{"); n > 201 {
		t.Errorf("%d series", n)
	}
}
