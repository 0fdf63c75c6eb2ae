package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

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
	m.TurnEnded("demo", "answered", time.Second)
	m.Running(2)
	m.Running(-1)
	m.Waiting(3)
	m.ToolRan("bash", "ok")
	m.ToolRan("mcp__weather__forecast", "error")
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
		`bot_platform_events_total{event="poll_conflict",platform="telegram"} 1`,
		`bot_rate_limited_total{platform="telegram"} 1`,
		`bot_tool_calls_total{outcome="ok",tool="bash"} 1`,
		`bot_tool_calls_total{outcome="error",tool="mcp"} 1`,
		`bot_runs_total{assistant="demo",outcome="answered"} 1`,
		`bot_run_seconds_count{assistant="demo",outcome="answered"} 1`,
		`bot_runs_active 1`,
		`bot_runs_waiting 3`,
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

func TestFiguresAreMeasuredWhenSomebodyAsks(t *testing.T) {
	t.Parallel()
	m, figures := metrics.New("v1"), metrics.Figures{
		Inbox: metrics.Backlog{Known: true, Depth: 3, Oldest: 90 * time.Second}, Outbox: metrics.Backlog{Known: true},
		Disk: metrics.Disk{Free: 10_000_000_000, Total: 40_000_000_000}, Backup: time.Unix(1_700_000_000, 0), Budget: 0.75,
	}
	m.Measure(func(context.Context) metrics.Figures { return figures })
	text := scrape(t, m)
	for _, want := range []string{
		"# HELP bot_queue_depth Messages that wait for their turn, and answers that wait to be sent, in the whole service.\n# TYPE bot_queue_depth gauge\n" +
			"bot_queue_depth{queue=\"inbox\"} 3\nbot_queue_depth{queue=\"outbox\"} 0\n",
		"\nbot_queue_oldest_seconds{queue=\"inbox\"} 90\n", "\nbot_outbox_oldest_seconds 0\n",
		"\nbot_disk_free_bytes 10000000000\n", "\nbot_disk_total_bytes 40000000000\n",
		"\nbot_backup_last_success_timestamp_seconds 1700000000\n", "\nbot_budget_used_ratio{scope=\"day\"} 0.75\n",
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

// TestTheRulesAskForWhatIsServed finds each figure of the rules for Prometheus.
func TestTheRulesAskForWhatIsServed(t *testing.T) {
	t.Parallel()
	m := metrics.New("v1")
	use(m)
	m.Measure(func(context.Context) metrics.Figures {
		return metrics.Figures{Inbox: metrics.Backlog{Known: true}, Outbox: metrics.Backlog{Known: true}, Disk: metrics.Disk{Total: 1}, Backup: time.Now()}
	})
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(rules, &file); err != nil {
		t.Fatal(err)
	}
	text, found := scrape(t, m), 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			for _, name := range regexp.MustCompile(`bot_\w+`).FindAllString(rule.Expr, -1) {
				if found++; !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
					t.Errorf("%s asks for %s, which is not served", rule.Alert, name)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d figures are in the rules", found)
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
	for i := range 10_000 {
		m.Refused(fmt.Sprintf("p%d", i))
	}
	if n := strings.Count(scrape(t, m), "bot_messages_refused_total{"); n > 201 {
		t.Errorf("%d series", n)
	}
}
