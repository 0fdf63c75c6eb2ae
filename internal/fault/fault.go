// Package fault classifies errors: what a caller can do about one, what a
// person may read of it, and whether its effect may have happened anyway.
//
// An error is classified once, where it enters the program (a database driver,
// a platform SDK, a model API). Above that line errors are only wrapped with
// what was being done. It is a leaf and imports only the standard library.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what a caller can do about an error. Kinds are stored and used as
// metric labels, so their values are part of the interface.
type Kind string

// The kinds of errors.
const (
	Internal     Kind = "internal"     // a bug, or not classified
	Invalid      Kind = "invalid"      // the request is wrong and will stay wrong
	NotFound     Kind = "not_found"    // no such row, chat or session
	Conflict     Kind = "conflict"     // someone else changed it first; reload and try again
	Forbidden    Kind = "forbidden"    // this sender may not do this
	Unauthorized Kind = "unauthorized" // our own credentials were refused; an operator must act
	RateLimited  Kind = "rate_limited" // try again after RetryAfter
	Unavailable  Kind = "unavailable"  // the other side is down or slow; try again with backoff
	Exhausted    Kind = "exhausted"    // a quota or context window is full; waiting will not help
	Unsupported  Kind = "unsupported"  // this platform or assistant cannot do it
	Gone         Kind = "gone"         // the chat or message no longer takes messages: blocked, deleted, kicked
	Canceled     Kind = "canceled"     // a person or a shutdown stopped it

	// What this machine has run out of; see Resource. Trying again with backoff may
	// work, and nobody else is to blame.
	Descriptors Kind = "descriptors" // too many files and connections are open
	Memory      Kind = "memory"      // there is no memory left
	Disk        Kind = "disk"        // there is no room left, or files may not grow

	Damaged Kind = "damaged" // stored data cannot be read any more; an operator must restore it
)

// Error is a classified error.
type Error struct {
	Kind Kind

	// Public is safe to show to the person in the chat. Empty means that there
	// is nothing better to say than the default text of Kind.
	Public string

	// RetryAfter is how long the other side asked us to wait, or zero.
	RetryAfter time.Duration

	// Uncertain is set when the effect may have happened even though the call
	// failed, such as a timeout after the request was written. Something that
	// is not idempotent must then not be repeated blindly.
	Uncertain bool

	// Err is the cause, for the operator only.
	Err error
}

// New returns an error of the given kind whose text is safe to show.
//
//go:noinline // it would be copied into hundreds of callers
func New(kind Kind, public string) *Error {
	return &Error{Kind: kind, Public: public}
}

// Newf is New with a format.
//
//go:noinline // it would be copied into hundreds of callers
func Newf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Public: fmt.Sprintf(format, args...)}
}

// Wrap classifies err and adds what was being done. It returns nil if err is
// nil. The text of err stays internal. An err that is of a Resource and was not
// classified gets that kind instead.
func Wrap(err error, kind Kind, doing string) error {
	if err == nil {
		return nil
	}
	if _, classified := errors.AsType[*Error](err); !classified {
		kind = Or(err, kind)
	}
	return &Error{Kind: kind, Err: fmt.Errorf("%s: %w", doing, err)}
}

// Note adds what was being done to err, whose kind stays. It returns nil if err is nil.
//
//go:noinline // it would be copied into many callers
func Note(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Error returns the text for the operator.
func (e *Error) Error() string {
	switch {
	case e.Err != nil && e.Public != "":
		return fmt.Sprintf("%s (%s): %v", strings.TrimSuffix(e.Public, "."), e.Kind, e.Err)
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", e.Kind, e.Err)
	case e.Public != "":
		return e.Public
	default:
		return string(e.Kind)
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the classification of err: that of the outermost Error in its
// chain, Canceled or Unavailable for a bare context error, that of a Resource,
// otherwise Internal.
// It returns the empty Kind for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable
	}
	return Or(err, Internal)
}

// Is reports whether err is classified as kind.
//
//go:noinline // it would be copied into hundreds of callers
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// Uncertain reports whether the effect of the failed call may have happened.
func Uncertain(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Uncertain
}

// Retry reports whether trying the same thing again may work, and how long the
// other side asked us to wait first (zero: the caller's own backoff). It is
// false for an Uncertain error.
func Retry(err error) (after time.Duration, ok bool) {
	switch KindOf(err) {
	case Conflict, RateLimited, Unavailable, Descriptors, Memory, Disk:
	default:
		return 0, false
	}
	e, isFault := errors.AsType[*Error](err)
	if !isFault {
		return 0, true
	}
	if e.Uncertain {
		return 0, false
	}
	return e.RetryAfter, true
}

// defaultText is what a person reads of a kind of errors.
func (k Kind) defaultText() string {
	switch k {
	case Invalid:
		return "That is not valid."
	case NotFound:
		return "Not found."
	case Conflict:
		return "Someone else just changed this. Try again."
	case Forbidden:
		return "You are not allowed to do that here."
	case Unauthorized:
		return "The bot is not set up correctly; an owner needs to check the configuration."
	case RateLimited:
		return "The service is busy."
	case Unavailable:
		return "The service is not responding right now."
	case Exhausted:
		return "A limit has been reached."
	case Unsupported:
		return "That is not possible here."
	case Gone:
		return "That no longer exists."
	case Canceled:
		return "Stopped."
	case Descriptors:
		return "The bot has too many files and connections open right now."
	case Memory:
		return "The bot is out of memory."
	case Disk:
		return "The bot is out of disk space."
	case Damaged:
		return "The bot's database is damaged; an operator needs to restore it."
	default:
		return "Something went wrong in the bot."
	}
}

// Public returns the text to show in the chat for err: the outermost Public
// text in its chain, else the default text of its kind. It never contains the
// text of a foreign error.
func Public(err error) string {
	for e := err; e != nil; {
		f, ok := errors.AsType[*Error](e)
		if !ok {
			break
		}
		if f.Public != "" {
			return f.Public
		}
		e = f.Err
	}
	return KindOf(err).defaultText()
}

// Explain returns the text to show to an operator for err: as Public, but where that is
// the default text of its kind, which names nothing that could be changed, the whole error.
func Explain(err error) string {
	if text := Public(err); text != KindOf(err).defaultText() {
		return text
	}
	return err.Error()
}
