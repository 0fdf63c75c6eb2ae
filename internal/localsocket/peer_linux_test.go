package localsocket_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
)

const nobody = 65534

// TestAnotherUserIsRefused connects as another user, once with the rights of the file
// in the way and once with only the system's word on who connects.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	folder := t.TempDir()
	for dir := folder; strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = dir[:strings.LastIndexByte(dir, '/')] {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // another user has to get there
			t.Fatal(err)
		}
	}
	path := serving(t, folder, hello)
	if err := as(nobody, path); !fault.Is(err, fault.Forbidden) || !strings.Contains(fault.Public(err), "another user") {
		t.Errorf("the file lets another user in: %v", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // that is the test
		t.Fatal(err)
	}
	if err := as(nobody, path); !fault.Is(err, fault.Forbidden) || !strings.Contains(fault.Public(err), "user id 0") {
		t.Errorf("the system's word is not asked: %v", err)
	}
}

// as sends a request as another user. Only its own thread is that user, and ends.
func as(uid int, path string) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if _, _, err := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); err != 0 {
			result <- err
			return
		}
		result <- request(path)
	}()
	return <-result
}

// request connects in the goroutine that calls it: http.Client would do so in another.
func request(path string) error {
	conn, err := localsocket.Dial(context.Background(), path)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the test is over
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: bot\r\n\r\n"); err != nil {
		return err
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer r.Body.Close() //nolint:errcheck // only read
	return localsocket.ReadError(r)
}
