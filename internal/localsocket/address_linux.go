package localsocket

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
)

// maxPath is how long the address of a Unix socket may be, in bytes (unix(7)).
const maxPath = 107

// address returns the address of the socket at path, which works until done is called.
// A path that is too long for an address is reached through its open folder.
func address(path string) (at string, done func(), err error) {
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, fault.Wrap(err, fault.Unsupported, "open the folder of the socket")
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path)), func() { _ = folder.Close() }, nil
}

// peer returns the user at the other end of a connection.
func peer(conn syscall.Conn) (uid int, known bool, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var credentials *unix.Ucred
	if control := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); control != nil {
		return 0, false, control
	}
	if err != nil {
		return 0, false, err
	}
	return int(credentials.Uid), true, nil
}
