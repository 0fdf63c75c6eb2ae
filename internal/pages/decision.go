package pages

import (
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/plan"
	"remote-agent/internal/store"
)

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
	err := p.storage.InRead(r.Context(), func(tx *store.Tx) (err error) {
		if a, err = tx.Approval(r.Context(), number); err != nil {
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
	card := p.approvalCard(r, a)
	if a.State != approval.Waiting {
		detail, _ := p.show.exact(a.Detail)
		card = html.El("section", html.Class("card"), html.ID(a.Name()),
			html.El("h3", html.Text(a.Name()+" "), p.show.line(a.Question())),
			meta("asked for "+a.Requester, p.show.when(a.CreatedAt), html.Text(p.show.head200(a.Outcome()))),
			detail, toSession(a.SessionID))
	}
	return questionView(a.Name(), card), nil
}

func (p *approvalPages) onePlan(r *request, number int64) (view, error) {
	var pl plan.Plan
	err := p.storage.InRead(r.Context(), func(tx *store.Tx) (err error) {
		if pl, err = tx.Plan(r.Context(), number); err != nil {
			return err
		}
		return mustSee(r.Context(), tx, r, pl.ConversationID)
	})
	if err != nil {
		return view{}, unseen(err)
	}
	card := p.planCard(r, pl)
	if open := pl.State == plan.Proposed || pl.State == plan.Approved; !open || !p.show.now().Before(pl.ExpiresAt) {
		card = html.Group{p.show.planVersion(pl, "h3"), toSession(pl.SessionID)}
	}
	return questionView(pl.Name(), card), nil
}

// questionView is a page of one card.
func questionView(name string, card html.Node) view {
	return view{title: name, live: liveAll, body: html.Group{
		html.El("h1", html.Text("Approval "+name)), card,
		html.El("p", html.Class("meta"), html.El("a", html.Href("/approvals"), html.Text("All that waits for a decision"))),
	}}
}

// toSession leads to the session in which something was asked.
func toSession(id string) html.Node {
	return html.If(id != "", html.El("p", html.El("a", html.Href("/sessions/"+id), html.Text("Open the session"))))
}

// unseen is an error of looking something up. What somebody may not see is not there.
func unseen(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "There is nothing of this name to decide on, or you may not see it.")
	}
	return err
}
