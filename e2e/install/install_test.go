// Package install installs the package for Debian as an operator does, upgrades it
// over the data of an earlier version, and restores a backup of that version.
package install

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"database/sql"

	_ "modernc.org/sqlite" // the bot's database

	"remote-agent/e2e/internal/need"
	"remote-agent/e2e/internal/process"
)

const (
	unit = "/usr/lib/systemd/system/bot.service"
	env  = "/etc/bot/env"
	data = "/var/lib/bot"
)

func TestInstallUpgradeRestore(t *testing.T) {
	need.Disposable(t)
	if _, err := user.Lookup("bot"); err == nil {
		t.Skip("there is an account bot on this machine already")
	}
	older, newer := packages(t, "v0.9.0"), packages(t, "v0.9.1")
	t.Cleanup(func() {
		for _, args := range [][]string{{"dpkg", "--purge", "remote-agent"}, {"userdel", "bot"}} {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		}
		for _, dir := range []string{data, "/etc/bot"} {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}
	})

	run(t, "dpkg", "-i", older)
	checkFiles(t)
	s := service(t)
	address := process.FreeAddress(t)
	if err := os.WriteFile(env, []byte("LISTEN_ADDR="+address+"\nDEFAULT_AI_ASSISTANT=demo\n"), 0o640); err != nil {
		t.Fatal(err)
	}

	// What a version with an earlier schema left.
	unpackDatabase(t, "testdata/schema-27.db.gz", filepath.Join(data, "bot.db"))
	before := rows(t)
	running := s.start(t)
	running.Answers("http://" + address + "/readyz")
	if got := strings.TrimSpace(run(t, "/usr/bin/bot", "--version")); !strings.HasPrefix(got, "bot v0.9.0 ") {
		t.Errorf("the version is %q", got)
	}
	running.Stop()
	if diff := lost(before, rows(t)); diff != "" {
		t.Error("after the first start:", diff)
	}

	run(t, "dpkg", "-i", newer)
	if text, err := os.ReadFile(env); err != nil || !strings.Contains(string(text), address) {
		t.Errorf("an upgrade changed the options: %q, %v", text, err)
	}
	running = s.start(t)
	running.Answers("http://" + address + "/readyz")
	if got := strings.TrimSpace(run(t, "/usr/bin/bot", "--version")); !strings.HasPrefix(got, "bot v0.9.1 ") {
		t.Errorf("the version after the upgrade is %q", got)
	}
	running.Stop()
	if diff := lost(before, rows(t)); diff != "" {
		t.Error("after the upgrade:", diff)
	}

	// A backup of the earlier version, into an empty folder.
	for _, file := range glob(t, filepath.Join(data, "*")) {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
	}
	backups := t.TempDir()
	unpackTar(t, "testdata/backup-27.tar.gz", backups)
	chown(t, backups)
	for dir := backups; len(dir) > 1 && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the account has to get there
			t.Fatal(err)
		}
	}
	s.run(t, "/usr/bin/bot", "backup", "restore", filepath.Join(backups, "backup"))
	running = s.start(t)
	running.Answers("http://" + address + "/readyz")
	running.Stop()
	for _, table := range []string{"buttons", "memory_lessons", "platform_cursors"} {
		delete(before, table) // a restore leaves out what would be sent or asked again
	}
	if diff := lost(before, rows(t)); diff != "" {
		t.Error("after the restore:", diff)
	}

	run(t, "dpkg", "--remove", "remote-agent")
	if _, err := os.Stat(filepath.Join(data, "bot.db")); err != nil {
		t.Error("removing the package removed the data:", err)
	}
}

// packages builds a release for this machine and returns its package for Debian.
func packages(t *testing.T, version string) string {
	dist := filepath.Join(t.TempDir(), "dist")
	cmd := exec.Command("../../deploy/release", version)
	cmd.Env = append(os.Environ(), "DIST="+dist, "TARGETS=linux/"+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list := glob(t, filepath.Join(dist, "*.deb"))
	if len(list) != 1 {
		t.Fatalf("packages: %v", list)
	}
	return list[0]
}

// checkFiles looks at what the package brought.
func checkFiles(t *testing.T) {
	for path, mode := range map[string]os.FileMode{
		"/usr/bin/bot": 0o755, unit: 0o644, data: 0o700 | os.ModeDir, "/etc/bot": 0o750 | os.ModeDir, env: 0o640,
		"/usr/share/man/man1/bot.1.gz": 0o644, "/usr/share/bash-completion/completions/bot": 0o644,
		"/usr/share/zsh/site-functions/_bot": 0o644, "/usr/share/fish/vendor_completions.d/bot.fish": 0o644,
	} {
		info, err := os.Stat(path)
		switch {
		case err != nil && strings.HasPrefix(path, "/usr/share/man/"): // some images leave manuals out
		case err != nil:
			t.Error(err)
		case info.Mode() != mode:
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), mode)
		}
	}
}

// unitFile is what the unit says of how the service runs.
type unitFile struct {
	account *user.User
	dir     string
	env     []string
	command []string
}

func service(t *testing.T) unitFile {
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	u := unitFile{env: []string{"PATH=" + os.Getenv("PATH")}}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "ExecStart":
			u.command = strings.Fields(value)
		case "WorkingDirectory":
			u.dir = value
		case "Environment":
			u.env = append(u.env, value)
		case "User":
			if u.account, err = user.Lookup(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if u.account == nil || len(u.command) == 0 || u.dir != data {
		t.Fatalf("the unit does not say how to run: %+v", u)
	}
	return u
}

// as returns a command that the service's account runs, with the service's
// environment.
func (u unitFile) as(t *testing.T, command ...string) (environ, args []string) {
	options, err := os.ReadFile(env)
	if err != nil {
		t.Fatal(err)
	}
	environ = append(environ, u.env...)
	environ = append(environ, strings.Fields(string(options))...)
	return environ, append([]string{"--reuid=" + u.account.Uid, "--regid=" + u.account.Gid, "--clear-groups", "--no-new-privs"}, command...)
}

func (u unitFile) start(t *testing.T) *process.Process {
	environ, args := u.as(t, u.command...)
	return process.Start(t, u.dir, environ, "setpriv", args...)
}

func (u unitFile) run(t *testing.T, command ...string) {
	environ, args := u.as(t, command...)
	cmd := exec.Command("setpriv", args...)
	cmd.Dir, cmd.Env = u.dir, environ
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

// moved are tables of earlier schemas whose rows became a part of others, and what counts
// them there.
var moved = map[string]string{"checkpoints": `SELECT count(*) FROM inbound_events WHERE checkpoint_seq IS NOT NULL`}

// rows counts what is in every table of the service's database, and what is left of
// tables that it had.
func rows(t *testing.T) map[string]int {
	db, err := sql.Open("sqlite", filepath.Join(data, "bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	names := map[string]int{}
	list, err := db.Query(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%\_fts%' ESCAPE '\'
		AND name NOT LIKE '%\_words%' ESCAPE '\' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'goose%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for list.Next() {
		var name string
		if err := list.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names[name] = 0
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	queries := maps.Clone(moved)
	for name := range names {
		queries[name] = `SELECT count(*) FROM "` + name + `"`
	}
	for name, query := range queries {
		n := 0
		if err := db.QueryRow(query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		names[name] = n
	}
	return names
}

// lost names tables that have fewer rows than before. What the service adds, and
// codes and leases that ran out, are no loss.
func lost(before, after map[string]int) string {
	passing := map[string]bool{"named_leases": true, "owner_codes": true, "link_codes": true, "link_tries": true}
	var list []string
	for table, n := range before {
		if !passing[table] && after[table] < n {
			list = append(list, table+" has "+strconv.Itoa(after[table])+" rows of "+strconv.Itoa(n))
		}
	}
	return strings.Join(list, ", ")
}

func unpackDatabase(t *testing.T, from, to string) {
	content, err := io.ReadAll(unzip(t, from))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
	chown(t, to)
}

func unpackTar(t *testing.T, from, dir string) {
	archive := tar.NewReader(unzip(t, from))
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unzip(t *testing.T, path string) io.Reader {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func chown(t *testing.T, path string) { run(t, "chown", "-R", "bot:bot", path) }

func run(t *testing.T, name string, args ...string) string {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func glob(t *testing.T, pattern string) []string {
	list, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
