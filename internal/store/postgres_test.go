package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
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

func openURL(t *testing.T, address string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: address, Log: storetest.Log(t), Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
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
