//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"encoding/csv"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/pages"
	"remote-agent/internal/signin"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// used adds what somebody used of a model some days ago, for so many millionths of a
// dollar; none: it has no price.
func (w *world) used(s settled, actor, model string, days int, tokens, micros int64) {
	w.t.Helper()
	r := spend.Record{ConversationID: s.conversation.ID, SessionID: s.session.ID, EntryID: s.entry, Actor: actor, Assistant: "demo", Model: model,
		Usage: assistant.Usage{InputTokens: tokens, OutputTokens: tokens / 10}, Micros: micros, Known: micros > 0, At: w.now.AddDate(0, 0, -days)}
	w.do(func(ctx context.Context, tx *store.Tx) error { return tx.Spending().AddUsage(ctx, r) })
}

func TestCostsAreOfAllToOwnersAndOnesOwnToOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner := w.as(ann)
		wants(t, owner.get("/costs"), "Nothing was used in this period.", "There are no limits.")
		s := w.fill()
		w.used(s, "telegram/42", "gpt-5-mini", 0, 20_000, 140_000)
		w.used(s, "telegram/42", "gpt-5-mini", 3, 10_000, 70_000)
		w.used(s, "telegram/77", evilName, 3, 5000, 0)
		w.used(s, "telegram/77", "gpt-5-mini", 60, 999_000, 9_000_000)
		day := func(n int) string { return w.now.AddDate(0, 0, -n).Format(time.DateOnly) }

		page := owner.get("/costs")
		wants(t, page, "39k tokens · $0.21", "<svg class=\"chart\" viewBox=\"0 0 140 100\"", `<th scope="col" class="num">Tokens in</th>`, `aria-label="Day, , Cost, Turns`, "Usage by day from "+day(3)+" to "+day(0),
			`<th scope="row">`+day(0)+`</th>`, `<td class="num">$0.140000</td>`, `<td class="num">$0.070000</td>`, `<td class="num">$0.210000</td>`, `<rect width="50" height="10">`)
		if strings.Contains(page, "$9") || strings.Contains(page, day(60)) {
			t.Errorf("30 days are more:\n%s", page)
		}
		if n := strings.Count(page, "<rect x="); n != 2 {
			t.Errorf("the chart has %d bars", n)
		}
		wants(t, owner.get("/costs?since=all"), "$9.21", day(60))
		wants(t, owner.get("/costs?by=person"), "telegram/42", "telegram/77", `<td class="num">6k</td>`)
		wants(t, owner.get("/costs?by=model"), "gpt-5-mini", "&lt;script&gt;")
		wants(t, owner.get("/costs?by=codebase"), "(none or deleted)")
		wants(t, owner.get("/costs?since="+day(3)+"&until="+day(1)), "$0.07", `href="/costs.csv?by=day&amp;since=`+day(3)+`&amp;until=`+day(1)+`"`)

		member := w.as(bob)
		if strings.Contains(member.get("/costs"), "By person") || !strings.Contains(owner.get("/costs"), "By person") {
			t.Error("the costs by person are not offered to owners, or to others")
		}
		page = member.get("/costs?since=all&by=person")
		wants(t, page, "Costs for your own turns", "$0.21", "telegram/42")
		if strings.Contains(page, "telegram/77") || strings.Contains(page, "$9") {
			t.Errorf("a member sees what others used:\n%s", page)
		}
		file := member.send("GET", "/costs.csv?since=all&by=person", nil).Body.String()
		if strings.Contains(file, "telegram/77") || !strings.Contains(file, "telegram/42") {
			t.Errorf("the file of a member:\n%s", file)
		}
		wants(t, w.as(cat).get("/costs?since=all"), "Nothing was used in this period.")
		if r := w.browser().send("GET", "/costs.csv", nil); r.Code != http.StatusUnauthorized {
			t.Errorf("the file without a session: %d", r.Code)
		}
	})
}

func TestBudgetsAreBesideTheCosts(t *testing.T) {
	t.Parallel()
	eachWith(t, func(c *pages.Config) {
		c.About.Budget = func() spend.Budget {
			return spend.Budget{DayMicros: 20_000_000, PersonMicros: 280_000, TurnTokens: 500_000, DayTokens: 10_000}
		}
	}, func(t *testing.T, w *world) {
		s := w.fill()
		w.used(s, "telegram/42", "gpt-5-mini", 0, 20_000, 140_000)
		w.used(s, "telegram/77", "gpt-5-mini", 0, 20_000, 4_860_000)
		w.used(s, "telegram/77", "local", 0, 5000, 0)
		wants(t, w.as(ann).get("/costs"), "Today, everyone: $5.00 of $20.00<progress max=\"100\" value=\"25\">", "everyone: 6k of 10k tokens without price data", "One turn: at most 500k tokens")
		page := w.as(bob).get("/costs")
		wants(t, page, "Today, you: $0.14 of $0.28<progress max=\"100\" value=\"50\">")
		if strings.Contains(page, "$20.00") {
			t.Errorf("a member sees the budget of all:\n%s", page)
		}
	})
}

func TestCostsAsAFile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		for _, model := range []string{"=1+1", "+1+1", "-x", "@SUM(A1)", "\tx", "plain"} {
			w.used(s, "telegram/42", model, 0, 1000, 10)
		}
		r := w.as(ann).send("GET", "/costs.csv?by=model", nil)
		if got := r.Header().Get("Content-Disposition"); r.Code != http.StatusOK || got != `attachment; filename="costs-by-model.csv"` || !strings.HasPrefix(r.Header().Get("Content-Type"), "text/csv") {
			t.Errorf("the file: %d, %s", r.Code, got)
		}
		rows, err := csv.NewReader(r.Body).ReadAll()
		if err != nil || len(rows) != 7 || rows[0][0] != "model" {
			t.Fatalf("the file: %v, %v", rows, err)
		}
		for _, row := range rows[1:] {
			if strings.ContainsAny(row[0][:1], "=+-@\t") || row[5] != "10" {
				t.Errorf("a row: %q", row)
			}
		}
	})
}

func TestCostsRefuseWhatTheyCannotRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		b := w.as(ann)
		for query, want := range map[string]string{
			"by=nothing":                         "Costs cannot be grouped by",
			"since=" + url.QueryEscape(evilName): "is not a time",
			"until=never":                        "is not a day",
			"since=2020-02-01&until=2020-01-01":  "The period ends before it begins",
			"by=day&by=model":                    "more than once",
			"since=" + strings.Repeat("1", 301):  "too long",
		} {
			for _, path := range []string{"/costs?", "/costs.csv?"} {
				r := b.send("GET", path+query, nil)
				if r.Code != http.StatusBadRequest {
					t.Errorf("GET %s%s: %d", path, query, r.Code)
				}
				wants(t, r.Body.String(), want)
				clean(t, query, r.Body.String())
			}
		}
	})
}

func TestManySumsFitOnAPage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for i := range 300 {
				err := tx.Spending().AddUsage(ctx, spend.Record{ConversationID: s.conversation.ID, Actor: "telegram/" + strconv.Itoa(i), Assistant: "demo", Model: strings.Repeat("&", 200) + strconv.Itoa(i),
					Usage: assistant.Usage{InputTokens: 100}, At: w.now.AddDate(0, 0, -i)})
				if err != nil {
					return err
				}
			}
			return nil
		})
		for _, by := range []string{"day", "person", "model"} {
			page := w.as(ann).get("/costs?since=all&by=" + by)
			wants(t, page, "The first 100 are shown; the file has more.")
			if n := strings.Count(page, `<th scope="row">`); n != 101 || len(page) > 300<<10 {
				t.Errorf("by %s: %d rows, %d bytes", by, n, len(page))
			}
		}
	})
}

// TestTheFirstPageHasOnesOwnSpending: owners see what all people spent today, everybody
// else what they spent themselves.
func TestTheFirstPageHasOnesOwnSpending(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.used(s, "telegram/42", "gpt-5-mini", 0, 20_000, 140_000)
		w.used(s, "telegram/42", "gpt-5-mini", 1, 20_000, 5_000_000) // not today
		w.used(s, "telegram/77", "gpt-5-mini", 0, 70_000, 9_000_000)
		w.used(s, "slack/42", "gpt-5-mini", 0, 10_000, 3_000_000) // of the same id elsewhere
		w.used(s, "console/local", "gpt-5-mini", 0, 10_000, 1_000_000)
		for who, want := range map[signin.Account]string{
			ann: "Today, everyone</h2><p>121k tokens · $13.14 in",
			bob: "Today, you</h2><p>22k tokens · $0.14 in",
			cat: "Today, you</h2><p>0 tokens",
		} {
			_, page, _ := strings.Cut(w.as(who).get("/"), `<h2 id="today">`)
			page, _, _ = strings.Cut(page, "<h2")
			if !strings.HasPrefix(page, want) {
				t.Errorf("%s: %q", who, page)
			}
		}
	})
}
