package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
)

// A listener belongs to the network namespace in which it was made, whoever holds
// it. So the helper makes the outlets inside, passes them to this process, and the
// connections of the program arrive here: nothing has to be copied in between, and
// nothing of the network outside is visible inside.

// outlets are those of one program, in this process.
type outlets struct {
	from    *net.UnixConn
	open    []net.Listener
	serving sync.WaitGroup
}

// newOutlets makes the way on which the helper passes the listeners, and the end of
// it that is the helper's.
func newOutlets() (*outlets, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "outlets"), os.NewFile(uintptr(pair[1]), "outlets") //nolint:gosec // a descriptor fits
	conn, err := net.FileConn(ours)
	_ = ours.Close() // conn has a copy
	from, ok := conn.(*net.UnixConn)
	if err == nil && !ok {
		err = errors.Join(errors.New("no socket"), conn.Close())
	}
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return &outlets{from: from}, theirs, nil
}

// serve takes the listeners, which the helper has sent before it said that the
// program runs, and serves them.
func (o *outlets) serve(wanted []Outlet) error {
	if o == nil {
		return nil
	}
	if err := o.receive(len(wanted)); err != nil {
		return &fault.Error{Kind: fault.Unavailable, Public: "The sandbox could not be set up, so the command was not run.", Err: err}
	}
	for i, l := range o.open {
		o.serving.Go(func() { wanted[i].Serve(l) })
	}
	return nil
}

func (o *outlets) receive(n int) error {
	if err := o.from.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	control := make([]byte, unix.CmsgSpace(4*n))
	_, size, _, _, err := o.from.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return fmt.Errorf("receiving outlets: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:size])
	if err != nil {
		return fmt.Errorf("receiving outlets: %w", err)
	}
	var fds []int
	for _, m := range messages {
		got, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fmt.Errorf("receiving outlets: %w", err)
		}
		fds = append(fds, got...)
	}
	var all error
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "outlet") //nolint:gosec // a descriptor fits
		l, err := net.FileListener(f)
		_ = f.Close() // l has a copy
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		o.open = append(o.open, l)
	}
	if len(o.open) != n {
		all = errors.Join(all, fmt.Errorf("%d outlets arrived, not %d", len(o.open), n))
	}
	return all
}

// close ends the outlets and waits for those who serve them.
func (o *outlets) close() {
	if o == nil {
		return
	}
	_ = o.from.Close()
	for _, l := range o.open {
		_ = l.Close()
	}
	o.serving.Wait()
}

// passOutlets is done by the helper: it listens, and gives the listeners away.
func passOutlets(ports []uint16) error {
	if len(ports) == 0 {
		return nil
	}
	fds := make([]int, 0, len(ports))
	defer func() {
		for _, fd := range append(fds, fdOutlets) {
			_ = unix.Close(fd)
		}
	}()
	for _, port := range ports {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("socket", err)
		}
		fds = append(fds, fd)
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return fmt.Errorf("an outlet at port %d: %w", port, os.NewSyscallError("bind", err))
		}
		if err := unix.Listen(fd, 128); err != nil {
			return os.NewSyscallError("listen", err)
		}
	}
	return os.NewSyscallError("sendmsg", unix.Sendmsg(fdOutlets, []byte{0}, unix.UnixRights(fds...), nil, 0))
}
