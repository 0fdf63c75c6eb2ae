package pages

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/memory"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// Memories changes what is remembered of who asks, as the chat commands do. What has the
// same once changes nothing a second time.
type Memories interface {
	Remember(ctx context.Context, by signin.Account, once, text string) (memory.Outcome, error)
	Correct(ctx context.Context, by signin.Account, once string, number int64, text string) error
	Forget(ctx context.Context, person string, number int64) error
	Embed(ctx context.Context, text string) memory.Embedding
}

const memoriesPage = 50

// memoryPages are what is remembered of whoever looks.
type memoryPages struct {
	storage  Storage
	show     *renderer
	memories Memories // nil: nothing is remembered
}

func (p *memoryPages) routes(to *Pages) {
	to.page("GET /memory", p.memory)
	to.act("POST /memory/change", p.changeMemory)
}

// memory shows what is remembered of whoever looks; nobody sees that of somebody else.
func (p *memoryPages) memory(r *request) (view, error) {
	if p.memories == nil {
		return view{title: "Memory", body: html.Group{html.Tag("h1", "Memory"), emptyText("Nothing is remembered: memory is turned off in the configuration.")}}, nil
	}
	words := strings.TrimSpace(r.URL.Query().Get("q"))
	before, err := beforeOf(r)
	if err == nil {
		err = r.plain("q, before")
	}
	if err == nil && len(words) > 200 {
		err = fault.New(fault.Invalid, "The search text is too long.")
	}
	if err != nil {
		return view{}, err
	}
	list, all, on, err := p.memoriesOf(r, words, before)
	if err != nil {
		return view{}, err
	}
	var lines html.Group
	for size := 0; len(lines) < min(len(list), memoriesPage); {
		line := p.memoryLine(r, list[len(lines)])
		if size += len(html.String(line)); size > maxPage && len(lines) > 0 {
			break
		}
		lines = append(lines, line)
	}
	stands, change, label := state("ok", "✔", "on"), "off", "Turn off"
	if !on {
		stands, change, label = state("muted", "○", "off: none of this is used"), "on", "Turn on"
	}
	body := html.Group{html.Tag("h1", "Memory"),
		meta("About "+r.actor()+" and nobody else", wording.Count(int(all), "memory", "memories"), stands),
		form(r, "/memory/change", hidden("do", change), button(label, "")),
		html.El("form", html.Class("filters"), html.Attr("action", "/memory"), field("q", "Search", "text", words, ""), button("Search", "")),
		html.El("details", html.Tag("summary", "Add one"), form(r, "/memory/change", hidden("do", "remember"),
			html.El("label", html.Text("What to remember about you"), html.El("textarea", html.Attr("name", "text"), html.Attr("rows", "2"), html.On("required", true))), button("Remember", "primary")))}
	switch {
	case len(lines) > 0:
		body = append(body, html.El("ul", html.Class("list"), lines))
	case words != "":
		body = append(body, empty(html.Text("No memories match. "), html.Link("/memory", "Show all")))
	default:
		body = append(body, emptyText("Nothing is remembered about you yet. Add something here or with /remember in a chat. What an assistant learns about you appears here too, so you can correct or delete it."))
	}
	switch more := len(list) > len(lines); {
	case more && words == "":
		body = append(body, older(r, "before", strconv.FormatInt(list[len(lines)-1].Number, 10), "", "Older memories"))
	case more:
		body = append(body, html.Styled("p", "muted", "Only the best matches are shown."))
	}
	if all > 0 {
		body = append(body, html.El("details", html.Tag("summary", "Forget all"), form(r, "/memory/change", hidden("do", "forget-all"),
			sure(fmt.Sprintf("Yes, delete everything remembered about me (%d)", all)), button("Forget all", "danger"))))
	}
	return view{title: "Memory", body: body}, nil
}

// memoriesOf reads what is remembered of who asks.
func (p *memoryPages) memoriesOf(r *request, words string, before int64) (list []memory.Memory, all int64, on bool, err error) {
	ctx, now := r.Context(), p.show.now()
	q := memory.Query{Scope: memory.Scope{Person: r.actor()}, Text: words, Limit: memoriesPage, Now: now}
	if words != "" {
		q.Embedding = p.memories.Embed(ctx, words)
	}
	err = p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		list = nil
		if on, err = tx.Memories().MemoryOn(ctx, r.actor()); err != nil {
			return err
		}
		if all, err = tx.Memories().Count(ctx, r.actor(), now); err != nil {
			return err
		}
		if words == "" {
			list, err = tx.Memories().List(ctx, r.actor(), before, memoriesPage+1, now)
			return err
		}
		found, err := tx.Memories().Recall(ctx, q)
		for _, m := range found {
			list = append(list, m.Memory)
		}
		return err
	})
	return list, all, on, err
}

// memoryLine is a memory, to be changed or forgotten.
func (p *memoryPages) memoryLine(r *request, m memory.Memory) html.Node {
	about := []any{fmt.Sprintf("no. %d", m.Number)}
	switch {
	case m.Kind == memory.Episodic:
		about = append(about, "event")
	case m.Category != "":
		about = append(about, string(m.Category))
	}
	about = append(about, map[memory.Origin]string{memory.ByPerson: "from you", memory.ByAssistant: "noted by the assistant", memory.Learned: "learned"}[m.Origin])
	if m.Codebase != "" {
		about = append(about, "only in one repository")
	}
	if m.Origin != memory.ByPerson {
		about = append(about, fmt.Sprintf("confidence %.0f%%", 100*m.Certainty()))
	}
	if n := len(m.History); n > 0 {
		about = append(about, "before: "+p.show.head200(m.History[n-1].Text))
	}
	about = append(about, p.show.when(m.UpdatedAt))
	number := hidden("number", strconv.FormatInt(m.Number, 10))
	return html.El("li", html.Styled("span", "what", p.show.redact(m.Text)), meta(about...),
		html.If(m.Kind != memory.Episodic, p.editForm(r, m, number)),
		html.El("details", html.Tag("summary", "Forget"), form(r, "/memory/change", number, hidden("do", "forget"), sure(fmt.Sprintf("Yes, forget memory %d", m.Number)), button("Forget", "danger"))))
}

// editForm lets a memory be edited. It has the memory as it is stored, so there is none for
// one that holds a secret.
func (p *memoryPages) editForm(r *request, m memory.Memory, number html.Node) html.Node {
	if p.show.redact(m.Text) != m.Text {
		return html.Styled("p", "meta", "This memory contains a secret, which is masked here, so you can edit it only in the chat.")
	}
	return html.El("details", html.Tag("summary", "Edit"), form(r, "/memory/change", number, hidden("do", "edit"),
		html.El("label", html.Textf("New text of memory %d", m.Number), html.El("textarea", html.Attr("name", "text"), html.Attr("rows", "3"), html.On("required", true), html.Text(m.Text))),
		button("Save", "primary")))
}

// changeMemory changes what is remembered of who asks.
func (p *memoryPages) changeMemory(_ http.ResponseWriter, r *request) (outcome, error) {
	form, ctx, by := r.PostForm, r.Context(), r.session.Account
	if p.memories == nil {
		return outcome{}, fault.New(fault.Unsupported, "Memory is turned off in the configuration.")
	}
	do, done := form.Get("do"), outcome{to: "/memory"}
	if do == "forget" || do == "forget-all" {
		if form.Get("sure") != "yes" {
			return done, fault.New(fault.Invalid, "Nothing was forgotten: tick the box to confirm.")
		}
	}
	number, err := strconv.ParseInt(form.Get("number"), 10, 64)
	if (do == "edit" || do == "forget") && (err != nil || number <= 0) {
		return done, fault.New(fault.Invalid, "The form is not complete. Reload the page and try again.")
	}
	once := uuid.MustParse(form.Get("nonce")).String() // as the id of the message would be that says it
	switch text := form.Get("text"); do {
	case "on", "off":
		done.said = "Memory is " + do + " for you."
		return done, p.switchMemory(r, do == "on")
	case "remember":
		out, err := p.memories.Remember(ctx, by, once, text)
		done.said = fmt.Sprintf("Saved as memory %d.", out.Memory.Number)
		return done, err
	case "edit":
		done.said = fmt.Sprintf("Updated memory %d.", number)
		return done, p.memories.Correct(ctx, by, once, number, text)
	case "forget":
		done.said = fmt.Sprintf("Deleted memory %d.", number)
		return done, p.memories.Forget(ctx, by.String(), number)
	case "forget-all":
		n, err := p.forgetAll(r)
		done.said = "Deleted " + wording.Count(int(n), "memory", "memories") + "."
		return done, err
	}
	return done, fault.New(fault.Invalid, "The form is not complete. Reload the page and try again.")
}

func (p *memoryPages) switchMemory(r *request, on bool) error {
	ctx, action := r.Context(), "memory.off"
	if on {
		action = "memory.on"
	}
	return p.storage.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.Memories().SetMemoryOn(ctx, r.actor(), on); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.actor(), Action: action})
	})
}

func (p *memoryPages) forgetAll(r *request) (n int64, err error) {
	ctx := r.Context()
	err = p.storage.InTx(ctx, func(tx *store.Tx) (err error) {
		if n, err = tx.Memories().ForgetMemories(ctx, r.actor()); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.actor(), Action: "memory.forget_all", Target: strconv.FormatInt(n, 10)})
	})
	return n, err
}
