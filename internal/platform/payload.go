package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// small is what a body has room for whatever else is read. Most are no larger.
	small = 64 << 10

	// presized is how much room a larger one gets at once, before it is known to be even
	// larger than that.
	presized = 1 << 20

	// largeRoom is for all larger bodies that are being read, or for one that is larger still. Who
	// sent them is not known before they are there.
	largeRoom = 16 << 20

	// patience is how long a body is read in peace. The one that is read for longest then makes
	// room for one that finds none: a platform sends all of it in a moment.
	patience = 100 * time.Millisecond

	// roomWithin is how long a body waits for room. Slack waits for an answer for 3 s.
	roomWithin = 2 * time.Second
)

// ReadBody returns the body of a request, or another status than OK. A large one has room
// for all of it at once: doubling would take three times as much. If there is no room, it is
// 503: platforms deliver again.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, int) {
	b := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), limit, small)+bytes.MinRead))
	body := http.MaxBytesReader(w, r.Body, limit)
	_, err := b.ReadFrom(io.LimitReader(body, small))
	if err == nil && b.Len() == small && r.ContentLength != small {
		if r.ContentLength > small {
			limit = min(limit, r.ContentLength)
		}
		if err = large.read(w, r, b, body, limit); errors.Is(err, errNoRoom) {
			w.Header().Set("Retry-After", "1")
			return nil, http.StatusServiceUnavailable
		}
	}
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusBadRequest
	}
	return b.Bytes(), http.StatusOK
}

// large is the room of this process.
var large = room{left: largeRoom, freed: make(chan struct{})}

var errNoRoom = errors.New("too much is being read")

// room is memory that the large bodies share which are being read. It is safe for concurrent
// use.
type room struct {
	mu     sync.Mutex // guards all below
	left   int64
	inside []*guest      // the longest first
	freed  chan struct{} // closed when somebody leaves
}

// guest is a body that has room.
type guest struct {
	taken int64
	since time.Time
	told  bool // to leave

	response *http.ResponseController
	cancel   context.CancelFunc
}

// read puts the rest of body into b, whose limit is that of both.
func (m *room) read(w http.ResponseWriter, r *http.Request, b *bytes.Buffer, body io.Reader, limit int64) error {
	ctx, cancel := context.WithCancel(r.Context())
	g := &guest{response: http.NewResponseController(w), cancel: cancel}
	defer m.free(g)
	if limit > presized {
		err := m.readPart(ctx, g, b, io.LimitReader(body, presized-int64(b.Len())), presized)
		if err != nil || b.Len() < presized {
			return err
		}
	}
	return m.readPart(ctx, g, b, body, limit)
}

// readPart reads what there is, which is no more than makes upTo bytes of b.
func (m *room) readPart(ctx context.Context, g *guest, b *bytes.Buffer, from io.Reader, upTo int64) error {
	n := upTo - int64(b.Len())
	if !m.take(ctx, g, n) {
		return errNoRoom
	}
	// Grow would write to all of the room, and so take it, before there is anything to read.
	*b = *bytes.NewBuffer(append(make([]byte, 0, upTo+bytes.MinRead), b.Bytes()...))
	_, err := b.ReadFrom(from)
	if ctx.Err() != nil {
		return errNoRoom
	}
	return err
}

// take gives n bytes to a guest, and reports whether there was room for them in time.
func (m *room) take(ctx context.Context, g *guest, n int64) bool {
	ctx, cancel := context.WithTimeout(ctx, roomWithin)
	defer cancel()
	for ctx.Err() == nil {
		m.mu.Lock()
		now := time.Now()
		if m.left >= n || m.left+g.taken == largeRoom {
			if m.left -= n; g.taken == 0 {
				g.since, m.inside = now, append(m.inside, g)
			}
			g.taken += n
			m.mu.Unlock()
			return true
		}
		freed, pause := m.freed, m.urge(g, now)
		m.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-freed:
		case <-time.After(pause):
		}
	}
	return false
}

// urge has the guest leave who has been inside for longest, unless g is to leave itself, and
// returns after how long to try again. m.mu is held.
func (m *room) urge(g *guest, now time.Time) (pause time.Duration) {
	for _, other := range m.inside {
		if other == g || other.told || g.told {
			continue
		}
		if wait := other.since.Add(patience).Sub(now); wait > 0 {
			return wait
		}
		other.told = true
		other.cancel()
		_ = other.response.SetReadDeadline(now) // a server's connection has one
		break
	}
	return patience
}

// free gives back what a guest has taken.
func (m *room) free(g *guest) {
	g.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if g.taken == 0 {
		return
	}
	m.left += g.taken
	stay := m.inside[:0]
	for _, other := range m.inside {
		if other != g {
			stay = append(stay, other)
		}
	}
	m.inside = stay
	close(m.freed)
	m.freed = make(chan struct{})
}

// Lenient decodes JSON and overlooks fields of another type than expected, which are
// empty then. What is essential is checked after that.
func Lenient(body []byte, out any) error {
	err := json.Unmarshal(body, out)
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); wrongType && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return nil
	}
	return err
}
