package pages

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

const maxMessage = 64 << 10 // bytes of what somebody says

// viewer is who looks, as the database asks.
func (r *request) viewer() store.Viewer {
	if r.owner() {
		return store.Viewer{}
	}
	return store.Viewer{Platform: r.session.Platform, ID: r.session.Account.ID}
}

// event is something that who is signed in does in a conversation. A form that is sent
// twice is one event: it is named by the form's nonce, and by what it says, so that who
// goes back and writes something else is heard.
func (r *request) event(key messages.ConversationKey, now time.Time) messages.Inbound {
	sum := sha256.Sum256([]byte(r.URL.Path + "?" + r.PostForm.Encode()))
	return messages.Inbound{
		Event: messages.EventID(fmt.Sprintf("web:%s:%s:%x", r.session.ID, r.PostForm.Get("nonce"), sum[:8])), Kind: messages.KindMessage, Conversation: key,
		Sender: messages.Sender{ID: r.session.Account.ID, Platform: r.session.Platform}, SentAt: now.UTC(),
	}
}

// newNonce names a form, so that what it says is done once however often it is sent.
func newNonce() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

func isNonce(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}

// openingOf is what the chat shows of what was done in the browser.
func (r *request) openingOf(text string) string {
	return "**" + r.actor() + "** in the browser:\n\n> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// give gives a command, and says what became of it, in Markdown; later is said if that is
// not known yet.
func (p *Pages) give(ctx context.Context, in messages.Inbound, later string) (string, error) {
	answer, known, err := p.Command(ctx, in)
	switch {
	case err != nil:
		return "", err
	case !known:
		return later, nil
	}
	text := answer.Text
	if text == "" {
		text = answer.Note
	}
	switch {
	case answer.Then != "":
		return strings.TrimSpace(text + " It runs now."), nil
	case text == "":
		return "Done.", nil
	}
	return text, nil
}

// conversationOf returns the session that a path names and its conversation, if who asks
// sees it.
func (p *Pages) conversationOf(ctx context.Context, tx *store.Tx, r *request, id string) (store.SessionRow, error) {
	row, err := tx.SessionRow(ctx, id)
	if err != nil {
		return row, err
	}
	return row, p.mustSee(ctx, tx, r, row.ConversationID)
}

// mustSee is fault.NotFound if who asks does not see a conversation: that it exists is
// nobody else's business.
func (p *Pages) mustSee(ctx context.Context, tx *store.Tx, r *request, conversationID string) error {
	ok, err := tx.Sees(ctx, r.viewer(), conversationID)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "There is nothing of that name that you may see.")
	}
	return err
}

// order gives a command in the conversation of a session. The chat shows who gave it if
// it is answered there.
func (p *Pages) order(r *request, text, later string) (outcome, error) {
	row, err := p.sessionOf(r)
	if err != nil {
		return outcome{}, err
	}
	in := r.event(row.Key, p.Now())
	in.Text, in.Opening = text, r.openingOf("`"+text+"`")
	said, err := p.give(r.Context(), in, later)
	return outcome{to: r.back("/sessions/" + row.ID), said: said}, err
}

// sessionOf returns the session that the path names, if who asks sees it.
func (p *Pages) sessionOf(r *request) (row store.SessionRow, err error) {
	ctx := r.Context()
	err = p.Storage.InRead(ctx, func(tx *store.Tx) (err error) {
		row, err = p.conversationOf(ctx, tx, r, r.PathValue("id"))
		return err
	})
	return row, err
}

// onActive is order for what is about the last turn of a conversation: on the page of a
// session that has ended it would be that of another one.
func (p *Pages) onActive(r *request, text, later string) (outcome, error) {
	row, err := p.sessionOf(r)
	switch {
	case err != nil:
		return outcome{}, err
	case r.role == sessions.Reader:
		return outcome{}, fault.New(fault.Forbidden, "You can look and not change anything here.")
	case !row.Active:
		return outcome{}, fault.New(fault.Conflict, "This session has ended and its conversation goes on in another one, so nothing was done. Open that one to change it.")
	}
	return p.order(r, text, later)
}

// back returns where a form wants to go next, or the given path.
func (r *request) back(path string) string {
	if to := r.PostForm.Get("back"); to != "" {
		return localPath(to)
	}
	return path
}

func (p *Pages) stop(_ http.ResponseWriter, r *request) (outcome, error) {
	return p.order(r, "/stop", "Stopping.")
}

func (p *Pages) retry(_ http.ResponseWriter, r *request) (outcome, error) {
	return p.onActive(r, "/retry", "Retrying; the answer appears here and in the chat.")
}

func (p *Pages) undo(_ http.ResponseWriter, r *request) (outcome, error) {
	if r.PostForm.Get("sure") != "yes" {
		return outcome{}, fault.New(fault.Invalid, "Nothing was undone: tick the box to confirm.")
	}
	return p.onActive(r, "/undo", "Undoing the last turn; the chat says what became of it.")
}

// fork goes on from a message of the session in a new one. The chat says what came of it,
// for who is there has to know with which session they talk.
func (p *Pages) fork(_ http.ResponseWriter, r *request) (outcome, error) {
	text := "/fork"
	if n := r.PostForm.Get("messages"); n != "" {
		if number, err := strconv.Atoi(n); err != nil || number <= 0 {
			return outcome{}, fault.New(fault.Invalid, "How many messages to keep is a number from 1 on; leave it empty to keep all.")
		}
		text += " " + n
	}
	if r.PostForm.Get("place") == "thread" {
		text += " thread"
	}
	row, err := p.sessionOf(r)
	switch {
	case err != nil:
		return outcome{}, err
	case r.role == sessions.Reader:
		return outcome{}, fault.New(fault.Forbidden, "You can look and not change anything here.")
	case !row.Active:
		return outcome{}, fault.New(fault.Conflict, "This session has ended and its conversation goes on in another one, so nothing was done. Open that one to fork it.")
	}
	in := r.event(row.Key, p.Now())
	in.Text = text
	return outcome{to: "/sessions/" + row.ID, said: "Forking; the chat says what came of it, and the new session is in the list."}, p.Accept(r.Context(), in)
}

// message says something in the conversation of a session: it is answered there, and
// steers a turn that runs.
func (p *Pages) message(_ http.ResponseWriter, r *request) (outcome, error) {
	ctx, id := r.Context(), r.PathValue("id")
	text := r.typed()
	switch {
	case text == "":
		return outcome{}, fault.New(fault.Invalid, "The message has no text.")
	case len(text) > maxMessage:
		return outcome{}, fault.New(fault.Invalid, "The message is too long: send at most 64 KiB.")
	case r.role == sessions.Reader:
		return outcome{}, fault.New(fault.Forbidden, "You can look and not write here. Ask in your own chat.")
	}
	if _, is := command.Parse(text); is {
		return p.order(r, text, "Given; the answer appears in the chat.")
	}
	row, err := p.sessionOf(r)
	if err != nil {
		return outcome{}, err
	}
	in := r.event(row.Key, p.Now())
	in.Text = text
	in.Opening = r.openingOf(text)
	if err := p.Accept(ctx, in); err != nil {
		return outcome{}, err
	}
	return outcome{to: "/sessions/" + id, said: "Sent. The answer appears here and in the chat."}, nil
}

// remove deletes a session, once that was confirmed.
func (p *Pages) remove(_ http.ResponseWriter, r *request) (outcome, error) {
	switch {
	case !r.owner():
		return outcome{}, fault.New(fault.Forbidden, "Only an owner can delete a session.")
	case r.PostForm.Get("sure") != "yes":
		return outcome{}, fault.New(fault.Invalid, "Nothing was deleted: tick the box to confirm.")
	case p.About.RemoveSession == nil:
		return outcome{}, fault.New(fault.Unsupported, "Sessions cannot be deleted here.")
	}
	if err := p.About.RemoveSession(r.Context(), r.PathValue("id"), r.actor()); err != nil {
		return outcome{}, err
	}
	return outcome{to: "/sessions", said: "Deleted the session."}, nil
}

// decide decides on an approval or a plan, as pressing its button in the chat does: on
// exactly what the page showed.
func (p *Pages) decide(_ http.ResponseWriter, r *request) (outcome, error) {
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
	err = p.Storage.InTx(ctx, func(tx *store.Tx) error {
		if b.ConversationID, b.ExpiresAt, err = subject(ctx, tx, b); err != nil {
			return err
		}
		if err := p.mustSee(ctx, tx, r, b.ConversationID); err != nil {
			return err
		}
		conv, err := tx.Conversation(ctx, b.ConversationID)
		if err != nil {
			return err
		}
		offered, err := command.Offer(ctx, tx, b, command.Choice{Decision: b.Decision})
		if err != nil {
			return err
		}
		in = r.event(conv.Key, p.Now())
		in.Kind, in.Action = messages.KindAction, offered[0].ID
		if b.Decision == string(plan.Edit) {
			in.Text = text
		}
		return nil
	})
	if err != nil {
		return outcome{}, err
	}
	said, err := p.give(ctx, in, "Your decision is taken; its outcome appears in the chat.")
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
		a, err := tx.Approval(ctx, b.Number)
		return a.ConversationID, a.ExpiresAt, err
	case command.OnPlan:
		switch plan.Decision(b.Decision) {
		case plan.Approve, plan.Reject, plan.Execute, plan.Edit:
		default:
			return "", expires, wrong
		}
		found, err := tx.Plan(ctx, b.Number)
		return found.ConversationID, found.ExpiresAt, err
	case command.OnPairing:
	}
	return "", expires, wrong
}

// approvals shows what waits for a decision.
func (p *Pages) approvals(r *request) (view, error) {
	open, err := p.openQuestions(r)
	if err != nil {
		return view{}, err
	}
	body := html.Group{html.El("h1", html.Text("Approvals"))}
	for _, a := range open.approvals {
		body = append(body, p.approvalCard(r, a))
	}
	for _, pl := range open.plans {
		body = append(body, p.planCard(r, pl))
	}
	if open.count() == 0 {
		body = append(body, empty(html.Text("Nothing waits for a decision. When an assistant wants to do something that its rules do not allow, or proposes a plan, it is here.")))
	}
	return view{title: "Approvals", body: body, live: liveAll}, nil
}

// questions are what waits for a decision.
type questions struct {
	approvals []approval.Approval
	plans     []plan.Plan
}

func (q questions) count() int { return len(q.approvals) + len(q.plans) }

const maxQuestions = 50

func (p *Pages) openQuestions(r *request) (q questions, err error) {
	ctx, now := r.Context(), p.Now()
	err = p.Storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if q.approvals, err = tx.AskedApprovals(ctx, r.viewer(), now, maxQuestions); err != nil {
			return err
		}
		q.plans, err = tx.OpenPlans(ctx, r.viewer(), now, maxQuestions)
		return err
	})
	return q, err
}

// approvalCard shows exactly what would be run, and the choices.
func (p *Pages) approvalCard(r *request, a approval.Approval) html.Node {
	fields := func() html.Node {
		return html.Group{hidden("on", string(command.OnApproval)), hidden("number", strconv.FormatInt(a.Number, 10)), hidden("sha256", a.SHA256), hidden("back", r.URL.Path)}
	}
	detail, whole := p.exact(a.Detail)
	who, may := "The person who asked or an owner can decide.", r.owner() || a.Requester == r.actor()
	if p.SecondApprover {
		who, may = "Someone other than the person who asked can decide.", a.Requester != r.actor()
	}
	choices := html.El("p", html.Class("muted"), html.Text("You have read-only access; someone else has to decide."))
	if r.role != sessions.Reader {
		choices = p.form(r, "/decide", html.Class("inline"), fields(),
			html.If(whole && may, decision("Allow once", "decision", string(approval.Once), "primary")),
			html.If(whole && may && a.Rule != "", decision("Always allow this", "decision", string(approval.Always), "")),
			decision("Don't run", "decision", string(approval.Deny), "danger"))
	}
	return html.El("section", html.Class("card"), html.ID(a.Name()),
		html.El("h3", state("waiting", "◆", a.Name()), html.Text(" "), p.line(a.Question())),
		p.meta("asked for "+a.Requester, p.when(a.CreatedAt), "expires "+until(a.ExpiresAt, p.Now())),
		p.size(len(a.Arguments)),
		detail,
		html.If(a.Rule != "", html.El("p", html.Class("meta"), html.Text("Always would allow: "), html.El("code", html.Text(p.Redact(a.Rule))))),
		toSession(a.SessionID),
		html.El("p", html.Class("meta"), html.Text(who)),
		choices)
}

// planCard shows a plan whole, and the choices.
func (p *Pages) planCard(r *request, pl plan.Plan) html.Node {
	fields := func() html.Node {
		return html.Group{hidden("on", string(command.OnPlan)), hidden("number", strconv.FormatInt(pl.Number, 10)), hidden("sha256", pl.SHA256), hidden("back", r.URL.Path)}
	}
	text, whole := p.exact(pl.Text)
	var choices html.Node
	if r.role != sessions.Reader && (r.owner() || pl.Requester == r.actor()) {
		choices = html.Group{
			p.form(r, "/decide", html.Class("inline"), fields(),
				html.If(whole, decision("Approve and run", "decision", string(plan.Execute), "primary")),
				html.If(whole && pl.State == plan.Proposed, decision("Approve", "decision", string(plan.Approve), "")),
				decision("Reject", "decision", string(plan.Reject), "danger")),
			html.If(whole, html.El("details", html.El("summary", html.Text("Edit the plan")),
				p.form(r, "/decide", fields(),
					html.El("label", html.Text("New text, which takes the place of this version"),
						html.El("textarea", html.Attr("name", "text"), html.Attr("rows", "12"), html.Text(pl.Text))),
					decision("Save as a new version", "decision", string(plan.Edit), "")))),
		}
	}
	word := "proposed"
	if pl.State == plan.Approved {
		word = "approved, not run yet"
	}
	return html.El("section", html.Class("card"), html.ID(pl.Name()),
		html.El("h3", state("waiting", "☰", pl.Name()), html.Textf(" %s", p.head200(pl.Goal))),
		p.meta(strings.Join([]string{"version " + strconv.Itoa(pl.Version), word, "asked for by " + pl.Requester}, ", "), p.when(pl.CreatedAt), "expires "+until(pl.ExpiresAt, p.Now())),
		text,
		toSession(pl.SessionID),
		html.El("p", html.Class("meta"), html.Text("The person who asked or an owner can decide.")),
		choices)
}
