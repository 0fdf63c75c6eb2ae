package turn

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/metrics"
	"remote-agent/internal/queue"
)

// TestWhoWaitsForASlotIsCounted until they have one, or give up.
func TestWhoWaitsForASlotIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New("test")
		o := &Turns{slots: newSlots(0), config: Config{Metrics: m}}
		result := make(chan error)
		go func() { result <- o.Ring(t.Context(), "1") }()
		synctest.Wait()
		for _, want := range []string{"bot_runs_waiting 1\n", "bot_runs_waiting 0\n"} {
			served := httptest.NewRecorder()
			m.Handler().ServeHTTP(served, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if !strings.Contains(served.Body.String(), want) {
				t.Errorf("there is no %s", want)
			}
			if want == "bot_runs_waiting 1\n" {
				if err := <-result; err != queue.ErrBusy { //nolint:errorlint // as the queue compares it
					t.Errorf("without a slot: %v", err)
				}
			}
		}
	})
}

func TestSlotsServeWaitersInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		if !s.try() {
			t.Fatal("no slot although all are free")
		}
		var (
			mu    sync.Mutex
			order []int
		)
		for i := range 5 {
			go func() {
				if s.acquire(t.Context()) {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					s.release()
				}
			}()
			synctest.Wait() // each waits before the next comes
		}
		if s.try() {
			t.Error("a newcomer overtook those who wait")
		}
		if !s.contended() {
			t.Error("nobody seems to wait")
		}
		s.release()
		synctest.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("served in order %v", order)
			}
		}
		if len(order) != 5 || s.contended() || !s.try() {
			t.Errorf("after all were served: order %v, free %d", order, s.free)
		}
	})
}

func TestSlotsGiveUpAndClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		s.try()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if s.acquire(ctx) {
			t.Error("got a slot that was not there")
		}
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("waited %s, want 1s", waited)
		}
		if s.contended() {
			t.Error("the one who gave up still waits")
		}
		result := make(chan bool, 1)
		go func() { result <- s.acquire(t.Context()) }()
		synctest.Wait()
		s.close()
		if <-result {
			t.Error("got a slot from a closed set")
		}
		s.release()
		if s.try() || s.acquire(t.Context()) {
			t.Error("a closed set gives slots")
		}
	})
}

// TestSlotHandedOverAtTheLastMoment: whoever has given up, and has not said so yet when a slot
// is handed over, gives it back.
func TestSlotHandedOverAtTheLastMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		s.try()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan bool, 1)
		go func() { got <- s.acquire(ctx) }()
		synctest.Wait()
		s.mu.Lock() // they cannot say so
		cancel()
		s.free++
		s.serve()
		s.mu.Unlock()
		if <-got {
			t.Error("who gave up has a slot")
		}
		if !s.try() {
			t.Error("the slot is lost")
		}
	})
}

// An agent that was answered waits for a slot again, and asks something else meanwhile: that
// does not wait for the slot, and nobody has one twice.
func TestSlotHoldIsAskedMoreWhileItWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile func(h *slotHold, s *slots)
		gone      bool
		free      int
	}{
		"nothing":          {func(*slotHold, *slots) {}, false, 0},
		"another question": {func(h *slotHold, s *slots) { h.yield(s) }, true, 1},
		"the end":          {func(h *slotHold, s *slots) { h.release(s) }, true, 1},
		"an answer after the end": {func(h *slotHold, s *slots) {
			h.yield(s)
			h.release(s)
			go h.resume(context.Background(), s)
			synctest.Wait()
		}, true, 1},
		"more answers": {func(h *slotHold, s *slots) {
			for range 3 {
				h.yield(s)
				go h.resume(context.Background(), s)
				synctest.Wait()
			}
		}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, h := newSlots(1), &slotHold{}
				s.try()
				h.yield(s)
				s.try() // somebody else
				go h.resume(t.Context(), s)
				synctest.Wait()
				if !h.mu.TryLock() {
					s.release()
					t.Fatal("what else is asked waits for the slot")
				}
				h.mu.Unlock()
				tt.meanwhile(h, s)
				s.release()
				synctest.Wait()
				if h.gone != tt.gone || s.free != tt.free {
					t.Errorf("gone %v with %d free, want %v and %d", h.gone, s.free, tt.gone, tt.free)
				}
			})
		})
	}
}
