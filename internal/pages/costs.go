package pages

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/export"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

const (
	costRows  = 100    // sums on a page
	costFile  = 10_000 // sums in a file
	chartDays = 92     // days in a chart
	fewDays   = 14     // a chart of fewer is as wide, so that one day does not fill it
)

// costPages are what was used, and what may be.
type costPages struct {
	storage Storage
	show    *renderer
	budget  func() spend.Budget
}

func (p *costPages) routes(to *Pages) {
	to.page("GET /costs", p.costs)
	to.file("GET /costs.csv", p.costsCSV)
}

// costQuery is what sums somebody asked for.
type costQuery struct {
	by           spend.By
	since, until string // as in the address
	filter       spend.Filter
}

// readCosts reads the address: the last 30 days, by day, unless it says otherwise.
func (p *costPages) readCosts(r *request) (c costQuery, err error) {
	if err := r.plain("by, since, until"); err != nil {
		return c, err
	}
	q := r.URL.Query()
	c.since, c.until = cmp.Or(q.Get("since"), "30d"), q.Get("until")
	if c.by, err = spend.ParseBy(cmp.Or(q.Get("by"), string(spend.ByDay))); err != nil {
		return c, err
	}
	if c.filter.Since, err = spend.ParseSince(c.since, p.show.now()); err != nil {
		return c, err
	}
	if c.filter.Until, err = spend.ParseUntil(c.until, p.show.now()); err != nil {
		return c, err
	}
	if u := c.filter.Until; !u.IsZero() && !u.After(c.filter.Since) {
		return c, fault.New(fault.Invalid, "The period ends before it begins: \"until\" is before \"since\".")
	}
	if !r.owner() {
		c.filter.Actor = r.actor()
	}
	return c, nil
}

// address is the page, or the file, of the same period.
func (c costQuery) address(path string, by spend.By) string {
	q := url.Values{"by": {string(by)}, "since": {c.since}}
	if c.until != "" {
		q.Set("until", c.until)
	}
	return path + "?" + q.Encode()
}

// plain refuses an address in which something stands twice, is too long, or is nothing
// that the page knows, separated by ", ": a list that is not filtered must not be taken
// for one that is.
func (r *request) plain(known string) error {
	for name, values := range r.URL.Query() {
		switch {
		case !slices.Contains(strings.Split(known, ", "), name):
			return fault.Newf(fault.Invalid, "%q in the address is not known here: use %s.", wording.Head(name, 40), known)
		case len(values) > 1 || len(values[0]) > 300:
			return fault.Newf(fault.Invalid, "%q is in the address more than once, or too long.", name)
		}
	}
	return nil
}

// costs shows what was used, of all people to an owner and their own to everybody else.
func (p *costPages) costs(r *request) (view, error) {
	c, err := p.readCosts(r)
	if err != nil {
		return view{}, err
	}
	var (
		groups           []spend.Group
		total, day, mine spend.Sum
		ctx              = r.Context()
		today            = spend.Today(p.show.now())
	)
	err = p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if groups, total, err = tx.Spending().UsageBy(ctx, c.by, c.filter, costRows+1); err != nil {
			return err
		}
		if day, err = tx.Spending().SumUsage(ctx, spend.Filter{Since: today}); err != nil {
			return err
		}
		mine, err = tx.Spending().SumUsage(ctx, spend.Filter{Since: today, Actor: r.actor()})
		return err
	})
	if err != nil {
		return view{}, err
	}
	whose := "for everyone"
	if !r.owner() {
		whose = "for your own turns"
	}
	body := html.Group{html.Tag("h1", "Costs "+whose), c.form(), c.choices(r)}
	more := len(groups) > costRows
	groups = groups[:min(len(groups), costRows)]
	if len(groups) == 0 {
		body = append(body, emptyText("Nothing was used in this period. Every model turn is counted here, with its tokens and list price."))
	} else {
		body = append(body,
			html.El("p", html.Tag("strong", total.String()), html.Textf(" in %s", wording.Count(total.Turns, "turn", "turns"))),
			html.If(c.by == spend.ByDay, costChart(c, groups)), p.costTable(c.by, groups, total))
	}
	if more {
		body = append(body, html.Styled("p", "muted", fmt.Sprintf("The first %d are shown; the file has more.", costRows)))
	}
	body = append(body,
		html.El("p", linkButton(c.address("/costs.csv", c.by), "Download as CSV")),
		html.Styled("p", "muted", fmt.Sprintf("Costs use the list prices of %s, as known when each turn ended; days begin at 00:00 UTC.", spend.List().Date)),
		p.budgets(r, day, mine))
	return view{title: "Costs", body: body}, nil
}

// form is where the period is chosen; the address keeps it.
func (c costQuery) form() html.Node {
	return html.El("form", html.Class("filters"), html.Attr("action", "/costs"), hidden("by", string(c.by)),
		field("since", "Since (7d, 2w, 12h, all or a date)", "text", c.since, "30d"), field("until", "Until the end of (a date)", "text", c.until, "today"), button("Show", "primary"))
}

var costNames = map[spend.By]string{ //nolint:gochecknoglobals // a constant
	spend.ByDay: "Day", spend.ByPerson: "Person", spend.ByCodebase: "Repository", spend.ByModel: "Model", spend.ByConversation: "Conversation",
}

// choices leads to the same period by something else.
func (c costQuery) choices(r *request) html.Node {
	links := html.Group{}
	for _, by := range []spend.By{spend.ByDay, spend.ByPerson, spend.ByCodebase, spend.ByModel, spend.ByConversation} {
		if by == spend.ByPerson && !r.owner() {
			continue
		}
		links = append(links, html.El("li", html.El("a", html.Class("button"), html.Href(c.address("/costs", by)),
			html.If(by == c.by, html.Attr("aria-current", "true")), html.Text("By "+strings.ToLower(costNames[by])))))
	}
	return html.El("nav", html.Attr("aria-label", "Group costs"), html.El("ul", html.Class("tabs"), links))
}

// weight is what bars show: costs, or tokens where nothing has a price.
func weight(groups []spend.Group) func(spend.Sum) int64 {
	if slices.ContainsFunc(groups, func(g spend.Group) bool { return g.Micros > 0 }) {
		return func(s spend.Sum) int64 { return s.Micros }
	}
	return func(s spend.Sum) int64 { return s.InputTokens + s.OutputTokens }
}

func heaviest(groups []spend.Group, weigh func(spend.Sum) int64) (most int64) {
	for _, g := range groups {
		most = max(most, weigh(g.Sum))
	}
	return most
}

// costChart shows days as bars, in their order; the table below has the figures.
func costChart(c costQuery, groups []spend.Group) html.Node {
	byDay := make(map[string]spend.Sum, len(groups))
	for _, g := range groups {
		byDay[g.Key] = g.Sum
	}
	last, err := time.Parse(time.DateOnly, groups[0].Key)
	first, firstErr := time.Parse(time.DateOnly, groups[len(groups)-1].Key)
	if err != nil || firstErr != nil {
		return nil
	}
	if earliest := last.AddDate(0, 0, 1-chartDays); first.Before(earliest) {
		first = earliest
	}
	weigh := weight(groups)
	most := max(heaviest(groups, weigh), 1)
	bars, days := html.Group{}, 0
	for day := first; !day.After(last); day = day.AddDate(0, 0, 1) {
		if used := weigh(byDay[day.Format(time.DateOnly)]); used > 0 {
			height := max(used*100/most, 1)
			bars = append(bars, html.El("rect", html.Attr("x", strconv.Itoa(days*10+1)), html.Attr("y", strconv.FormatInt(100-height, 10)), html.Attr("width", "8"),
				html.Attr("height", strconv.FormatInt(height, 10))))
		}
		days++
	}
	label := fmt.Sprintf("Usage by day from %s to %s", first.Format(time.DateOnly), last.Format(time.DateOnly))
	return html.El("figure", html.El("svg", html.Class("chart"), html.Attr("viewBox", fmt.Sprintf("0 0 %d 100", max(days, fewDays)*10)), html.Attr("preserveAspectRatio", "none"),
		html.Attr("role", "img"), html.Attr("aria-label", label), bars), html.Styled("figcaption", "meta", label))
}

// costTable has a bar and the figures of each sum.
func (p *costPages) costTable(by spend.By, groups []spend.Group, total spend.Sum) html.Node {
	weigh := weight(groups)
	most := max(heaviest(groups, weigh), 1)
	line := func(name string, s spend.Sum, bar html.Node) html.Node {
		return html.El("tr", html.El("th", html.Attr("scope", "row"), html.Text(name)), html.El("td", bar),
			number(s.Exact()), number(strconv.Itoa(s.Turns)), number(spend.Tokens(s.InputTokens)), number(spend.Tokens(s.OutputTokens)), number(spend.Tokens(s.UnpricedToken)))
	}
	rows := html.Map(groups, func(g spend.Group) html.Node {
		width := weigh(g.Sum) * 100 / most
		return line(p.costName(g), g.Sum, html.El("svg", html.Class("bar"), html.Attr("viewBox", "0 0 100 10"), html.Attr("preserveAspectRatio", "none"), html.Attr("aria-hidden", "true"),
			html.El("rect", html.Attr("width", strconv.FormatInt(width, 10)), html.Attr("height", "10"))))
	})
	return table([]string{costNames[by], "", "#Cost", "#Turns", "#Tokens in", "#Tokens out", "#No price data"}, html.Group{rows, line("Total", total, nil)})
}

func number(text string) html.Node { return html.Styled("td", "num", text) }

// costName is how a sum is called.
func (p *costPages) costName(g spend.Group) string {
	switch {
	case g.Key == "":
		return "(none or deleted)"
	case g.Name == "":
		return p.show.head200(g.Key)
	}
	if strings.Contains(g.Key, "/") { // a person, whose name says nothing for sure
		return p.show.head200(g.Name) + " (" + p.show.head200(g.Key) + ")"
	}
	return p.show.head200(g.Name)
}

// budgets says what may be used, beside what was.
func (p *costPages) budgets(r *request, day, mine spend.Sum) html.Node {
	parts := html.Group{html.El("h2", html.ID("budgets"), html.Text("Budgets"))}
	b := p.budget()
	if b.IsZero() {
		return append(parts, emptyText("There are no limits. Set BUDGET_DAY_USD, BUDGET_PERSON_USD or BUDGET_TURN_USD, or the same in tokens; bot config show lists them."))
	}
	gauge := func(what string, used spend.Sum, micros, tokens int64) {
		if micros > 0 {
			parts = append(parts, meter(fmt.Sprintf("%s: %s of %s", what, spend.Dollars(used.Micros), spend.Dollars(micros)), used.Micros, micros))
		}
		if tokens > 0 {
			parts = append(parts, meter(fmt.Sprintf("%s: %s of %s tokens without price data", what, spend.Tokens(used.UnpricedToken), spend.Tokens(tokens)), used.UnpricedToken, tokens))
		}
	}
	if r.owner() {
		gauge("Today, everyone", day, b.DayMicros, b.DayTokens)
	}
	gauge("Today, you", mine, b.PersonMicros, b.PersonTokens)
	if b.TurnMicros > 0 {
		parts = append(parts, html.Tag("p", fmt.Sprintf("One turn: at most %s, then a person is asked.", spend.Dollars(b.TurnMicros))))
	}
	if b.TurnTokens > 0 {
		parts = append(parts, html.Tag("p", fmt.Sprintf("One turn: at most %s tokens, then a person is asked.", spend.Tokens(b.TurnTokens))))
	}
	return parts
}

// meter shows how much of something is used.
func meter(label string, used, most int64) html.Node {
	return html.El("label", html.Text(label), html.El("progress", html.Attr("max", "100"), html.Attr("value", strconv.FormatInt(min(100, int64(float64(used)/float64(most)*100)), 10))))
}

// costsCSV sends the same sums as a file.
func (p *costPages) costsCSV(w http.ResponseWriter, r *request) error {
	c, err := p.readCosts(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), pagePatience)
	defer cancel()
	var groups []spend.Group
	err = p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		groups, _, err = tx.Spending().UsageBy(ctx, c.by, c.filter, costFile)
		return err
	})
	if err != nil {
		return err
	}
	for i := range groups {
		groups[i].Name = p.show.redact(groups[i].Name)
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="costs-by-`+string(c.by)+`.csv"`)
	_ = export.CostsCSV(w, c.by, groups) // a browser that left needs no answer
	return nil
}
