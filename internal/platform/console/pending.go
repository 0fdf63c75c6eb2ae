package console

import (
	"context"
	"sync"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const (
	// askFirst is how soon a backend is asked again after something was shown; then
	// less and less often, down to every askEvery.
	askFirst = 10 * time.Millisecond

	// markGrace is how long after everything was answered the marks that say how are
	// waited for: they are put there at best effort.
	markGrace = time.Second
)

// pending are the messages that were said and have no outcome yet.
type pending struct {
	mu       sync.Mutex
	saying   int // whose id is not known yet
	waits    map[messages.MessageID]bool
	early    map[messages.MessageID]platform.Mark // came before the id was known
	failed   bool
	idleFrom time.Time
	number   int64 // of the newest event that was seen
	awaited  int64 // the number of one that somebody waits for

	news chan struct{} // holds a value if something may be different since it was empty
}

func newPending() *pending {
	return &pending{waits: make(map[messages.MessageID]bool), early: make(map[messages.MessageID]platform.Mark),
		news: make(chan struct{}, 1)}
}

// stir wakes up who waits for news.
func (p *pending) stir() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// begin and said are called around what says a message.
func (p *pending) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saying++
	p.idleFrom = time.Time{}
}

func (p *pending) said(id messages.MessageID, err error) {
	defer p.stir()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saying--
	mark, over := p.early[id]
	switch {
	case err != nil:
	case over:
		p.failed = p.failed || mark == platform.MarkFailed
	default:
		p.waits[id] = true
	}
	if p.saying == 0 {
		clear(p.early)
	}
}

// refused notes a message that was not said.
func (p *pending) refused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = true
}

// seen takes what is shown: the outcome of a message, or what may be a question.
func (p *pending) seen(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number = max(p.number, e.Number)
	if e.Final || e.Mark != "" || p.number == p.awaited {
		p.stir()
	}
	if !ended(e.Mark) {
		return
	}
	id := messages.MessageID(e.Message)
	if !p.waits[id] {
		if p.saying > 0 {
			p.early[id] = e.Mark
		}
		return
	}
	delete(p.waits, id)
	p.failed = p.failed || e.Mark == platform.MarkFailed
}

// idle is told that nothing was under way at a time. Messages that still have no
// outcome a while later get none; then it reports that nothing comes any more.
func (p *pending) idle(now time.Time) (over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.saying > 0:
	case p.idleFrom.IsZero():
		p.idleFrom = now
	case now.Sub(p.idleFrom) >= markGrace:
		clear(p.waits)
		return true
	}
	return false
}

// hasSeen reports whether all up to an event was seen; else it stirs once that is so.
func (p *pending) hasSeen(number int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaited = number
	return p.number >= number
}

// open returns how many messages have no outcome yet.
func (p *pending) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waits) + p.saying
}

func (p *pending) anyFailed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// settled waits until everything that was said has its outcome and all that belongs to
// it was seen, or it waits for a person. It returns the names of the questions that do.
func settled(ctx context.Context, b Backend, conversation string, p *pending) (questions []string, err error) {
	wait := askFirst
	for {
		state, err := b.State(ctx, conversation)
		if err != nil {
			return nil, err
		}
		over := len(state.Questions) > 0 || !state.Busy && p.open() == 0
		if over && p.hasSeen(state.Shown) || !state.Busy && p.idle(time.Now()) {
			return state.Questions, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.news: // the other side is about to note that it was shown
			wait = askFirst
		case <-time.After(wait):
			wait = min(2*wait, askEvery)
		}
	}
}

// stopWithin bounds what tells a turn to stop: the other side may not answer.
const stopWithin = 5 * time.Second
