package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// bot is a replica of the program: one process after the other with the same address
// and the same data.
type bot struct {
	run              *run
	name, addr, data string

	cmd     *exec.Cmd
	started time.Time
	done    chan struct{} // closed when the process has ended
	err     error         // how; read after done
}

// bounds of a process, so that one that hangs ends the run.
const (
	startsWithin = 60 * time.Second
	stopsWithin  = 60 * time.Second
)

func (b *bot) environ() []string {
	env := append([]string{
		"LISTEN_ADDR=" + b.addr, "DATA_DIR=" + b.data, "DATABASE_URL=" + b.run.db.url, "WORKSPACE_PATH=" + b.data + "/workspace",
		"MAX_CONCURRENT_CONVERSATIONS=16", "SHUTDOWN_GRACE=10s", "LOG_LEVEL=warn", "LOG_FORMAT=text",
	}, b.run.model.environ()...)
	env = append(env, b.run.platform.environ(b.addr)...)
	env = append(env, b.run.opts.Environ...)
	return append(env, b.run.opts.With...) // the last one counts
}

func (b *bot) start() error {
	// No context: a process is ended by kill or stop.
	b.cmd = exec.CommandContext(context.Background(), b.run.opts.Command[0], b.run.opts.Command[1:]...) //nolint:gosec // our own program
	b.cmd.Env, b.cmd.Dir = b.environ(), b.run.dir
	log, err := os.OpenFile(b.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", b.name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own
	b.cmd.Stdout, b.cmd.Stderr = log, log
	b.cmd.SysProcAttr = childOf()
	b.started = time.Now()
	if err := b.cmd.Start(); err != nil {
		b.done = nil
		return fmt.Errorf("start %s: %w", b.name, err)
	}
	b.done = make(chan struct{})
	b.run.report.Starts++
	go func(cmd *exec.Cmd, done chan struct{}) {
		b.err = cmd.Wait()
		close(done)
	}(b.cmd, b.done)
	b.run.relay.use(b.addr, true)
	return nil
}

// ended reports whether the process has ended.
func (b *bot) ended() bool {
	if b.done == nil {
		return true
	}
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// kill ends the process as nothing can prevent.
func (b *bot) kill() {
	if b.done == nil {
		return
	}
	_ = b.cmd.Process.Kill() // it may have ended
	<-b.done
}

// stop ends the process in order.
func (b *bot) stop() error {
	if err := b.cmd.Process.Signal(os.Interrupt); err != nil && !b.ended() {
		b.kill() // where there is no such signal
		return nil
	}
	select {
	case <-b.done:
	case <-time.After(stopsWithin):
		b.kill()
		return fmt.Errorf("%s did not stop within %s\n%s", b.name, stopsWithin, b.said())
	}
	if b.err != nil {
		return fmt.Errorf("%s ended badly: %w\n%s", b.name, b.err, b.said())
	}
	return nil
}

// revive starts a process that is dead, which it may only be by a kill of ours.
func (b *bot) revive() error {
	if !b.ended() {
		return nil
	}
	return b.start()
}

// ready waits until the process says that it is.
func (b *bot) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startsWithin)
	defer cancel()
	for {
		if b.ended() {
			return fmt.Errorf("%s ended: %w\n%s", b.name, b.err, b.said())
		}
		err := b.askReady(ctx)
		if err == nil {
			return nil
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("%s is not ready: %w\n%s", b.name, err, b.said())
		}
	}
}

func (b *bot) askReady(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return fmt.Errorf("/readyz answers %s: %s", resp.Status, why)
	}
	return nil
}

// log is the file of all that the processes of a replica write.
func (b *bot) log() string { return b.data + ".log" }

// said returns the end of it.
func (b *bot) said() string {
	text, err := os.ReadFile(b.log())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-4<<10):]))
}
