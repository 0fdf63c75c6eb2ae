package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
)

// retakeRequest asks the running daemon to read its configuration again.
type retakeRequest struct {
	change change
	reply  chan<- retaken
	heard  <-chan struct{} // closed when the answer has been sent, or nobody waits for it
}

// retakes are such requests on their way; nil if the daemon cannot do that.
type retakes chan retakeRequest

// change is what somebody wrote into a file of options.
type change struct {
	EnvFile string            // absolute; the file, or empty if nothing was changed
	Sums    map[string]string // SHA-256 of the new values by their options: they may be secrets
}

func newChange(file string, values map[string]string) change {
	c := change{EnvFile: file, Sums: make(map[string]string, len(values))}
	for name, value := range values {
		c.Sums[name] = valueSum(value)
	}
	return c
}

func valueSum(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

type retaken struct {
	taken taken
	err   error
}

// taken is what a running daemon made of its configuration. It holds no value.
type taken struct {
	Life       string   // another one after a restart
	EnvFile    string   // absolute; the file that it reads
	Elsewhere  []string // of the options that were changed: those whose other value it takes from its flags or environment
	Restart    []string // options that differ and need a restart
	Restarting bool
}

// retake reads the configuration again, takes what a running process can, and says what
// is left. An error changes nothing, and neither does a change of a file that this process
// does not read.
func (d *daemon) retake(ctx context.Context, made change) (taken, error) {
	t := taken{Life: d.core.Owner(), EnvFile: absolute(d.env.EnvFile)}
	if made.EnvFile != "" && !sameFile(t.EnvFile, made.EnvFile) {
		return t, nil
	}
	next, err := d.env.Reload()
	if err != nil {
		return t, unusable(err)
	}
	_, t.Restart = d.current().Changes(next)
	if err := d.take(ctx, next); err != nil {
		return t, unusable(err)
	}
	for _, name := range slices.Sorted(maps.Keys(made.Sums)) {
		if text, _ := next.Text(name); next.Pinned(name) && valueSum(text) != made.Sums[name] {
			t.Elsewhere = append(t.Elsewhere, name)
		}
	}
	t.Restarting = len(t.Restart) > 0 && d.env.Restarts
	return t, nil
}

// unusable says what is wrong with a configuration that a daemon refuses.
func unusable(err error) error {
	if problems, ok := config.AsProblems(err); ok {
		return fault.Newf(fault.Invalid, "The running bot rejects its new configuration and keeps the earlier one: %s", strings.Join(problems, "; "))
	}
	return err
}

// serve answers tellDaemon.
func (r retakes) serve(w http.ResponseWriter, q *http.Request) {
	var made change
	if err := json.NewDecoder(http.MaxBytesReader(w, q.Body, maxCall)).Decode(&made); err != nil {
		localsocket.WriteError(w, fault.Newf(fault.Invalid, "The request does not say which options were changed: %v.", err))
		return
	}
	r.ask(q.Context(), made, func(t taken, err error) {
		if err != nil {
			localsocket.WriteError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(t)          // the other side may be gone
		_ = http.NewResponseController(w).Flush() // as above
	})
}

// ask has this process take a change, and answers before a restart that it may
// need. Nothing is answered when ctx has ended.
func (r retakes) ask(ctx context.Context, made change, answer func(t taken, err error)) {
	if r == nil {
		answer(taken{}, fault.New(fault.Unsupported, "The bot running here cannot reload its configuration: stop it and start it again."))
		return
	}
	reply, heard := make(chan retaken, 1), make(chan struct{})
	defer close(heard)
	select {
	case r <- retakeRequest{change: made, reply: reply, heard: heard}:
	case <-ctx.Done():
		return
	}
	select {
	case done := <-reply:
		answer(done.taken, done.err)
	case <-ctx.Done():
	}
}

// tellDaemon has the daemon on the data directory of cfg take its configuration anew.
// running is false if there is none. It is a fault.Invalid if the daemon refuses what it
// read, and goes on with what it had.
func tellDaemon(ctx context.Context, cfg config.Config, made change) (t taken, running bool, err error) {
	running, err = post(ctx, cfg, "configuration", made, func(answer io.Reader) error {
		return fault.Wrap(json.NewDecoder(answer).Decode(&t), fault.Internal, "read what the bot says")
	})
	return t, running, err
}

// restartWait is how long a restart may take besides SHUTDOWN_GRACE, and restartAsk how
// often it is looked for.
const (
	restartWait = 30 * time.Second
	restartAsk  = 200 * time.Millisecond
)

// awaitRestart waits until another life than the one that was told answers. It reports
// false if none does in time.
func awaitRestart(ctx context.Context, cfg config.Config, before string) bool {
	ctx, cancel := context.WithTimeout(ctx, cfg.ShutdownGrace+restartWait)
	defer cancel()
	for sleep(ctx, restartAsk) {
		if t, running, err := tellDaemon(ctx, cfg, change{}); err == nil && running && t.Life != before {
			return true
		}
	}
	return false
}

// sameFile reports whether two absolute paths name one file.
func sameFile(a, b string) bool {
	at, _ := filepath.EvalSymlinks(a) // what is not there has the name that it has
	bt, _ := filepath.EvalSymlinks(b)
	return cmp.Or(at, a) == cmp.Or(bt, b)
}
