//go:build unix

package journey_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"remote-agent/internal/waittest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buildBot builds the program with the points at which it can be told to die.
func buildBot(t *testing.T, race bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot")
	args := []string{"build", "-tags", "failpoint", "-o", path}
	cgo := "CGO_ENABLED=0"
	if race { // as .ci/run compiles the tests, which is not done a second time then
		args, cgo = append(args, "-race", "-gcflags=modernc.org/sqlite/lib=-race=false"), "CGO_ENABLED=1"
	}
	begin := time.Now()
	build := exec.CommandContext(t.Context(), "go", append(args, "remote-agent/cmd/bot")...)
	build.Env = append(os.Environ(), cgo)
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("build the bot: %v\n%s", err, out)
	}
	t.Logf("built the bot in %s", time.Since(begin).Round(time.Millisecond))
	return path
}

// process is one life of the bot.
type process struct {
	t       testing.TB
	name    string
	cmd     *exec.Cmd
	out     *tail
	started time.Time
	done    chan struct{} // closed when it has ended and the rest is set
	ended   time.Time
	err     error
}

// startProcess starts the binary with nothing but env in its environment.
func startProcess(t testing.TB, binary, dir, name string, env map[string]string) (*process, error) {
	t.Helper()
	p := &process{t: t, name: name, out: &tail{}, started: time.Now(), done: make(chan struct{})}
	p.cmd = exec.Command(binary, "serve", "--no-console")
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.out, p.out
	p.cmd.SysProcAttr = childOf()
	p.cmd.Env = []string{"HOME=" + dir}
	for name, value := range env {
		if value != "" {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the bot: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		p.ended = time.Now()
		close(p.done)
	}()
	return p, nil
}

// end sends a signal and waits until the process has ended.
func (p *process) end(sig syscall.Signal) error {
	_ = p.cmd.Process.Signal(sig) // it may be gone already
	select {
	case <-p.done:
		return nil
	case <-waittest.Late(p.t):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not end after %s", p.name, sig)
	}
}

// killed returns nil if the process was ended by SIGKILL, and otherwise how it
// ended.
func (p *process) killed() error {
	if exit, is := errors.AsType[*exec.ExitError](p.err); is {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return nil
		}
	}
	return fmt.Errorf("%s was to be killed but ended by itself: %w", p.name, p.err)
}

var httpLine = regexp.MustCompile(`(?m)^\s*http\s+(http://\S+)`)

// ready waits until /readyz says so. A process that has just started needs a
// moment.
func (p *process) ready(ctx context.Context) error {
	return p.await(ctx, "ready", p.askReady)
}

// readyOrDead is ready for a process that may come to its failpoint before that:
// people are talking, and the first poll can already be its last.
func (p *process) readyOrDead(ctx context.Context) error {
	return p.await(ctx, "ready", func(ctx context.Context) error {
		select {
		case <-p.done:
			return nil
		default:
			return p.askReady(ctx)
		}
	})
}

// receives waits until the process is the replica that polls, or is dead.
func (p *process) receives(ctx context.Context) error {
	return p.await(ctx, "receiving", func(context.Context) error {
		select {
		case <-p.done:
			return nil
		default:
		}
		if !strings.Contains(p.out.String(), "This replica receives") {
			return errors.New("it has not said so")
		}
		return nil
	})
}

// await asks again and again, because nothing tells when it is worth it.
func (p *process) await(ctx context.Context, what string, ask func(context.Context) error) error {
	ctx = waittest.Context(ctx, p.t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is not %s: %w", p.name, what, err)
		}
	}
}

func (p *process) askReady(ctx context.Context) error {
	base := httpLine.FindStringSubmatch(p.out.String())
	if base == nil {
		return errors.New("it did not say where HTTP listens")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base[1]+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s", resp.Status)
	}
	return nil
}

// tail keeps the beginning and the end of what a process writes.
type tail struct {
	mu   sync.Mutex // guards head and rest
	head []byte
	rest []byte
}

const tailKeeps = 4 << 10

// Write implements io.Writer.
func (o *tail) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.head) < 1<<10 {
		o.head = append(o.head, p...)
		return len(p), nil
	}
	o.rest = append(o.rest, p...)
	if len(o.rest) > 2*tailKeeps {
		o.rest = append([]byte(nil), o.rest[len(o.rest)-tailKeeps:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (o *tail) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.head) + string(o.rest))
}
