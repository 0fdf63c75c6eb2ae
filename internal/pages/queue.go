package pages

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

const (
	maxQueued = 100 // rows of one kind that wait
	deadPage  = 25  // dead ends of one kind on a page
)

// queuePages are what waits, what runs, and what failed for good.
type queuePages struct {
	storage  Storage
	show     *renderer
	commands commands
	ring     func(ctx context.Context, conversationID string) // see About; may be nil
}

func (p *queuePages) routes(to *Pages) {
	to.page("GET /queue", ownersSee(p.queue))
	to.act("POST /queue/turn", ownersDo(p.queueTurn))
	to.act("POST /queue/delivery", ownersDo(p.queueDelivery))
	to.act("POST /queue/schedule", ownersDo(p.queueSchedule))
}

// queue shows what waits, what runs, and what failed for good.
func (p *queuePages) queue(r *request) (view, error) {
	var (
		open, failed []store.OpenEntry
		out, givenUp []store.QueuedDelivery
		tasks        []standingTask
		count        store.QueueCounts
		service      sessions.ServiceState
	)
	ctx, q := r.Context(), r.URL.Query()
	err := r.plain("turns, answers")
	if err != nil {
		return view{}, err
	}
	err = p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if service, err = halt(ctx, tx); err != nil {
			return err
		}
		if count, err = tx.Queue().Count(ctx, p.show.now()); err != nil {
			return err
		}
		if open, err = tx.Queue().OpenEntries(ctx, store.Viewer{}, maxQueued); err != nil {
			return err
		}
		if out, err = tx.Queue().WaitingDeliveries(ctx, maxQueued); err != nil {
			return err
		}
		if failed, err = tx.Queue().FailedEntries(ctx, q.Get("turns"), deadPage+1); err != nil {
			return err
		}
		if givenUp, err = tx.Queue().FailedDeliveries(ctx, q.Get("answers"), deadPage+1); err != nil {
			return err
		}
		tasks, err = p.standingTasks(ctx, tx)
		return err
	})
	if err != nil {
		return view{}, err
	}
	body := html.Group{html.Tag("h1", "Queue")}
	body = append(body, p.show.halted(service), p.queuedTurns(r, open, count), p.queuedAnswers(out, count), p.queuedTasks(r, tasks),
		p.deadTurns(r, failed, count.FailedTurns), p.deadAnswers(r, givenUp, count.FailedDeliveries))
	badge := ""
	if n := count.FailedTurns + count.FailedDeliveries; n > 0 {
		badge = fmt.Sprintf("✖%d", n)
	}
	v := view{title: "Queue", body: body, badge: badge}
	if q.Get("turns") == "" && q.Get("answers") == "" {
		v.live = liveAll
	}
	return v, nil
}

// queuedTurns are the messages that are being answered, those that are parked and those
// that wait.
func (p *queuePages) queuedTurns(r *request, open []store.OpenEntry, count store.QueueCounts) html.Node {
	var running, parked, waiting html.Group
	now := p.show.now()
	for _, e := range open {
		switch {
		case e.NextAt.After(now):
			parked = append(parked, p.queuedTurn(r, e, state("waiting", "⏳", "parked"), "tries again "+until(e.NextAt, now)+", at "+wording.Moment(e.NextAt),
				press(r, e, "now", "Retry now", ""), press(r, e, "stop", "Stop", "danger")))
		case e.State == sessions.EntryRunning:
			running = append(running, p.queuedTurn(r, e, state("running", "◐", "running"), "for "+clock(now.Sub(e.AcceptedAt)), press(r, e, "stop", "Stop", "danger")))
		default:
			waiting = append(waiting, p.queuedTurn(r, e, state("muted", "◦", "waiting"), ""))
		}
	}
	parts := html.Group{
		section("running", "Running", running, "Nothing is running. Messages that are being answered appear here, with a button to stop them."),
		section("parked", "Parked", parked, "Nothing is parked. Turns that wait for a limit to end, or for their next try, appear here with the time at which they continue."),
		section("waiting", "Inbox", waiting, "Nothing is waiting. Messages to a busy conversation wait here and are answered in order."),
	}
	if all := count.Waiting + count.Running; all > len(open) {
		parts = append(parts, html.Styled("p", "muted", fmt.Sprintf("The oldest %d of %d are shown.", len(open), all)))
	}
	return parts
}

// queuedTurn is the line of a message.
func (p *queuePages) queuedTurn(r *request, e store.OpenEntry, mark html.Node, when string, actions ...html.Node) html.Node {
	what := html.Node(html.Text(p.show.saidIn(r, e)))
	if e.SessionID != "" {
		what = html.El("a", html.Href("/sessions/"+e.SessionID), what)
	}
	about := []any{chatName(string(e.Key.Platform), e.Key.ID)}
	if e.In.Sender.ID != "" {
		about = append(about, "by "+p.show.who(e.In.Sender.Name, e.In.Actor()))
	}
	if when != "" {
		about = append(about, when)
	}
	if e.State == sessions.EntryRunning && e.LastTool != "" {
		about = append(about, "last: "+e.LastTool)
	}
	if e.Attempts > 1 {
		about = append(about, wording.Count(e.Attempts, "attempt", "attempts"))
	}
	about = append(about, p.show.when(e.AcceptedAt))
	line := html.Group{mark, html.El("span", html.Class("what"), what), meta(about...)}
	if e.Error != "" {
		line = append(line, html.Styled("p", "meta wide", "Last error: "+p.show.head200(e.Error)))
	}
	return html.El("li", html.ID("turn-"+e.ID), line, html.Group(actions))
}

// saidIn is the beginning of a message.
func (re *renderer) saidIn(r *request, e store.OpenEntry) string {
	if hushed(r, e.In) {
		return whispered
	}
	if e.In.Kind == messages.KindUnreadable {
		return damagedText
	}
	return cmp.Or(re.head200(e.In.Text), "A message without text")
}

// press is a button for the turn of a message; it does what its button in the chat does.
func press(r *request, e store.OpenEntry, what, label, class string) html.Node {
	return form(r, "/queue/turn", hidden("id", e.ID), decision(label, "do", what, class))
}

// queuedAnswers are the answers that are on their way.
func (p *queuePages) queuedAnswers(list []store.QueuedDelivery, count store.QueueCounts) html.Node {
	now := p.show.now()
	lines := html.Map(list, func(d store.QueuedDelivery) html.Node {
		mark := state("muted", "◦", "waiting")
		switch {
		case d.NextAt.After(now) && d.Attempts > 0:
			mark = state("waiting", "⏳", "tries again "+until(d.NextAt, now))
		case d.State == messages.DeliverySending:
			mark = state("running", "◐", "sending")
		case d.State == messages.DeliveryPlaced:
			mark = state("running", "◐", "being written")
		}
		return p.answerLine(d, mark)
	})
	heading := "Deliveries"
	if count.Deliveries > len(list) {
		heading = fmt.Sprintf("Deliveries (the oldest %d of %d)", len(list), count.Deliveries)
	}
	return section("deliveries", heading, lines, "Nothing is on its way. Answers that a platform has not accepted yet appear here, with the number of attempts and the time of the next one.")
}

// answerLine is the line of an answer.
func (p *queuePages) answerLine(d store.QueuedDelivery, mark html.Node, actions ...html.Node) html.Node {
	text := p.show.head200(d.Text)
	switch {
	case d.OnlyFor:
		text = "An answer that only one person sees"
	case d.FileName != "":
		text = "📎 " + p.show.head200(d.FileName)
	case text == "":
		text = "An answer that has no text yet"
	}
	what := html.Node(html.Text(text))
	if d.SessionID != "" {
		what = html.El("a", html.Href("/sessions/"+d.SessionID), what)
	}
	line := html.Group{mark, html.El("span", html.Class("what"), what),
		meta("to "+chatName(string(d.Key.Platform), d.Key.ID), wording.Count(d.Attempts, "attempt", "attempts"), p.show.when(d.CreatedAt))}
	if d.Error != "" {
		line = append(line, html.Styled("p", "meta wide", "Last error: "+p.show.head200(d.Error)))
	}
	return html.El("li", html.ID("delivery-"+d.ID), line, html.Group(actions))
}

// standingTask is a standing task with its conversation, and whether the daily budget
// pauses it.
type standingTask struct {
	sessions.Schedule
	in     messages.ConversationKey
	paused bool
}

// standingTasks reads the next ones, one more than are shown.
func (p *queuePages) standingTasks(ctx context.Context, tx *store.Tx) ([]standingTask, error) {
	next, err := tx.Tasks().Schedules(ctx, maxQueued+1)
	if err != nil {
		return nil, err
	}
	tasks := make([]standingTask, len(next))
	for i, s := range next {
		c, err := tx.Conversations().Conversation(ctx, s.ConversationID)
		if err != nil {
			return nil, err
		}
		tasks[i] = standingTask{Schedule: s, in: c.Key}
		if s.EntryID == "" {
			continue
		}
		last, err := tx.Inbox().Entry(ctx, s.EntryID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		tasks[i].paused = last.Pauses(spend.Today(p.show.now()))
	}
	return tasks, nil
}

// queuedTasks are the standing tasks.
func (p *queuePages) queuedTasks(r *request, tasks []standingTask) html.Node {
	now, heading := p.show.now(), "Schedules"
	if len(tasks) > maxQueued {
		tasks, heading = tasks[:maxQueued], fmt.Sprintf("Schedules (the next %d)", maxQueued)
	}
	lines := html.Map(tasks, func(s standingTask) html.Node {
		mark := state("ok", "⏲", until(s.NextAt, now))
		if s.paused {
			mark = state("waiting", "⏸", "paused: the daily budget was used up")
		}
		about := []any{"by " + wording.Who(s.Origin.Sender.Name, s.CreatedBy), wording.Count(int(s.Runs), "run", "runs")}
		if !s.LastAt.IsZero() {
			about = append(about, html.Group{html.Text("last "), p.show.when(s.LastAt)})
		}
		return html.El("li", html.ID("task-"+s.ConversationID), mark,
			html.Styled("span", "what", fmt.Sprintf("%s, %s", chatName(string(s.in.Platform), s.in.ID), wording.Moment(s.NextAt))), meta(about...),
			form(r, "/queue/schedule", hidden("conversation", s.ConversationID), button("Turn off", "danger")))
	})
	return section("schedules", heading, lines, "No standing tasks. An agent profile with an interval runs by itself once somebody sends /schedule on in its chat.")
}

// deadTurns are the messages whose turns failed.
func (p *queuePages) deadTurns(r *request, list []store.OpenEntry, all int) html.Node {
	more := len(list) > deadPage
	list = list[:min(len(list), deadPage)]
	lines := html.Map(list, func(e store.OpenEntry) html.Node {
		actions := html.Group{press(r, e, "drop", "Drop", "danger")}
		if e.In.Kind != messages.KindUnreadable {
			actions = slices.Insert(actions, 0, press(r, e, "retry", "Retry", ""))
		}
		return p.queuedTurn(r, e, state("error", "✖", "failed"), "", actions)
	})
	parts := html.Group{section("failed-turns", heading("Failed turns", all), lines,
		"No failed turns. Messages that could not be answered appear here, so you can retry or drop them.")}
	if more {
		parts = append(parts, older(r, "turns", list[len(list)-1].ID, "#failed-turns", "Older failed turns"))
	}
	return parts
}

// deadAnswers are the answers that were given up.
func (p *queuePages) deadAnswers(r *request, list []store.QueuedDelivery, all int) html.Node {
	more := len(list) > deadPage
	list = list[:min(len(list), deadPage)]
	lines := html.Map(list, func(d store.QueuedDelivery) html.Node {
		return p.answerLine(d, state("error", "✖", "given up"),
			form(r, "/queue/delivery", hidden("id", d.ID), decision("Send again", "do", "retry", "")),
			form(r, "/queue/delivery", hidden("id", d.ID), decision("Drop", "do", "drop", "danger")))
	})
	parts := html.Group{section("failed-answers", heading("Answers that were not delivered", all), lines,
		"Every answer was delivered. Answers that a platform refuses for good appear here, so you can send them again or drop them.")}
	if more {
		parts = append(parts, older(r, "answers", list[len(list)-1].ID, "#failed-answers", "Older answers"))
	}
	return parts
}

func heading(text string, n int) string {
	if n == 0 {
		return text
	}
	return fmt.Sprintf("%s (%d)", text, n)
}

// older leads to what is behind a cursor; the rest of the address stays.
func older(r *request, name, id, to, label string) html.Node {
	q := r.URL.Query()
	q.Set(name, id)
	return html.El("p", linkButton(r.URL.Path+"?"+q.Encode()+to, label))
}

// queueTurn presses a button of a turn, as in its chat, or drops one that failed.
func (p *queuePages) queueTurn(_ http.ResponseWriter, r *request) (outcome, error) {
	ctx, id, what := r.Context(), r.PostForm.Get("id"), r.PostForm.Get("do")
	done := outcome{to: "/queue", said: "Dropped the failed turn."}
	if what == "drop" {
		return done, p.settle(r, "turn.drop", id, (*store.Queue).DropFailed)
	}
	var e sessions.Entry
	var conv sessions.Conversation
	err := p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if e, err = tx.Inbox().Entry(ctx, id); err != nil {
			return err
		}
		conv, err = tx.Conversations().Conversation(ctx, e.ConversationID)
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	in := r.event(conv.Key, p.show.now())
	in.Kind = messages.KindAction
	switch what {
	case "stop":
		in.Action = command.StopButton(conv.ID, e.Seq)
	case "now":
		in.Action = command.TurnButton(conv.ID, e.Seq, command.RetryNow)
	case "retry":
		in.Action = command.TurnButton(conv.ID, e.Seq, command.Retry)
	default:
		return outcome{}, fault.New(fault.Invalid, "The form is not complete. Reload the page and try again.")
	}
	done.said, err = p.commands.give(ctx, in, "Done; the result appears in the chat.")
	return done, err
}

// queueDelivery sends an answer again that was given up, or drops it.
func (p *queuePages) queueDelivery(_ http.ResponseWriter, r *request) (outcome, error) {
	id := r.PostForm.Get("id")
	switch r.PostForm.Get("do") {
	case "retry":
		return outcome{to: "/queue", said: "Sending it again."}, p.settle(r, "delivery.retry", id, (*store.Queue).RetryDelivery)
	case "drop":
		return outcome{to: "/queue", said: "Dropped the answer. The transcript still has it."}, p.settle(r, "delivery.drop", id, (*store.Queue).DropDelivery)
	}
	return outcome{}, fault.New(fault.Invalid, "The form is not complete. Reload the page and try again.")
}

// settling is a method of the database that ends a dead end.
type settling func(tx *store.Queue, ctx context.Context, id string) (conversationID string, err error)

// settle ends a dead end, writes that down, and has somebody look after its conversation.
func (p *queuePages) settle(r *request, action, id string, change settling) error {
	ctx, conversation := r.Context(), ""
	err := p.storage.InTx(ctx, func(tx *store.Tx) (err error) {
		if conversation, err = change(tx.Queue(), ctx, id); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.actor(), Action: action, ConversationID: conversation, Target: id})
	})
	if err == nil && p.ring != nil {
		p.ring(ctx, conversation)
	}
	return err
}

// queueSchedule switches a standing task off, as /schedule off does in its chat.
func (p *queuePages) queueSchedule(_ http.ResponseWriter, r *request) (outcome, error) {
	ctx := r.Context()
	conv, err := conversationOf(ctx, p.storage, r.PostForm.Get("conversation"))
	if err != nil {
		return outcome{}, err
	}
	in := r.event(conv.Key, p.show.now())
	in.Text = "/schedule off"
	said, err := p.commands.give(ctx, in, "Turned off; the chat says so.")
	return outcome{to: "/queue", said: said}, err
}
