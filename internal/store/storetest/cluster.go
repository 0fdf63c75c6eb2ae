package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/waittest"
)

// shared is the cluster of this test binary. It is a variable because tests of a
// package have nothing else in common; Main stops it.
var shared cluster

// cluster is a throwaway PostgreSQL server. It listens on a Unix socket only, in
// a directory that nobody else can enter, so it needs no password and no port.
type cluster struct {
	databases atomic.Int64

	once    sync.Once
	base    string // URL of its postgres database
	copying string // how CREATE DATABASE copies; empty for the server's own way
	dir     string
	server  *exec.Cmd
	err     error

	templateOnce sync.Once
	template     string // name of the migrated database
}

// url starts the cluster the first time and returns the address of a database
// from which others can be created.
func (c *cluster) url() (string, error) {
	c.once.Do(func() {
		if c.base = os.Getenv("TEST_DATABASE_URL"); c.base != "" {
			return
		}
		if c.err = c.start(); c.err != nil {
			c.stop()
		}
	})
	return c.base, c.err
}

func (c *cluster) start() error {
	bin, err := findBinaries()
	if err != nil {
		return err
	}
	// Short, because a Unix socket's path may have only 107 bytes.
	if c.dir, err = os.MkdirTemp(scratch(), "botpg"); err != nil {
		return err
	}
	who, err := unprivileged()
	if err != nil {
		return err
	}
	if who != nil {
		if err := os.Chown(c.dir, int(who.Uid), int(who.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(c.dir, "data")
	initdb := command(who, c.dir, filepath.Join(bin, "initdb"),
		"-D", data, "-U", "bot", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	// Since 15 a new database goes page by page through the log unless it is told
	// otherwise, which costs many times the tests that it is made for.
	if version, err := os.ReadFile(filepath.Join(data, "PG_VERSION")); err != nil { //nolint:gosec // of initdb
		return err
	} else if n, _ := strconv.Atoi(strings.TrimSpace(string(version))); n >= 15 {
		c.copying = " STRATEGY file_copy"
	}
	// The server itself and not pg_ctl: it is then a child of the test, which dies
	// with it.
	c.server = command(who, c.dir, filepath.Join(bin, "postgres"), "-D", data, "-k", c.dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
		"-c", "max_connections=400", "-c", "shared_buffers=32MB", "-c", "log_min_messages=panic",
		"-c", "log_destination=stderr", "-c", "logging_collector=off")
	if err := c.server.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	c.base = "postgres://bot@/postgres?host=" + url.QueryEscape(c.dir)
	return c.await()
}

// await waits until the server says in its own file that it is ready.
func (c *cluster) await() error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(waittest.Scaled(30 * time.Second))
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

// stop ends the server without ceremony, its data is thrown away, and removes
// its directory.
func (c *cluster) stop() {
	if c.server == nil && c.template != "" { // on somebody else's server
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if conn, err := pgx.Connect(ctx, c.base); err == nil {
			_, _ = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+c.template+" WITH (FORCE)")
			_ = conn.Close(ctx)
		}
	}
	if c.server != nil && c.server.Process != nil {
		_ = c.server.Process.Signal(syscall.SIGQUIT) // immediate shutdown, children included
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
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

// command runs a program of PostgreSQL, as another user if who is not nil. The
// kernel ends it if the test is killed before it can.
func command(who *syscall.Credential, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = childAttr(who)
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
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	return dirs[0], nil
}

func withDatabase(t testing.TB, base, name string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal("TEST_DATABASE_URL is not a URL")
	}
	u.Path = "/" + name
	return u.String()
}
