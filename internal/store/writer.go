package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"remote-agent/internal/fault"
)

// maxGroup bounds how many callers share a commit, and with it how long the
// first of them waits for the others.
const maxGroup = 128

// writer is the group commit of SQLite. A durable commit costs a disk flush, and
// there is one writer connection, so callers that wait at the same moment share
// a transaction: each runs in its own savepoint, then all are committed at once.
// Nobody waits for company: a single caller is committed immediately.
//
// The goroutine of run owns the connection and hands the transaction from one
// caller to the next; closures run in their caller's goroutine, so a panic or a
// Goexit is the caller's own. close ends run.
type writer struct {
	db      *sql.DB
	text    *rewriter
	vectors *vectorCache
	redact  func(string) string // may be nil

	wake chan struct{} // buffered; a value means that waiting may have grown
	done chan struct{} // closed by run

	groups  atomic.Int64 // transactions begun
	behind  bool         // the log has what was deleted; of run
	written bool         // the log may have something; of run
	bare    bool         // there may be messages that the index of words does not have; of run
	since   int          // groups since the index was brought up to date; of run

	mu      sync.Mutex // guards waiting and closed
	waiting []*write
	closed  bool
}

// write is one caller's transaction.
type write struct {
	state  atomic.Int32     // queued, then started or abandoned
	turn   chan *sql.Tx     // run: your turn; or closed: see result
	ran    chan error       // caller: this is how fn ended
	result chan writeResult // run: this is what became of it
	erased bool             // what somebody said was deleted; read after ran
}

type writeResult struct{ err error }

// The states of a write.
const (
	writeQueued int32 = iota
	writeStarted
	writeAbandoned
)

func newWriter(db *sql.DB, text *rewriter, vectors *vectorCache, redact func(string) string) *writer {
	w := &writer{db: db, text: text, vectors: vectors, redact: redact, wake: make(chan struct{}, 1), done: make(chan struct{}), bare: true}
	go w.run()
	return w
}

// do runs fn in the next group and returns after its commit. A ctx that ends
// before fn has started takes the caller out of the queue.
func (w *writer) do(ctx context.Context, fn func(tx *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	job := &write{turn: make(chan *sql.Tx, 1), ran: make(chan error, 1), result: make(chan writeResult, 1)}
	if !w.enqueue(job) {
		return fault.Wrap(sql.ErrConnDone, fault.Unavailable, "write to a closed store")
	}
	var tx *sql.Tx
	select {
	case tx = <-job.turn:
	case <-ctx.Done():
		if job.state.CompareAndSwap(writeQueued, writeAbandoned) {
			return ctx.Err()
		}
		tx = <-job.turn
	}
	if tx == nil { // the transaction could not begin
		return (<-job.result).err
	}

	var err error = errAbrupt
	defer func() {
		if err == errAbrupt { //nolint:errorlint // the value itself: fn panicked or exited
			job.ran <- err
			<-job.result // rolled back before the panic goes on
		}
	}()
	t := newTx(Tx{text: w.text, vectors: w.vectors, redact: w.redact, lite: tx})
	failed := fn(t)
	if failed == nil {
		failed = t.seal(ctx)
	}
	err = failed
	job.erased = t.erased
	job.ran <- err
	result := <-job.result
	if result.err == nil {
		t.committed()
	}
	return result.err
}

// errAbrupt stands for a closure that did not return.
var errAbrupt = fault.New(fault.Internal, "")

func (w *writer) enqueue(job *write) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.waiting = append(w.waiting, job)
	w.signal()
	return true
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close refuses new writes, lets the queued ones finish and ends run.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.signal()
	w.mu.Unlock()
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	for {
		group, closed := w.take(maxGroup)
		switch {
		case len(group) > 0:
			w.commit(group)
			if w.since++; w.since >= groupsPerIndex && w.indexMessages(worthIndexed) < mostIndexed {
				w.since = 0 // else there are more, and the next group is followed by some of them
			}
		case closed:
			for w.written && w.bare { // what a short command has stored is indexed now
				w.indexMessages(1)
			}
			return
		default:
			w.rest()
		}
	}
}

// wanted reports whether somebody waits for the writer.
func (w *writer) wanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0 || w.closed
}

func (w *writer) take(limit int) (group []*write, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(limit, len(w.waiting))
	group, w.waiting = w.waiting[:n:n], w.waiting[n:]
	if len(w.waiting) == 0 {
		w.waiting = nil // so that the array of a busy moment is not kept
	}
	return group, w.closed
}

// commit runs the closures of a group in one transaction and tells each caller
// what became of its own.
func (w *writer) commit(group []*write) {
	started := group[:0]
	for _, job := range group {
		if job.state.CompareAndSwap(writeQueued, writeStarted) {
			started = append(started, job)
		}
	}
	if len(started) == 0 {
		return
	}
	w.groups.Add(1)
	w.written, w.bare = true, true
	tx, err := w.db.BeginTx(context.Background(), nil) //nolint:contextcheck // belongs to no single caller
	if err != nil {
		err = classifySQLite(err)
		for _, job := range started {
			close(job.turn)
			job.result <- writeResult{err}
		}
		return
	}
	if len(started) == 1 {
		w.commitOne(tx, started[0])
		return
	}
	kept, err := w.runGroup(tx, started)
	if err != nil {
		_ = tx.Rollback()
	} else {
		err = commitSQLite(tx)
	}
	w.afterCommit(err, kept...)
	for _, job := range kept {
		job.result <- writeResult{err}
	}
}

// commitOne saves a caller without company the savepoint.
func (w *writer) commitOne(tx *sql.Tx, job *write) {
	job.turn <- tx
	err := <-job.ran
	if err != nil {
		_ = tx.Rollback()
	} else {
		err = commitSQLite(tx)
	}
	w.afterCommit(err, job)
	job.result <- writeResult{err}
}

// afterCommit empties the log if something was deleted that is to be gone.
func (w *writer) afterCommit(err error, jobs ...*write) {
	if err == nil && slices.ContainsFunc(jobs, func(job *write) bool { return job.erased }) {
		w.behind = w.truncate(context.Background()) //nolint:contextcheck // belongs to no single caller
	}
}

// idleAfter is how long nobody may write until the log is emptied, so that one which
// grew under a long reader does not stay long.
const idleAfter = 5 * time.Second

// groupsPerIndex is after how many groups the index of words is looked at while
// others want to write.
const groupsPerIndex = 32

// indexMessages brings the oldest messages that the index of words does not have
// into it, if there are at least so many, and returns how many it was. What goes wrong
// is tried again later: a search finds them without it.
func (w *writer) indexMessages(least int) int64 {
	ctx := context.Background()
	w.bare = false
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return 0
	}
	n, err := newTx(Tx{text: w.text, lite: tx}).Search().indexMessages(ctx, least)
	if err != nil || n == 0 {
		_ = tx.Rollback()
		w.bare = least > 1
		return 0
	}
	err = commitSQLite(tx)
	w.bare, w.written = err == nil, true
	return n
}

// rest waits until there is something to write. Meanwhile, when nobody has written
// for a while, it brings the index of words up to date and empties the log, which it
// does sooner if that has to be.
func (w *writer) rest() {
	pause := idleAfter
	switch {
	case w.behind:
		pause = checkpointAgain
	case !w.written && !w.bare:
		<-w.wake
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-w.wake:
	case <-timer.C:
		for w.bare && !w.wanted() {
			w.indexMessages(1)
		}
		if !w.written {
			return
		}
		busy := w.truncate(context.Background()) //nolint:contextcheck // as above
		w.behind, w.written = w.behind && busy, busy
	}
}

// runGroup runs each closure in a savepoint and answers the callers whose
// closure failed. kept are those that wait for the commit. An error means that
// the transaction itself is gone; then nothing of kept was done.
func (w *writer) runGroup(tx *sql.Tx, group []*write) (kept []*write, err error) {
	kept = make([]*write, 0, len(group))
	for i, job := range group {
		if err := savepoint(tx, "SAVEPOINT caller"); err != nil {
			for _, rest := range group[i:] {
				close(rest.turn)
			}
			return append(kept, group[i:]...), err
		}
		job.turn <- tx
		failed := <-job.ran
		if failed != nil {
			if err := savepoint(tx, "ROLLBACK TO caller"); err != nil {
				job.result <- writeResult{failed}
				for _, rest := range group[i+1:] {
					close(rest.turn)
				}
				return append(kept, group[i+1:]...), err
			}
		}
		if err := savepoint(tx, "RELEASE caller"); err != nil {
			job.result <- writeResult{err}
			for _, rest := range group[i+1:] {
				close(rest.turn)
			}
			return append(kept, group[i+1:]...), err
		}
		if failed != nil {
			job.result <- writeResult{failed}
			continue
		}
		kept = append(kept, job)
	}
	return kept, nil
}

// savepoint fails when SQLite has rolled the whole transaction back, as it does
// by itself when the disk is full or cannot be written.
func savepoint(tx *sql.Tx, statement string) error {
	if _, err := tx.ExecContext(context.Background(), statement); err != nil {
		return &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("group commit: %s: %w", statement, err)}
	}
	return nil
}

// commitSQLite commits. An I/O error leaves open whether the commit is on the
// disk; a full disk or a busy database does not.
func commitSQLite(tx *sql.Tx) error {
	err := tx.Commit()
	if err == nil {
		return nil
	}
	f := &fault.Error{Kind: sqliteKind(err), Err: fmt.Errorf("commit: %w", err)}
	f.Uncertain = sqliteCode(err) == sqlite3.SQLITE_IOERR
	return f
}
