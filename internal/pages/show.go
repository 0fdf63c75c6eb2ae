package pages

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"remote-agent/internal/html"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// maxShown is how much HTML one text may become, in bytes: what is escaped grows.
const maxShown = 48 << 10

// renderer makes HTML of what is stored, without secrets: all families of pages show
// texts, moments and sessions the same way.
type renderer struct {
	redact   func(text string) string
	now      func() time.Time
	markdown *html.Renderer
}

// answered is what became of what somebody did before, or nil. It is shown once: where a page
// has it, or at its top.
func (re *renderer) answered(r *request) html.Node {
	said := r.said
	r.said = ""
	return html.If(said != "", html.El("div", html.Class("said"), html.ID("said"), html.Attr("role", "status"), html.Attr("tabindex", "-1"), html.On("autofocus", true), html.On("data-keep", true), re.limited(said, maxText)))
}

// limited renders a text in Markdown, and no more of it than so many bytes.
func (re *renderer) limited(text string, most int) html.Node {
	return re.bounded(text, most, re.markdown.Markdown)
}

// exact shows all of what somebody decides on, letter by letter, and reports whether that
// is what it shows: too long a text is cut.
func (re *renderer) exact(text string) (shown html.Node, whole bool) {
	text = re.redact(text)
	n := html.Exact(text)
	if len(html.String(n)) <= maxShown {
		return n, true
	}
	return html.Group{
		re.bounded(text, maxShown/2, html.Exact),
		html.Styled("p", "warning", "This is too long to show in full, so it cannot be approved here. The chat shows all of it: decide there."),
	}, false
}

// output shows what a program said, as it said it.
func (re *renderer) output(text string, most int) html.Node {
	return re.bounded(text, most, func(text string) html.Node {
		return html.El("pre", html.Attr("tabindex", "0"), html.Text(text))
	})
}

// margin is how much is read beyond what is shown, in bytes, so that a secret is whole
// when it is looked for.
const margin = 16 << 10

// bounded shows the beginning of a text without secrets, and how much more there is.
func (re *renderer) bounded(text string, most int, show func(text string) html.Node) html.Node {
	clean := re.redact(cut(text, most+margin))
	head := cut(clean, most)
	shown := show(head)
	for len(html.String(shown)) > maxShown {
		head = cut(head, len(head)/2)
		shown = show(head)
	}
	if more := len(clean) - len(head) + max(0, len(text)-most-margin); more > 0 {
		return html.Group{shown, html.Styled("p", "muted", fmt.Sprintf("%s more; the export has all of it.", bytesText(more)))}
	}
	return shown
}

// cut returns the beginning of a text, at most so many bytes, without half a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

func bytesText(n int) string {
	switch {
	case n < 1<<10:
		return wording.Count(n, "byte", "bytes")
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// head200 is the beginning of a text on one line.
func (re *renderer) head200(text string) string {
	return wording.Head(wording.OneLine(cut(re.redact(text), 2000)), 200)
}

// who is somebody by name and account.
func (re *renderer) who(name, account string) string {
	if name = re.head200(name); name == "" {
		return account
	}
	return name + " (" + account + ")"
}

// names are people by their accounts: each is what who makes of them.
type names map[string]string

// look adds accounts to known people.
func (re *renderer) look(ctx context.Context, tx *store.Tx, known names, accounts ...string) error {
	for _, account := range accounts {
		if known[account] != "" {
			continue
		}
		platform, id, _ := strings.Cut(account, "/")
		i, _, err := tx.People().Identity(ctx, messages.Platform(platform), messages.UserID(id))
		if err != nil {
			return err
		}
		known[account] = re.who(i.Name, account)
	}
	return nil
}

// line is a line of text in which what stands between backticks is code, as the program
// writes it for chats.
func (re *renderer) line(text string) html.Node {
	parts := strings.Split(wording.OneLine(cut(re.redact(text), 2000)), "`")
	if len(parts)%2 == 0 { // one that is not closed stands for itself
		return html.Text(strings.Join(parts, "`"))
	}
	var g html.Group
	for i, part := range parts {
		if i%2 == 1 {
			g = append(g, html.Tag("code", part))
			continue
		}
		g = append(g, html.Text(part))
	}
	return g
}

// halt is the state of the service, with the name of who has stopped all work.
func halt(ctx context.Context, tx *store.Tx) (s sessions.ServiceState, err error) {
	if s, err = tx.People().ServiceState(ctx); err == nil {
		s.HaltedBy, err = sessions.NameOf(ctx, tx.People(), s.HaltedBy)
	}
	return s, err
}

// halted says who has stopped all work, if somebody has.
func (re *renderer) halted(s sessions.ServiceState) html.Node {
	if !s.Halted() {
		return nil
	}
	return html.Styled("p", "problem", fmt.Sprintf("⏸ Halted by %s: nothing starts until an owner sends /resume. %s", s.HaltedBy, re.head200(s.HaltReason)))
}

// when is a moment: how long ago, with the moment itself in its title. In what is read aloud,
// it is not read again each minute.
func (re *renderer) when(t time.Time) html.Node {
	if t.IsZero() {
		return html.Text("–")
	}
	return html.El("time", html.On("data-ago", true), html.Attr("aria-live", "off"), html.Attr("datetime", t.UTC().Format(time.RFC3339)), html.Attr("title", wording.Moment(t)), html.Text(wording.Ago(t, re.now())))
}

// meta is a line of facts: texts and nodes.
func meta(parts ...any) html.Node {
	return html.El("p", html.Class("meta"), metaParts(parts))
}

func metaParts(parts []any) (g html.Group) {
	for i, part := range parts {
		if i > 0 {
			g = append(g, html.Text(" · "))
		}
		switch part := part.(type) {
		case string:
			g = append(g, html.Text(part))
		case html.Node:
			g = append(g, part)
		}
	}
	return g
}

// size says how large what is decided on is.
func wholeSize(n int) html.Node {
	return html.Styled("p", "meta", fmt.Sprintf("The whole request has %s.", bytesText(n)))
}

// until says how long it is to a time, to the nearest minute, or hour if it is two or more:
// what lasts a day has 24 hours left in its first seconds.
func until(t, now time.Time) string {
	d := t.Sub(now)
	minutes := int(d.Round(time.Minute) / time.Minute)
	switch {
	case d <= 0:
		return "now"
	case d < time.Minute:
		return "in less than a minute"
	case minutes < 120 && minutes != 60:
		return "in " + wording.Count(minutes, "minute", "minutes")
	}
	return "in " + wording.Count(int(d.Round(time.Hour)/time.Hour), "hour", "hours")
}

// clock is how long something takes: 6:12.
func clock(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	if d >= time.Hour {
		return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// chatName is how a conversation is called: its platform and its id there.
func chatName(platform, id string) string {
	id, _, _ = strings.Cut(id, "~") // what follows tells earlier conversations of a place apart
	return platform + "/" + id
}

func hostOfLink(link string) string {
	if u, err := url.Parse(link); err == nil && u.Host != "" {
		return u.Host
	}
	return "the page"
}

func originOf(link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
