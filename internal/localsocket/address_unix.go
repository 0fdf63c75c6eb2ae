//go:build unix && !linux

package localsocket

import "remote-agent/internal/fault"

// maxPath is how long the address of a Unix socket may be, in bytes (unix(4)).
const maxPath = 103

// address returns the address of the socket at path, which works until done is called.
func address(path string) (at string, done func(), err error) {
	if len(path) > maxPath {
		return "", nil, fault.Newf(fault.Unsupported, "The path %s is too long for a socket: %d bytes are allowed.", path, maxPath)
	}
	return path, func() {}, nil
}
