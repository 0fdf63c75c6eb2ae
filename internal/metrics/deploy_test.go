package metrics_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"remote-agent/internal/metrics"
)

// served returns what is served by metrics of which each was used.
func served(t *testing.T) string {
	t.Helper()
	m := metrics.New("v1")
	use(m)
	m.Measure(func(context.Context) metrics.Figures {
		return metrics.Figures{Inbox: metrics.Backlog{Known: true}, Outbox: metrics.Backlog{Known: true}, Disk: metrics.Disk{Total: 1}, Backup: time.Now()}
	})
	return scrape(t, m)
}

var (
	figure = regexp.MustCompile(`\b(?:bot|process|go)_\w+`)

	// selector is a figure with the labels that it is chosen by.
	selector = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"[^"]*"`)
	grouping = regexp.MustCompile(`by \(([^)]*)\) \([^{[]*?((?:bot|process|go)_\w+)`)
)

// asksForWhatIsServed finds each figure of a query in text, and the labels that it is chosen and
// grouped by. It returns how many figures there are.
func asksForWhatIsServed(t *testing.T, name, query, text string) (found int) {
	t.Helper()
	for _, f := range figure.FindAllString(query, -1) {
		if found++; !strings.Contains(text, "\n"+f+"{") && !strings.Contains(text, "\n"+f+" ") {
			t.Errorf("%s asks for %s, which is not served", name, f)
		}
	}
	has := func(f, label string) {
		if label != "job" && label != "instance" && !regexp.MustCompile(`\n`+f+`\{[^}]*\b`+label+`="`).MatchString(text) {
			t.Errorf("%s asks for the label %s of %s, which has none", name, label, f)
		}
	}
	for _, s := range selector.FindAllStringSubmatch(query, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			has(s[1], m[1])
		}
		if rest := strings.Trim(matcher.ReplaceAllString(s[2], ""), ", "); rest != "" {
			t.Errorf("%s chooses by %q, which is no matcher", name, rest)
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			has(g[2], strings.TrimSpace(label))
		}
	}
	closes(t, name, query)
	return found
}

// closes reports brackets of a query that do not match, and ranges outside of what takes one.
func closes(t *testing.T, name, query string) {
	t.Helper()
	var open []byte
	for _, c := range []byte(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(query, "")) {
		pair := map[byte]byte{')': '(', ']': '[', '}': '{'}[c]
		switch {
		case strings.IndexByte("([{", c) >= 0:
			open = append(open, c)
		case pair == 0:
		case len(open) == 0 || open[len(open)-1] != pair:
			t.Errorf("%s has a %q too many: %s", name, c, query)
			return
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%s does not close %q: %s", name, open, query)
	}
	query = regexp.MustCompile(`(?:rate|increase)\(\w+(?:\{[^}]*\})?\[[^\]]+\]\)`).ReplaceAllString(query, "")
	if strings.ContainsAny(query, "[]") || regexp.MustCompile(`\b(rate|increase)\(`).MatchString(query) {
		t.Errorf("%s has a range that nothing takes, or rate without one: %s", name, query)
	}
}

// TestTheRulesAskForWhatIsServed finds each figure of the rules for Prometheus.
func TestTheRulesAskForWhatIsServed(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations struct{ Summary string }
			}
		}
	}
	if err := yaml.Unmarshal(rules, &file); err != nil {
		t.Fatal(err)
	}
	text, found := served(t), 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			found += asksForWhatIsServed(t, rule.Alert, rule.Expr, text)
			if rule.Annotations.Summary == "" {
				t.Errorf("%s says nothing", rule.Alert)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d figures are in the rules", found)
	}
}

// lastClassic is the schema of Grafana 12 and 13, and the last of this model of dashboards.
const lastClassic = 42

// board is what a dashboard of Grafana has, as far as it matters here.
type board struct {
	SchemaVersion int
	ID            *int // Grafana gives it
	UID, Title    string
	Inputs        []any `json:"__inputs"` // what an import asks for
	Templating    struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
	Panels []panel
}

type panel struct {
	ID         int
	Type       string
	Title      string
	GridPos    struct{ X, Y, W, H int }
	Datasource *source
	Targets    []struct {
		RefID, Expr, LegendFormat string
		Datasource                source
	}
}

type source struct{ Type, UID string }

// overlaps reports whether two panels lie on each other.
func (p panel) overlaps(q panel) bool {
	a, b := p.GridPos, q.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

// TestTheBoardAsksForWhatIsServed reads the dashboard for Grafana: it can be imported as it is,
// with any data source for Prometheus, and each figure that it shows is served.
func TestTheBoardAsksForWhatIsServed(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../deploy/grafana/bot.json")
	if err != nil {
		t.Fatal(err)
	}
	var b board
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	if b.SchemaVersion != lastClassic || b.ID != nil || b.UID == "" || b.Title == "" || len(b.Inputs) > 0 {
		t.Errorf("it cannot be imported as it is: %+v", b)
	}
	if v := b.Templating.List; len(v) != 2 || v[0].Name != "datasource" || v[0].Type != "datasource" || string(v[0].Query) != `"prometheus"` ||
		v[1].Name != "job" || !strings.Contains(string(v[1].Query), `label_values(bot_build_info, job)`) {
		t.Errorf("the variables are not the data source and the job: %+v", v)
	}
	text, found, ids := served(t), 0, map[int]bool{}
	for i, p := range b.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %q has the number %d, which is none or that of another one", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, q := range b.Panels[:i] {
			if p.overlaps(q) || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H == 0 {
				t.Errorf("%q and %q lie on each other, or outside", p.Title, q.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		variable := source{"prometheus", "${datasource}"}
		if p.Datasource == nil || *p.Datasource != variable || len(p.Targets) == 0 {
			t.Errorf("%q does not ask the data source that was chosen", p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.RefID == "" || target.Datasource != variable || target.LegendFormat == "" {
				t.Errorf("%q has a query without a name, a source or a legend: %+v", p.Title, target)
			}
			refs[target.RefID] = true
			found += asksForWhatIsServed(t, p.Title, target.Expr, text)
			if strings.Count(target.Expr, `{job=~"$job"`) != len(figure.FindAllString(target.Expr, -1)) {
				t.Errorf("%q does not ask for the chosen job: %s", p.Title, target.Expr)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d figures are on the board", found)
	}
}
