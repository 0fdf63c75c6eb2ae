package main

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // to change a row as somebody with a shell would
)

func TestFinding7TheAuditFromTheCommandLine(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	environ := []string{"DATA_DIR=" + data}
	run := func(code int, want string, args ...string) string {
		t.Helper()
		r := bot(t, environ, args...)
		if r.code != code || !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("bot %s: code %d, want %d with %q\n%s%s", strings.Join(args, " "), r.code, code, want, r.stdout, r.stderr)
		}
		return r.stdout
	}
	run(exitUsage, "There is no database", "audit", "verify")
	run(exitOK, "applied", "migrate", "up")
	run(exitOK, "sound: 0 rows", "audit", "verify")
	run(exitOK, "an owner now", "owner", "add", "telegram/42")
	run(exitOK, "can no longer use", "person", "remove", "telegram/7")
	run(exitOK, "Halted", "halt")
	for _, c := range []struct {
		args []string
		want []string // the actions of the rows
	}{
		{nil, []string{"owner.add", "person.remove", "service.halt"}},
		{[]string{"--action", "person"}, []string{"person.remove"}},
		{[]string{"--action", "owner.add"}, []string{"owner.add"}},
		{[]string{"--action", "owne"}, nil},
		{[]string{"--actor", "cli", "--limit", "2"}, []string{"person.remove", "service.halt"}},
		{[]string{"--actor", "telegram/42"}, nil},
		{[]string{"--since", "7d", "--json"}, []string{"owner.add", "person.remove", "service.halt"}},
	} {
		out := run(exitOK, "", append([]string{"audit", "list"}, c.args...)...)
		var got []string
		for line := range strings.Lines(out) {
			got = append(got, regexp.MustCompile(`(owner|person|service)\.[a-z]+`).FindString(line))
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("audit list %v: %q, want %q", c.args, out, c.want)
		}
	}
	run(exitOK, "nothing found", "audit", "list", "--actor", "telegram/42")
	run(exitUsage, "is not the id of a conversation", "audit", "list", "--conversation", "nosuch")
	run(exitUsage, "--limit is from 1", "audit", "list", "--limit", "0")
	run(exitUsage, "--since", "audit", "list", "--since", "soon")
	run(exitUsage, "in the future", "audit", "list", "--since", "2999-01-01")
	run(exitUsage, "use a row and its hash", "audit", "verify", "--expect", "3")
	head := regexp.MustCompile(`the end is (3:[0-9a-f]{64})`).FindStringSubmatch(run(exitOK, "sound: 3 rows", "audit", "verify"))
	if head == nil {
		t.Fatal("verify does not print the end of the chain")
	}
	run(exitOK, "sound: 3 rows", "audit", "verify", "--expect", head[1])
	run(exitFailed, "breaks at row 9: it is missing", "audit", "verify", "--expect", "9"+head[1][1:])

	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test's own
	for _, statement := range []string{`DROP TRIGGER audit_log_no_update`, `UPDATE audit_log SET target = 'telegram/8' WHERE seq = 2`} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	run(exitFailed, "breaks at row 2: person.remove by cli", "audit", "verify")
	if r := bot(t, environ, "audit", "verify"); strings.Count(r.stderr, "breaks at row 2") != 1 {
		t.Errorf("it is not said once: %s", r.stderr)
	}
}
