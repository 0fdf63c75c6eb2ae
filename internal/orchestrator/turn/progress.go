package turn

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/commit"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
)

// typingAfter is how long a turn runs until the typing indication begins. A
// quick answer needs none.
const typingAfter = 700 * time.Millisecond

// stopAfter is how long a turn runs until it can be stopped by a button. A quick
// answer needs none.
const stopAfter = 3 * time.Second

// quietAfter is how often the elapsed time is shown while nothing else changes.
const quietAfter = 30 * time.Second

// stalledAfter is how long nothing is heard of a turn until people, and who operates the bot,
// are told so.
const stalledAfter = 3 * time.Minute

// progress shows a turn while it runs: it puts the placeholder in place and
// edits it with the text so far. It is best effort; the answer does not depend
// on it. One goroutine owns the placeholder until finish returns.
type progress struct {
	w       *worker
	seq     int64 // of the entry
	adapter platform.Adapter
	editor  platform.Editor // nil where messages cannot be edited
	caps    platform.Capabilities
	begin   time.Time
	late    bool // whoever wrote does not watch any more
	job     bool // a command of ours runs, and no assistant

	heardAt atomic.Int64 // when the turn last gave a sign of life, in nanoseconds since begin

	mu       sync.Mutex // guards the text so far
	body     strings.Builder
	earlier  string // text of messages before the current one
	thoughts string // the newest reasoning, as it came
	card     card

	stopID  string             // of the button that stops the turn
	placed  *messages.Delivery // nil where no placeholder is used
	news    bool               // what is known of placed is not on record
	unsure  bool               // or it is, for all that is known
	stands  atomic.Bool        // the placeholder is there, or on its way
	gone    bool               // the platform says that the chat takes no messages any more
	changed chan struct{}      // capacity 1: there is something new to show
	stopped context.Context    // ended by finish: pauses and edits end, a first send does not
	stop    context.CancelFunc
	done    chan struct{} // closed when the goroutine has ended
}

// placing is how often the placeholder is tried; the answer does not depend on it.
var placing = fault.Policy{Longest: time.Minute, Tries: 5, Uncertain: true}

// recording is how often its id is recorded, until the lease is lost.
var recording = fault.Policy{Longest: 10 * time.Second, Uncertain: true}

// recordAfter is how long the id of a placeholder may be known here only: a turn
// that ends sooner records it with its end. Until it is on record nothing of the
// answer is shown in it, so that a crash leaves a stray placeholder and no text.
const recordAfter = 40 * time.Millisecond

func (w *worker) adapter() platform.Adapter { return w.o.outbox.Adapters[w.conv.Key.Platform] }

func (w *worker) caps() platform.Capabilities { return w.o.outbox.Caps(w.conv.Key.Platform) }

// startProgress begins to show a turn.
func (r *run) startProgress() *progress {
	now := time.Now()
	p := &progress{
		w: r.w, seq: r.d.entry.Seq, adapter: r.w.adapter(), caps: r.w.caps(), begin: now, placed: r.d.begun.placeholder, stopID: command.StopButton(r.w.conv.ID, r.d.entry.Seq),
		late: r.w.o.outbox.IsLate(r.d.entry), job: r.d.begun.job != nil, card: newCard(r.w.verbose(), now), changed: make(chan struct{}, 1), done: make(chan struct{}),
	}
	r.shows = p
	p.stopped, p.stop = context.WithCancel(r.w.ctx)
	p.editor, _ = p.adapter.(platform.Editor)
	r.w.o.running.runs(r.w.conv.ID, p)
	go p.run(r.w.ctx)
	return p
}

// finish stops showing and returns the placeholder as it is then, or nil, and
// whether that is still to be recorded. It may be called again.
func (p *progress) finish() (placed *messages.Delivery, unrecorded bool) {
	p.stop()
	<-p.done
	return p.placed, p.news
}

func (p *progress) run(ctx context.Context) {
	defer close(p.done)
	defer background.Recover(ctx, p.w.o.config.Log, "progress", nil)
	if p.adapter == nil {
		return
	}
	typing := p.typing(p.stopped)
	defer typing.Wait()
	if p.placed == nil {
		return
	}
	if p.placed.Message == "" && !p.lasts() {
		return
	}
	p.stands.Store(true)
	if stands := p.placed.Message != "" || p.place(ctx); !stands || !p.record(ctx) {
		return
	}
	p.edits(ctx)
}

// lasts reports whether the turn goes on for so long that it needs a placeholder.
// Where it is needed from the beginning, since nothing can be looked up, that is at once,
// unless the turn begins late, behind another one: then an answer that is there at once
// is one message.
func (p *progress) lasts() bool {
	after := p.caps.PlaceholderAfter
	if p.late {
		after = max(after, typingAfter)
	}
	if after <= 0 {
		return true
	}
	wait := time.NewTimer(after)
	defer wait.Stop()
	select {
	case <-p.stopped.Done():
		return false
	case <-wait.C:
		return true
	}
}

// record writes the id of the placeholder down if the turn goes on for a while. It
// reports whether it is on record, and may be edited. While the database does not answer
// it is tried again: a long turn would show nothing until its end.
func (p *progress) record(ctx context.Context) bool {
	pause := recordAfter
	for try := 1; p.news; try++ {
		select {
		case <-p.stopped.Done(): // the end of the turn records it
			return false
		case <-time.After(pause):
		}
		_, err := p.w.o.config.Storage.Commit(ctx, p.w.lease, commit.Changes{Deliveries: []messages.Delivery{*p.placed}})
		if err == nil {
			p.news = false
			break
		}
		p.unsure = p.unsure || fault.Uncertain(err)
		p.w.o.config.Log.InfoContext(ctx, "could not record the first message yet", "conversation", p.w.conv.Key, "err", err)
		var again bool
		if pause, again = recording.Next(try, err); !again {
			return false
		}
	}
	return true
}

// typing repeats the typing indication until ctx ends.
func (p *progress) typing(ctx context.Context) *sync.WaitGroup {
	var wg sync.WaitGroup
	typer, ok := p.adapter.(platform.Typer)
	if !ok {
		return &wg
	}
	key := p.w.conv.Key
	wg.Go(func() {
		timer := time.NewTimer(typingAfter)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if err := typer.Typing(ctx, key); err != nil && ctx.Err() == nil {
				p.w.o.config.Log.DebugContext(ctx, "typing indication failed", "err", err)
			}
			timer.Reset(platform.TypingEvery)
		}
	})
	return &wg
}

// place sends the placeholder. It reports whether there is a message to edit. A
// conversation that still has to come into being on its platform has had its
// opening by then, so its key does not change here.
func (p *progress) place(ctx context.Context) bool {
	record := func(ctx context.Context, d messages.Delivery, moved *outbox.Move) error {
		if p.news = moved == nil; p.news {
			return nil // it is recorded later
		}
		return p.w.hold(ctx, func(tx port.Tx) error {
			if err := moved.Apply(ctx, tx); err != nil {
				return err
			}
			return tx.Deliveries().UpdateDelivery(ctx, d)
		})
	}
	for try := 1; ; try++ {
		_, err := p.w.o.outbox.Place(ctx, p.w.conv.Key, p.placed, record)
		if err == nil {
			return true
		}
		pause, again := placing.Next(try, err)
		if p.caps.PlaceholderAfter > 0 && fault.Is(err, fault.RateLimited) { // it was left out for now
			after, _ := fault.Retry(err)
			pause, again = max(after, time.Second), true
			try--
		}
		if !again {
			p.w.o.config.Log.InfoContext(ctx, "could not place the first message", "conversation", p.w.conv.Key, "err", err)
			p.stopIfUnseen(err)
			return false
		}
		select {
		case <-p.stopped.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// edits shows what is new, no faster than the platform likes. An edit that is
// under way when the turn ends is waited for: if it were cut off, the platform
// might still apply it, after the answer.
func (p *progress) edits(ctx context.Context) {
	if p.editor == nil || !p.caps.Streaming {
		<-p.stopped.Done()
		return
	}
	shown, buttons := "", 0
	quiet := time.NewTicker(quietAfter)
	defer quiet.Stop()
	soon := time.NewTimer(stopAfter) // a turn that takes longer can be stopped by a button
	defer soon.Stop()
	for {
		select {
		case <-p.stopped.Done():
			return
		case <-p.changed:
		case <-quiet.C:
		case <-soon.C:
		}
		if p.stopped.Err() != nil { // both were ready: the answer itself comes next
			return
		}
		stop := p.stopButtons()
		if text := p.render(); text != shown || len(stop) != buttons {
			err := p.editor.Edit(ctx, platform.Edit{Ref: p.ref(), Text: text, Buttons: stop, Progress: true})
			switch {
			case err == nil:
				shown, buttons = text, len(stop)
			case fault.Is(err, fault.NotFound), fault.Is(err, fault.Gone):
				p.stopIfUnseen(err)
				return
			default: // shed for now: the same again after the pause
				p.notify()
			}
		}
		select { // the pace of the platform
		case <-p.stopped.Done():
			return
		case <-time.After(p.caps.EditInterval):
		}
	}
}

// stopIfUnseen stops the turn where the platform says that its chat takes no messages any
// more, or none of the bot: nobody would see the answer.
func (p *progress) stopIfUnseen(err error) {
	p.gone = fault.Is(err, fault.Gone)
	if p.gone || fault.Is(err, fault.Forbidden) {
		p.w.o.running.stop(p.w.conv.ID, p.seq)
	}
}

// heard notes that the turn gives a sign of life.
func (p *progress) heard() { p.heardAt.Store(int64(time.Since(p.begin))) }

// silence is how long nothing was heard of the turn.
func (p *progress) silence() time.Duration {
	return time.Since(p.begin) - time.Duration(p.heardAt.Load())
}

// stalled reports whether nothing was heard of the turn for stalledAfter although it runs and
// waits for no person, and whether that is while a tool runs.
func (p *progress) stalled() (is, byTool bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is = p.stopped.Err() == nil && p.silence() >= stalledAfter && len(p.card.waiting) == 0
	return is, is && slices.ContainsFunc(p.card.rows, func(r row) bool { return !r.done })
}

func (p *progress) ref() messages.Ref {
	return messages.Ref{Conversation: p.w.conv.Key, Message: p.placed.Message}
}

// stopButtons returns the button that stops the turn, once it is worth one.
func (p *progress) stopButtons() []messages.Button {
	if !p.caps.Buttons || time.Since(p.begin) < stopAfter {
		return nil
	}
	return []messages.Button{{ID: p.stopID, Label: "Stop", Style: messages.ButtonDanger}}
}

// render returns what to show now, within the platform's limit.
func (p *progress) render() string {
	p.mu.Lock()
	text := p.w.o.redactPart(p.earlier + p.body.String())
	thought := strings.TrimSpace(p.w.o.redactPart(p.thoughts))
	p.card.thought = thought[strings.LastIndexByte(thought, '\n')+1:]
	p.card.silence = p.silence()
	status, worked := p.card.render(time.Now()), p.card.worked() || len(p.card.waiting) > 0 || p.card.silence >= stalledAfter
	p.mu.Unlock()
	if strings.TrimSpace(text) == "" {
		text = status
	} else if status != "" && worked {
		text = status + "\n\n" + text
	}
	if strings.TrimSpace(text) == "" {
		return platform.Placeholder
	}
	parts := p.w.o.outbox.Split(p.w.conv.Key.Platform, text)
	return parts[len(parts)-1]
}

func (p *progress) notify() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *progress) write(text string) {
	p.mu.Lock()
	p.body.WriteString(text)
	p.mu.Unlock()
	p.notify()
}

// text returns what was said in the current message.
func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.body.String()
}

// messageDone closes the current message: text after it belongs to the next.
func (p *progress) messageDone(m messages.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.card.results(m)
	if p.body.Len() > 0 {
		p.earlier += p.body.String() + "\n\n"
		p.body.Reset()
	}
}

// replace shows another text in place of the one so far.
func (p *progress) replace(markdown string) {
	p.mu.Lock()
	p.body.Reset()
	p.body.WriteString(markdown)
	p.mu.Unlock()
	p.heard()
	p.notify()
}

// reset forgets the text of an attempt that is begun again.
func (p *progress) reset() {
	p.mu.Lock()
	p.body.Reset()
	p.earlier = ""
	p.mu.Unlock()
}

// update changes the card and shows it.
func (p *progress) update(change func(c *card)) {
	p.mu.Lock()
	change(&p.card)
	p.mu.Unlock()
	p.notify()
}

func (p *progress) tool(e assistant.ToolStarted) {
	e.Summary = p.w.o.redact(e.Summary)
	p.update(func(c *card) { c.started(e, time.Now()) })
}

func (p *progress) toolDone(e assistant.ToolFinished) {
	p.update(func(c *card) { c.finished(e.ID, e.OK, time.Now()) })
}

// noteTool says how a call went, before it is done.
func (p *progress) noteTool(id, note string) {
	p.update(func(c *card) {
		if r := c.at(id); r != nil {
			r.note = note
		}
	})
}

func (p *progress) notes(n int) {
	if n > 0 {
		p.update(func(c *card) { c.notes += n })
	}
}

// waitFor shows that the turn waits for a decision, until over is called. An agent may wait for several.
func (p *progress) waitFor(name string) (over func()) {
	p.update(func(c *card) { c.waiting = append(c.waiting, name) })
	return func() {
		p.heard()
		p.update(func(c *card) { c.waiting = slices.DeleteFunc(c.waiting, func(w string) bool { return w == name }) })
	}
}

func (p *progress) steps(steps []assistant.Step) {
	steps = slices.Clone(steps)
	for i := range steps {
		steps[i].Text = p.w.o.redact(steps[i].Text)
	}
	p.update(func(c *card) { c.steps = steps })
}

func (p *progress) thought(text string) {
	p.update(func(*card) {
		p.thoughts += text
		if over := len(p.thoughts) - maxThoughts; over > 0 {
			if i := strings.IndexByte(p.thoughts[over:], '\n'); i >= 0 { // half a line could be half a credential
				p.thoughts = p.thoughts[over+i+1:]
			} else { // of a line without an end, its beginning is shown
				p.thoughts = p.thoughts[:maxThoughts]
			}
		}
	})
}

// worked reports whether the turn did more than talk.
func (p *progress) worked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.card.worked()
}

// summary returns the card's last text.
func (p *progress) summary(took time.Duration, used string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.card.summary(took, used)
}

// maxThoughts is how much reasoning is kept to show its newest line, in bytes.
const maxThoughts = 4 << 10

// verbose returns how much of a turn its people want to see.
func (w *worker) verbose() int {
	if v := w.conv.Settings.Verbose; v != nil {
		return *v
	}
	return verbosePhases
}
