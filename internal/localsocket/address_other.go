//go:build !unix

package localsocket

import (
	"runtime"

	"remote-agent/internal/fault"
)

// address says that there are no sockets here that only one user can use.
func address(string) (at string, done func(), err error) {
	return "", nil, fault.Newf(fault.Unsupported, "On %s a running bot has no socket: stop it before you use this command.", runtime.GOOS)
}
