package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/fault"
)

func TestResourcesAreKindsOfTheirOwn(t *testing.T) {
	t.Parallel()
	dial := func(errno syscall.Errno) error {
		return &url.Error{Op: "Post", URL: "http://127.0.0.1", Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}}
	}
	tests := map[string]struct {
		err  error
		want fault.Kind
		says string
	}{
		"EMFILE":   {dial(syscall.EMFILE), fault.Descriptors, "too many files"},
		"ENFILE":   {dial(syscall.ENFILE), fault.Descriptors, "too many files"},
		"Resolver": {dial2(&net.DNSError{Err: "dial udp 127.0.0.1:53: socket: too many open files", Name: "example.com"}), fault.Descriptors, "too many files"},
		"ENOMEM":   {fmt.Errorf("start: %w", syscall.ENOMEM), fault.Memory, "memory"},
		"ENOSPC":   {&fs.PathError{Op: "write", Path: "/data/x", Err: syscall.ENOSPC}, fault.Disk, "disk"},
		"EDQUOT":   {&fs.PathError{Op: "write", Path: "/data/x", Err: syscall.EDQUOT}, fault.Disk, "disk"},
		"EFBIG":    {&fs.PathError{Op: "write", Path: "/data/x", Err: syscall.EFBIG}, fault.Disk, "disk"},
		"NoName":   {dial2(&net.DNSError{Err: "no such host", Name: "example.com"}), fault.Unavailable, "is not responding"},
		"Refused":  {dial(syscall.ECONNREFUSED), fault.Unavailable, "is not responding"},
	}
	for name, tt := range tests {
		err := fault.Wrap(tt.err, fault.Unavailable, "ask")
		if got := fault.KindOf(err); got != tt.want {
			t.Errorf("%s: KindOf = %q, want %q", name, got, tt.want)
		}
		if got := fault.Public(err); !strings.Contains(got, tt.says) {
			t.Errorf("%s: Public = %q, want %q in it", name, got, tt.says)
		}
		if _, again := fault.Retry(err); !again || !fault.Passing(err) {
			t.Errorf("%s: it is not tried again", name)
		}
	}
	if got := fault.KindOf(fmt.Errorf("open: %w", syscall.EMFILE)); got != fault.Descriptors {
		t.Errorf("an error that nobody classified is %q", got)
	}
	if got := fault.KindOf(fault.Wrap(fault.Wrap(syscall.EMFILE, fault.Invalid, "x"), fault.Exhausted, "y")); got != fault.Exhausted {
		t.Errorf("whoever classified it again said exhausted, it is %q", got)
	}
	if fault.Passing(errors.New("x")) || fault.Passing(fault.New(fault.Damaged, "")) {
		t.Error("a bug or a damaged database does not pass by waiting")
	}
}

func dial2(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
