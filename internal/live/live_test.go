package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var most = live.Limits{Total: 100, PerOwner: 10}

// page is a page that is open.
type page struct {
	mu      sync.Mutex
	written strings.Builder
	at      []time.Time // of the events
	header  http.Header
	broken  bool
	ended   chan struct{}
	leave   context.CancelFunc
}

func (p *page) Header() http.Header { return p.header }
func (p *page) WriteHeader(int)     {}
func (p *page) Flush()              {}

func (p *page) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return 0, errors.New("nobody reads")
	}
	if strings.Contains(string(data), "event:") {
		p.at = append(p.at, time.Now())
	}
	return p.written.Write(data)
}

// events returns the names and ids of the events.
func (p *page) events() (names, ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range strings.SplitSeq(p.written.String(), "\n") {
		if name, ok := strings.CutPrefix(l, "event: "); ok {
			names = append(names, name)
		}
		if id, ok := strings.CutPrefix(l, "id: "); ok {
			ids = append(ids, id)
		}
	}
	return names, ids
}

func (p *page) sees(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if names, _ := p.events(); fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("events %v, want %v", names, want)
	}
}

// open opens a page that is served until the test ends or leaves.
func open(t *testing.T, h *live.Hub, a live.Asked, change ...func(*live.Feed)) *page {
	t.Helper()
	s, ok := h.Subscribe(a)
	if !ok {
		t.Fatal("no stream")
	}
	ctx, leave := context.WithCancel(context.Background())
	p := &page{header: http.Header{}, ended: make(chan struct{}), leave: leave}
	f := live.Feed{Stream: s, Check: func(context.Context) bool { return true }}
	for _, c := range change {
		c(&f)
	}
	go func() {
		defer close(p.ended)
		live.Serve(p, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil), f)
	}()
	t.Cleanup(func() {
		leave()
		<-p.ended
	})
	synctest.Wait()
	return p
}

func (p *page) over() bool {
	synctest.Wait()
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func TestAPageLearnsOfItsConversationOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := live.NewHub(most)
		one := open(t, h, live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}})
		all := open(t, h, live.Asked{Owner: "a", All: true})
		h.Changed(live.Conversation("2"))
		one.sees(t)
		all.sees(t, "changed")
		time.Sleep(time.Second)
		h.Changed(live.Conversation("1"), live.Access, live.Browser("b"))
		one.sees(t, "changed")
		all.sees(t, "changed", "changed")
		time.Sleep(time.Second)
		h.Changed(live.Access, live.Browser("b")) // nobody asked for these
		one.sees(t, "changed")
		all.sees(t, "changed", "changed")
	})
}

// Many changes are told by few events, and the last of them within half a second.
func TestChangesAreToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := live.NewHub(most)
		p := open(t, h, live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}})
		for range 100 {
			h.Changed(live.Conversation("1"))
			time.Sleep(20 * time.Millisecond)
		}
		last := time.Now()
		time.Sleep(2 * time.Second)
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.at); n < 4 || n > 6 {
			t.Errorf("%d events for 100 changes in two seconds", n)
		}
		if late := p.at[len(p.at)-1].Sub(last); late > 500*time.Millisecond {
			t.Errorf("the last change was told after %v", late)
		}
	})
}

// Where many look at everything each is told less often, but within a second; who looks at
// one conversation is told as before.
func TestManyPagesAreToldLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := live.NewHub(live.Limits{Total: 301, PerOwner: 301})
		one := open(t, h, live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}})
		var all []*page
		for range 300 {
			all = append(all, open(t, h, live.Asked{Owner: "a", All: true}))
		}
		for range 100 {
			h.Changed(live.Conversation("1"))
			time.Sleep(40 * time.Millisecond)
		}
		last := time.Now()
		time.Sleep(time.Second)
		for i, p := range append(all, one) {
			p.mu.Lock()
			n, late := len(p.at), p.at[len(p.at)-1].Sub(last)
			p.mu.Unlock()
			if few := i < len(all); few && n != 6 || !few && n < 8 || late > 800*time.Millisecond {
				t.Fatalf("page %d: %d events in four seconds, the last after %v", i, n, late)
			}
		}
	})
}

// Where many pages are open, what one step of a turn commits is told once, and soon.
func TestWhatIsCommittedTogetherIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := live.NewHub(live.Limits{Total: 100, PerOwner: 100})
		var pages []*page
		for range 60 {
			pages = append(pages, open(t, h, live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}}))
		}
		for turn := range 5 {
			began := time.Now()
			for range 4 {
				h.Changed(live.Conversation("1"))
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(time.Second)
			for _, p := range pages {
				p.mu.Lock()
				n, took := len(p.at), p.at[len(p.at)-1].Sub(began)
				p.mu.Unlock()
				if n != turn+1 || took > 100*time.Millisecond {
					t.Fatalf("%d events after turn %d, the last after %v", n, turn+1, took)
				}
			}
		}
	})
}

func TestAPageGoesOnBehindItsLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := live.NewHub(most)
		asked := live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}, After: h.Position()}
		open(t, h, asked).sees(t) // nothing was missed

		p := open(t, h, asked)
		h.Changed(live.Conversation("1"))
		p.sees(t, "changed")
		_, ids := p.events()
		p.leave()

		asked.After = ids[0]
		open(t, h, asked).sees(t) // it had that one
		h.Changed(live.Conversation("2"))
		open(t, h, asked).sees(t) // which is another's
		h.Changed(live.Conversation("1"))
		open(t, h, asked).sees(t, "changed") // while it was away

		for range 5000 { // more than is remembered
			h.Changed(live.Conversation("2"))
		}
		open(t, h, asked).sees(t, "reload")
		for _, wrong := range []string{"other-1", "garbage", "-", ids[0] + "9999", strings.Repeat("9", 400)} { // another process's, or nobody's
			asked.After = wrong
			open(t, h, asked).sees(t, "reload")
		}
	})
}

func TestWhatWasLostIsToldToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := live.NewHub(most)
		p := open(t, h, live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}})
		h.Lost()
		p.sees(t, "reload")
		time.Sleep(time.Second)
		h.Changed(live.Conversation("1"))
		p.sees(t, "reload", "changed")
	})
}

func TestAStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		may := true
		check := func(f *live.Feed) { f.Check = func(context.Context) bool { return may } }
		asked := live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}, Access: []live.Topic{live.Access, live.Browser("b")}}
		h := live.NewHub(most)
		p := open(t, h, asked, check)
		h.Changed(live.Access) // somebody else's
		if p.over() {
			t.Error("the stream of somebody who may look has ended")
		}
		may = false
		h.Changed(live.Browser("b"))
		if !p.over() {
			t.Error("the stream goes on after the session was ended")
		}
		p.sees(t)

		p = open(t, h, asked, check) // nobody told
		time.Sleep(16 * time.Second)
		if !p.over() {
			t.Error("nobody looks whether they still may")
		}

		may = true
		p = open(t, h, asked, check)
		p.mu.Lock()
		p.broken = true
		p.mu.Unlock()
		time.Sleep(16 * time.Second)
		if !p.over() {
			t.Error("a page that cannot be written to is kept")
		}

		p = open(t, h, asked, check)
		time.Sleep(11 * time.Minute)
		if !p.over() {
			t.Error("a stream goes on for ever")
		}

		p = open(t, h, asked, check)
		h.Close()
		h.Close()
		if !p.over() {
			t.Error("the stream goes on after the end")
		}
		if _, ok := h.Subscribe(asked); ok {
			t.Error("a stream begins after the end")
		}
		if n := h.Streams(); n != 0 {
			t.Errorf("%d streams are left", n)
		}
	})
}

func TestChangesThatDoNotPassAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := live.NewHub(most)
		asked := 0
		p := open(t, h, live.Asked{Owner: "a", All: true}, func(f *live.Feed) {
			f.Passes = func(_ context.Context, changed []live.Topic) bool {
				asked++
				return strings.Contains(fmt.Sprint(changed), "mine")
			}
		})
		for range 50 {
			h.Changed(live.Conversation("theirs"))
			time.Sleep(20 * time.Millisecond)
		}
		p.sees(t)
		if asked > 4 {
			t.Errorf("asked %d times within a second", asked)
		}
		h.Changed(live.Conversation("mine"))
		time.Sleep(time.Second)
		p.sees(t, "changed")
	})
}

// Streams have a limit, each browser has one of its own, and one that ended leaves room.
func TestStreamsAreFew(t *testing.T) {
	before := memory()
	h := live.NewHub(live.Limits{Total: 50, PerOwner: 4})
	var got []*live.Stream
	for i := range 1000 {
		if s, ok := h.Subscribe(live.Asked{Owner: fmt.Sprint(i / 10), Topics: []live.Topic{live.Conversation(fmt.Sprint(i))}}); ok {
			got = append(got, s)
		}
	}
	if len(got) != 50 || h.Streams() != 50 {
		t.Errorf("%d streams of 1000 that were asked for, %d are open", len(got), h.Streams())
	}
	for i := range 100_000 {
		h.Changed(live.Conversation(fmt.Sprint(i)))
	}
	if grown := memory() - before; grown > 2<<20 {
		t.Errorf("%d bytes for 50 streams and 100,000 changes", grown)
	}
	if _, ok := h.Subscribe(live.Asked{Owner: "other"}); ok {
		t.Error("there is room beyond the limit")
	}
	got[0].Close()
	got[0].Close()
	if _, ok := h.Subscribe(live.Asked{Owner: "other"}); !ok {
		t.Error("a stream that ended leaves no room")
	}
	for _, s := range got {
		s.Close()
	}
	for i := range 4 {
		if _, ok := h.Subscribe(live.Asked{Owner: "one"}); !ok {
			t.Errorf("no stream %d of one browser", i)
		}
	}
	if _, ok := h.Subscribe(live.Asked{Owner: "one"}); ok {
		t.Error("one browser has more than its share")
	}
}

func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // less than that
}

// wire connects relays, as a database does.
type wire struct {
	mu        sync.Mutex
	listeners map[int]func(string)
	next      int
	sent      []string
	alone     bool
	deaf      error // what Listen returns at once
	cut       chan struct{}
}

func (w *wire) Alone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alone
}

func (w *wire) Notify(_ context.Context, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, text)
	for _, hear := range w.listeners {
		hear(text)
	}
	return nil
}

func (w *wire) Listen(ctx context.Context, ready func(), hear func(string)) error {
	if w.deaf != nil {
		return w.deaf
	}
	w.mu.Lock()
	id := w.next
	w.next++
	if w.listeners == nil {
		w.listeners = make(map[int]func(string))
	}
	w.listeners[id] = hear
	cut := w.cut
	w.mu.Unlock()
	ready()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.listeners, id)
	}()
	select {
	case <-ctx.Done():
	case <-cut:
	}
	return errors.New("cut")
}

// replica is a process on a database.
func replica(t *testing.T, w *wire) (*live.Hub, *live.Relay) {
	t.Helper()
	h := live.NewHub(most)
	r := live.NewRelay(h, w, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
	return h, r
}

func TestOtherReplicasAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{cut: make(chan struct{})}
		h1, r1 := replica(t, w)
		h2, _ := replica(t, w)
		asked := live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}}
		here, there := open(t, h1, asked), open(t, h2, asked)
		r1.Changed(live.Conversation("1"))
		here.sees(t, "changed")
		there.sees(t, "changed")

		time.Sleep(time.Second)
		var many []live.Topic
		for i := range 500 {
			many = append(many, live.Conversation(fmt.Sprintf("0198c0de-0000-7000-8000-%012d", i)))
		}
		r1.Changed(append(many, live.Conversation("1"))...)
		time.Sleep(time.Second)
		here.sees(t, "changed", "changed")
		there.sees(t, "changed", "changed")
		w.mu.Lock()
		for _, text := range w.sent {
			if len(text) > 7999 {
				t.Errorf("a notification of %d bytes", len(text))
			}
		}
		w.mu.Unlock()

		many = nil
		for i := range 3000 { // more than is kept for others, before it can be sent
			many = append(many, live.Conversation(fmt.Sprint("other", i)))
		}
		r1.Changed(many...)
		time.Sleep(time.Second)
		there.sees(t, "changed", "changed", "reload")
		here.sees(t, "changed", "changed")

		w.mu.Lock()
		close(w.cut) // what was said meanwhile is not known
		w.cut = make(chan struct{})
		w.mu.Unlock()
		time.Sleep(5 * time.Second)
		there.sees(t, "changed", "changed", "reload", "reload")
	})
}

func TestAReplicaThatIsAloneTellsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{alone: true}
		h, r := replica(t, w)
		p := open(t, h, live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}})
		r.Changed(live.Conversation("1"))
		time.Sleep(time.Second)
		p.sees(t, "changed")
		if len(w.sent) > 0 {
			t.Errorf("told %q", w.sent)
		}
	})
}

// Where nobody can be told, pages ask by themselves now and then, if somebody else is there.
func TestWithoutNotificationsPagesAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{deaf: live.ErrDeaf}
		h, _ := replica(t, w)
		p := open(t, h, live.Asked{Owner: "a", Topics: []live.Topic{live.Conversation("1")}})
		time.Sleep(11 * time.Second)
		p.sees(t, "reload", "reload")
		w.mu.Lock()
		w.alone = true
		w.mu.Unlock()
		time.Sleep(time.Minute)
		p.sees(t, "reload", "reload")
	})
}
