package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"remote-agent/internal/child"
	"remote-agent/internal/emulator"
)

// bot is a replica of the program: one process after the other with the same address
// and the same data.
type bot struct {
	run              *run
	name, addr, data string
	profiles         string // where Go's profiles are; empty: nowhere

	process *child.Process // nil before the first start
	started time.Time
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
	env = append(env, b.run.platform.environ()...)
	env = append(env, b.run.opts.Environ...)
	return append(env, b.run.opts.With...) // the last one counts
}

func (b *bot) start() error {
	command := b.run.opts.Command
	if b.profiles != "" {
		command = append(slices.Clip(command), "--pprof-addr", b.profiles)
	}
	process, err := child.Start(b.run.dir, b.data+".log", b.environ(), command...)
	if err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	b.process, b.started = process, time.Now()
	b.run.report.Starts++
	b.run.relay.use(b.addr)
	return nil
}

func (b *bot) ended() bool { return b.process == nil || b.process.Ended() }

// kill ends the process as nothing can prevent.
func (b *bot) kill() {
	if b.process != nil {
		b.process.Kill()
	}
}

// prepare runs a command while the process stands still, if there is one: what it does
// to the data belongs to the kill that follows.
func (b *bot) prepare(command string) error {
	if command == "" {
		return nil
	}
	if err := b.freeze(); err != nil {
		return fmt.Errorf("%s cannot be stopped before the kill: %w", b.name, err)
	}
	hook, err := child.Start(b.run.dir, b.run.dir+"/on-kill.log", b.run.opts.Environ, command, b.data)
	if err != nil {
		return fmt.Errorf("what is to be done before a kill: %w", err)
	}
	<-hook.Done()
	if err := hook.Err(); err != nil {
		return fmt.Errorf("what is to be done before a kill: %w: %s", err, hook.Said())
	}
	return nil
}

// stop ends the process in order.
func (b *bot) stop() error {
	if err := b.process.Stop(stopsWithin); err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
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
			return fmt.Errorf("%s: %w", b.name, b.process.Early())
		}
		err := b.askReady(ctx)
		if err == nil {
			return nil
		}
		if emulator.Sleep(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("%s is not ready: %w\n%s", b.name, err, b.process.Said())
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
