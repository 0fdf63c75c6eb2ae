package telegram

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

const (
	maxButtons  = 100 // under one message
	maxLabel    = 64  // code points
	rowButtons  = 3
	rowWidth    = 36 // code points of labels that a phone shows side by side
	maxNote     = 200
	maxToast    = 60 // a longer note has to be closed by the person
	noteCut     = "…"
	answerDelay = 2 * time.Second
	answerLimit = 5 * time.Second // for one answer
	answerers   = 4
	maxPresses  = 256 // that wait for their answer
)

// opaqueForm is what callback data of ours looks like, and the ids of callback
// queries. Telegram takes 64 bytes of data (Bot API, InlineKeyboardButton);
// people can send any data with a client of their own.
var opaqueForm = pattern.Lazy(`^[A-Za-z0-9_-]{1,64}$`)

// keyboard returns what shows buttons under a message, or nil for none: a
// message that is edited without a keyboard loses the one it had.
func keyboard(buttons []messages.Button) (models.ReplyMarkup, error) {
	if len(buttons) == 0 {
		return nil, nil
	}
	if len(buttons) > maxButtons {
		return nil, fault.Newf(fault.Invalid, "A Telegram message takes at most %d buttons.", maxButtons)
	}
	var rows [][]models.InlineKeyboardButton
	var row []models.InlineKeyboardButton
	width := 0
	for _, b := range buttons {
		if !opaqueForm.MatchString(b.ID) {
			return nil, fault.Newf(fault.Invalid, "%q cannot be the id of a Telegram button.", b.ID)
		}
		text := label(b.Label)
		n := utf8.RuneCountInString(text)
		if len(row) == rowButtons || len(row) > 0 && width+n > rowWidth {
			rows, row, width = append(rows, row), nil, 0
		}
		row = append(row, models.InlineKeyboardButton{Text: text, CallbackData: b.ID, Style: style(b.Style)})
		width += n
	}
	return &models.InlineKeyboardMarkup{InlineKeyboard: append(rows, row)}, nil
}

// label returns a text that Telegram takes for a button.
func label(s string) string {
	s = cleanName(s)
	if utf8.RuneCountInString(s) > maxLabel {
		s = strings.TrimSpace(cutRunes(s, maxLabel-1)) + noteCut
	}
	return cmp.Or(s, platform.Placeholder)
}

// style names a color; clients and servers that do not know it show a plain
// button (Bot API 9.4, InlineKeyboardButton.style).
func style(s messages.ButtonStyle) string {
	switch s {
	case messages.ButtonPrimary:
		return "primary"
	case messages.ButtonDanger:
		return "danger"
	case messages.ButtonPlain:
	}
	return ""
}

// press fills in from q. In groups a press needs no mention: the message with
// the button is the bot's. Whether or not it is for us, Trigger is set if it
// has to be answered.
func press(in messages.Inbound, q *callbackQuery) (messages.Inbound, bool) {
	if !opaqueForm.MatchString(q.ID) {
		return in, false
	}
	in.Kind, in.Trigger = messages.KindAction, q.ID
	m := q.Message
	// A message without a date is one that Telegram does not show to the bot any
	// more; not even its topic is known then (Bot API, InaccessibleMessage).
	if m == nil || m.Chat.ID == 0 || m.ID <= 0 || m.Date == 0 || !opaqueForm.MatchString(q.Data) {
		return in, false
	}
	// The message's author is the bot; who pressed is what counts.
	if q.From == nil || q.From.IsBot || q.From.ID == 0 {
		return in, false
	}
	in.Conversation = makeKey(m.Chat.ID, m.topic())
	in.Message = messages.MessageID(strconv.Itoa(m.ID))
	in.Sender = sender(q.From)
	in.Private = m.Chat.Type == "private"
	in.SentAt = time.Now().UTC() // Telegram does not tell
	in.Action = q.Data
	return in, true
}

// answers tells people something about the buttons that they press.
type answers struct {
	client  *client
	render  *renderer
	presses *presses
	log     *slog.Logger
	observe func(string)
}

// Whisper implements platform.Whisperer. The person who pressed a button sees
// text, without formatting and cut to 200 characters, for a moment; if it is
// longer than 60, until they close it. A press takes one answer within some
// seconds: what comes too late, or after the empty answer that this package
// gives after two seconds, is lost without an error. fault.Unsupported is
// returned for everything that is not a press.
func (w *answers) Whisper(ctx context.Context, to messages.Inbound, text string) error {
	if to.Conversation.Platform != Name || to.Kind != messages.KindAction || !opaqueForm.MatchString(to.Trigger) {
		return fault.New(fault.Unsupported, "On Telegram one person can be told something only when they press a button.")
	}
	waiting := w.presses.claim(to.Trigger)
	err := w.answerPress(ctx, to.Trigger, w.note(text))
	if err != nil && waiting {
		// The client still waits for any answer at all.
		w.presses.expect([]string{to.Trigger})
		w.presses.schedule([]string{to.Trigger})
	}
	return err
}

// note returns text as answerCallbackQuery takes it: plain and short. Counting
// UTF-16 units keeps the limit in every way of counting.
func (w *answers) note(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	text = w.render.render(cutRunes(text, 4*maxNote)).text
	if platform.UTF16Len(text) > maxNote {
		return platform.CutUTF16(text, maxNote-1) + noteCut
	}
	return text
}

// answerPress ends the client's waiting. A query that is too old, or was
// answered before, needs nothing any more.
func (w *answers) answerPress(ctx context.Context, id, note string) error {
	_, err := ask(ctx, w.client, "answerCallbackQuery", (*bot.Bot).AnswerCallbackQuery, &bot.AnswerCallbackQueryParams{
		CallbackQueryID: id, Text: note, ShowAlert: utf8.RuneCountInString(note) > maxToast,
	})
	if isInvalid(err, "query is too old", "query id is invalid", "query_id_invalid") {
		w.observe("press_too_late")
		return nil
	}
	return err
}

// dismiss answers a press that nobody whispered about. It is best effort: a
// client stops waiting by itself in the end.
func (w *answers) dismiss(ctx context.Context, id string) {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if err := w.answerPress(limited, id, ""); err != nil && ctx.Err() == nil {
		w.observe("press_unanswered")
		w.log.WarnContext(ctx, "a pressed button could not be answered", "err", err)
	}
}

// presses are the pressed buttons whose clients wait for an answer. Each is
// answered once: by whoever claims it first, a whisper or, answerDelay after
// the event was stored, one of the goroutines of start.
type presses struct {
	due chan duePress // never closed

	mu   sync.Mutex // guards open
	open map[string]struct{}
}

type duePress struct {
	id string
	at time.Time
}

func newPresses() *presses {
	// Twice the room: what was claimed stays in due until its time has come.
	return &presses{due: make(chan duePress, 2*maxPresses), open: make(map[string]struct{})}
}

// expect notes presses that wait. It is called before their events are passed
// on, so that a whisper that is faster than that call finds them. It returns
// how many there was no room for; those are not answered by themselves.
func (p *presses) expect(ids []string) (dropped int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if _, known := p.open[id]; !known && len(p.open) >= maxPresses {
			dropped++
			continue
		}
		p.open[id] = struct{}{}
	}
	return dropped
}

// schedule lets presses that still wait be answered after answerDelay.
func (p *presses) schedule(ids []string) {
	at := time.Now().Add(answerDelay)
	for _, id := range ids {
		if !p.waits(id) {
			continue
		}
		select {
		case p.due <- duePress{id, at}:
		default:
			p.claim(id)
		}
	}
}

// forget drops presses whose events were not stored: they come again.
func (p *presses) forget(ids []string) {
	for _, id := range ids {
		p.claim(id)
	}
}

func (p *presses) waits(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.open[id]
	return ok
}

// claim reports whether the press waits and, if so, leaves it to the caller.
func (p *presses) claim(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.open[id]
	delete(p.open, id)
	return ok
}

// start answers presses that are due until ctx is done or stop is called, which
// waits for the goroutines. Presses that are not due then stay unanswered.
func (p *presses) start(ctx context.Context, answer func(ctx context.Context, id string)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for range answerers {
		group.Go(func() { p.serve(ctx, answer) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}

func (p *presses) serve(ctx context.Context, answer func(ctx context.Context, id string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-p.due:
			if !p.waits(next.id) {
				continue
			}
			// All wait equally long, so the next is never due before this one.
			if platform.Sleep(ctx, time.Until(next.at)) != nil {
				return
			}
			if p.claim(next.id) {
				answer(ctx, next.id)
			}
		}
	}
}
