package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/store/storetest"
)

func TestCareOfTheDataFromTheCommandLine(t *testing.T) {
	dir, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"DATA_DIR=" + filepath.Join(dir, "data"), "BACKUP_DIR=" + filepath.Join(dir, "backups"), "PATH=" + os.Getenv("PATH")}
	file := filepath.Join(dir, "out.jsonl")
	ddl, err := os.ReadFile(filepath.Join("..", "..", "internal", "importer", "testdata", "seed002.sql"))
	if err != nil {
		t.Fatal(err)
	}
	seed := storetest.ForeignSQLite(t, strings.ReplaceAll(string(ddl), " DEFAULT gen_random_uuid()", ""))
	const nobody = "0198c2d1-7a3b-7c4d-8e5f-0123456789ab"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"sessions list", exitUsage, "There is no database"},
		{"salvage", exitUsage, "data/bot.db. DATA_DIR or DATABASE_URL names the database to read.\n"},
		{"migrate up", exitOK, "applied"},
		{"sessions list", exitOK, "nothing found"},
		{"repo list", exitOK, "there are no repositories"},
		{"sessions list --conversation telegram/1", exitFailed, "no such conversation"},
		{"sessions show " + nobody, exitFailed, "no such session"},
		{"sessions rm nonsense", exitUsage, "is not the id of a session"},
		{"sessions search ...", exitUsage, "at least one word"},
		{"sessions search word", exitOK, "nothing found"},
		{"repo add " + filepath.Join(dir, "nothere"), exitFailed, "There is no folder " + filepath.Join(dir, "nothere")},
		{"repo rm nothere", exitFailed, "`bot repo list` lists"},
		{"repo sync 3", exitFailed, "`bot repo list` lists 0 repositories"},
		{"owner-link --listen-addr=127.0.0.1:0", exitUsage, "Set a port, or PUBLIC_URL."},
		{"repo add ./nothere", exitFailed, "There is no folder "},
		{"bench --turns 0", exitUsage, "--turns must be at least 1"},
		{"repo add nothere", exitUsage, "That is not a repository address."},
		{"sessions search word --before x", exitUsage, "is not a number"},
		{"sessions list --limit 1001", exitUsage, "between 1 and 1000"},
		{"sessions list --limit 0", exitUsage, "--limit 0 is not between 1 and 1000"},
		{"sessions search word --limit=-1", exitUsage, "between 1 and 1000"},
		{"sessions search word --limit 0", exitUsage, "between 1 and 1000"},
		{"messages list --limit 0", exitUsage, "between 1 and 1000"},
		{"messages list", exitOK, "nothing found"},
		{"messages list --agent default", exitOK, "nothing found"},
		{"messages list --agent nosuch", exitFailed, "There is no profile nosuch."},
		{"messages list --conversation telegram/1", exitFailed, "no such conversation"},
		{"messages list --conversation telegram/", exitUsage, "platform/id"},
		{"messages list --session " + nobody, exitFailed, "no such session"},
		{"messages list --session 7", exitUsage, "is not the id of a session"},
		{"messages list --after 7", exitUsage, "is not a cursor"},
		{"messages list --offset=-1", exitUsage, "below zero"},
		{"messages list --offset 1 --after " + nobody + "/1", exitUsage, "not both"},
		{"messages list --limit 5000", exitUsage, "between 1 and 1000"},
		{"messages list --limit many", exitUsage, "--limit"},
		{"costs", exitOK, "no usage in that period"},
		{"costs --by repository", exitOK, "no usage in that period"},
		{"costs --by person --since all --csv", exitOK, "person,name,turns,input_tokens"},
		{"costs --by nobody", exitUsage, "--by"},
		{"costs --since soon", exitUsage, "--since: "},
		{"costs --since 9999-01-01", exitUsage, "in the future"},
		{"costs --until 7d", exitUsage, "--until: "},
		{"costs --since 2026-01-02 --until 2026-01-01", exitUsage, "--until is before --since"},
		{"costs --csv --json", exitUsage, "not both"},
		{"export -o " + file, exitOK, ""},
		{"export -o " + file, exitUsage, "already exists"},
		{"export -o -", exitOK, `"type":"export"`},
		{"export --format markdown", exitUsage, "--session"},
		{"export --format sql --redact", exitUsage, "whole database"},
		{"export --format sql", exitOK, "CREATE TABLE remote_agent_sessions"},
		{"export --format csv", exitOK, "id,agent_name,provider"},
		{"import " + file, exitOK, "imported 0 conversations"},
		{"import", exitUsage, "--from"},
		{"import " + file + ".none", exitUsage, "cannot read"},
		{"import " + dir, exitUsage, "is not a regular file"},
		{"import --from " + dir, exitUsage, "is not a regular file"},
		{"import --from " + file, exitUsage, "cannot be read as an SQLite database"},
		{"export -o " + dir + "/none/x", exitUsage, "cannot be created"},
		{"import --from " + seed, exitOK, "imported 0 codebases"},
		{"import --from " + filepath.Join(dir, "data", "bot.db"), exitUsage, "This is a database of this bot: "},
		{"import --from sqlite:" + seed + " --dry-run", exitOK, "dry run: nothing was written"},
		{"import --from mysql://user:hidden@127.0.0.1:1/db", exitUsage, "is not supported"},
		{"import --from postgres://user:hidden@127.0.0.1:1/db", exitFailed, "--from: PostgreSQL at 127.0.0.1 does not accept the connection: nothing listens on port 1; start it, or correct host and port\n"},
		{"import --from postgres://user:hidden%zz@127.0.0.1:1/db", exitUsage, "--from is not a valid PostgreSQL address"},
		{"import --from " + seed + " --map /a", exitUsage, "is not OLD=NEW"},
		{"import --from " + seed + " --map /a=/b --map /a=/c", exitUsage, "has /a twice"},
		{"import --from " + seed + " --map /a=/b", exitUsage, "--map names /a, but no folder of the database is in it"},
		{"import --dry-run " + file, exitUsage, "require --from"},
		{"memory status", exitOK, "full text, because no embeddings API is set"},
		{"memory status", exitOK, "0 facts, 0 episodes, of 0 people"},
		{"memory status --embedding-base-url=http://127.0.0.1:1/v1 --embedding-model=m", exitOK, "m is not responding"},
		{"retention --retention-raw=off", exitOK, "Everything is kept"},
		{"retention", exitOK, "removed 0 bodies of events, 0 deliveries, 0 checkpoints, 0 buttons"},
		{"retention --dry-run --retention-sessions=1d", exitOK, "would remove 0 sessions"},
		{"retention --retention-raw=0", exitUsage, "or off to keep everything"},
		{"person show 42", exitUsage, "is not an account ID"},
		{"person show telegram/42", exitOK, "memory    on: 0 facts"},
		{"person forget telegram/42", exitUsage, "nothing was deleted"},
		{"person forget telegram/42 --yes", exitOK, "kept: conversations"},
		{"person forget /42 --yes", exitUsage, "is not an account ID"},
		{"backup list", exitOK, "no backups"},
		{"backup create", exitOK, "1 file"},
		{"backup list", exitOK, "sqlite"},
		{"backup verify nothing", exitUsage, "is not a backup"},
		{"backup restore " + firstOf(dir), exitUsage, "is not a backup"},
		{"backup restore x --replaces postgres://user:hidden@127.0.0.1:1/db", exitFailed, "--replaces: PostgreSQL at 127.0.0.1 does not accept the connection"},
		{"backup restore x --replaces mysql://user:hidden@127.0.0.1:1/db", exitUsage, "--replaces: mysql:// is not supported"},
		{"backup restore x --replaces " + dir, exitUsage, "is not a regular file"},
	} {
		r := bot(t, environ, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("bot %s: code %d, want %d with %q\n%s%s", c.args, r.code, c.code, c.want, r.stdout, r.stderr)
		}
		if strings.Contains(r.stdout+r.stderr, "hidden") {
			t.Errorf("bot %s prints a password:\n%s%s", c.args, r.stdout, r.stderr)
		}
	}
	made := firstOf(filepath.Join(dir, "backups"))
	if r := bot(t, environ, "backup", "verify", made); r.code != exitOK || !strings.Contains(r.stdout, "sound: sqlite") {
		t.Errorf("verify: %+v", r)
	}
	if r := bot(t, environ, "backup", "restore", made); r.code == exitOK || !strings.Contains(r.stderr, "a database at") {
		t.Errorf("restore over data: %+v", r)
	}
	elsewhere := append([]string{"DATA_DIR=" + filepath.Join(dir, "elsewhere")}, environ[1:]...)
	if r := bot(t, elsewhere, "backup", "restore", made); r.code != exitOK || !strings.Contains(r.stdout, "nothing is sent again") {
		t.Errorf("restore: %+v", r)
	}
}

// firstOf returns the first entry of a folder.
func firstOf(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return filepath.Join(dir, "none")
	}
	return filepath.Join(dir, entries[0].Name())
}

// A list that could not be printed, as on a full disk, is a failure: a script would take
// what is there for all of it.
func TestAListThatCannotBePrintedIsAFailure(t *testing.T) {
	environ := []string{"DATA_DIR=" + t.TempDir()}
	for _, args := range []string{"migrate up", "halt", "audit list --json", "person list", "key list", "costs", "backup list", "audit verify"} {
		var stderr strings.Builder
		code := run(t.Context(), strings.Fields(args), process{environ: environ, stdin: strings.NewReader(""), stdout: full{}, stderr: &stderr})
		if code != exitFailed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("bot %s: code %d: %s", args, code, &stderr)
		}
	}
}

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// What is asked before a repository is removed is about one that there is, and true of it.
func TestRepoRemovalAsksAboutWhatThereIs(t *testing.T) {
	dir := t.TempDir()
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DATA_DIR=" + filepath.Join(dir, "data"), "WORKSPACE_PATH=" + filepath.Join(dir, "work")}
	answer := func(text string, args ...string) result {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, process{environ: environ, stdin: strings.NewReader(text), stdout: &stdout, stderr: &stderr})
		return result{code, stdout.String(), stderr.String()}
	}
	t.Chdir(dir)
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := answer("", "repo", "add", folder); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	if r := answer("y\n", "repo", "rm", "nope"); r.code == exitOK || strings.Contains(r.stdout, "[y/N]") || !strings.Contains(r.stderr, "nope") {
		t.Errorf("what there is not: %+v", r)
	}
	if r := answer("no\n", "repo", "rm", "folder"); r.code != exitUsage || !strings.Contains(r.stdout, "Remove folder? Its folder stays. [y/N]") {
		t.Errorf("a folder: %+v", r)
	}
	if r := answer("y\n", "repo", "rm", "1"); r.code != exitOK || !strings.Contains(r.stdout, "removed folder") {
		t.Errorf("yes: %+v", r)
	}
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
}

// One repository that is gone keeps no other from being fetched, and the error names it.
func TestRepoSyncGoesOnAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	answer := func(args ...string) result {
		var stdout, stderr bytes.Buffer
		environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DATA_DIR=" + filepath.Join(dir, "data"), "WORKSPACE_PATH=" + filepath.Join(dir, "work")}
		code := run(t.Context(), args, process{environ: environ, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr})
		return result{code, stdout.String(), stderr.String()}
	}
	for _, name := range []string{"a", "b", "c"} {
		folder := filepath.Join(dir, name)
		git := exec.CommandContext(t.Context(), "git", "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main", "init", "-q", folder)
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		git = exec.CommandContext(t.Context(), "git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "x")
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if r := answer("repo", "add", folder); r.code != exitOK {
			t.Fatalf("%+v", r)
		}
	}
	for _, gone := range []string{"a", "c"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	r := answer("repo", "sync")
	if r.code == exitOK || !strings.Contains(r.stdout, "b is up to date (main at ") {
		t.Errorf("what is there was not fetched: %+v", r)
	}
	if !strings.Contains(r.stdout, "a failed: ") || !strings.Contains(r.stdout, "c failed: ") || !strings.Contains(r.stderr, "Not fetched: a, c.") {
		t.Errorf("what failed is not named: %+v", r)
	}
	if strings.Contains(r.stdout, "**") || strings.Contains(r.stdout, "`/") || !strings.Contains(r.stdout, "bot repo rm a") {
		t.Errorf("what is said is for a chat: %q", r.stdout)
	}
}

// A folder by the name of a repository is never asked for elsewhere.
func TestAFolderNamedAsARepositoryIsChosenByItsPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll(filepath.Join(dir, "acme", "web"), 0o700); err != nil {
		t.Fatal(err)
	}
	add := func(what string) result {
		var stdout, stderr bytes.Buffer
		environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DATA_DIR=" + filepath.Join(dir, "data"),
			"WORKSPACE_PATH=" + filepath.Join(dir, "work"), "GIT_ALLOWED_HOSTS=127.0.0.1:1"} // nobody listens there
		code := run(t.Context(), []string{"repo", "add", what}, process{environ: environ, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr})
		return result{code, stdout.String(), stderr.String()}
	}
	if r := add("acme/web"); r.code != exitUsage || !strings.Contains(r.stderr, "Use ./acme/web or http://127.0.0.1:1/acme/web.") {
		t.Errorf("either: %+v", r)
	}
	if r := add("./acme/web"); r.code != exitOK || !strings.Contains(r.stdout, "added web in "+filepath.Join(dir, "acme", "web")) {
		t.Errorf("the folder: %+v", r)
	}
}

// Help that could not be printed is no success.
func TestHelpThatIsNotPrintedFails(t *testing.T) {
	t.Parallel()
	full, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	var stderr bytes.Buffer
	for _, args := range [][]string{{"help"}, {"help", "serve"}, {"--help"}} {
		if code := run(t.Context(), args, process{stdout: full, stderr: &stderr}); code != exitFailed { // it can only be read
			t.Errorf("%s: code %d, %s", args, code, &stderr)
		}
	}
}

// One of something is not several, in what commands say that they did.
func TestOneIsNotSeveral(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "export.jsonl")
	said := func(where, want string, args ...string) {
		t.Helper()
		environ := []string{"DATA_DIR=" + filepath.Join(dir, where), "LISTEN_ADDR=127.0.0.1:0", "LOG_LEVEL=error"}
		if r := bot(t, environ, args...); r.code != exitOK || !strings.Contains(r.stdout, want) {
			t.Errorf("bot %s: code %d, want %q\n%s%s", strings.Join(args, " "), r.code, want, r.stdout, r.stderr)
		}
	}
	said("here", "", "chat", "hello")
	said("here", "", "export", "-o", file)
	said("there", "imported 1 conversation with ", "import", file)
	said("there", "; 1 conversation already existed\n", "import", file)
	said("elsewhere", "", "migrate", "up")
	said("elsewhere", "", "halt")
	said("elsewhere", "sound: 1 row; ", "audit", "verify")
	said("there", "0 facts, 0 events, 0 messages to learn from", "person", "show", "telegram/42")
}

// Whoever presses Ctrl-C needs no cause.
func TestAnInterruptedCommandSaysThatItStopped(t *testing.T) {
	environ := []string{"DATA_DIR=" + t.TempDir()}
	if r := bot(t, environ, "migrate", "up"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{"backup create", "export", "sessions list"} {
		var stderr strings.Builder
		code := run(ctx, strings.Fields(args), process{environ: environ, stdin: strings.NewReader(""), stdout: io.Discard, stderr: &stderr})
		if code != exitFailed || stderr.String() != "bot: Stopped.\n" {
			t.Errorf("bot %s: code %d: %q", args, code, &stderr)
		}
	}
}
