// Package sandbox runs a program that must not see or change more than it was
// given: the commands of the bash tool, and external coding agents.
//
// On Linux the program is started by a helper, which is this program executed
// again (see RunIfHelper). The helper takes away what the kernel lets an ordinary
// process take away: files that were not granted, the network, other processes,
// privileges, and resources beyond the limits. Which of that holds is found out
// once, by New, and told by Runner.Level. Whatever the level, the program gets an
// environment made from a list, and its whole tree is ended with it; Level.Tree
// says whether a process that fights against that could win.
//
// What it does not do: it does not bound the sum of all files that a program
// writes into the directories it may write, and a program that may use the
// network reaches every address that the daemon reaches.
package sandbox

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"remote-agent/internal/fault"
)

// Mode says how much confinement is asked for.
type Mode string

// The modes.
const (
	// Off confines nothing. The environment, the limits and the end of the whole
	// process tree are as in the other modes.
	Off Mode = "off"
	// Best uses everything that the system offers, and runs programs in any case.
	Best Mode = "best"
	// Strict refuses to run anything unless every promise of Level holds.
	Strict Mode = "strict"
)

// Config is what New needs.
type Config struct {
	Mode Mode // empty: Best

	// Self is the program that calls RunIfHelper first in its main; empty: the
	// running one.
	Self string

	Log *slog.Logger // nil: none

	// Dir is a directory of the Runner alone, for the private home and temporary
	// files of each program. New removes what an earlier process left there.
	// Empty: a new one in /tmp, which Close removes.
	Dir string

	// ReadOnly are files and directories that every program may read and execute
	// besides those of the system, such as a toolchain. Missing ones are left out.
	ReadOnly []string

	// Hidden are files and directories that no program may see, even where they
	// lie within a directory that is granted: the data directory, the .env file.
	// What lies in one of them can be granted only from a Grantable area. Only a
	// Level whose Files is true keeps this promise.
	Hidden []string

	// Grantable are the areas in Hidden directories from which grants are made,
	// such as that of the worktrees. The more specific of an area and a hidden path
	// counts.
	Grantable []Area

	// Without names parts of the system that are not used although they may be
	// there, as on one that lacks them: "namespaces", "pids", "net". For tests.
	Without []string

	// Env looks up a variable of the daemon's environment; nil: there is none.
	// PATH is always passed on, and so are the language and the time zone.
	Env func(name string) (value string, ok bool)

	// AllowedEnv names further variables that are passed on.
	AllowedEnv []string

	// Limits are those of every program that asks for no others.
	Limits Limits
}

// Area is a directory of which what is below may be granted, as it is: no link on
// the way is followed.
type Area struct {
	Dir   string
	Write bool // also for writing
}

// Runner runs programs. It is safe for concurrent use. Close it when done.
type Runner struct {
	cfg   Config
	self  string
	log   *slog.Logger
	dir   string
	owned bool // dir is removed by Close
	level Level

	system []string // what every program may read and execute
}

// New finds out what can be confined here, for which it starts the helper once or
// a few times. The error is fault.Invalid for a wrong Config, and
// fault.Unsupported if the mode is Strict and the full level is out of reach.
func New(cfg Config) (*Runner, error) {
	cfg.Mode = cmp.Or(cfg.Mode, Best)
	if cfg.Mode != Off && cfg.Mode != Best && cfg.Mode != Strict {
		return nil, fault.Newf(fault.Invalid, "SANDBOX is %q; use strict, best or off.", string(cfg.Mode))
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Env == nil {
		cfg.Env = func(string) (string, bool) { return "", false }
	}
	for _, p := range append(append([]string(nil), cfg.ReadOnly...), cfg.Hidden...) {
		if !filepath.IsAbs(p) {
			return nil, fault.Newf(fault.Invalid, "The path %q of the sandbox is not absolute.", p)
		}
	}
	for _, p := range cfg.ReadOnly {
		if err := fixedGrant(p, cfg.Hidden); err != nil {
			return nil, err
		}
	}
	r := &Runner{cfg: cfg, self: cfg.Self, log: cfg.Log}
	r.self = cmp.Or(r.self, defaultSelf)
	if err := r.makeDir(); err != nil {
		return nil, err
	}
	level, err := r.detect()
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.level = level
	if cfg.Mode == Strict && !r.level.Full() {
		return nil, errors.Join(refuse(level), r.Close())
	}
	r.log.Info("the sandbox is ready", "mode", string(cfg.Mode), "full", r.level.Full(), "level", r.level.String())
	return r, nil
}

// refuse is the answer of the mode Strict.
func refuse(l Level) error {
	return fault.Newf(fault.Unsupported,
		"SANDBOX=strict refuses to run tools here, because the sandbox is incomplete: %s. Use SANDBOX=best to run them with less protection.",
		strings.Join(l.missing(), "; "))
}

// makeDir makes the Runner's own directory, or empties the one that is there.
func (r *Runner) makeDir() error {
	const doing = "making the directory of the sandbox"
	if r.cfg.Dir == "" {
		dir, err := os.MkdirTemp(temporary, "sandbox-")
		if err != nil {
			return fault.Wrap(err, fault.Internal, doing)
		}
		r.dir, r.owned = dir, true
	} else {
		if !filepath.IsAbs(r.cfg.Dir) {
			return fault.Newf(fault.Invalid, "The directory %q of the sandbox is not absolute.", r.cfg.Dir)
		}
		if err := os.MkdirAll(r.cfg.Dir, 0o700); err != nil {
			return fault.Wrap(err, fault.Internal, doing)
		}
		r.dir = r.cfg.Dir
	}
	resolved, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		return fault.Wrap(err, fault.Internal, doing)
	}
	r.dir = resolved
	left, err := fs.Glob(os.DirFS(r.dir), runPrefix+"*")
	if err != nil {
		return fault.Wrap(err, fault.Internal, doing)
	}
	for _, old := range left {
		if err := removeTree(filepath.Join(r.dir, old)); err != nil {
			r.log.Warn("an old directory of the sandbox stays", "path", old, "err", err)
		}
	}
	return nil
}

// Level says what holds for the programs of this Runner.
func (r *Runner) Level() Level { return r.level }

// Close removes the Runner's own directory. Programs that still run lose their
// temporary files.
func (r *Runner) Close() error {
	if !r.owned {
		return nil
	}
	return fault.Wrap(removeTree(r.dir), fault.Internal, "removing the directory of the sandbox")
}

const runPrefix = "run-"

// runDir makes the private directory of one program: home, temporary files, and
// the place where its view of the file system is mounted.
func (r *Runner) runDir() (string, error) {
	dir, err := os.MkdirTemp(r.dir, runPrefix)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"home", "tmp", "shm", "root"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return "", errors.Join(err, removeTree(dir))
		}
	}
	return dir, nil
}

// removeTree removes a directory, also one in which directories are not writable,
// as in the module cache of Go.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	root, rootErr := os.OpenRoot(dir) // so that no link leads out of it
	if rootErr != nil {
		return errors.Join(err, rootErr)
	}
	_ = openUp(root)
	_ = root.Close()
	return os.RemoveAll(dir)
}

// openUp makes all directories below root writable for us.
func openUp(root *os.Root) error {
	list, err := root.Open(".")
	if err != nil {
		return err
	}
	entries, err := list.ReadDir(-1)
	_ = list.Close()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		_ = root.Chmod(e.Name(), 0o700)
		child, err := root.OpenRoot(e.Name())
		if err != nil {
			return err
		}
		err = openUp(child)
		_ = child.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// newMarker is a name that no other process has in its environment.
func newMarker() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
