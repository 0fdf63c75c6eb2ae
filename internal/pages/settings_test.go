//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"remote-agent/internal/doctor"
	"remote-agent/internal/pages"
)

// settingsOf are options as a program could have them.
func settingsOf() ([]pages.Setting, []string) {
	return []pages.Setting{
		{Name: "LISTEN_ADDR", Group: "Server", Help: "Where to listen.", Text: "127.0.0.1:3000", Origin: "default"},
		{Name: "PUBLIC_URL", Group: "Server", Help: evil, Text: evil, Origin: "flag --public-url", Set: true},
		{Name: "OPENAI_API_KEY", Group: "Model", Help: "Key.", Text: "[redacted]", Origin: "environment", Live: true, Set: true},
	}, []string{evil}
}

func TestSettingsShowWhereValuesComeFrom(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner := w.as(ann)
		wants(t, owner.get("/settings"), "Everything is at its default.", "Not run since the start.")
		w.settings = settingsOf
		page := owner.get("/settings")
		clean(t, "/settings", page)
		wants(t, page, "flag --public-url", "environment", "[redacted]", "<td>live</td>", "<td>restart</td>", "⚠ ", "<h3>Model</h3>")
		if strings.Contains(page, "LISTEN_ADDR") {
			t.Error("a default is shown as set")
		}
		wants(t, owner.get("/settings?show=all"), "LISTEN_ADDR", "127.0.0.1:3000", "<td>default</td>")
		for _, query := range []string{"show=none", "show=all&show=all", "show=" + strings.Repeat("x", 400)} {
			if r := owner.send("GET", "/settings?"+query, nil); r.Code != http.StatusBadRequest {
				t.Errorf("GET /settings?%s: %d", query, r.Code)
			}
		}
		for _, who := range []*browser{w.as(bob), w.as(cat)} {
			if r := who.send("GET", "/settings", nil); r.Code != http.StatusForbidden || strings.Contains(r.Body.String(), "LISTEN_ADDR") || strings.Contains(r.Body.String(), `href="/settings"`) {
				t.Errorf("others see the settings: %d", r.Code)
			}
			if r := who.post("/settings/check", url.Values{}); r.Code != http.StatusForbidden {
				t.Errorf("others run the checks: %d", r.Code)
			}
		}
	})
}

func TestTheChecksOfDoctorRunFromThePage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.settings = settingsOf
		w.check = func(_ context.Context, area string) doctor.Report {
			if area != "" {
				t.Errorf("only %q was checked", area)
			}
			return doctor.Report{OK: 4, Warnings: 1, Findings: []doctor.Finding{{Area: "database", Check: "backup", Status: doctor.Warn, Detail: "the newest is 9 days old", Fix: "bot backup create"}}}
		}
		owner := w.as(ann)
		wants(t, owner.follow(owner.post("/settings/check", url.Values{})), "Checked: 4 ok, 1 warning.", "the newest is 9 days old", "<code>bot backup create</code>", "just now")
		w.check = func(context.Context, string) doctor.Report { panic("broken") }
		wants(t, owner.follow(owner.post("/settings/check", url.Values{})), "It failed; the log has the reason.")
		if !strings.Contains(w.log.String(), "a job of a page panicked") {
			t.Error("the log does not say so")
		}
	})
}
