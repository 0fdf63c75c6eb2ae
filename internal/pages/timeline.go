package pages

import (
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/html"
	"remote-agent/internal/order"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

const (
	runsPage = 10  // runs on a page
	maxSpans = 400 // of each kind that are read for a page
	maxBars  = 80  // lines of one run
)

// timeline shows where the time of a session went: run by run, the last ones first, what
// the model, the tools and people took.
func (p *sessionPages) timeline(r *request, row store.SessionRow) (body html.Group, err error) {
	before, err := beforeOf(r)
	if err != nil {
		return nil, err
	}
	var runs []sessions.Run
	var spans []store.Span
	ctx, now := r.Context(), p.show.now()
	err = p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if runs, err = tx.Pages().RunsBefore(ctx, row.ID, before, runsPage+1); err != nil || len(runs) == 0 {
			return err
		}
		spans, err = tx.Pages().Spans(ctx, row.ID, runs[max(0, len(runs)-runsPage)].StartedAt.Truncate(time.Second), endOf(runs[len(runs)-1], now), maxSpans)
		return err
	})
	if err != nil {
		return nil, err
	}
	more := len(runs) > runsPage
	runs = runs[max(0, len(runs)-runsPage):]
	if len(runs) == 0 {
		return html.Group{emptyText("Nothing has run here yet. Each turn appears here with what took time: the model, its tools, and waiting for a person.")}, nil
	}
	for _, run := range slices.Backward(runs) {
		body = append(body, p.runTimeline(run, within(spans, run, now), now))
	}
	if more {
		body = append(body, earlierIn(row, "timeline", runs[0].Number, "Earlier turns"))
	}
	return body, nil
}

// endOf is when a run ended, or now.
func endOf(run sessions.Run, now time.Time) time.Time {
	if run.FinishedAt.IsZero() {
		return now
	}
	return run.FinishedAt
}

// within returns the spans of a run.
func within(all []store.Span, run sessions.Run, now time.Time) (list []store.Span) {
	for _, s := range all {
		at := s.Begin
		if s.Kind == store.SpanModel {
			at = s.End
		}
		// What is kept to the second may seem to be from just before.
		if !at.Before(run.StartedAt.Truncate(time.Second)) && !at.After(endOf(run, now)) {
			list = append(list, s)
		}
	}
	return list
}

// bar is a line of a waterfall.
type bar struct {
	kind, name string
	begin, end time.Time
	goesOn     bool
	failed     bool
}

// waterfall puts what took time into the order in which it began. A request to the model
// began when what was before it ended.
func waterfall(spans []store.Span, run sessions.Run, now time.Time) (bars []bar) {
	begin, end := run.StartedAt, endOf(run, now)
	last := begin // the end of what is known so far
	for _, s := range spans {
		b := bar{kind: string(s.Kind), name: s.Name, begin: s.Begin, end: s.End, failed: s.State == string(sessions.ToolFailed)}
		if s.Kind == store.SpanModel {
			b.begin = last
		}
		if b.end.IsZero() {
			b.end, b.goesOn = end, run.FinishedAt.IsZero()
		}
		b.begin = later(b.begin, begin)
		b.end = later(b.end, b.begin)
		last = later(last, b.end)
		bars = append(bars, b)
	}
	if run.FinishedAt.IsZero() && last.Before(now) && !slices.ContainsFunc(bars, func(b bar) bool { return b.goesOn }) {
		b := bar{kind: string(store.SpanModel), name: run.Model, begin: last, end: now, goesOn: true}
		if run.Waiting {
			b.kind, b.name = string(store.SpanWait), "its next try, or a decision"
		}
		bars = append(bars, b)
	}
	order.By(bars, func(a, b bar) int { return a.begin.Compare(b.begin) })
	return bars
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// runTimeline shows one run.
func (p *sessionPages) runTimeline(run sessions.Run, spans []store.Span, now time.Time) html.Node {
	word := string(run.Status)
	if run.Waiting {
		word = "waiting"
	}
	mark := map[sessions.RunStatus][2]string{
		sessions.RunRunning: {"running", "◐"}, sessions.RunCompleted: {"ok", "✔"}, sessions.RunFailed: {"error", "✖"},
		sessions.RunStopped: {"muted", "⏹"}, sessions.RunInterrupted: {"warn", "⚡"},
	}[run.Status]
	begin, end := run.StartedAt, endOf(run, now)
	about := []any{state(mark[0], mark[1], word), "took " + clock(end.Sub(begin))}
	if run.Duration != nil {
		about = append(about, clock(*run.Duration)+" at work")
	}
	about = append(about, p.show.head200(run.Model), fmt.Sprintf("%d tokens in, %d out", run.InputTokens, run.OutputTokens), p.show.when(begin))
	bars := waterfall(spans, run, now)
	most := min(len(bars), maxBars)
	parts := html.Group{html.Tag("h2", fmt.Sprintf("Run %d", run.Number)), meta(about...)}
	if most == 0 {
		return append(parts, html.Styled("p", "muted", "What took time was not recorded."))
	}
	parts = append(parts, table([]string{"What", "After", "Took", "From start to end"}, html.Map(bars[:most], func(b bar) html.Node {
		return p.barLine(b, begin, end)
	})))
	if more := len(bars) - most; more > 0 {
		parts = append(parts, html.Styled("p", "muted", fmt.Sprintf("%d more are not shown.", more)))
	}
	return parts
}

// barLine is a line of a waterfall: in words, and as a bar.
func (p *sessionPages) barLine(b bar, begin, end time.Time) html.Node {
	what := map[string]string{string(store.SpanModel): "Model ", string(store.SpanTool): "Tool ", string(store.SpanWait): "Waiting for "}[b.kind]
	took := short(b.end.Sub(b.begin))
	if b.goesOn {
		took += ", ongoing"
	}
	return row(html.Group{html.Text(what), html.Tag("code", p.show.head200(b.name)), html.If(b.failed, html.Text(" ✖ failed"))},
		html.Text(short(b.begin.Sub(begin))), html.Text(took), drawn(b, begin, end))
}

// barWidth is that of a whole run.
const barWidth = 1000

// drawn draws a bar. Its words are beside it.
func drawn(b bar, begin, end time.Time) html.Node {
	all := max(end.Sub(begin), time.Millisecond)
	at := int(barWidth * min(b.begin.Sub(begin), all) / all)
	width := max(int(barWidth*min(b.end.Sub(b.begin), all)/all), 4)
	at = min(at, barWidth-width)
	return html.El("svg", html.Class("span "+b.kind), html.Attr("viewBox", fmt.Sprintf("0 0 %d 12", barWidth)), html.Attr("preserveAspectRatio", "none"), html.Attr("aria-hidden", "true"),
		html.El("rect", html.Attr("x", fmt.Sprint(at)), html.Attr("y", "1"), html.Attr("width", fmt.Sprint(width)), html.Attr("height", "10")))
}

// short is how long something took, with parts of seconds where these count.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return clock(d)
}
