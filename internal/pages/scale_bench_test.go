//go:build unix

package pages_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/pages"
	"remote-agent/internal/signin"
	"remote-agent/internal/store/storetest"
)

var (
	usedSessions = flag.Int("used-sessions", 100_000, "sessions of ten messages in the database of BenchmarkEveryPage")
	usedKept     = flag.String("used-kept", "", "folder in which that database is kept for the next time (on PostgreSQL on the server of TEST_DATABASE_URL)")
	pagesOnly    = flag.String("only-pages", ".", "which paths BenchmarkEveryPage asks for")
)

// BenchmarkEveryPage asks for every page of a database that was used for years. bytes are
// those of the page, p50 and p95 how long it took, cpu what it took of a core in the mean,
// without that of a server of PostgreSQL.
func BenchmarkEveryPage(b *testing.B) {
	for _, kind := range []string{"SQLite", "Postgres"} {
		b.Run(kind, func(b *testing.B) {
			began := time.Now()
			s := storetest.UsedIn(b, kind, *usedSessions, *usedKept)
			b.Logf("%d sessions in %v", *usedSessions, time.Since(began).Round(time.Second))
			w := newWorld(b, s, func(c *pages.Config) { c.PublicURL = "" })
			w.talks()
			for _, who := range []struct {
				name string
				as   signin.Account
			}{{"owner", ann}, {"member", bob}, {"busy", cat}} {
				for _, path := range usedPaths(*usedSessions, who.as == ann) {
					if regexp.MustCompile(*pagesOnly).MatchString(path) {
						b.Run(who.name+" "+strings.NewReplacer("00000000-0000-7000-", "").Replace(path), func(b *testing.B) { w.timed(b, who.as, path) })
					}
				}
			}
		})
	}
}

// usedPaths are the pages that there are.
func usedPaths(n int, owner bool) []string {
	session := func(i int) string { return "/sessions/" + storetest.UsedID(2, i) }
	before := func(i int) string { return "before=" + storetest.UsedID(2, i) }
	of := url.Values{"repository": {storetest.UsedID(4, 7)}}.Encode()
	list := []string{
		"/", "/sessions", "/sessions?" + before(n/2), "/sessions?" + before(n/100), "/sessions?state=running", "/sessions?state=failed",
		"/sessions?state=failed&" + before(n/100), "/sessions?state=completed", "/sessions?platform=telegram", "/sessions?platform=web", "/sessions?platform=none",
		"/sessions?assistant=acp", "/sessions?assistant=none", "/sessions?" + of, "/sessions?" + of + "&" + before(n/100), "/sessions?state=failed&platform=web&assistant=acp",
		"/sessions?q=word77", "/sessions?q=tenth", "/sessions?q=test", "/sessions?q=nothingofthekind", "/sessions?q=test&platform=web", "/sessions?q=tenth&" + before(n/100),
		"/approvals", "/repos", "/costs", "/costs?since=all", "/costs?by=model", "/memory", "/agents", "/docs", "/docs/operations", "/account", "/chat",
	}
	for _, by := range []string{"codebase", "model", "conversation"} {
		list = append(list, "/costs?since=all&by="+by, "/costs?since=365d&by="+by)
	}
	if !owner {
		return list
	}
	for _, i := range []int{1, 2, n} {
		list = append(list, session(i))
		for _, tab := range []string{"timeline", "changes", "plan", "events", "cost"} {
			list = append(list, session(i)+"?tab="+tab)
		}
	}
	return append(list, session(1)+"?before=5000", "/sessions?person=telegram/42", "/sessions?person=telegram/43", "/sessions?person=telegram/1", "/sessions?person=telegram/none&platform=slack",
		"/agents/new", "/approvals/"+approval.Approval{Number: 250}.Name(), "/chat/"+storetest.UsedID(6, 1), "/chat/"+storetest.UsedID(6, 2000), "/queue", "/repos/"+storetest.UsedID(4, 7), "/costs?since=all&by=person", "/memory?q=server", "/people", "/audit", "/audit?q=nothing", "/audit?actor=telegram/42", "/platforms", "/backups", "/settings")
}

// load is the load average of the machine, without which no time says much; 0 where it is
// not known.
func load() (l float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &l)
	}
	if err != nil {
		return 0
	}
	return l
}

// unmeasured are pages that show nothing of what a database has much of.
var unmeasured = map[string]string{
	"/agents/{id}":  "a profile, as on /agents",
	"/setup":        "the configuration, from its file",
	"/setup/{step}": "as /setup",
}

// Every page is either measured or named with the reason why not.
func TestEveryPageIsMeasured(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	missing, unmeasured := make(map[string]bool), maps.Clone(unmeasured)
	for _, name := range sources {
		text, err := os.ReadFile(name) //nolint:gosec // sources of this package
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`to\.page\("(GET ([^"]+))"`).FindAllStringSubmatch(string(text), -1) {
			mux.HandleFunc(m[1], http.NotFound)
			if missing[m[1]] = unmeasured[m[2]] == ""; !missing[m[1]] {
				delete(unmeasured, m[2])
			}
		}
	}
	if len(missing) < 20 {
		t.Fatalf("only %d pages: %v", len(missing), missing)
	}
	for _, path := range usedPaths(100_000, true) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, pattern := mux.Handler(r)
		missing[pattern] = false
	}
	for pattern, is := range missing {
		if is {
			t.Errorf("no path of usedPaths is of %s", pattern)
		}
	}
	if len(unmeasured) > 0 {
		t.Errorf("there are no such pages: %v", unmeasured)
	}
}

// timed asks for a page until it is known how long it takes.
func (w *world) timed(b *testing.B, who signin.Account, path string) {
	b.Helper()
	took, size, busy := make([]time.Duration, 0, 32), 0, time.Duration(0)
	for b.Loop() {
		reader := w.browser()
		w.arrived++
		reader.from = fmt.Sprintf("10.0.%d.%d:1000", w.arrived/250, w.arrived%250) // an address may try a few times only
		if r := reader.send("POST", "/sign-in", url.Values{"k": {w.link(who)}}); r.Code != http.StatusSeeOther {
			b.Fatalf("signing in: %d %s", r.Code, r.Body)
		}
		before := used(b)
		for range 20 {
			at := time.Now()
			size = len(reader.get(path))
			took = append(took, time.Since(at))
		}
		busy += used(b) - before
	}
	b.ReportMetric(float64(busy.Microseconds())/1000/float64(len(took)), "cpu-ms")
	slices.Sort(took)
	part := func(percent int) float64 { return float64(took[len(took)*percent/100].Microseconds()) / 1000 }
	b.ReportMetric(part(50), "p50-ms")
	b.ReportMetric(part(95), "p95-ms")
	b.ReportMetric(float64(size), "bytes")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(load(), "load")
	if size > 300_000 {
		b.Errorf("%d bytes", size)
	}
}
