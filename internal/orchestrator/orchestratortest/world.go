package orchestratortest

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/chat"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/queue"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// World is everything around the program. Its methods are for the goroutine of the
// test.
type World struct {
	T     *testing.T
	Chat  *Chat
	Model *Model
	Tools *Tools
	Agent *Agent // of conversations that are handed to it

	// Configure changes the configuration of every process that starts from now on;
	// s is its database. Nil changes nothing.
	Configure func(c *orchestrator.Config, s *store.Store)

	// Commands changes what the chat commands of every process have that starts from now
	// on. Nil leaves out people, memory and repositories.
	Commands func(c *chat.Config, p *Process)

	// Early, if not nil, is called with every process that starts from now on, before its
	// engine runs: what is said then is accepted by a process that does not work yet.
	Early func(p *Process)

	dir     string
	reader  *storetest.Reader
	process *Process   // the newest
	all     []*Process // in the order of their start

	offers    sync.Mutex // guards all below
	listening []*Process // those that take offers
	deaf      []*Process // those of them that do not hear what they are offered
	offered   int
}

// Run runs a test in a world of its own, in which no process has started. All
// processes are ended behind it.
func Run(t *testing.T, test func(w *World)) {
	t.Helper()
	dir := t.TempDir()
	storetest.SQLiteFile(t, dir) // outside of the bubble: the schema is made once for all
	// SQLite has a clock of its own for the seeds' timestamps. The bubble's is ahead of it, so
	// that what it stamped is never later than what the program does next, and begins with
	// a full second, so that what is kept in milliseconds loses nothing.
	begins := time.Now().Truncate(time.Second).Add(time.Hour)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(begins))
		w := &World{T: t, dir: dir, reader: storetest.NewReader(t, dir)}
		w.Chat, w.Model, w.Tools, w.Agent = newChat(w), newModel(w), newTools(), new(Agent)
		defer w.end()
		test(w)
	})
}

// end ends what runs, and fails the test if something of it does not end.
func (w *World) end() {
	w.Model.ReleaseAll()
	for _, p := range w.all {
		if !p.Dead() {
			p.Stop()
		}
		p.close()
	}
	reachedBy.Store(nil)
}

// Settle waits until everybody waits for somebody else or for time to pass.
func (w *World) Settle() { synctest.Wait() }

// Pass lets time pass, and settles.
func (w *World) Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Away lets time pass in which no process runs: the newest one stops, and the next one
// starts then. Hours of a process that has nothing to do are most of what a test costs.
func (w *World) Away(d time.Duration) *Process {
	w.T.Helper()
	w.process.Stop()
	w.Pass(d)
	return w.Start()
}

// Start starts the process that owns the database, once an earlier one has ended. The
// platform delivers to it what was not acknowledged.
func (w *World) Start() *Process {
	w.T.Helper()
	for _, p := range w.all {
		if !p.Dead() {
			w.T.Fatal("a process runs already; stop or kill it, or start a Replica")
		}
		p.close()
	}
	return w.start(true)
}

// Replica starts a process beside those that run, as with PostgreSQL: it takes nothing
// over that has a live lease. What is said from now on is delivered to it; see
// Chat.DeliverTo.
func (w *World) Replica() *Process { w.T.Helper(); return w.start(false) }

func (w *World) start(exclusive bool) *Process {
	w.T.Helper()
	s, err := store.Open(w.T.Context(), store.Options{DataDir: w.dir, Log: storetest.Log(w.T), Exclusive: exclusive})
	if err != nil {
		w.T.Fatalf("opening the store: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.T.Context()))
	p := &Process{world: w, Store: s, life: newLife(cancel), ended: make(chan struct{})}
	w.all, w.process = append(w.all, p), p
	if exclusive {
		if err := s.ClearLeases(ctx); err != nil {
			w.T.Fatal(err)
		}
	}
	if p.Engine, err = w.build(p, exclusive); err != nil {
		w.T.Fatalf("building the engine: %v", err)
	}
	reachedBy.Store(p)
	if w.Early != nil {
		w.Early(p)
	}
	go func() {
		defer close(p.ended)
		if err := p.Engine.Run(ctx); err != nil {
			w.T.Errorf("the engine ended with %v", err)
		}
	}()
	synctest.Wait()
	w.Chat.redeliver(p)
	return p
}

// Restart ends the process in order and starts the next one.
func (w *World) Restart() *Process {
	w.T.Helper()
	w.process.Stop()
	return w.Start()
}

// Process returns the newest process.
func (w *World) Process() *Process { return w.process }

// KillAt has the newest process die when it comes to a point for the nth time, from 1,
// counted from now on.
func (w *World) KillAt(point failpoint.Point, nth int) {
	p := w.process
	p.life.mu.Lock()
	defer p.life.mu.Unlock()
	p.life.killAt, p.life.countdown = point, nth
}

// StopAt has the newest process be told to stop, as by SIGTERM, when it comes to a point
// for the nth time, from 1.
func (w *World) StopAt(point failpoint.Point, nth int) {
	w.KillAt(point, nth)
	p := w.process
	p.life.mu.Lock()
	defer p.life.mu.Unlock()
	p.life.gently = true
}

// Process is the program at work.
type Process struct {
	Engine   *orchestrator.Orchestrator
	Commands *chat.Handler
	Store    *store.Store

	world  *World
	life   *life
	ended  chan struct{} // closed when Run has returned
	closed bool
}

// Stop ends the process as SIGTERM does, and waits for its end.
func (p *Process) Stop() {
	p.life.cancel()
	<-p.ended
	p.life.die()
	synctest.Wait()
}

// Shutdown begins to stop the process, and does not wait.
func (p *Process) Shutdown() { p.life.cancel() }

// Kill ends the process as kill -9 does.
func (p *Process) Kill() {
	p.life.die()
	synctest.Wait()
}

// Die is Kill for where the process itself is at work, as in Chat.React and After. It does
// not settle.
func (p *Process) Die() { p.life.die() }

// Dead reports whether the process was killed or has stopped.
func (p *Process) Dead() bool {
	select {
	case <-p.ended:
		p.life.die()
	default:
	}
	return p.life.over()
}

// Fail has every access of the process to the database fail with err until it is called
// with nil, as when the server is away.
func (p *Process) Fail(err error) {
	if err == nil {
		p.life.fail.Store(nil)
		return
	}
	p.life.fail.Store(&err)
}

// Lose has the answer to the next transaction of the engine that is committed be lost: its
// caller gets an error that leaves open what became of it.
func (p *Process) Lose() { p.life.lose.Store(true) }

// After has fn called after each transaction of the process that may write, before its
// caller goes on; nil: no more. It may do on the platform what a person would, and pass
// the time, but not settle.
func (p *Process) After(fn func()) {
	if fn == nil {
		p.life.after.Store(nil)
		return
	}
	p.life.after.Store(&fn)
}

// close closes what the system closes behind a process that is gone.
func (p *Process) close() {
	if p.closed {
		return
	}
	p.closed = true
	<-p.ended
	synctest.Wait()
	if err := p.Store.Close(); err != nil {
		p.world.T.Errorf("closing the store: %v", err)
	}
}

// life is what the surroundings of a process ask before they serve it.
type life struct {
	cancel context.CancelFunc // of Run
	dead   chan struct{}      // closed by die
	fail   atomic.Pointer[error]
	after  atomic.Pointer[func()]
	lose   atomic.Bool

	mu        sync.Mutex // guards all below
	gone      bool
	killAt    failpoint.Point
	countdown int
	gently    bool // it is told to stop, and goes on meanwhile
}

func newLife(cancel context.CancelFunc) *life {
	return &life{cancel: cancel, dead: make(chan struct{})}
}

func (l *life) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gone {
		l.gone = true
		close(l.dead)
		l.cancel()
	}
}

func (l *life) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// serve ends the calling goroutine if its process is dead.
func (l *life) serve() {
	if l.over() {
		runtime.Goexit()
	}
}

// hit ends the process and the calling goroutine if that is what was asked for.
func (l *life) hit(at failpoint.Point) {
	l.mu.Lock()
	now := false
	if !l.gone && l.killAt == at {
		l.countdown--
		now = l.countdown == 0
	}
	gently, armed := l.gently, l.killAt != ""
	l.mu.Unlock()
	switch {
	case now && gently:
		l.cancel()
	case now:
		l.die()
	}
	if armed {
		l.serve()
	}
}

// reachedBy is the process that failpoints are for. It is global because failpoints are.
var reachedBy atomic.Pointer[Process]

// Reached is what failpoint.Arm is to be given. It does nothing without KillAt.
func Reached(at failpoint.Point) {
	if p := reachedBy.Load(); p != nil {
		p.life.hit(at)
	}
}

// newQueue returns the queue of one process.
func newQueue(tb testing.TB) queue.Queue {
	return queue.NewTimer(queue.Options{Log: storetest.Log(tb)})
}
