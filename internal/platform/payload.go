package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
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

	// patience is how long a body is read in peace. Those that are read for longest then make
	// room for one that finds none: a platform sends all of it in a moment.
	patience = 100 * time.Millisecond

	// roomWithin is how long a body waits for room, which it looks for every roomTick. Slack waits
	// for an answer for 3 s.
	roomWithin = 2 * time.Second
	roomTick   = 10 * time.Millisecond
)

// ReadBody returns the body of a request, or another status than OK. A large one has room
// for all of it at once: doubling would take three times as much. If there is no room, it is
// 503: platforms deliver again.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, int) {
	from, whole := http.MaxBytesReader(w, r.Body, limit), limit
	if r.ContentLength > small {
		whole = min(limit, r.ContentLength)
	}
	g := &guest{response: http.NewResponseController(w)}
	defer large.free(g)
	var b []byte
	for _, room := range []int64{min(max(r.ContentLength, 0), small), small, presized, whole} {
		if room = min(room, whole); room < int64(len(b)) {
			continue // it is no more than there was
		}
		if room > small && !large.take(r.Context(), g, room+1-int64(len(b))) {
			g.told.Store(true)
			break
		}
		b = append(make([]byte, 0, room+1), b...) // and its end
		var err error
		for err == nil && len(b) < cap(b) {
			var n int
			n, err = from.Read(b[len(b):cap(b)])
			b = b[:len(b)+n]
		}
		if err == io.EOF { //nolint:errorlint // of the reader itself
			return b, http.StatusOK
		}
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, http.StatusRequestEntityTooLarge
		}
		if err != nil {
			break
		}
	}
	if g.told.Load() {
		w.Header().Set("Retry-After", "1")
		return nil, http.StatusServiceUnavailable
	}
	return nil, http.StatusBadRequest
}

// large is the room of this process.
var large = room{left: largeRoom}

// room is memory that the large bodies share which are being read. It is safe for concurrent
// use.
type room struct {
	mu     sync.Mutex // guards all below
	left   int64
	inside []*guest // the longest first
}

// guest is a body that has room.
type guest struct {
	response *http.ResponseController
	told     atomic.Bool // to leave
	taken    int64
	since    time.Time
}

// take gives n bytes to a guest, and reports whether there was room for them in time.
func (m *room) take(ctx context.Context, g *guest, n int64) bool {
	for until := time.Now().Add(roomWithin); !m.enter(g, n); {
		if g.told.Load() || time.Now().After(until) || Sleep(ctx, roomTick) != nil {
			return false
		}
	}
	return true
}

// enter gives n bytes to a guest if there is room for them, and else has others leave who have
// been inside for longest.
func (m *room) enter(g *guest, n int64) bool {
	m.mu.Lock()
	now, left := time.Now(), m.left
	if left >= n || left+g.taken == largeRoom {
		if g.taken == 0 {
			g.since, m.inside = now, append(m.inside, g)
		}
		m.left -= n
		g.taken += n
		m.mu.Unlock()
		return true
	}
	for _, other := range m.inside {
		if other == g || g.told.Load() || left >= n || now.Sub(other.since) < patience {
			continue
		}
		if left += other.taken; other.told.CompareAndSwap(false, true) {
			_ = other.response.SetReadDeadline(now) // a server's connection has one
		}
	}
	m.mu.Unlock()
	return false
}

// free gives back what a guest has taken.
func (m *room) free(g *guest) {
	m.mu.Lock()
	m.left += g.taken
	for i, other := range m.inside {
		if other == g {
			m.inside = append(m.inside[:i], m.inside[i+1:]...)
			break
		}
	}
	m.mu.Unlock()
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
