package store

import (
	"time"

	"remote-agent/internal/fault"
)

// Failed returns what CheckWrites knows of the last write.
func Failed(s *Store) error { return s.writes.failed() }

// LookAgain has the next CheckIntegrity look.
func LookAgain(s *Store) { s.integrity.notice(&fault.Error{Kind: fault.Damaged}) }

// Writes follows writes, at the time of now.
type Writes struct{ w writes }

// NewWrites returns one that has seen nothing.
func NewWrites() *Writes { return &Writes{} }

// Begin and End are a write.
func (w *Writes) Begin()        { w.w.begin(time.Now()) }
func (w *Writes) End(err error) { w.w.end(err, time.Now()) }

// Stalled returns why nothing goes forward.
func (w *Writes) Stalled() error { return w.w.stalled(time.Now()) }

// Full returns that the disk is full.
func (w *Writes) Full() error { return w.w.full(time.Now()) }
