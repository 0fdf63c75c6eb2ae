// Package live tells pages that are open that something they show has changed, and never
// what: a page then asks for its content again, as it did at first, so that one place
// decides who may see what and how it is escaped.
//
// A Hub is told of changes when they are committed. It remembers the latest of them, so
// that who was away for a moment learns what was missed, and a Relay carries them to
// the other processes on a database. A change that is lost costs a page its next look
// at most: nothing is decided by it.
package live

import (
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Topic names what something changed in.
type Topic string

// Access is what people may do, anybody's.
const Access Topic = "access"

// Conversation is what is said and done in the conversation with an id.
func Conversation(id string) Topic { return conversations + Topic(id) }

// Chat is what is shown in a conversation in the browser with an id.
func Chat(id string) Topic { return "chat/" + Topic(id) }

// Browser is the session of a browser with an id: whether it is still good.
func Browser(id string) Topic { return browsers + Topic(id) }

const (
	conversations Topic = "conversation/"
	browsers      Topic = "browser/"
)

// Conversation returns the id of the conversation that the topic is about.
func (t Topic) Conversation() (id string, ok bool) {
	rest, ok := strings.CutPrefix(string(t), string(conversations))
	return rest, ok
}

// control reports whether a topic is about who may look, and not about what there is.
func (t Topic) control() bool { return t == Access || strings.HasPrefix(string(t), string(browsers)) }

// remembered is how many changes a hub knows. Who was away for more of them is told that
// anything may have changed.
const remembered = 4096

// Limits bound what streams cost.
type Limits struct {
	Total    int // of all owners together
	PerOwner int
}

// Hub passes changes on to streams. It is safe for concurrent use.
type Hub struct {
	id     string // of this process's numbers
	limits Limits

	mu      sync.Mutex // guards what follows
	last    uint64     // the number of the newest change
	ring    [remembered]Topic
	lost    uint64 // changes up to here may be unknown, although there is room for them
	streams map[*Stream]struct{}
	owners  map[string]int
	byTopic map[Topic]map[*Stream]struct{}
	closed  chan struct{}
	over    bool
}

// NewHub returns a Hub without streams.
func NewHub(limits Limits) *Hub {
	return &Hub{
		id: strings.ToLower(rand.Text())[:10], limits: limits, closed: make(chan struct{}),
		streams: make(map[*Stream]struct{}), owners: make(map[string]int), byTopic: make(map[Topic]map[*Stream]struct{}),
	}
}

// Changed tells those who look that something changed. It does not wait for them.
func (h *Hub) Changed(topics ...Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		h.last++
		h.ring[h.last%remembered] = t
		for s := range h.byTopic[t] {
			s.poke()
		}
		if _, about := t.Conversation(); about {
			for s := range h.byTopic[everything] {
				s.poke()
			}
		}
	}
}

// Lost tells all who look that anything may have changed.
func (h *Hub) Lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.ring[h.last%remembered] = ""
	h.lost = h.last
	for s := range h.streams {
		s.poke()
	}
}

// Close ends all streams, and lets no more begin. It may be called twice.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.over = true
		close(h.closed)
	}
}

// Position is the id that an event would have now. What changes later has a later one.
func (h *Hub) Position() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position()
}

func (h *Hub) position() string { return h.id + "-" + strconv.FormatUint(h.last, 10) }

// Streams returns how many streams there are.
func (h *Hub) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams)
}

// everything stands for all conversations.
const everything Topic = "conversations"

// Asked is what somebody wants to learn of.
type Asked struct {
	Owner  string  // whose stream it is; counted
	Topics []Topic // what the page shows
	All    bool    // the page shows any conversation
	Access []Topic // what decides on whether they may look; such changes make no event

	// After is the id of the last event that they had, as a browser sends it; empty if it
	// had none.
	After string
}

// Stream is what one page learns. It is for one goroutine.
type Stream struct {
	hub   *Hub
	asked Asked
	seen  uint64
	gap   bool          // what was missed is not known
	wake  chan struct{} // holds a value if there may be something
}

// Subscribe begins a stream, which has to be closed. ok is false if there are too many, or
// no more may begin.
func (h *Hub) Subscribe(a Asked) (s *Stream, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || len(h.streams) >= h.limits.Total || h.owners[a.Owner] >= h.limits.PerOwner {
		return nil, false
	}
	s = &Stream{hub: h, asked: a, seen: h.last, wake: make(chan struct{}, 1)}
	if a.After != "" {
		s.resume(a.After)
	}
	h.streams[s] = struct{}{}
	h.owners[a.Owner]++
	for _, t := range s.topics() {
		if h.byTopic[t] == nil {
			h.byTopic[t] = make(map[*Stream]struct{})
		}
		h.byTopic[t][s] = struct{}{}
	}
	return s, true
}

// resume goes on after the event with an id. hub.mu is held.
func (s *Stream) resume(after string) {
	s.poke()
	hub, number, _ := strings.Cut(after, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if hub != s.hub.id || err != nil || n > s.hub.last {
		s.gap = true
		return
	}
	s.seen = n
}

// topics are all that the stream is told of.
func (s *Stream) topics() []Topic {
	all := append([]Topic{}, s.asked.Topics...)
	if s.asked.All {
		all = append(all, everything)
	}
	return append(all, s.asked.Access...)
}

// Close ends the stream. It may be called twice.
func (s *Stream) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, open := h.streams[s]; !open {
		return
	}
	delete(h.streams, s)
	if h.owners[s.asked.Owner]--; h.owners[s.asked.Owner] == 0 {
		delete(h.owners, s.asked.Owner)
	}
	for _, t := range s.topics() {
		delete(h.byTopic[t], s)
		if len(h.byTopic[t]) == 0 {
			delete(h.byTopic, t)
		}
	}
}

// pace is how long it takes from an event to the next one now.
func (s *Stream) pace() time.Duration {
	if !s.asked.All {
		return pace
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return min(max(pace, time.Duration(len(s.hub.byTopic[everything]))*each), slowest)
}

// settle is how long a change waits now for others to be told with it.
func (s *Stream) settle() time.Duration {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if len(s.hub.streams) < many {
		return 0
	}
	return settle
}

func (s *Stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Change is what became known since the last one.
type Change struct {
	ID     string  // of the event that tells of it
	Topics []Topic // what changed that was asked for, each once
	Access bool    // whether they may look has to be looked at again
	Gap    bool    // some of it is not known: anything may have changed
}

// take returns what is new.
func (s *Stream) take() Change {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	c := Change{ID: h.position(), Gap: s.gap || s.seen < h.lost || h.last-s.seen > remembered}
	known := make(map[Topic]bool)
	for n := max(s.seen, h.last-min(h.last, remembered)) + 1; n <= h.last; n++ {
		t := h.ring[n%remembered]
		switch {
		case known[t]:
		case t.control():
			c.Access = c.Access || slices.Contains(s.asked.Access, t)
		case slices.Contains(s.asked.Topics, t) || s.asked.All && strings.HasPrefix(string(t), string(conversations)):
			known[t] = true
			c.Topics = append(c.Topics, t)
		}
	}
	c.Access = c.Access || c.Gap
	s.seen, s.gap = h.last, false
	return c
}
