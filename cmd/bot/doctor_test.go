package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/doctor"
)

func TestDoctorTellsByItsExitCode(t *testing.T) {
	free := "LISTEN_ADDR=127.0.0.1:0"
	well := bot(t, []string{free}, "doctor", "--offline", "--json")
	var report doctor.Report
	if err := json.Unmarshal([]byte(well.stdout), &report); err != nil || well.code != exitOK || report.Failed != 0 || report.OK == 0 || well.stderr != "" {
		t.Errorf("%v, code %d, %+v, stderr %q", err, well.code, report, well.stderr)
	}
	path := filepath.Join(t.TempDir(), "damaged.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database. ", 512)), 0o600); err != nil {
		t.Fatal(err)
	}
	ill := bot(t, []string{free, "DATABASE_URL=sqlite:" + path}, "doctor", "--offline")
	if ill.code != exitUnwell || !strings.Contains(ill.stdout, "✖ database: ") || !strings.Contains(ill.stdout, "fix: ") || !strings.Contains(ill.stdout, "1 failed") {
		t.Errorf("code %d\n%s%s", ill.code, ill.stdout, ill.stderr)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	addr := "LISTEN_ADDR=" + server.Listener.Addr().String()
	if taken := bot(t, []string{addr}, "doctor", "--offline"); taken.code != exitUnwell || !strings.Contains(taken.stdout, "is in use by another program") {
		t.Errorf("an address that is taken: code %d\n%s", taken.code, taken.stdout)
	}
	if bad := bot(t, []string{"TURN_TIMEOUT=5"}, "doctor"); bad.code != exitUsage || !strings.Contains(bad.stderr, "TURN_TIMEOUT") {
		t.Errorf("a configuration that cannot be read: code %d, %s", bad.code, bad.stderr)
	}
}

// The start writes. A database that can only be read refuses it, so the doctor may not find it well.
func TestDoctorTellsOfADatabaseThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.db")
	options := []string{"DATABASE_URL=sqlite:" + path, "LISTEN_ADDR=127.0.0.1:0"}
	if made := bot(t, options, "migrate", "up"); made.code != exitOK {
		t.Fatal(made.stderr)
	}
	if well := bot(t, options, "doctor", "--offline"); well.code != exitOK {
		t.Fatalf("code %d\n%s%s", well.code, well.stdout, well.stderr)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{3}, 18) // a format that SQLite only reads; root may write to files that nobody may
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	ill := bot(t, options, "doctor", "--offline")
	if ill.code != exitUnwell || !strings.Contains(ill.stdout, "✖ writes: ") || !strings.Contains(ill.stdout, "is read-only") {
		t.Errorf("code %d\n%s%s", ill.code, ill.stdout, ill.stderr)
	}
}
