package fault

import (
	"errors"
	"net"
	"strings"
	"syscall"
)

// Resource reports which resource of this machine err says has run out:
// Descriptors (EMFILE, ENFILE), Memory (ENOMEM) or Disk (ENOSPC, EDQUOT, EFBIG).
// It looks at the operating system's error in the chain of err, whatever kind err
// was given.
func Resource(err error) (Kind, bool) {
	switch {
	case err == nil:
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return Descriptors, true
	case errors.Is(err, syscall.ENOMEM):
		return Memory, true
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return Disk, true
	}
	// The resolver keeps only the text of what went wrong with its sockets.
	if dns, ok := errors.AsType[*net.DNSError](err); ok && strings.Contains(dns.Err, "too many open files") {
		return Descriptors, true
	}
	return "", false
}

// Or returns the kind of the Resource that err says has run out, else kind.
func Or(err error, kind Kind) Kind {
	if own, ok := Resource(err); ok {
		return own
	}
	return kind
}

// Passing reports whether err is one that waiting may mend by itself: the other
// side does not answer, or a Resource of this machine has run out.
func Passing(err error) bool {
	switch KindOf(err) {
	case Unavailable, Descriptors, Memory, Disk:
		return true
	default:
		return false
	}
}
