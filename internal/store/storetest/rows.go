package storetest

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"
)

// Reader is a way to read beside a store.
type Reader struct{ db *sql.DB }

// NewReader reads the SQLite file of a store with this DataDir, which may be open meanwhile.
// It is closed when the test ends.
func NewReader(t testing.TB, dataDir string) *Reader {
	t.Helper()
	params := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dataDir, sqliteName)+"?"+params.Encode())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the reader: %v", err)
		}
	})
	return &Reader{db}
}

// Rows returns the rows of a query. NULL is "-".
func (r *Reader) Rows(t testing.TB, query string, args ...any) [][]string {
	t.Helper()
	rows, err := r.db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close() //nolint:errcheck // Err tells
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		row := make([]string, len(columns))
		for i, v := range values {
			if row[i] = v.String; !v.Valid {
				row[i] = "-"
			}
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}
