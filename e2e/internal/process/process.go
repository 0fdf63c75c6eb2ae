// Package process runs programs beside a test. None outlives it.
package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"remote-agent/internal/waittest"
)

// Process is a program that was started.
type Process struct {
	t     testing.TB
	cmd   *exec.Cmd
	out   output
	ended chan struct{}
	err   error // how it ended
}

// Start runs a program in dir, with env and nothing else as its environment; nil
// is that of the test. It is killed at the end of the test; what it wrote is
// logged if the test failed.
func Start(t testing.TB, dir string, env []string, program string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.SysProcAttr = dir, env, group()
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.ended
		if t.Failed() {
			t.Logf("%s wrote:\n%s", program, p.out.String())
		}
	})
	return p
}

// Answers waits until a program that serves HTTP answers at an address with 200,
// and ends the test if the program ends instead.
func (p *Process) Answers(url string) {
	p.t.Helper()
	waittest.Until(p.t, url+" answers", func() bool {
		select {
		case <-p.ended:
			p.t.Fatalf("%s ended: %v", p.cmd.Path, p.err)
		default:
		}
		resp, err := http.Get(url) //nolint:noctx // it answers or is not there
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// Stop tells the program to end, waits, and reports how it ended.
func (p *Process) Stop() error {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-waittest.Late(p.t):
		p.t.Errorf("%s does not stop", p.cmd.Path)
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	return p.err
}

// FreeAddress returns a loopback address that was free a moment ago. Its port is below
// those that the system gives to whoever names none, such as the servers of other tests,
// which would take it before the program that it is for.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		l, err := net.Listen("tcp", address)
		if err == nil {
			_ = l.Close() // nothing was served
			return address
		}
	}
	t.Fatal("there is no free port")
	return ""
}

// output keeps the beginning and the end of what a program writes.
type output struct {
	mu         sync.Mutex // guards head and rest
	head, rest []byte
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	const keep = 32 << 10
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.head) < keep {
		o.head = append(o.head, p...)
		return len(p), nil
	}
	o.rest = append(o.rest, p...)
	if len(o.rest) > 2*keep {
		o.rest = append([]byte(nil), o.rest[len(o.rest)-keep:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.head) + string(o.rest))
}
