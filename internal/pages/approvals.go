package pages

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// approvalPages are what waits for a decision, and deciding on it.
type approvalPages struct {
	storage        Storage
	show           *renderer
	commands       commands
	secondApprover bool // see Config
}

func (p *approvalPages) routes(to *Pages) {
	to.page("GET /approvals", p.approvals)
	to.page("GET /approvals/{name}", p.question)
	to.act("POST /decide", p.decide)
}

// decide decides on an approval or a plan, as pressing its button in the chat does: on
// exactly what the page showed.
func (p *approvalPages) decide(_ http.ResponseWriter, r *request) (outcome, error) {
	ctx, form := r.Context(), r.PostForm
	number, err := strconv.ParseInt(form.Get("number"), 10, 64)
	b := command.Button{On: command.Subject(form.Get("on")), Number: number, Decision: form.Get("decision"), SHA256: form.Get("sha256")}
	if err != nil || number <= 0 || len(b.SHA256) != 64 {
		return outcome{}, fault.New(fault.Invalid, "The form is not complete. Reload the page and try again.")
	}
	text := r.typed()
	if b.Decision == string(plan.Edit) && b.On == command.OnPlan && text == "" {
		return outcome{}, fault.New(fault.Invalid, "The new text of the plan is empty; nothing was changed.")
	}
	var in messages.Inbound
	err = p.storage.InTx(ctx, func(tx *store.Tx) error {
		if b.ConversationID, b.ExpiresAt, err = subject(ctx, tx, b); err != nil {
			return err
		}
		if err := mustSee(ctx, tx, r, b.ConversationID); err != nil {
			return err
		}
		conv, err := tx.Conversations().Conversation(ctx, b.ConversationID)
		if err != nil {
			return err
		}
		offered, err := command.Offer(ctx, tx.Buttons(), b, command.Choice{Decision: b.Decision})
		if err != nil {
			return err
		}
		in = r.event(conv.Key, p.show.now())
		in.Kind, in.Action = messages.KindAction, offered[0].ID
		if b.Decision == string(plan.Edit) {
			in.Text = text
		}
		return nil
	})
	if err != nil {
		return outcome{}, err
	}
	said, err := p.commands.give(ctx, in, "Your decision is recorded; the outcome appears in the chat.")
	return outcome{to: r.back("/approvals"), said: said}, err
}

// subject finds what is decided on: where it was asked, and until when it can be decided.
func subject(ctx context.Context, tx *store.Tx, b command.Button) (conversation string, expires time.Time, err error) {
	wrong := fault.New(fault.Invalid, "There is no such decision.")
	switch b.On {
	case command.OnApproval:
		switch approval.Decision(b.Decision) {
		case approval.Once, approval.Always, approval.Deny:
		default:
			return "", expires, wrong
		}
		a, err := tx.Questions().Approval(ctx, b.Number)
		return a.ConversationID, a.ExpiresAt, err
	case command.OnPlan:
		switch plan.Decision(b.Decision) {
		case plan.Approve, plan.Reject, plan.Execute, plan.Edit:
		default:
			return "", expires, wrong
		}
		found, err := tx.Proposals().Plan(ctx, b.Number)
		return found.ConversationID, found.ExpiresAt, err
	case command.OnPairing:
	}
	return "", expires, wrong
}

// approvals shows what waits for a decision.
func (p *approvalPages) approvals(r *request) (view, error) {
	open, err := openQuestions(r, p.storage, p.show)
	if err != nil {
		return view{}, err
	}
	body := html.Group{html.Tag("h1", "Approvals")}
	for _, a := range open.approvals {
		body = append(body, p.approvalCard(r, a, open.names[a.Requester], open.own))
	}
	for _, pl := range open.plans {
		body = append(body, p.planCard(r, pl, open.names[pl.Requester]))
	}
	if open.more > 0 {
		body = append(body, html.Styled("p", "muted", fmt.Sprintf("%s for a decision. These are the oldest; the others appear when these are decided.", wording.Count(open.more, "more waits", "more wait"))))
	}
	if open.count() == 0 {
		body = append(body, emptyText("Nothing is waiting for a decision. When an assistant asks to do something that its rules do not allow, or proposes a plan, it appears here."))
	}
	return view{title: "Approvals", body: body, live: liveAll}, nil
}

// questions are what waits for a decision.
type questions struct {
	approvals []approval.Approval
	plans     []plan.Plan
	names     names // of who asked
	own       own   // who asked is who looks
	more      int   // behind these
}

func (q questions) count() int { return len(q.approvals) + len(q.plans) + q.more }

const maxQuestions = 50

func openQuestions(r *request, from Storage, show *renderer) (q questions, err error) {
	now := show.now()
	q.names = make(names)
	err = from.InRead(r.Context(), func(tx *store.Tx) (err error) {
		if q.approvals, err = tx.Pages().AskedApprovals(r.Context(), r.viewer(), now, maxQuestions); err != nil {
			return err
		}
		if q.plans, err = tx.Pages().OpenPlans(r.Context(), r.viewer(), now, maxQuestions); err != nil {
			return err
		}
		people := lists.Map(q.approvals, func(a approval.Approval) string { return a.Requester })
		for _, pl := range q.plans {
			people = append(people, pl.Requester)
		}
		if q.own, err = ownQuestions(r, tx, q.approvals...); err != nil {
			return err
		}
		if err = show.look(r.Context(), tx, q.names, people...); err != nil || len(q.approvals) < maxQuestions && len(q.plans) < maxQuestions {
			return err
		}
		asked, open, err := tx.Pages().CountUndecided(r.Context(), r.viewer(), now)
		q.more = asked - len(q.approvals) + open - len(q.plans)
		return err
	})
	return q, err
}

// own are the accounts, of those that asked, which are the viewer's.
type own map[string]bool

func ownQuestions(r *request, tx *store.Tx, asked ...approval.Approval) (own, error) {
	mine := own{r.actor(): true}
	for _, a := range asked {
		if _, known := mine[a.Requester]; known {
			continue
		}
		same, err := tx.People().SamePerson(r.Context(), r.actor(), a.Requester)
		if err != nil {
			return nil, err
		}
		mine[a.Requester] = same
	}
	return mine, nil
}

// approvalCard shows exactly what would be run, who asked for it, and the choices.
func (p *approvalPages) approvalCard(r *request, a approval.Approval, asked string, mine own) html.Node {
	fields := html.Group{hidden("on", string(command.OnApproval)), hidden("number", strconv.FormatInt(a.Number, 10)), hidden("sha256", a.SHA256), hidden("back", r.URL.Path)}
	detail, whole := p.show.exact(a.Detail)
	who, may := "The person who asked or an owner can decide.", r.owner() || a.Requester == r.actor()
	if p.secondApprover {
		who, may = "Someone other than the person who asked can decide.", !mine[a.Requester]
	}
	choices := html.Styled("p", "muted", "You have read-only access; someone else has to decide.")
	if r.role != sessions.Reader {
		choices = form(r, "/decide", html.Class("inline"), fields,
			html.If(whole && may && !a.OnlyAlways(), decision("Allow once", "decision", string(approval.Once), "primary")),
			html.If(whole && may && a.Rule != "", decision("Always allow this", "decision", string(approval.Always), "")),
			decision("Don't run", "decision", string(approval.Deny), "danger"))
	}
	return html.El("section", html.Class("card"), html.ID(a.Name()),
		html.El("h2", state("waiting", "◆", a.Name()), html.Text(" "), p.show.line(a.Question())),
		meta("on behalf of "+asked, p.show.when(a.CreatedAt), "expires "+until(a.ExpiresAt, p.show.now())),
		wholeSize(len(a.Arguments)),
		detail,
		html.If(a.Rule != "", html.El("p", html.Class("meta"), html.Text("Always would allow: "), html.Tag("code", p.show.redact(a.Rule)))),
		toSession(a.SessionID),
		html.Styled("p", "meta", who),
		choices)
}

// planCard shows a plan whole, who asked for it, and the choices.
func (p *approvalPages) planCard(r *request, pl plan.Plan, asked string) html.Node {
	fields := html.Group{hidden("on", string(command.OnPlan)), hidden("number", strconv.FormatInt(pl.Number, 10)), hidden("sha256", pl.SHA256), hidden("back", r.URL.Path)}
	text, whole := p.show.exact(pl.Text)
	var choices html.Node
	if r.role != sessions.Reader && (r.owner() || pl.Requester == r.actor()) {
		choices = html.Group{
			form(r, "/decide", html.Class("inline"), fields,
				html.If(whole, decision("Approve and run", "decision", string(plan.Execute), "primary")),
				html.If(whole && pl.State == plan.Proposed, decision("Approve", "decision", string(plan.Approve), "")),
				decision("Reject", "decision", string(plan.Reject), "danger")),
			html.If(whole, p.planForm(r, pl, fields)),
		}
	}
	word := "proposed"
	if pl.State == plan.Approved {
		word = "approved, not run yet"
	}
	return html.El("section", html.Class("card"), html.ID(pl.Name()),
		html.El("h2", state("waiting", "☰", pl.Name()), html.Textf(" %s", p.show.head200(pl.Goal))),
		meta(strings.Join([]string{"version " + strconv.Itoa(pl.Version), word, "requested by " + asked}, ", "), p.show.when(pl.CreatedAt), "expires "+until(pl.ExpiresAt, p.show.now())),
		text,
		toSession(pl.SessionID),
		html.Styled("p", "meta", "The person who asked or an owner can decide."),
		choices)
}

// planForm lets a plan be edited. It has the plan as it is stored, so there is none for one
// that holds a secret.
func (p *approvalPages) planForm(r *request, pl plan.Plan, fields html.Group) html.Node {
	if p.show.redact(pl.Text) != pl.Text {
		return html.Styled("p", "meta", "This plan contains a secret, which is masked here, so you can edit it only in the chat.")
	}
	return html.El("details", html.Tag("summary", "Edit the plan"),
		form(r, "/decide", fields,
			html.El("label", html.Text("New text, which replaces this version"),
				html.El("textarea", html.Attr("name", "text"), html.Attr("rows", "12"), html.Text(pl.Text))),
			decision("Save as a new version", "decision", string(plan.Edit), "")))
}

// question shows one thing that is or was to be decided on, by the name that chats give
// it: links in them lead here, also when it is settled.
func (p *approvalPages) question(r *request) (view, error) {
	name := r.PathValue("name")
	if n, ok := approval.ParseName(name); ok {
		return p.oneApproval(r, n)
	}
	if n, ok := plan.ParseName(name); ok && strings.HasPrefix(name, "p-") {
		return p.onePlan(r, n)
	}
	return view{}, errNoPage
}

func (p *approvalPages) oneApproval(r *request, number int64) (view, error) {
	var a approval.Approval
	var mine own
	known := make(names)
	err := p.storage.InRead(r.Context(), func(tx *store.Tx) (err error) {
		if a, err = tx.Questions().Approval(r.Context(), number); err != nil {
			return err
		}
		if a.DecidedName, err = sessions.NameOf(r.Context(), tx.People(), a.DecidedBy); err != nil {
			return err
		}
		if err = p.show.look(r.Context(), tx, known, a.Requester); err != nil {
			return err
		}
		if mine, err = ownQuestions(r, tx, a); err != nil {
			return err
		}
		return mustSee(r.Context(), tx, r, a.ConversationID)
	})
	if err != nil {
		return view{}, unseen(err)
	}
	if now := p.show.now(); a.State == approval.Waiting && !now.Before(a.ExpiresAt) {
		a.State = approval.Expired
	}
	card := p.approvalCard(r, a, known[a.Requester], mine)
	if a.State != approval.Waiting {
		detail, _ := p.show.exact(a.Detail)
		card = html.El("section", html.Class("card"), html.ID(a.Name()),
			html.El("h2", html.Text(a.Name()+" "), p.show.line(a.Question())),
			meta("on behalf of "+known[a.Requester], p.show.when(a.CreatedAt), html.Text(p.show.head200(a.Outcome()))),
			detail, toSession(a.SessionID))
	}
	return questionView(a.Name(), card), nil
}

func (p *approvalPages) onePlan(r *request, number int64) (view, error) {
	var pl plan.Plan
	known := make(names)
	err := p.storage.InRead(r.Context(), func(tx *store.Tx) (err error) {
		if pl, err = tx.Proposals().Plan(r.Context(), number); err != nil {
			return err
		}
		if err = p.show.look(r.Context(), tx, known, pl.Requester, pl.Author, pl.DecidedBy); err != nil {
			return err
		}
		return mustSee(r.Context(), tx, r, pl.ConversationID)
	})
	if err != nil {
		return view{}, unseen(err)
	}
	card := p.planCard(r, pl, known[pl.Requester])
	if !pl.Open(p.show.now()) {
		card = html.Group{p.show.planVersion(pl, known, "h2"), toSession(pl.SessionID)}
	}
	return questionView(pl.Name(), card), nil
}

// questionView is a page of one card.
func questionView(name string, card html.Node) view {
	return view{title: name, live: liveAll, body: html.Group{
		html.Tag("h1", "Approval "+name), card,
		html.El("p", html.Class("meta"), html.Link("/approvals", "Everything waiting for a decision")),
	}}
}

// toSession leads to the session in which something was asked.
func toSession(id string) html.Node {
	return html.If(id != "", html.El("p", html.Link("/sessions/"+id, "Open the session")))
}

// unseen is an error of looking something up. What somebody may not see is not there.
func unseen(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "There is no decision by this name, or you may not see it.")
	}
	return err
}
