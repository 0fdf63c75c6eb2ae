package turn

import (
	"context"
	"sync"
)

// slots limits how many conversations are worked on at once in this process.
// Waiters are served in the order in which they came.
type slots struct {
	mu     sync.Mutex // guards all below
	free   int        // negative while more are in use than there are to be
	closed bool
	queue  []chan bool // each waits for true (a slot) or false (closed)

	closing chan struct{} // closed by close
}

func newSlots(n int) *slots { return &slots{free: n, closing: make(chan struct{})} }

// try takes a free slot unless somebody waits for one.
func (s *slots) try() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasRoom() {
		return false
	}
	s.free--
	return true
}

// room reports whether try would take a slot.
func (s *slots) room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasRoom()
}

// hasRoom is room with the lock held.
func (s *slots) hasRoom() bool { return !s.closed && s.free > 0 && len(s.queue) == 0 }

// acquire waits for a slot until ctx is done. It reports false without a slot.
func (s *slots) acquire(ctx context.Context) bool {
	if s.try() {
		return true
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	ready := make(chan bool, 1)
	s.queue = append(s.queue, ready)
	s.mu.Unlock()
	select {
	case got := <-ready:
		return got
	case <-ctx.Done():
	}
	s.mu.Lock()
	for i, c := range s.queue {
		if c == ready {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			s.mu.Unlock()
			return false
		}
	}
	s.mu.Unlock()
	if <-ready { // handed over at the last moment
		s.release()
	}
	return false
}

// release gives a slot back, to the longest waiting one if there is one.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.serve()
}

// grow adds n slots. A negative n takes some away, those in use as they are given
// back.
func (s *slots) grow(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	s.serve()
}

// serve gives free slots to those who wait. The lock must be held.
func (s *slots) serve() {
	for len(s.queue) > 0 && s.free > 0 {
		s.free--
		s.queue[0] <- true
		s.queue = s.queue[1:]
	}
}

// contended reports whether somebody waits for a slot.
func (s *slots) contended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

// isClosed reports whether close was called.
func (s *slots) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// close refuses all who wait and all who come.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		close(s.closing)
	}
	s.closed = true
	for _, c := range s.queue {
		c <- false
	}
	s.queue = nil
}
