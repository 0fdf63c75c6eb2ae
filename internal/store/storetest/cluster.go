package storetest

import (
	"context"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/store/cluster"
	"remote-agent/internal/waittest"
)

// shared is the server of this test binary. It is a variable because tests of a
// package have nothing else in common; Main stops it.
var shared server

// server is where the databases of tests are.
type server struct {
	databases atomic.Int64

	once    sync.Once
	base    string // URL of its postgres database
	copying string // how CREATE DATABASE copies; empty for the server's own way
	own     *cluster.Cluster
	err     error

	templateOnce sync.Once
	template     string // name of the migrated database
}

// url starts a cluster the first time and returns the address of a database from
// which others can be created.
func (c *server) url() (string, error) {
	c.once.Do(func() {
		if c.base = os.Getenv("TEST_DATABASE_URL"); c.base != "" {
			return
		}
		c.own, c.err = cluster.Start(waittest.Scaled(30*time.Second),
			"fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=400", "shared_buffers=32MB")
		if c.err != nil {
			return
		}
		c.base = c.own.URL()
		// Since 15 a new database goes page by page through the log unless it is told
		// otherwise, which costs many times the tests that it is made for.
		if c.own.Version() >= 15 {
			c.copying = " STRATEGY file_copy"
		}
	})
	return c.base, c.err
}

// stop ends the cluster; on somebody else's server it removes the template.
func (c *server) stop() {
	if c.own == nil && c.template != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if conn, err := pgx.Connect(ctx, c.base); err == nil {
			_, _ = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+c.template+" WITH (FORCE)")
			_ = conn.Close(ctx)
		}
	}
	c.own.Stop()
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
