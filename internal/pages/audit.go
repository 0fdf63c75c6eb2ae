package pages

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/audit"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/store"
)

const (
	auditPage = 100
	auditJob  = "audit"
)

// auditPages are the audit log.
type auditPages struct {
	storage Storage
	show    *renderer
	jobs    *jobs
	sound   func(ctx context.Context) (said string, err error) // see About; may be nil
}

func (p *auditPages) routes(to *Pages) {
	to.page("GET /audit", ownersSee(p.audit))
	to.act("POST /audit/verify", ownersDo(p.verifyAudit))
}

// audit shows who did what, to be searched.
func (p *auditPages) audit(r *request) (view, error) {
	f, err := r.readAudit()
	if err != nil {
		return view{}, err
	}
	var rows []audit.Row
	next := int64(0)
	err = p.storage.InRead(r.Context(), func(tx *store.Tx) (err error) {
		rows, next, err = tx.AuditLog().Search(r.Context(), f)
		return err
	})
	if err != nil {
		return view{}, err
	}
	q := r.URL.Query()
	body := html.Group{html.Tag("h1", "Audit log"),
		html.El("form", html.Class("filters"), html.Attr("action", "/audit"),
			field("q", "Text", "text", q.Get("q"), "words"), field("person", "Person", "text", q.Get("person"), "telegram/42"), field("kind", "Kind", "text", q.Get("kind"), "person or person.allow"),
			field("from", "From", "date", q.Get("from"), ""), field("to", "To", "date", q.Get("to"), ""), button("Search", "primary")),
		form(r, "/audit/verify", button("Verify the chain", "")), p.show.job(p.jobs, auditJob)}
	switch {
	case len(rows) > 0:
		body = append(body, table([]string{"No.", "When (UTC)", "Who", "What", "On", "Details"}, html.Map(rows, p.auditLine)))
	case next > 0:
		body = append(body, emptyText("No match in the rows searched so far. There are older rows."))
	case r.URL.RawQuery != "":
		body = append(body, empty(html.Text("No rows match. "), html.Link("/audit", "Show all")))
	default:
		body = append(body, emptyText("Nothing is recorded yet. Sign-ins, decisions, access changes and tool calls appear here, each with a hash of everything before it."))
	}
	if next > 0 {
		body = append(body, older(r, "before", strconv.FormatInt(next, 10), "", "Older rows"))
	}
	return view{title: "Audit log", body: body}, nil
}

// readAudit reads what of the audit log somebody wants to see.
func (r *request) readAudit() (f store.AuditSearch, err error) {
	if err := r.plain("q, person, kind, from, to, before"); err != nil {
		return f, err
	}
	q := r.URL.Query()
	f = store.AuditSearch{Text: strings.TrimSpace(q.Get("q")), Actor: strings.TrimSpace(q.Get("person")), Action: strings.Trim(q.Get("kind"), " ."), Limit: auditPage}
	if f.Before, err = beforeOf(r); err != nil {
		return f, err
	}
	for name, to := range map[string]*time.Time{"from": &f.Since, "to": &f.Until} {
		if q.Get(name) == "" {
			continue
		}
		if *to, err = time.Parse(time.DateOnly, q.Get(name)); err != nil {
			return f, fault.Newf(fault.Invalid, "%q is a date, such as 2026-01-31.", name)
		}
	}
	if !f.Until.IsZero() {
		f.Until = f.Until.AddDate(0, 0, 1) // that day included
	}
	return f, nil
}

// auditLine is a row of the audit log.
func (p *auditPages) auditLine(a audit.Row) html.Node {
	seq := "–"
	if a.Seq > 0 {
		seq = strconv.FormatInt(a.Seq, 10)
	}
	on := p.show.head200(a.Target)
	if a.ConversationID != "" {
		on = strings.TrimSpace(on + " in " + a.ConversationID)
	}
	return row(html.Text(seq), html.El("time", html.Attr("datetime", a.At.UTC().Format(time.RFC3339)), html.Text(a.At.UTC().Format(time.DateTime))),
		html.Text(p.show.head200(a.Actor)), html.Tag("code", p.show.head200(a.Action)), html.Text(on), html.Text(p.show.head200(a.Detail)))
}

// verifyAudit verifies the chain, beside the request: it reads all of it.
func (p *auditPages) verifyAudit(_ http.ResponseWriter, r *request) (outcome, error) {
	if p.sound == nil {
		return outcome{}, fault.New(fault.Unsupported, "The chain cannot be verified here; use `bot audit verify`.")
	}
	err := p.jobs.work(r, auditJob, func(ctx context.Context, j *job) { j.Said, j.Err = p.sound(ctx) })
	return outcome{to: "/audit"}, err
}
