//go:build unix

package web

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"remote-agent/internal/fault"
)

// firstInherited is the first descriptor of a service manager, SD_LISTEN_FDS_START.
const firstInherited = 3

// maxInherited bounds how many sockets are taken.
const maxInherited = 16

// Inherited returns the sockets that a service manager such as systemd opened for
// this process and hands over by LISTEN_PID and LISTEN_FDS (sd_listen_fds(3)), none
// if there are none or if they are meant for another process. The caller closes
// them, by serving them or otherwise; it may take them once. What cannot be
// listened on is a fault.Invalid that says what to change in the socket unit.
func Inherited(lookup func(name string) (string, bool)) ([]net.Listener, error) {
	count, ok := lookup("LISTEN_FDS")
	if pid, _ := lookup("LISTEN_PID"); !ok || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxInherited {
		return nil, fault.Newf(fault.Invalid, "LISTEN_FDS is %q: it is the number of sockets that the service manager hands over, 0 to %d", count, maxInherited)
	}
	var listeners []net.Listener
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		l, err := inherit(fd)
		if err != nil {
			for _, l := range listeners {
				_ = l.Close() // the process ends
			}
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func inherit(fd int) (net.Listener, error) {
	syscall.CloseOnExec(fd) // programs of assistants are not to have it
	// A copy is listened on: the descriptor itself stays for PassOn, and while nobody
	// listens, connections wait there.
	own, err := syscall.Dup(fd)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Err: err, Public: fmt.Sprintf("LISTEN_FDS: descriptor %d is not open", fd)}
	}
	syscall.CloseOnExec(own)
	file := os.NewFile(uintptr(own), fmt.Sprintf("LISTEN_FDS %d", fd))
	defer file.Close() //nolint:errcheck // the listener has a copy
	listening, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	if err != nil || listening == 0 {
		return nil, &fault.Error{Kind: fault.Invalid, Err: err, Public: fmt.Sprintf(
			"LISTEN_FDS: descriptor %d is not a socket that listens: the socket unit needs ListenStream= and no Accept=yes", fd)}
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Err: err, Public: fmt.Sprintf(
			"LISTEN_FDS: descriptor %d cannot be listened on: the socket unit needs ListenStream= with an address or a path", fd)}
	}
	return l, nil
}

// PassOn has the program that takes the place of this process get the sockets of
// Inherited.
func PassOn(lookup func(name string) (string, bool)) {
	count, ok := lookup("LISTEN_FDS")
	if pid, _ := lookup("LISTEN_PID"); !ok || pid != strconv.Itoa(os.Getpid()) {
		return
	}
	n, _ := strconv.Atoi(count) // Inherited has looked at it
	for fd := firstInherited; fd < firstInherited+min(n, maxInherited); fd++ {
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, 0) // one that is closed is none
	}
}
