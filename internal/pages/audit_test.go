//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/pages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
)

func TestAuditIsSearchedAndVerified(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		sound, broken := "", error(nil)
		w2 := newWorld(t, w.Store, func(c *pages.Config) {
			c.About.AuditSound = func(context.Context) (string, error) { return sound, broken }
		})
		owner := w2.as(ann)
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for i := range 250 {
				e := sessions.AuditEntry{Actor: "telegram/77", Action: "person.allow", Target: fmt.Sprintf("slack/N%d.", i)}
				if i%50 == 0 {
					e = sessions.AuditEntry{Actor: evil, Action: "persona" + evilName, Target: evil, Detail: "100%_sure " + evil}
				}
				if err := tx.Audit(ctx, e); err != nil {
					return err
				}
			}
			return nil
		})
		page := owner.get("/audit")
		clean(t, "/audit", page)
		wants(t, page, "slack/N249.", "Verify the chain", `aria-current="page">Audit`)
		for query, n := range map[string]int{"q=slack/n17.": 1, "q=100%25_SURE": 5, "q=100%25xsure": 0, "person=telegram/77&q=N24": 11 - 1 + 1, "kind=person&q=N248": 1, "kind=person.allow&q=N248": 1, "kind=pers&q=N248": 0, "to=2020-01-01": 0, "from=2099-01-01": 0, "from=2020-01-01&to=2099-01-01&q=N248": 1} {
			page := owner.get("/audit?" + query)
			if got := strings.Count(page, "<td><code>"); got != n {
				t.Errorf("%s: %d rows, want %d", query, got, n)
			}
			clean(t, query, page)
		}
		_, day, _ := strings.Cut(owner.get("/audit?q=N248"), `<time datetime="`)
		day = day[:len(time.DateOnly)]
		if got := strings.Count(owner.get("/audit?q=N248&from="+day+"&to="+day), "<td><code>"); got != 1 {
			t.Errorf("from %s to the same day: %d rows", day, got)
		}
		path, seen := "/audit?person=telegram/77", 0
		for path != "" {
			page := owner.get(path)
			seen += strings.Count(page, "<td><code>person.allow")
			w.do(func(ctx context.Context, tx *store.Tx) error { // meanwhile
				return tx.Audit(ctx, sessions.AuditEntry{Actor: "telegram/77", Action: "person.allow"})
			})
			_, rest, more := strings.Cut(page, `href="/audit?before=`)
			path = ""
			if more {
				rest, _, _ = strings.Cut(rest, `"`)
				path = "/audit?before=" + strings.ReplaceAll(rest, "&amp;", "&")
			}
		}
		if seen != 245 {
			t.Errorf("%d rows on all pages", seen)
		}
		for _, bad := range []string{"from=yesterday", "to=2026-13-01", "before=x", "q=" + strings.Repeat("x", 301), "q=a&q=b"} {
			if r := owner.send("GET", "/audit?"+bad, nil); r.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", bad, r.Code)
			}
		}
		sound = "sound: 17 rows " + evilName
		page = owner.follow(owner.post("/audit/verify", url.Values{}))
		wants(t, page, "sound: 17 rows", "done")
		clean(t, "verified", page)
		broken = &fault.Error{Kind: fault.Internal, Public: "The audit log breaks at row 4."}
		wants(t, owner.follow(owner.post("/audit/verify", url.Values{})), "The audit log breaks at row 4.", "failed")
		for _, who := range []signin.Account{bob, cat} {
			b := w2.as(who)
			if r := b.send("GET", "/audit", nil); r.Code != http.StatusForbidden || strings.Contains(r.Body.String(), `href="/audit"`) {
				t.Errorf("%s sees the audit log: %d", who, r.Code)
			}
			if r := b.post("/audit/verify", url.Values{}); r.Code != http.StatusForbidden {
				t.Errorf("%s verifies it: %d", who, r.Code)
			}
		}
	})
}
