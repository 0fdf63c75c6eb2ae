package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// child is the bot in a process of its own. A nil child is allowed everywhere.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	output *tail
	done   chan struct{} // closed when the process has ended
	err    error         // why it ended; read after done
}

// startChild starts the bot. Its end of input tells it to stop, so it ends with
// this process, however that ends.
func startChild(command, environ []string) (*child, error) {
	// No context: the run is ended by kill, after an orderly stop was tried.
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...) //nolint:gosec // our own program
	cmd.Env = environ
	output := &tail{limit: 16 << 10}
	cmd.Stdout, cmd.Stderr = output, output
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: start the bot: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: start the bot: %w", err)
	}
	c := &child{cmd: cmd, stdin: stdin, output: output, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = cmd.Wait()
	}()
	return c, nil
}

// stop lets the bot stop in order and waits for it.
func (c *child) stop(ctx context.Context) error {
	_ = c.stdin.Close() // a bot that has ended is seen below
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		return errors.New("bench: the bot did not stop in time\n" + c.output.String())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.err != nil {
		return fmt.Errorf("bench: the bot ended badly: %w\n%s", c.err, c.output.String())
	}
	return nil
}

// kill ends the process if it still runs.
func (c *child) kill() {
	if c == nil {
		return
	}
	select {
	case <-c.done:
	default:
		_ = c.cmd.Process.Kill() // it has ended by itself
		<-c.done
	}
}

func (c *child) memory() memory   { return processMemory(c.cmd.Process.Pid) }
func (c *child) cpu() processTime { return processCPU(c.cmd.Process.Pid) }

// tail keeps the end of what is written to it.
type tail struct {
	limit int

	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - t.limit; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
