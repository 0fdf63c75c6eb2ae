package acp

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

// place is where the process of one conversation is kept. Whoever holds busy
// works with it; the turns of one conversation never run at once.
type place struct {
	conversation string
	busy         chan struct{} // capacity 1
	users        int           // turns that hold busy or wait for it; guarded by Assistant.mu

	agent    *agent    // guarded by Assistant.mu; changed only by who holds busy, or at its end
	idleFrom time.Time // guarded by Assistant.mu; zero while a turn runs
}

var errClosing = fault.New(fault.Unavailable, "The bot is shutting down.")

// enter waits until the conversation has no other turn, and takes its place.
// leave gives it back.
func (a *Assistant) enter(ctx context.Context, conversation string) (*place, error) {
	a.mu.Lock()
	if a.closed() {
		a.mu.Unlock()
		return nil, errClosing
	}
	p := a.places[conversation]
	if p == nil {
		p = &place{conversation: conversation, busy: make(chan struct{}, 1)}
		a.places[conversation] = p
	}
	p.users++
	a.wg.Add(1) // until leave
	a.mu.Unlock()
	select {
	case p.busy <- struct{}{}:
		a.mu.Lock()
		p.idleFrom = time.Time{}
		a.mu.Unlock()
		return p, nil
	case <-ctx.Done():
		a.drop(p)
		return nil, canceled(ctx)
	case <-a.closing:
		a.drop(p)
		return nil, errClosing
	}
}

func (a *Assistant) closed() bool {
	select {
	case <-a.closing:
		return true
	default:
		return false
	}
}

// leave gives the place back. A process that is still good is kept for a while,
// unless somebody waits for its slot.
func (a *Assistant) leave(p *place) {
	a.mu.Lock()
	if g := p.agent; g != nil {
		p.idleFrom = time.Now()
		switch {
		case g.ended.Load():
		case a.waiting > 0 || a.closed():
			g.end()
		default:
			g.idle = time.AfterFunc(a.config.IdleTimeout, func() { a.idled(p, g) })
		}
	}
	a.mu.Unlock()
	<-p.busy
	a.drop(p)
}

func (a *Assistant) drop(p *place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.users--
	a.tidy(p)
	a.wg.Done()
}

// tidy forgets a place that nobody needs. The caller holds mu.
func (a *Assistant) tidy(p *place) {
	if p.users == 0 && p.agent == nil && a.places[p.conversation] == p {
		delete(a.places, p.conversation)
	}
}

// idled ends a process that was idle for the whole time.
func (a *Assistant) idled(p *place, g *agent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.agent == g && !p.idleFrom.IsZero() {
		g.log.Debug("the agent was idle and is ended")
		g.end()
	}
}

// slot waits until another process may run. If all are taken, the one that was
// idle longest is ended.
func (a *Assistant) slot(ctx context.Context) error {
	select {
	case a.slots <- struct{}{}:
		return nil
	default:
	}
	a.mu.Lock()
	a.waiting++
	var oldest *place
	for _, p := range a.places {
		if p.agent != nil && !p.idleFrom.IsZero() && (oldest == nil || p.idleFrom.Before(oldest.idleFrom)) {
			oldest = p
		}
	}
	if oldest != nil {
		oldest.idleFrom = time.Time{}
		oldest.agent.end()
	}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.waiting--
		a.mu.Unlock()
	}()
	select {
	case a.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return canceled(ctx)
	case <-a.closing:
		return errClosing
	}
}

// settle runs f, which gives the place back, behind the back of a Run that has
// to return.
func (a *Assistant) settle(f func()) { a.wg.Go(f) }

// Release implements assistant.Agent. It returns when the process has ended; a
// turn that it works on fails.
func (a *Assistant) Release(conversation string) {
	a.mu.Lock()
	var g *agent
	if p := a.places[conversation]; p != nil && p.agent != nil {
		g = p.agent
		g.end()
	}
	a.mu.Unlock()
	if g != nil {
		<-g.gone
	}
}

// Close implements assistant.Agent: it ends all processes and waits for them and
// for the turns, which fail. Later turns fail too. It may be called more than
// once.
func (a *Assistant) Close() error {
	a.mu.Lock()
	if !a.closed() {
		close(a.closing)
	}
	for _, p := range a.places {
		if p.agent != nil {
			p.agent.end()
		}
	}
	a.mu.Unlock()
	a.wg.Wait()
	return nil
}

// dir returns the directory of a turn.
func (a *Assistant) dir(turn assistant.Turn) (dir string, private bool, err error) {
	if turn.Dir != "" {
		if !filepath.IsAbs(turn.Dir) {
			return "", false, fault.Newf(fault.Internal, "The working directory %q is not absolute.", turn.Dir)
		}
		return turn.Dir, false, nil
	}
	// The id may hold anything; two conversations must not share files.
	dir = filepath.Join(a.config.Scratch, digest(turn.Conversation))
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return "", false, fault.Wrap(err, fault.Unavailable, "making a directory for a conversation without a codebase")
	}
	return dir, true, nil
}
