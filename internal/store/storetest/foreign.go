package storetest

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
)

// EachForeign runs test as a subtest for each kind of database that another
// program can have. create makes one by running statements of SQL and returns
// where it is, as an option of the command line names it.
func EachForeign(t *testing.T, test func(t *testing.T, create func(t testing.TB, statements string) string)) {
	t.Helper()
	t.Run("from SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, ForeignSQLite)
	})
	t.Run("from Postgres", func(t *testing.T) {
		t.Parallel()
		test(t, ForeignPostgres)
	})
}

// ForeignSQLite makes an SQLite file by running statements, and returns its path.
func ForeignSQLite(t testing.TB, statements string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statements)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatalf("making another program's SQLite file: %v", err)
	}
	return name
}

// ForeignPostgres makes a PostgreSQL database by running statements, and returns
// its address. It skips the test if there is no server to be had.
func ForeignPostgres(t testing.TB, statements string) string {
	t.Helper()
	url := PostgresURL(t)
	admin(t, url, statements)
	return url
}
