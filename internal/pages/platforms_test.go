//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/doctor"
	"remote-agent/internal/pages"
)

// platformsOf are what a program could be connected to.
func platformsOf(w *world) func() []pages.Connection {
	return func() []pages.Connection {
		return []pages.Connection{
			{Light: pages.Light{Name: "telegram", On: true, Works: true, Detail: "@bot " + evil}, Receives: "fetched by one process at a time", Since: w.now.Add(-3 * time.Hour),
				Measured: true, Left: 0.25, Silent: 2, Until: w.now.Add(time.Hour), Error: evil, ErrorAt: w.now.Add(-time.Hour)},
			{Light: pages.Light{Name: "github", On: true}, Receives: "sent to the webhook", Measured: true, Left: 1, Taken: 41, Refused: 2,
				Hooks: []pages.Hook{{At: w.now, Status: 401}, {At: w.now.Add(-time.Minute), Status: 202}}},
			{Light: pages.Light{Name: "slack", Detail: "`bot setup slack` connects it, or set SLACK_BOT_TOKEN."}},
		}
	}
}

func TestPlatformsAreShownAndTested(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		var asked []string
		w.check = func(_ context.Context, area string) doctor.Report {
			asked = append(asked, area)
			return doctor.Report{OK: 1, Failed: 1, Findings: []doctor.Finding{
				{Area: area, Check: "account", Status: doctor.OK, Detail: evil}, {Area: area, Check: "deliveries", Status: doctor.Fail, Detail: "2 failed", Fix: "open " + evil}}}
		}
		w.connections = platformsOf(w)
		s := w.fill()
		w.deadEnds(s)
		owner := w.as(ann)
		page := owner.get("/platforms")
		clean(t, "/platforms", page)
		wants(t, page, "3 hours ago", "the platform asked to wait in 2 places", "25% left", "1 hour ago", "Last answer that failed", "no answer",
			"41 deliveries accepted, 2 refused", "100% left", "none since the start", "not by this process", "Off: bot setup slack connects it, or set SLACK_BOT_TOKEN.", "Test telegram")
		if strings.Contains(page, "Test slack") {
			t.Error("what is off can be tested")
		}
		page = owner.follow(owner.post("/platforms/test", url.Values{"name": {"telegram"}}))
		clean(t, "the findings", page)
		wants(t, page, "Checked: 1 ok, 1 failed.", "telegram, deliveries: ", "Fix: ")
		if len(asked) != 1 || asked[0] != "telegram" {
			t.Errorf("asked for %q", asked)
		}
		for _, name := range []string{"slack", "", evilName} {
			if r := owner.post("/platforms/test", url.Values{"name": {name}}); r.Code != http.StatusBadRequest {
				t.Errorf("testing %q: %d", name, r.Code)
			}
		}
		if r := w.as(bob).send("GET", "/platforms", nil); r.Code != http.StatusForbidden || strings.Contains(r.Body.String(), `href="/platforms"`) {
			t.Errorf("a member sees the platforms: %d", r.Code)
		}
		if r := w.as(bob).post("/platforms/test", url.Values{"name": {"telegram"}}); r.Code != http.StatusForbidden || len(asked) != 1 {
			t.Errorf("a member tests a platform: %d", r.Code)
		}
	})
}

func TestOneCheckOfAPlatformAtATime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.connections = platformsOf(w)
		gone, leave := context.WithCancel(t.Context())
		begun, finish, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		w.check = func(ctx context.Context, _ string) doctor.Report {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("the checks may take forever")
			}
			close(begun)
			<-finish
			return doctor.Report{OK: 3}
		}
		w.background = func(fn func(ctx context.Context)) bool {
			go func() {
				defer close(over)
				fn(context.WithoutCancel(t.Context()))
			}()
			<-begun
			leave() // who asked does not wait
			return true
		}
		owner := w.as(ann)
		owner.ctx = gone
		first := owner.post("/platforms/test", url.Values{"name": {"github"}})
		owner.ctx = nil
		if first.Code != http.StatusSeeOther {
			t.Errorf("the test of a platform: %d", first.Code)
		}
		w.later(90 * time.Second)
		wants(t, owner.get("/platforms"), "running", "for 1:30")
		if r := owner.post("/platforms/test", url.Values{"name": {"github"}}); r.Code != http.StatusConflict {
			t.Errorf("a second test at once: %d", r.Code)
		}
		close(finish)
		<-over
		wants(t, owner.get("/platforms"), "3 ok, ")
		w.background = func(func(context.Context)) bool { return false }
		if r := owner.post("/platforms/test", url.Values{"name": {"github"}}); r.Code != http.StatusServiceUnavailable {
			t.Errorf("a test while the program stops: %d", r.Code)
		}
	})
}
