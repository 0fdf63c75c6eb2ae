//go:build darwin || freebsd

package localsocket

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// peer returns the user at the other end of a connection.
func peer(conn syscall.Conn) (uid int, known bool, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var credentials *unix.Xucred
	if control := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); control != nil {
		return 0, false, control
	}
	if err != nil {
		return 0, false, err
	}
	return int(credentials.Uid), true, nil
}
