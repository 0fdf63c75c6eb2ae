// Package storetest runs a test on every database the store supports: on SQLite
// always, on PostgreSQL in a throwaway cluster of the test binary or, with
// TEST_DATABASE_URL, on a server that is there already.
//
// Without PostgreSQL its half is skipped, with the reason; REQUIRE_POSTGRES=1
// makes that a failure. Main must be called from TestMain of every package that
// uses EachDialect or Postgres, because it is what stops the cluster.
package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"remote-agent/internal/store"
)

// Main runs the tests of a package, stops the cluster and returns the exit code,
// which is not zero either if goroutines are left over:
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
func Main(m *testing.M) int {
	defer shared.stop()
	code := m.Run()
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err) //nolint:errcheck // there is nowhere else to say it
		return 1
	}
	return 0
}

// EachDialect runs test as a subtest on each database. open returns a store with
// the current schema; several calls in one test open the same database, and all
// stores are closed when the test ends.
func EachDialect(t *testing.T, test func(t *testing.T, open func(t testing.TB) *store.Store)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, SQLite(t))
	})
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Postgres(t))
	})
}

// SQLite returns an opener of one fresh SQLite database. Its second and later
// stores do not take the lock file.
func SQLite(t testing.TB) func(t testing.TB) *store.Store {
	t.Helper()
	dir, opened := t.TempDir(), false
	SQLiteFile(t, dir)
	return func(t testing.TB) *store.Store {
		t.Helper()
		options := store.Options{DataDir: dir, Exclusive: !opened}
		opened = true
		return Open(t, options)
	}
}

// SQLiteFile puts a database with the current schema and nothing else where a
// store with this DataDir has its own. It creates the directory.
func SQLiteFile(t testing.TB, dataDir string) {
	t.Helper()
	content, err := migratedFile()
	if err != nil {
		t.Fatalf("making the template: %v", err)
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dataDir, sqliteName), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

const sqliteName = "bot.db" // what the store calls it

// migratedFile returns the content of a database with the current schema. It is
// made once, because migrating costs more than most tests.
var migratedFile = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "botlite")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx := context.Background() // of all tests of the binary
	s, err := store.Open(ctx, store.Options{DataDir: dir, Log: slog.New(slog.DiscardHandler), Exclusive: true})
	if err != nil {
		return nil, err
	}
	_, err = s.Migrate(ctx)
	// The last connection that is closed brings the write-ahead log into the file.
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, sqliteName+"-wal")); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the write-ahead log of a closed store is still there: %w", err)
	}
	return os.ReadFile(filepath.Join(dir, sqliteName)) //nolint:gosec // a file of its own
})

// Postgres returns an opener of one fresh PostgreSQL database. It skips the test
// if there is no server to be had.
func Postgres(t testing.TB) func(t testing.TB) *store.Store {
	t.Helper()
	address := patient(t, PostgresMigratedURL(t))
	return func(t testing.TB) *store.Store {
		t.Helper()
		return Open(t, store.Options{URL: address, Exclusive: true})
	}
}

// patient is the address of a database whose server lets a transaction be idle for as long as
// a test under the race detector may need on a busy machine.
func patient(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	params := u.Query()
	params.Set("idle_in_transaction_session_timeout", "5min")
	u.RawQuery = params.Encode()
	return u.String()
}

// NoPostgres returns why there is no server for tests on PostgreSQL, which are then
// skipped, or nil.
func NoPostgres() error {
	_, err := shared.url()
	return err
}

// PostgresMigratedURL is PostgresURL, but with the current schema in the
// database.
func PostgresMigratedURL(t testing.TB) string {
	t.Helper()
	return postgres(t, shared.migrated)
}

// PostgresURL creates an empty database that is dropped when the test ends, and
// returns its DATABASE_URL. It skips the test if there is no server to be had.
func PostgresURL(t testing.TB) string {
	t.Helper()
	return postgres(t, func(testing.TB, string) string { return "template0" })
}

// PostgresURLIn is PostgresURL, but the database has an encoding of its own.
func PostgresURLIn(t testing.TB, encoding string) string {
	t.Helper()
	return postgres(t, func(testing.TB, string) string {
		return "template0 ENCODING '" + encoding + "' LC_COLLATE 'C' LC_CTYPE 'C'"
	})
}

// postgres creates a database as a copy of the one that template returns.
func postgres(t testing.TB, template func(t testing.TB, base string) string) string {
	t.Helper()
	base, err := shared.url()
	if err != nil {
		if os.Getenv("REQUIRE_POSTGRES") == "1" {
			t.Fatalf("REQUIRE_POSTGRES=1, but no PostgreSQL: %v", err)
		}
		t.Skipf("no PostgreSQL: %v", err)
	}
	name := fmt.Sprintf("bot_test_%d_%d", os.Getpid(), shared.databases.Add(1))
	admin(t, base, "CREATE DATABASE "+name+" TEMPLATE "+template(t, base)+shared.copying)
	t.Cleanup(func() { admin(t, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return withDatabase(t, base, name)
}

// migrated returns a database with the current schema and nothing else. It is
// made once, because migrating costs more than most tests.
func (c *server) migrated(t testing.TB, base string) string {
	t.Helper()
	c.templateOnce.Do(func() {
		name := fmt.Sprintf("bot_test_%d_template", os.Getpid())
		admin(t, base, "CREATE DATABASE "+name+" TEMPLATE template0"+c.copying)
		c.template = name
		ctx := context.WithoutCancel(t.Context())
		s, err := store.Open(ctx, store.Options{URL: withDatabase(t, base, name), Log: Log(t)})
		if err != nil {
			t.Fatalf("opening the template: %v", err)
		}
		_, err = s.Migrate(ctx)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatalf("migrating the template: %v", err)
		}
	})
	if c.template == "" {
		t.Fatal("there is no template database; see the first test that failed")
	}
	return c.template
}

func admin(t testing.TB, url, statement string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("connecting to PostgreSQL: %v", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // the statement has been answered
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Open returns a store that logs to the test, unless options say otherwise, and is closed
// when the test ends. It does not ask for migrations: a copy of a template has the schema,
// and asking once more took a tenth of the tests' time.
func Open(t testing.TB, options store.Options) *store.Store {
	t.Helper()
	options.Log = cmp.Or(options.Log, Log(t))
	s, err := store.Open(t.Context(), options)
	if err != nil {
		t.Fatalf("opening the store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	return s
}

// Log returns a logger that writes to the test's log, warnings and above.
func Log(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// WithVectors skips a test if the PostgreSQL server of a store has no pgvector;
// REQUIRE_PGVECTOR=1 makes that a failure.
func WithVectors(t testing.TB, s *store.Store) {
	t.Helper()
	state, err := s.Vectors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case state.Ready:
	case os.Getenv("REQUIRE_PGVECTOR") == "1":
		t.Fatalf("REQUIRE_PGVECTOR=1, but no pgvector: %+v", state)
	default:
		t.Skip("the PostgreSQL server has no pgvector")
	}
}
