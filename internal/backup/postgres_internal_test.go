package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/fault"
)

// What is in the arguments of a program, everybody on the machine can read: the password of
// an address goes another way, wherever it stands. What only this program understands goes
// nowhere.
func TestAnAddressWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for given, want := range map[string][2]string{
		"postgres://bot:hunter2@db:5432/bot?sslmode=require":                                       {"postgres://bot@db:5432/bot?sslmode=require", "hunter2"},
		"postgres://bot@db/bot?password=hunter2":                                                   {"postgres://bot@db/bot", "hunter2"},
		"postgres://bot@db/bot?pool_max_conns=9&application_name=a+b&default_query_exec_mode=exec": {"postgres://bot@db/bot?application_name=a%20b", ""},
		// What is a setting of the session to this program is an unknown parameter to those of PostgreSQL.
		"postgres://bot@db/bot?search_path=mine":                                   {"postgres://bot@db/bot?options=-c%20search_path%3Dmine", ""},
		"postgres://bot@db/bot?options=-c%20jit%3Doff&statement_timeout=5%20s":     {"postgres://bot@db/bot?options=-c%20jit%3Doff%20-c%20statement_timeout%3D5%5C%20s", ""},
		"postgres://bot@db/bot?sslrootcert=ca.pem&target_session_attrs=read-write": {"postgres://bot@db/bot?sslrootcert=ca.pem&target_session_attrs=read-write", ""},
	} {
		address, password, err := Postgres{URL: given}.address()
		if address != want[0] || password != want[1] || err != nil {
			t.Errorf("%s: %s, %q, %v", given, address, password, err)
		}
	}
}

// A program may repeat its password when it complains.
func TestWhatAProgramSaysHasNoPassword(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	script := "#!/bin/sh\necho \"no login with $PGPASSWORD\" >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "pg_fails"), []byte(script), 0o700); err != nil { //nolint:gosec // it has to run
		t.Fatal(err)
	}
	err := Postgres{URL: "postgres://bot:hunter2@db/bot"}.run(t.Context(), "pg_fails")
	if err == nil || !strings.Contains(fault.Public(err), "no login with [redacted]") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error = %v", err)
	}
}
