package assistant

import (
	"errors"
	"iter"
)

// ErrStopped means that the caller stopped ranging over the events.
var ErrStopped = errors.New("the caller stopped")

// Emit passes an event on to the caller who ranges over the events. After ErrStopped,
// which it returns when the caller has stopped, it must not be called again.
type Emit func(Event) error

// Events returns the events that run emits and, unless it is ErrStopped, the error that
// it returns.
func Events(run func(emit Emit) error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := run(func(e Event) error {
			if !yield(e, nil) {
				return ErrStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrStopped) {
			yield(nil, err)
		}
	}
}

// Deltas emits a piece of thinking and one of text; either may be empty.
func (emit Emit) Deltas(thought, text string) error {
	if thought != "" {
		if err := emit(ThoughtDelta{Text: thought}); err != nil {
			return err
		}
	}
	if text != "" {
		return emit(TextDelta{Text: text})
	}
	return nil
}

// Failed returns err, after what a Model used for the answer that failed with it.
func (emit Emit) Failed(err error, used Usage, model string) error {
	if err == nil || errors.Is(err, ErrStopped) || used == (Usage{}) {
		return err
	}
	if stopped := emit(UsageUpdated{Usage: used, Model: model}); stopped != nil {
		return stopped
	}
	return err
}
