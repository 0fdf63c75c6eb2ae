package store_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// What an operator set for the database does not change how transactions see each other.
func TestADatabaseThatIsolatesMoreByDefault(t *testing.T) {
	t.Parallel()
	address := storetest.PostgresURL(t)
	administer(t, address, "ALTER DATABASE "+databaseOf(t, address)+" SET default_transaction_isolation = 'serializable'")
	s := openURL(t, address)
	err := s.InTx(t.Context(), func(tx *store.Tx) error {
		level, err := store.String(t.Context(), tx, `SHOW transaction_isolation`)
		if err == nil && level != "read committed" {
			err = fmt.Errorf("transactions are %s", level)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A database that lacks characters is refused before anything is made in it.
func TestADatabaseThatLacksCharactersIsRefused(t *testing.T) {
	t.Parallel()
	for encoding, refused := range map[string]bool{"LATIN1": true, "EUC_JP": true, "SQL_ASCII": false} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			s := openURL(t, storetest.PostgresURLIn(t, encoding))
			_, err := s.Migrate(t.Context())
			if !refused {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if said := fault.Public(err); !fault.Is(err, fault.Invalid) || !strings.Contains(said, "stores text as "+encoding) || !strings.Contains(said, "createdb -E UTF8 -T template0") {
				t.Errorf("%v", err)
			}
			if empty, err := s.IsEmpty(t.Context()); err != nil || !empty {
				t.Errorf("it is not untouched: %t, %v", empty, err)
			}
		})
	}
}

// Who runs the bot reads what its user lacks, and what to change.
func TestWhatTheUserOfTheDatabaseLacksIsSaid(t *testing.T) {
	t.Parallel()
	const stranger = "&role=pg_monitor" // may do nothing here
	for name, tt := range map[string]struct{ options, want string }{
		"no right to create": {stranger, `permission denied for schema public"; make the bot's user the owner of the database, or GRANT it`},
		"no schema":          {"&search_path=elsewhere", `no schema has been selected to create in"; create one that search_path names`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := storetest.PostgresURL(t)
			administer(t, address, "REVOKE CREATE ON SCHEMA public FROM PUBLIC") // as since PostgreSQL 15
			s := openURL(t, address+tt.options)
			_, err := s.Migrate(t.Context())
			said := fault.Public(s.Explain(err))
			if !strings.HasPrefix(said, "The database cannot be used: PostgreSQL says ") || !strings.Contains(said, tt.want) {
				t.Errorf("%s, want %s", said, tt.want)
			}
		})
	}
	t.Run("a right that was taken away", func(t *testing.T) {
		t.Parallel()
		s := openURL(t, storetest.PostgresMigratedURL(t)+stranger)
		err := s.CheckWrites(t.Context())
		if said := fault.Public(err); !fault.Passing(err) || !strings.Contains(said, `permission denied for table service_state"; make`) {
			t.Errorf("%v: %s", err, said)
		}
	})
}

// An operator who wants few connections gets a bot that starts.
func TestMigrateWithoutAConnectionToSpare(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Scaled(20*time.Second))
	defer cancel()
	if _, err := openURL(t, storetest.PostgresURL(t)+"&pool_max_conns=1").Migrate(ctx); err != nil {
		t.Error(err)
	}
}

// A replica waits while another one migrates, and goes on when that has ended.
func TestMigrateWaitsForAnotherMigration(t *testing.T) {
	t.Parallel()
	address := storetest.PostgresURL(t)
	other, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context()) //nolint:errcheck // was only a lock
	if _, err := other.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, lock.DefaultLockID); err != nil {
		t.Fatal(err)
	}
	s := openURL(t, address)
	migrated := make(chan error, 1)
	go func() {
		_, err := s.Migrate(t.Context())
		migrated <- err
	}()
	if _, err := other.Exec(t.Context(), `SELECT pg_sleep(1)`); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-migrated:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	if _, err := other.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, lock.DefaultLockID); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Error(err)
	}
}

// After a failover, a connection to the server that was demoted is not used again: the
// address may lead to the new one.
func TestAConnectionToAServerThatOnlyReadsIsDropped(t *testing.T) {
	t.Parallel()
	s := openURL(t, storetest.PostgresURL(t)+"&pool_max_conns=1")
	write := func() error {
		return s.InTx(t.Context(), func(tx *store.Tx) error {
			return store.Exec(t.Context(), tx, `CREATE TABLE written (n integer)`)
		})
	}
	err := s.InTx(t.Context(), func(tx *store.Tx) error {
		return store.Exec(t.Context(), tx, `SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY`)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := write(); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("the server that only reads: %v", err)
	}
	if err := write(); err != nil {
		t.Errorf("the next connection: %v", err)
	}
}

// A connection that ends in the middle of an upgrade fails it. Before, the start waited for ever,
// and so did the replicas behind it.
func TestAnUpgradeWhoseConnectionEndsFails(t *testing.T) {
	t.Parallel()
	s := openURL(t, storetest.PostgresMigratedURL(t))
	version := store.LatestSchema()
	store.AddMigrations(s, map[string]string{"90001_cut.sql": "-- +goose Up\nSELECT pg_terminate_backend(pg_backend_pid());\n-- +goose Down\n"})
	ended := make(chan error, 1)
	go func() {
		_, err := s.Migrate(t.Context())
		ended <- err
	}()
	select {
	case err := <-ended:
		wantKind(t, err, fault.Unavailable)
	case <-waittest.Late(t):
		t.Fatal("the upgrade does not end")
	}
	if now, err := s.SchemaVersion(t.Context()); err != nil || now != version {
		t.Errorf("the schema has version %d: %v", now, err)
	}
}

// A step that takes longer than the statements of a working bot may is made all the same.
func TestAnUpgradeMayTakeLongerThanAStatement(t *testing.T) {
	t.Parallel()
	address := storetest.PostgresMigratedURL(t)
	administer(t, address, `ALTER DATABASE "`+databaseOf(t, address)+`" SET statement_timeout = '2s'`)
	s := openURL(t, address)
	store.AddMigrations(s, map[string]string{"90001_long.sql": "-- +goose Up\nSELECT pg_sleep(2.5);\n-- +goose Down\n"})
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
}

// So is one that comes long after the step before, as on a busy machine.
func TestAnUpgradeMayBeIdleForLongerThanATransaction(t *testing.T) {
	t.Parallel()
	const idle = "-- +goose Up\nCREATE TABLE idle_limit AS SELECT current_setting('idle_in_transaction_session_timeout') AS lasts;\n-- +goose Down\n"
	for name, address := range map[string]string{"an empty database": storetest.PostgresURL(t), "a schema": storetest.PostgresMigratedURL(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openURL(t, address)
			store.AddMigrations(s, map[string]string{"90001_idle.sql": idle})
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantIdleLimit(t, s, `SELECT lasts FROM idle_limit`, "5min")
			wantIdleLimit(t, s, currentIdleLimit, "10s")
		})
	}
}

// The limit for idle transactions that an operator has put into the URL holds.
func TestAnOperatorsLimitForIdleTransactions(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(storetest.PostgresMigratedURL(t))
	if err != nil {
		t.Fatal(err)
	}
	chosen := u.Query()
	chosen.Set("idle_in_transaction_session_timeout", "42s")
	u.RawQuery = chosen.Encode()
	wantIdleLimit(t, openURL(t, u.String()), currentIdleLimit, "42s")
}

const currentIdleLimit = `SELECT current_setting('idle_in_transaction_session_timeout')`

func wantIdleLimit(t *testing.T, s *store.Store, query, want string) {
	t.Helper()
	var got string
	err := s.InRead(t.Context(), func(tx *store.Tx) (err error) {
		got, err = store.String(t.Context(), tx, query)
		return err
	})
	if err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", query, got, err, want)
	}
}

// Where a standby was given by mistake, the start says so, with a schema and without one.
func TestAnUpgradeOnAServerThatOnlyReadsSaysSo(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"empty": storetest.PostgresURL(t), "with a schema": storetest.PostgresMigratedURL(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			administer(t, address, `ALTER DATABASE "`+databaseOf(t, address)+`" SET default_transaction_read_only = on`)
			s := openURL(t, address)
			store.AddMigrations(s, map[string]string{"90001_one.sql": "-- +goose Up\nCREATE TABLE one (n integer);\n-- +goose Down\n"})
			_, err := s.Migrate(t.Context())
			wantKind(t, err, fault.Unavailable)
			if text := s.Explain(err).Error(); !strings.Contains(text, "the database server only reads; use the one that writes") {
				t.Errorf("an operator reads %q", text)
			}
		})
	}
}

func openURL(t *testing.T, address string) *store.Store {
	t.Helper()
	return storetest.Open(t, store.Options{URL: address, Exclusive: true})
}

func databaseOf(t *testing.T, address string) string {
	t.Helper()
	c, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	return c.Database
}

func administer(t *testing.T, address, statement string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx) //nolint:errcheck // the statement has been answered
	if _, err := c.Exec(ctx, statement); err != nil {
		t.Fatal(err)
	}
}
