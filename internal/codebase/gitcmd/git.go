// Package gitcmd runs git so that nothing but git runs, and so that git talks to
// nobody but the one host of the call.
//
// Repositories are hostile, and so is what an assistant writes into a worktree.
// Therefore: no shell and no hooks, no configuration from the system or the user,
// an environment that holds only what is listed here, credentials in the
// environment of the one process that needs them, network only through a proxy
// of this process that checks the address it dials, and an end to everything that
// takes too long or grows too large. It knows nothing of workspaces.
package gitcmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"remote-agent/internal/egress"
	"remote-agent/internal/fault"
)

const (
	// DefaultTimeout bounds a call that names no timeout.
	DefaultTimeout = 2 * time.Minute
	// DefaultOutput bounds the output of a call that names no bound.
	DefaultOutput = 64 << 20

	grace     = 3 * time.Second  // between SIGTERM and the end
	drain     = 30 * time.Second // for the output of a git that has ended; a busy machine needs seconds
	maxStderr = 32 << 10
)

// Config is what New needs. Every field may be zero.
type Config struct {
	Path string // of the git program; empty: the one in PATH
	Log  *slog.Logger

	// Resolve and Dial are for tests. They replace the system's resolver and
	// the dialer, which is given checked literal addresses only.
	Resolve egress.Resolver
	Dial    egress.Dialer
}

// Git runs git. It is safe for concurrent use. Close it when done.
type Git struct {
	path  string
	log   *slog.Logger
	proxy *egress.Proxy
}

// New finds git. If there is none, the error is of kind Unsupported.
func New(cfg Config) (*Git, error) {
	cfg.Path = cmp.Or(cfg.Path, "git")
	found, err := exec.LookPath(cfg.Path)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Unsupported, Public: "Git is not installed here, so repositories cannot be used.", Err: err}
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Git{path: found, log: log, proxy: egress.New(egress.Config{Resolve: cfg.Resolve, Dial: cfg.Dial})}, nil
}

// Close ends the proxy. Calls that use the network fail afterwards.
func (g *Git) Close() error { return g.proxy.Close() }

// Pair is a configuration variable with its value.
type Pair struct{ Key, Value string }

// SizeLimit ends a call when a directory grows beyond Max bytes.
type SizeLimit struct {
	Dir string
	Max int64
}

// Call is one run of git. Only Args is required.
type Call struct {
	// Args are the subcommand and its arguments. Whatever does not come from
	// this program goes behind "--" or is known to be an object name or ref.
	Args []string

	Dir      string // working directory of the process; empty: WorkTree, else the root directory
	GitDir   string // GIT_DIR; git then looks for no repository by itself
	WorkTree string // GIT_WORK_TREE
	Index    string // GIT_INDEX_FILE

	Stdin  io.Reader
	Config []Pair // goes before, and is overruled by, what this package sets
	Author *Author

	// Committer, if set, is who commits what Author wrote.
	Committer *Author

	Remote  *Endpoint // nil: no network
	Timeout time.Duration
	Size    *SizeLimit

	// Holds, if set, stays open until git and all that it started have ended, also if
	// this process dies before: a lock on the file is held for so long.
	Holds *os.File

	// MaxOutput bounds the output in bytes. Beyond it the call fails, or with
	// Truncate ends early without an error.
	MaxOutput int64
	Truncate  bool

	// Progress, if set, is given each line that git writes to stderr, from
	// another goroutine but never two at once, and never after Run returned.
	Progress func(line string)
}

// Author is who a commit is by, as author and, unless the call names one, as
// committer.
type Author struct{ Name, Email string }

// Output is what a call printed.
type Output struct {
	Data      []byte
	Truncated bool
}

// Run runs git and returns its output. It returns only when the process has
// ended; when the context ends, or a limit is hit, the whole process group is
// ended. The error is a *fault.Error around an *Error if git itself failed; no
// credential is in it.
func (g *Git) Run(ctx context.Context, c *Call) (Output, error) {
	limit := c.MaxOutput
	if limit <= 0 {
		limit = DefaultOutput
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, stop := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	env, grant, err := g.environment(c)
	if err != nil {
		return Output{}, err
	}
	defer grant.End()

	stdout := &limited{limit: limit}
	stderr := &tail{line: c.Progress}
	cmd := g.command(ctx, c, env)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	start := time.Now()
	err = runWatched(ctx, cmd, c, fail)
	stderr.flush()
	if c.Remote != nil {
		g.log.DebugContext(ctx, "git used the network",
			"command", c.Args[0], "host", c.Remote.Address, "duration_ms", time.Since(start).Milliseconds(), "failed", err != nil)
	}
	out := Output{Data: stdout.buf.Bytes(), Truncated: stdout.over}
	if stdout.over && c.Truncate && context.Cause(ctx) == nil {
		return out, nil
	}
	if err == nil && !stdout.over {
		return out, nil
	}
	return out, explain(ctx, c, err, stdout.over, stderr.String(), grant)
}

func (g *Git) command(ctx context.Context, c *Call, env []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, g.path, c.Args...) //nolint:gosec // argv only, built by this program.
	cmd.Env = env
	cmd.Stdin = c.Stdin
	cmd.Dir = cmp.Or(c.Dir, c.WorkTree, string(filepath.Separator))
	ownGroup(cmd)
	if c.Holds != nil {
		holdOpen(cmd, c.Holds)
	}
	cmd.Cancel = func() error { return endGroup(cmd) }
	cmd.WaitDelay = drain
	return cmd
}

// runWatched runs cmd and, beside it, the watch over the size of a directory.
func runWatched(ctx context.Context, cmd *exec.Cmd, c *Call, fail context.CancelCauseFunc) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	if c.Index != "" {
		limitMemory(cmd.Process.Pid)
	}
	watched := make(chan struct{})
	done := make(chan struct{})
	go func() { // ends when done is closed, which is below
		defer close(watched)
		if c.Size != nil {
			watch(done, *c.Size, fail)
		}
	}()
	ended := make(chan struct{})
	go func() { // ends when done is closed, too
		defer close(ended)
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		select {
		case <-done:
		case <-time.After(grace):
			_ = killGroup(cmd)
		}
	}()
	err := cmd.Wait()
	close(done)
	<-watched
	<-ended
	if ctx.Err() != nil {
		// The leader is gone; this is for children that ignored SIGTERM.
		_ = killGroup(cmd)
	}
	return err
}

func watch(done <-chan struct{}, limit SizeLimit, fail context.CancelCauseFunc) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if DirSize(limit.Dir, limit.Max) > limit.Max {
				fail(errTooBig)
				return
			}
		}
	}
}

// DirSize adds up the sizes of the regular files below dir, without following
// links. It stops counting once the sum is above enough, if that is positive.
// What vanishes meanwhile counts nothing.
func DirSize(dir string, enough int64) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // vanished meanwhile
		}
		if d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		if enough > 0 && sum > enough {
			return filepath.SkipAll
		}
		return nil
	})
	return sum
}

// limited keeps the first bytes of what is written. Beyond the limit it returns
// an error, which closes the pipe and so ends git.
type limited struct {
	buf   bytes.Buffer
	limit int64
	over  bool
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.limit - int64(l.buf.Len()); int64(len(p)) > room {
		l.buf.Write(p[:room])
		l.over = true
		return int(room), io.ErrShortWrite
	}
	return l.buf.Write(p)
}

// tail keeps the end of what is written and reports its lines, which a carriage
// return ends too. Its Write is called by one goroutine, which has ended before
// the other methods are called.
type tail struct {
	line    func(string)
	kept    []byte
	partial []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxStderr; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	if t.line == nil {
		return len(p), nil
	}
	for _, b := range p {
		if b == '\n' || b == '\r' {
			t.flush()
		} else if len(t.partial) < 1024 {
			t.partial = append(t.partial, b)
		}
	}
	return len(p), nil
}

func (t *tail) flush() {
	if t.line != nil && len(t.partial) > 0 {
		t.line(string(t.partial))
		t.partial = t.partial[:0]
	}
}

func (t *tail) String() string { return string(t.kept) }

// Version returns the version of git as major*1000 + minor.
func (g *Git) Version(ctx context.Context) (int, error) {
	out, err := g.Run(ctx, &Call{Args: []string{"version"}})
	if err != nil {
		return 0, err
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out.Data), "git version %d.%d", &major, &minor); err != nil {
		return 0, fault.Wrap(err, fault.Unsupported, "reading the version of git "+strconv.Quote(string(out.Data)))
	}
	return major*1000 + minor, nil
}
