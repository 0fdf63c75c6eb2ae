//go:build unix

package journey_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/waittest"
	"remote-agent/internal/web"
)

// botArgument makes this test binary the bot. The failpoint at which it dies follows,
// with the number of the pass that is the last: "mid-stream:3".
const botArgument = "run-as-the-bot"

// runAsBot is the program, if this process was started for that: what "bot serve
// --no-console" does, with the options of its environment. It does not return then.
func runAsBot(args []string) {
	if len(args) < 2 || args[1] != botArgument {
		return
	}
	if point := strings.Join(args[2:], ""); point != "" {
		failpoint.Arm(dieAt(point))
	}
	// The test holds the other end of this pipe. When it is gone, however it ended,
	// nothing may be left of what it started.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	cfg, err := app.LoadConfig(config.Source{Environ: os.Environ()})
	listeners, bad := web.Inherited(os.LookupEnv)
	if err == nil {
		err = bad
	}
	if err == nil {
		err = app.Run(ctx, cfg, app.Env{
			Listeners: listeners,
			Stdin:     strings.NewReader(""), Stdout: os.Stdout, Stderr: os.Stderr, Version: "test",
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Lookup: os.LookupEnv, EnvFile: config.EnvFile,
		})
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err) //nolint:errcheck // there is nowhere else to say it
		os.Exit(1)
	}
	os.Exit(0)
}

// dieAt ends the process with SIGKILL when it passes a point for the n-th time.
func dieAt(point string) func(failpoint.Point) {
	name, count, _ := strings.Cut(point, ":")
	last, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		last = 1
	}
	var passed atomic.Int64
	return func(p failpoint.Point) {
		if string(p) != name || passed.Add(1) != last {
			return
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is asynchronous: nothing after this point may run
	}
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

// startProcess starts the bot with nothing but env in its environment, and hands it
// sockets as a service manager does. It dies at point, or nowhere.
func startProcess(t testing.TB, dir, name, point string, env map[string]string, sockets ...*os.File) (*process, error) {
	t.Helper()
	return startProcessAfter(t, "", dir, name, point, env, sockets...)
}

// runProcess starts the bot behind a command, which may be empty, waits until it is ready,
// and ends it with the test.
func runProcess(t *testing.T, before string, env map[string]string) *process {
	t.Helper()
	p, err := startProcessAfter(t, before, t.TempDir(), "bot", "", env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.end(syscall.SIGKILL)
		if t.Failed() {
			t.Log(p.out)
		}
	})
	if err := p.ready(t.Context()); err != nil {
		t.Fatal(err, p.out)
	}
	return p
}

// startProcessAfter is startProcess in a shell that ran a command first, such as
// "ulimit -n 64".
func startProcessAfter(t testing.TB, before, dir, name, point string, env map[string]string, sockets ...*os.File) (*process, error) {
	t.Helper()
	p := &process{t: t, name: name, out: &tail{found: make(map[string]bool)}, started: time.Now(), done: make(chan struct{})}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(self, botArgument, point)
	if len(sockets) > 0 { // only the process itself knows its id
		p.cmd = exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, self, botArgument, point)
		p.cmd.ExtraFiles = sockets
	}
	if before != "" {
		p.cmd = exec.Command("/bin/sh", "-c", before+` && exec "$0" "$@"`, self, botArgument, point)
	}
	if _, err := p.cmd.StdinPipe(); err != nil { // closed when the process has ended
		return nil, err
	}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.out, p.out
	p.cmd.SysProcAttr = childOf()
	p.cmd.Env = []string{"HOME=" + dir}
	if len(sockets) > 0 {
		p.cmd.Env = append(p.cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(sockets)))
	}
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
		if !p.out.said(saysPolls) {
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

// tail keeps the beginning and the end of what a process writes, and whether it said what
// is looked for: it may say a lot more before somebody looks.
type tail struct {
	mu    sync.Mutex // guards all below
	head  []byte
	rest  []byte
	found map[string]bool
}

const tailKeeps = 4 << 10

// What a process says of polling.
const (
	saysPolls      = "polling telegram for messages"
	saysOtherPolls = "another process is polling"
)

// Write implements io.Writer.
func (o *tail) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.head) < 1<<10 {
		o.head = append(o.head, p...)
	} else {
		o.rest = append(o.rest, p...)
	}
	for _, phrase := range []string{saysPolls, saysOtherPolls} {
		if strings.Contains(o.kept(), phrase) {
			o.found[phrase] = true
		}
	}
	if len(o.rest) > 2*tailKeeps {
		o.rest = append([]byte(nil), o.rest[len(o.rest)-tailKeeps:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (o *tail) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(o.kept())
}

// kept is String with the lock held.
func (o *tail) kept() string { return string(o.head) + string(o.rest) }

// said reports whether the process has said a phrase that is looked for.
func (o *tail) said(phrase string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.found[phrase]
}

// TestWhatAProcessSaidIsNotForgotten when it has said a lot since.
func TestWhatAProcessSaidIsNotForgotten(t *testing.T) {
	t.Parallel()
	out := tail{found: make(map[string]bool)}
	line := []byte(strings.Repeat("turn finished ", 20) + "\n")
	for i := range 200 {
		if i == 50 {
			_, _ = out.Write([]byte(saysPolls[:7]))
			_, _ = out.Write([]byte(saysPolls[7:] + "\n"))
		}
		_, _ = out.Write(line)
	}
	if strings.Contains(out.String(), saysPolls) || !out.said(saysPolls) || out.said(saysOtherPolls) {
		t.Errorf("it is kept, or forgotten: %t", out.said(saysPolls))
	}
}
