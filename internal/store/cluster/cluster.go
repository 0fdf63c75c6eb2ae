//go:build unix

// Package cluster runs throwaway PostgreSQL servers: for tests of the store, and for
// those who try the whole program on one. A server listens on a Unix socket only, in a
// directory that nobody else can enter, so it needs no password and no port. It ends
// with the process that started it.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"remote-agent/internal/order"
)

// Cluster is a running server. Its methods may not be called concurrently.
type Cluster struct {
	dir, bin string
	who      *syscall.Credential
	settings []string
	version  int
	server   *exec.Cmd
	patience time.Duration
}

// Start makes a cluster in a temporary directory and starts it. Settings are those of
// postgresql.conf, such as "fsync=off"; patience is how long its start may take. The
// error says what is missing if there is no PostgreSQL here.
func Start(patience time.Duration, settings ...string) (*Cluster, error) {
	c := &Cluster{settings: settings, patience: patience}
	err := c.create()
	if err == nil {
		err = c.start()
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// URL is the address of the database "postgres", in which others can be created.
func (c *Cluster) URL() string { return "postgres://bot@/postgres?host=" + url.QueryEscape(c.dir) }

// Version is the main version of the server.
func (c *Cluster) Version() int { return c.version }

func (c *Cluster) create() (err error) {
	if c.bin, err = findBinaries(); err != nil {
		return err
	}
	// Short, because a Unix socket's path may have only 107 bytes.
	if c.dir, err = os.MkdirTemp(scratch(), "botpg"); err != nil {
		return err
	}
	if c.who, err = unprivileged(); err != nil {
		return err
	}
	if c.who != nil {
		if err := os.Chown(c.dir, int(c.who.Uid), int(c.who.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(c.dir, "data")
	initdb := c.command("initdb", "-D", data, "-U", "bot", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	version, err := os.ReadFile(filepath.Join(data, "PG_VERSION")) //nolint:gosec // of initdb
	if err != nil {
		return err
	}
	c.version, _ = strconv.Atoi(strings.TrimSpace(string(version)))
	return nil
}

// start starts the server itself and not pg_ctl: it is then a child of this process,
// which dies with it.
func (c *Cluster) start() error {
	args := []string{
		"-D", filepath.Join(c.dir, "data"), "-k", c.dir,
		"-c", "listen_addresses=", "-c", "log_min_messages=panic", "-c", "log_destination=stderr", "-c", "logging_collector=off",
	}
	for _, s := range c.settings {
		args = append(args, "-c", s)
	}
	c.server = c.command("postgres", args...)
	if err := c.server.Start(); err != nil {
		c.server = nil
		return fmt.Errorf("start postgres: %w", err)
	}
	return c.await()
}

// Restart ends the server at once, as a crash does, and starts it again.
func (c *Cluster) Restart() error {
	c.quit()
	return c.start()
}

// Stop ends the server at once and removes all of it. It may be called more than once,
// and on nil.
func (c *Cluster) Stop() {
	if c == nil {
		return
	}
	c.quit()
	if c.dir != "" {
		_ = os.RemoveAll(c.dir) // a temporary directory
	}
}

// quit is an immediate shutdown, children included.
func (c *Cluster) quit() {
	if c.server == nil {
		return
	}
	_ = c.server.Process.Signal(syscall.SIGQUIT) // it may be gone already
	ended := make(chan struct{})
	go func() { _ = c.server.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = c.server.Process.Kill()
		<-ended
	}
	c.server = nil
}

// await waits until the server says in its own file that it is ready.
func (c *Cluster) await() error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(c.patience)
	for {
		status, _ := os.ReadFile(filepath.Join(c.dir, "data", "postmaster.pid"))
		lines := strings.Split(string(status), "\n")
		if len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready" {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return errors.New("postgres did not start in time")
		}
	}
}

// command runs a program of PostgreSQL, as another user if who is not nil. The
// kernel ends it if the test is killed before it can.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), filepath.Join(c.bin, name), args...) //nolint:gosec // of PostgreSQL
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + c.bin + ":/usr/bin:/bin", "HOME=" + c.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = childAttr(c.who)
	return cmd
}

// unprivileged returns whom to run PostgreSQL as: it refuses to run as root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("running as root, and there is no user postgres or nobody to run PostgreSQL as")
}

// findBinaries returns the directory with initdb and postgres: that of the PATH,
// else the newest version where Debian puts them.
func findBinaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), "postgres")); err == nil {
				return filepath.Dir(path), nil
			}
		}
	}
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(dirs) == 0 {
		return "", errors.New("no initdb in the PATH or in /usr/lib/postgresql/*/bin")
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	order.By(dirs, func(a, b string) int { return version(b) - version(a) })
	return dirs[0], nil
}
