package pages

import (
	"cmp"
	"fmt"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/html"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

const eventsPage = 50

// events shows what came in for a session, what became of it, and what was sent.
func (p *sessionPages) events(r *request, row store.SessionRow) (body html.Group, err error) {
	before, err := beforeOf(r)
	if err != nil {
		return nil, err
	}
	list, err := store.Within(r.Context(), p.storage.InRead, func(tx *store.Tx) ([]store.SessionEvent, error) {
		return tx.Pages().SessionEvents(r.Context(), row.Session, before, eventsPage+1)
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return html.Group{emptyText("Nothing is recorded. Each message to the session appears here with its attempts, answers and deliveries, and with the reason if it was ignored or refused.")}, nil
	}
	more := len(list) > eventsPage
	list = list[:min(len(list), eventsPage)]
	body = append(body, html.El("ul", html.Class("list"), html.Map(list, func(e store.SessionEvent) html.Node { return p.eventLine(r, e) })))
	if more {
		body = append(body, earlierIn(row, "events", list[len(list)-1].Seq, "Earlier events"))
	}
	return body, nil
}

// eventLine is an event with what was sent for it.
func (p *sessionPages) eventLine(r *request, e store.SessionEvent) html.Node {
	now := p.show.now()
	about := []any{fmt.Sprintf("no. %d", e.Seq)}
	if e.In.Sender.ID != "" {
		about = append(about, p.show.who(e.In.Sender.Name, e.In.Actor()))
	}
	if e.Attempts > 0 {
		about = append(about, wording.Count(e.Attempts, "try", "tries"))
	}
	if e.NextAt.After(now) {
		about = append(about, "tries again "+until(e.NextAt, now))
	}
	about = append(about, p.show.when(e.AcceptedAt))
	parts := html.Group{eventState(e, now), html.Styled("span", "what", p.eventText(r, e)), meta(about...)}
	if why := whyNot(e); why != "" {
		parts = append(parts, html.Styled("p", "meta wide", why))
	}
	if e.Error != "" && r.owner() {
		parts = append(parts, html.Styled("p", "meta wide", "On record: "+p.show.head200(e.Error)))
	}
	if len(e.Deliveries) > 0 {
		parts = append(parts, html.El("ul", html.Class("wide"), html.Map(e.Deliveries, func(d messages.Delivery) html.Node { return p.sentLine(r, d) })))
	}
	return html.El("li", parts)
}

// whispered stands for a message to everybody but its sender.
const whispered = "A message that only its sender sees"

// damagedText stands for what the database has in a form that nobody can read.
const damagedText = "A message that is damaged in the database"

// hushed reports whether a message is for its sender and the bot alone, and this is somebody
// else. An owner is somebody else, too: what may be done about the message does not depend
// on its text.
func hushed(r *request, in messages.Inbound) bool { return in.Whispered && in.Actor() != r.actor() }

// eventText says what came in. What only one person wrote to the bot, such as a command
// about their memories, is nobody else's: of a command of somebody else only the name is
// shown.
func (p *sessionPages) eventText(r *request, e store.SessionEvent) string {
	own := e.In.Actor() == r.actor()
	switch {
	case e.In.Kind == "" && e.State == sessions.EntryRefused:
		return "A message that was refused and is not kept"
	case e.In.Kind == "" && e.Lane == sessions.LaneControl:
		return "A command or button, which is not kept after it is carried out"
	case e.In.Kind == "":
		return "Forgotten: the text is past its retention"
	case e.In.Kind == messages.KindUnreadable:
		return damagedText
	case e.In.Kind == messages.KindAction:
		return "A button was pressed"
	case e.In.Kind != messages.KindMessage:
		return "Event: " + string(e.In.Kind)
	}
	if call, is := command.Parse(e.In.Text); is && !own {
		return "Command: /" + p.show.head200(call.Name)
	}
	if hushed(r, e.In) {
		return whispered
	}
	return cmp.Or(p.show.head200(e.In.Text), "A message without text")
}

func eventState(e store.SessionEvent, now time.Time) html.Node {
	switch e.State {
	case sessions.EntryWaiting:
		return state("muted", "◦", "waiting")
	case sessions.EntryRunning:
		if e.NextAt.After(now) {
			return state("waiting", "⏳", "parked")
		}
		return state("running", "◐", "running")
	case sessions.EntryDone:
		return state("ok", "✔", "done")
	case sessions.EntryFailed:
		return state("error", "✖", "failed")
	case sessions.EntryStopped:
		return state("muted", "⏹", "stopped")
	case sessions.EntryRefused:
		return state("error", "✖", "refused")
	case sessions.EntryIgnored, sessions.EntryRaw:
	}
	return state("muted", "○", "ignored")
}

// whyNot says why an event was not answered.
func whyNot(e store.SessionEvent) string {
	switch {
	case e.State == sessions.EntryRefused && e.Error == "overflow":
		return "Refused: too many messages from this person were already waiting."
	case e.State == sessions.EntryRefused && e.Error == sessions.ErrorLoop:
		return "Refused: it replied to an answer at once, like programs that talk to each other."
	case e.State == sessions.EntryRefused:
		return "Refused: the sender has no access."
	case e.State == sessions.EntryIgnored && e.In.Kind == messages.KindEdit:
		return "An edit counts only until its message is answered."
	case e.State == sessions.EntryIgnored && e.In.Kind == messages.KindDeleted:
		return "A message was deleted while it waited, so it is not answered."
	case e.State == sessions.EntryIgnored && e.In.Kind == messages.KindGone:
		return "The bot was removed from the chat, so what ran and waited there was stopped."
	case e.State == sessions.EntryIgnored && e.In.Album != "":
		return "Part of an album: answered together with its other messages."
	case e.State == sessions.EntryIgnored:
		return "Ignored: there was nothing to do."
	}
	return ""
}

// sentLine is a delivery.
func (p *sessionPages) sentLine(r *request, d messages.Delivery) html.Node {
	now := p.show.now()
	mark := state("muted", "◦", "not sent yet")
	switch d.State {
	case messages.DeliverySent:
		mark = state("ok", "✔", "delivered")
	case messages.DeliveryFailed:
		mark = state("error", "✖", "given up")
	case messages.DeliverySending:
		mark = state("running", "◐", "sending")
	case messages.DeliveryPlaced:
		mark = state("running", "◐", "being written")
	case messages.DeliveryPending:
	}
	what := p.show.head200(d.Text)
	switch {
	case d.OnlyFor != "", d.Control && d.FileName == "":
		what = "The answer to a command"
	case d.FileName != "":
		what = "📎 " + p.show.head200(d.FileName)
	case what == "":
		what = "A message without text"
	}
	tries := d.Attempts // that failed
	if d.State == messages.DeliverySent {
		tries++
	}
	about := []any{wording.Count(tries, "try", "tries")}
	if d.NextAt.After(now) && d.State != messages.DeliverySent {
		about = append(about, "tries again "+until(d.NextAt, now))
	}
	about = append(about, p.show.when(d.CreatedAt))
	line := html.Group{mark, html.Text(" " + what + " "), html.El("span", append(html.Group{html.Class("meta")}, metaParts(about)...))}
	if d.Error != "" && r.owner() {
		line = append(line, html.Styled("p", "meta", "Last error: "+p.show.head200(d.Error)))
	}
	return html.El("li", line)
}
