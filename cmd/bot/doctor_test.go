package main

import (
	"encoding/json"
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
