package live

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	relayEvery  = 100 * time.Millisecond // how often others are told, at most
	relayLength = 7000                   // bytes of one notification, of which PostgreSQL takes 8000
	relayMost   = 1000                   // topics that wait to be told; of more it is told that anything may have changed
	relayAgain  = 3 * time.Second        // after a failure
	relayBlind  = 5 * time.Second        // how often anything may have changed, where nobody can be told
)

// ErrDeaf is the error of who can never listen.
var ErrDeaf = errors.New("changes cannot be heard of here")

// Wire carries texts between the processes on a database.
type Wire interface {
	// Alone reports that there is no other process. It does no I/O.
	Alone() bool

	// Notify sends a text to all processes that listen, this one too.
	Notify(ctx context.Context, text string) error

	// Listen calls hear for each text until ctx ends or it fails, and ready once it
	// misses none any more. It is ErrDeaf where it cannot be done.
	Listen(ctx context.Context, ready func(), hear func(text string)) error
}

// Relay tells the hubs of other processes what changed in this one, and its hub what
// changed in them. It is safe for concurrent use.
type Relay struct {
	hub  *Hub
	wire Wire // nil: there never is another process
	log  *slog.Logger

	mu      sync.Mutex // guards what follows
	waiting []Topic
	known   map[Topic]struct{} // waiting, to be looked up
	news    chan struct{}
}

// NewRelay returns a Relay. wire is nil where there never is another process.
func NewRelay(hub *Hub, wire Wire, log *slog.Logger) *Relay {
	return &Relay{hub: hub, wire: wire, log: log, known: make(map[Topic]struct{}), news: make(chan struct{}, 1)}
}

// Changed tells this process at once, and the others soon.
func (r *Relay) Changed(topics ...Topic) {
	r.hub.Changed(topics...)
	if r.wire == nil || r.wire.Alone() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range topics {
		if _, there := r.known[t]; !there && len(r.waiting) <= relayMost {
			r.known[t] = struct{}{}
			r.waiting = append(r.waiting, t)
		}
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Run tells and hears until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	if r.wire == nil {
		return
	}
	var listening sync.WaitGroup
	listening.Go(func() { r.listen(ctx) })
	defer listening.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.news:
		}
		for _, text := range r.texts() {
			if err := r.wire.Notify(ctx, text); err != nil && ctx.Err() == nil {
				r.log.DebugContext(ctx, "could not tell other replicas of changes; their pages show them later", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(relayEvery):
		}
	}
}

// texts are the notifications that tell of what waits: the hub's id, then topics.
func (r *Relay) texts() (list []string) {
	r.mu.Lock()
	topics := r.waiting
	r.waiting = nil
	clear(r.known)
	r.mu.Unlock()
	if len(topics) > relayMost {
		return []string{r.hub.id + " *"}
	}
	var b strings.Builder
	for _, t := range topics {
		if b.Len()+len(t)+1 > relayLength {
			list = append(list, b.String())
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteString(r.hub.id)
		}
		b.WriteString(" " + string(t))
	}
	if b.Len() > 0 {
		list = append(list, b.String())
	}
	return list
}

// listen hears of changes in other processes.
func (r *Relay) listen(ctx context.Context) {
	for {
		began := time.Now()
		err := r.wire.Listen(ctx, r.hub.Lost, r.hear)
		wait := relayAgain
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrDeaf):
			wait = relayBlind
			if !r.wire.Alone() {
				r.hub.Lost()
			}
		case time.Since(began) > time.Minute:
			wait = 0
		default:
			r.log.DebugContext(ctx, "could not hear of changes in other replicas", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// hear takes what another process says.
func (r *Relay) hear(text string) {
	hub, rest, _ := strings.Cut(text, " ")
	switch {
	case hub == r.hub.id: // our own
	case rest == "*":
		r.hub.Lost()
	default:
		var topics []Topic
		for t := range strings.FieldsSeq(rest) {
			topics = append(topics, Topic(t))
		}
		r.hub.Changed(topics...)
	}
}
