package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

const (
	sessionsPage = 50
	window       = 200       // messages of a transcript at once
	maxPage      = 200 << 10 // bytes of HTML of these messages
	maxText      = 16 << 10  // bytes of a text that are shown
	maxOutput    = 4 << 10   // bytes of what a tool said
)

// sessionPages are the sessions and what is known of each. The functions are those of About.
type sessionPages struct {
	storage Storage
	show    *renderer
	diff    func(ctx context.Context, conv sessions.Conversation) (c Changes, ok bool, err error)
	exports func(ctx context.Context, out io.Writer, id string, all bool) error
	removes bool // whether sessions can be deleted
	log     *slog.Logger
}

func (p *sessionPages) routes(to *Pages) {
	to.page("GET /sessions", p.sessions)
	to.page("GET /sessions/{id}", p.session)
	to.file("GET /sessions/{id}/export", p.export)
}

// readFilter reads what somebody wants to see.
func (r *request) readFilter() (f store.SessionFilter, err error) {
	if err := r.plain("q, state, platform, person, assistant, repository, before"); err != nil {
		return f, err
	}
	q := r.URL.Query()
	f = store.SessionFilter{
		Viewer: r.viewer(), Status: sessions.Status(q.Get("state")), Platform: messages.Platform(q.Get("platform")),
		CodebaseID: q.Get("repository"), Assistant: q.Get("assistant"), Before: q.Get("before"), Limit: sessionsPage + 1,
	}
	if !slices.Contains([]sessions.Status{"", sessions.Running, sessions.Completed, sessions.Failed}, f.Status) {
		return f, fault.New(fault.Invalid, "The state of a session is running, completed or failed.")
	}
	if person := q.Get("person"); person != "" {
		platform, id, ok := strings.Cut(person, "/")
		if !ok {
			return f, fault.New(fault.Invalid, "Name a person by account, such as telegram/42.")
		}
		f.Person = store.Viewer{Platform: messages.Platform(platform), ID: messages.UserID(id)}
	}
	return f, nil
}

// sessions lists sessions, the newest first.
func (p *sessionPages) sessions(r *request) (view, error) {
	f, err := r.readFilter()
	if err != nil {
		return view{}, err
	}
	ctx, words := r.Context(), strings.TrimSpace(r.URL.Query().Get("q"))
	var list []store.SessionRow
	var codebases []sessions.Codebase
	further := url.Values{} // leads to what is not on the page
	look := func(tx *store.Tx) (err error) {
		if codebases, err = tx.Registry().List(ctx); err != nil {
			return err
		}
		further = r.URL.Query()
		if words != "" {
			f.Limit = sessionsPage
			var before string
			if list, before, err = tx.Lists().Find(ctx, f, words); err != nil || before == "" {
				further = nil
				return err
			}
			further.Set("before", before)
			return nil
		}
		if list, err = tx.Lists().Sessions(ctx, f); err != nil || len(list) <= sessionsPage {
			further = nil
			return err
		}
		list = list[:sessionsPage]
		further.Set("before", list[sessionsPage-1].ID)
		return nil
	}
	err = p.storage.InRead(ctx, look)
	if f.Before != "" && fault.Is(err, fault.NotFound) { // deleted, and its id does not tell when it began
		f.Before = ""
		err = p.storage.InRead(ctx, look)
	}
	if err != nil {
		return view{}, err
	}
	body := html.Group{html.Tag("h1", "Sessions"), filterForm(r, codebases)}
	switch {
	case len(list) == 0 && further != nil:
		body = append(body, emptyText("No match among the newest sessions."))
	case len(list) == 0 && r.URL.RawQuery != "":
		body = append(body, empty(html.Text("No sessions match. "), html.Link("/sessions", "Show all")))
	default:
		body = append(body, p.show.sessionList(list))
	}
	if further != nil {
		body = append(body, html.El("p", linkButton("/sessions?"+further.Encode(), "Older sessions")))
	}
	v := view{title: "Sessions", body: body}
	if f.Before == "" && words == "" {
		v.live = liveAll
	}
	return v, nil
}

// filterForm shows the filter that holds, to be changed; the address keeps it.
func filterForm(r *request, codebases []sessions.Codebase) html.Node {
	q := r.URL.Query()
	choice := func(name, label string, values [][2]string) html.Node {
		return html.El("label", html.Text(label), html.El("br"), html.El("select", html.Attr("name", name), html.Map(values, func(v [2]string) html.Node {
			return html.El("option", html.Attr("value", v[0]), html.On("selected", q.Get(name) == v[0]), html.Text(v[1]))
		})))
	}
	repositories := [][2]string{{"", "any"}}
	for _, c := range codebases {
		repositories = append(repositories, [2]string{c.ID, c.Name})
	}
	return html.El("form", html.Class("filters"), html.Attr("action", "/sessions"),
		field("q", "Text", "text", q.Get("q"), "words"),
		choice("state", "State", [][2]string{{"", "any"}, {"running", "running"}, {"completed", "completed"}, {"failed", "failed"}}),
		field("platform", "Platform", "text", q.Get("platform"), "telegram"),
		html.If(r.owner(), field("person", "Person", "text", q.Get("person"), "telegram/42")),
		field("assistant", "Assistant", "text", q.Get("assistant"), "openai"),
		html.If(len(codebases) > 0, choice("repository", "Repository", repositories)),
		button("Filter", "primary"))
}

// sessionList is a list of sessions, or what would be in it.
func (re *renderer) sessionList(list []store.SessionRow) html.Node {
	return listed(html.Map(list, func(s store.SessionRow) html.Node {
		return html.El("li", html.ID("s-"+s.ID), sessionState(s.Session),
			html.El("span", html.Class("what"), html.Link("/sessions/"+s.ID, re.title(s.Session))),
			meta(chatName(string(s.Key.Platform), s.Key.ID), s.Assistant, wording.Count(s.Messages, "message", "messages"), re.when(s.StartedAt)))
	}), "No sessions yet. Say hello to the bot in the terminal or in a chat; what is said there appears here.")
}

func sessionState(s sessions.Session) html.Node {
	switch s.Status {
	case sessions.Running:
		return state("running", "◐", "running")
	case sessions.Failed:
		return state("error", "✖", "failed")
	case sessions.Completed:
	}
	return state("ok", "✔", "done")
}

// title is what a session is about: what was asked first.
func (re *renderer) title(s sessions.Session) string {
	if text := re.head200(s.UserPrompt); text != "" {
		return text
	}
	return "Session " + s.ID[len(s.ID)-8:]
}

// said shows what was said in a session.
func (p *sessionPages) said(r *request, row store.SessionRow) (body html.Group, err error) {
	before, err := beforeOf(r)
	if err != nil {
		return nil, err
	}
	var list []store.TranscriptMessage
	var names map[string]messages.Inbound
	ctx := r.Context()
	err = p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if list, err = tx.Pages().TranscriptPage(ctx, row.ID, before, window); err != nil {
			return err
		}
		names, err = tx.Pages().Senders(ctx, list)
		return err
	})
	if err != nil {
		return nil, err
	}
	turns, from := p.transcript(list, names, r.owner())
	if from > 1 {
		body = append(body, html.El("p", linkButton(fmt.Sprintf("/sessions/%s?before=%d", row.ID, from), "Earlier messages")))
	}
	if len(turns) == 0 {
		body = append(body, emptyText("Nothing was said here yet."))
	}
	body = append(body, html.El("section", html.Attr("aria-label", "Transcript"), transcript(row.Status == sessions.Running), turns))
	if before > 0 {
		body = append(body, html.El("p", linkButton("/sessions/"+row.ID, "To the end")))
	}
	return append(body, sayHere(r, row)), nil
}

func beforeOf(r *request) (int64, error) { return r.number("before") }

// number reads a place in a list from the address; 0 is its beginning.
func (r *request) number(name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, fault.Newf(fault.Invalid, "%q must be a number, as in the links on the page.", name)
	}
	return n, nil
}

// transcript shows messages, the last of them first as long as there is room, and the
// number of the first that is shown. What tools were given and returned is shown with all
// only: in a chat of several people it may be about one of them.
func (p *sessionPages) transcript(list []store.TranscriptMessage, senders map[string]messages.Inbound, all bool) (turns html.Group, from int64) {
	results := make(map[string]messages.ToolResult)
	for _, m := range list {
		for _, b := range m.Blocks {
			if res, ok := b.(messages.ToolResult); ok {
				results[res.CallID] = res
			}
		}
	}
	size := 0
	for _, m := range slices.Backward(list) {
		node := p.turn(m, p.nameOf(senders[m.RunID]), results, all)
		size += len(html.String(node))
		if size > maxPage && len(turns) > 0 {
			break
		}
		turns, from = append(turns, node), m.Seq
	}
	slices.Reverse(turns)
	return turns, from
}

// turn shows a message. Results of tools are folded into their calls, where these are on
// the page.
func (p *sessionPages) turn(m store.TranscriptMessage, person string, results map[string]messages.ToolResult, all bool) html.Node {
	who, class := "Assistant", "assistant"
	switch m.Role {
	case messages.RoleUser:
		who, class = person, "user"
	case messages.RoleTool:
		who, class = "Tool", "tool"
	case messages.RoleAssistant:
	}
	parts := html.Group{}
	for _, b := range m.Blocks {
		if m.Role == messages.RoleTool && !all {
			continue
		}
		if n := p.block(b, results, all, m.Role == messages.RoleUser); n != nil {
			parts = append(parts, n)
		}
	}
	if len(parts) == 0 {
		return html.Group{}
	}
	if m.Undone {
		who += ", taken back"
	}
	return html.El("article", html.Class("turn "+class), html.ID(fmt.Sprintf("m%d", m.Seq)),
		html.El("h2", html.Text(who+" "), html.El("span", html.Class("meta"), p.show.when(m.At))), html.El("div", parts))
}

// nameOf is what whoever sent an event is called; "Person" if that was forgotten.
func (p *sessionPages) nameOf(in messages.Inbound) string {
	switch {
	case in.Sender.ID == "":
		return "Person"
	case in.Sender.Name == "":
		return in.Actor()
	}
	return p.show.head200(in.Sender.Name)
}

func (p *sessionPages) block(b messages.Block, results map[string]messages.ToolResult, all, plain bool) html.Node {
	switch b := b.(type) {
	case messages.Text:
		if plain {
			return p.show.bounded(b.Text, maxText, func(text string) html.Node { return html.Styled("pre", "wrap", text) })
		}
		return p.show.limited(b.Text, maxText)
	case messages.Thinking:
		if strings.TrimSpace(b.Text) == "" || !all {
			return nil
		}
		return html.El("details", html.Tag("summary", "Thinking"), p.show.output(b.Text, maxOutput))
	case messages.ToolCall:
		res, ok := results[b.ID]
		mark, line := "…", ""
		if ok {
			mark, line = "✔", res.Summary
			if res.IsError {
				mark = "✖"
			}
		}
		if !all {
			return html.El("p", html.Text(mark+" "), html.Tag("code", p.show.head200(b.Name)))
		}
		return html.El("details", html.El("summary", html.Text(mark+" "), html.Tag("code", p.show.head200(b.Name)), html.Text(" "+p.show.head200(line))),
			p.show.output(b.Arguments, maxOutput), html.If(ok, p.show.output(res.Content, maxOutput)))
	case messages.ToolResult:
		return nil // folded into its call
	case messages.Attachment:
		return html.El("p", html.Text("📎 "+p.show.head200(b.Name)), html.Styled("span", "meta", " "+p.show.head200(b.MediaType+" "+b.Note)))
	}
	return nil
}

// sessionActions is what can be done with a session.
func (p *sessionPages) sessionActions(r *request, row store.SessionRow) html.Node {
	at := "/sessions/" + row.ID
	actions := html.Group{html.Class("actions")}
	if row.Status == sessions.Running {
		actions = append(actions, form(r, at+"/stop", button("Stop", "danger")))
	}
	if r.role != sessions.Reader && row.Active {
		actions = append(actions, form(r, at+"/retry", button("Retry the last turn", "")))
	}
	if p.exports != nil {
		actions = append(actions, linkButton(at+"/export", "Export"))
	}
	if r.role != sessions.Reader && row.Active {
		actions = append(actions,
			html.El("details", html.Tag("summary", "Fork"), form(r, at+"/fork",
				html.El("label", html.Text("Messages to keep (empty: all)"), html.El("input", html.Attr("type", "number"), html.Attr("name", "messages"), html.Attr("min", "1"))),
				html.El("label", html.El("input", html.Attr("type", "checkbox"), html.Attr("name", "place"), html.Attr("value", "thread")), html.Text(" In its own thread or topic, with its own files")),
				button("Fork the session", ""))),
			html.El("details", html.Tag("summary", "Undo"), form(r, at+"/undo", sure("Yes, take back the last turn: its messages and its file changes"), button("Undo the last turn", "danger"))))
	}
	if r.owner() && p.removes {
		actions = append(actions, html.El("details", html.Tag("summary", "Delete"), form(r, at+"/delete",
			sure("Yes, delete this session and everything said in it"), button("Delete the session", "danger"))))
	}
	return html.El("div", actions)
}

// sure is a box to tick before something that cannot be taken back.
func sure(text string) html.Node {
	return html.El("label", html.El("input", html.Attr("type", "checkbox"), html.Attr("name", "sure"), html.Attr("value", "yes"), html.On("required", true)), html.Text(" "+text))
}

// transcript is what is said, which screen readers read aloud: an answer once it is complete.
func transcript(running bool) html.Node {
	return html.Group{html.ID("transcript"), html.Attr("role", "log"), html.Attr("aria-busy", strconv.FormatBool(running))}
}

// sayHere is where to say something.
func sayHere(r *request, row store.SessionRow) html.Node {
	if r.role == sessions.Reader || !row.Active {
		return nil
	}
	hint := "Starts the next turn."
	if row.Status == sessions.Running {
		hint = "Steers the running turn."
	}
	return form(r, "/sessions/"+row.ID+"/message",
		html.El("label", html.Text("Message. "+hint+" The chat shows it, too."),
			html.El("textarea", html.Attr("name", "text"), html.Attr("rows", "3"), html.On("required", true), html.Attr("data-draft", row.ID))),
		button("Send", "primary"))
}

// exportTime is how long sending an export may take, all of it and the next part.
const (
	exportTime     = 10 * time.Minute
	exportPartTime = 30 * time.Second
)

// export sends the transcript of a session as a file, as it is read.
func (p *sessionPages) export(w http.ResponseWriter, r *request) error {
	if p.exports == nil {
		return fault.New(fault.Unsupported, "Sessions cannot be exported here.")
	}
	asked, cancel := context.WithTimeout(r.Context(), pagePatience)
	row, err := sessionOf(asked, p.storage, r, r.PathValue("id"))
	cancel()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), exportTime)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	reading := time.AfterFunc(pagePatience, func() { stop(context.DeadlineExceeded) }) // from one part to the next
	defer reading.Stop()
	out := &fileWriter{w: w, control: http.NewResponseController(w), name: "session-" + row.ID + ".md", reading: reading}
	if err = p.exports(ctx, out, row.ID, r.owner()); err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		err = context.DeadlineExceeded
	}
	if err != nil && out.begun {
		p.log.WarnContext(ctx, "an export was broken off", "session", row.ID, "err", err)
		panic(http.ErrAbortHandler) // so that the browser does not take it for whole
	}
	return err
}

// fileWriter sends a file that is made while it is sent.
type fileWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	name    string
	reading *time.Timer // what is not written for so long ends the export
	begun   bool
}

// Write implements io.Writer.
func (f *fileWriter) Write(part []byte) (int, error) {
	f.reading.Stop()
	defer f.reading.Reset(pagePatience)
	if !f.begun {
		f.begun = true
		f.w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
		f.w.Header().Set("Content-Disposition", `attachment; filename="`+url.PathEscape(f.name)+`"`)
	}
	_ = f.control.SetWriteDeadline(time.Now().Add(exportPartTime)) // where that is not possible the server's own holds
	return f.w.Write(part)                                         //nolint:wrapcheck // it is the browser's
}
