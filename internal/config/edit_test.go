package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant/openai"
)

func TestEditKeepsAllElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nothing there":            {"", "OPENAI_MODEL=gpt-x\n"},
		"no end of line":           {"A=1", "A=1\nOPENAI_MODEL=gpt-x\n"},
		"a comment and a stranger": {"# mine\n\nMY_OWN=\"a b\" # why\n", "# mine\n\nMY_OWN=\"a b\" # why\nOPENAI_MODEL=gpt-x\n"},
		"in its place":             {"A=1\nOPENAI_MODEL=old\nB=2\n", "A=1\nOPENAI_MODEL=gpt-x\nB=2\n"},
		"a comment behind it":      {"OPENAI_MODEL = old   # fast\n", "OPENAI_MODEL = gpt-x   # fast\n"},
		"quotes and export":        {"export OPENAI_MODEL='old' # x\n", "export OPENAI_MODEL=gpt-x # x\n"},
		"several lines":            {"OPENAI_MODEL=\"a\nb\"\nA=1\n", "OPENAI_MODEL=gpt-x\nA=1\n"},
		"twice, the last counts":   {"OPENAI_MODEL=a\nOPENAI_MODEL=b\n", "OPENAI_MODEL=a\nOPENAI_MODEL=gpt-x\n"},
		"below its example":        {"# Model to use.\n#OPENAI_MODEL=gpt-5-mini\n\n# More.\n", "# Model to use.\n#OPENAI_MODEL=gpt-5-mini\nOPENAI_MODEL=gpt-x\n\n# More.\n"},
		"of Windows":               {"A=1\r\nOPENAI_MODEL=old\r\nB=2\r\n", "A=1\r\nOPENAI_MODEL=gpt-x\r\nB=2\r\n"},
		"of Windows, new":          {"A=1\r\n", "A=1\r\nOPENAI_MODEL=gpt-x\r\n"},
		"a byte order mark":        {"\xef\xbb\xbfOPENAI_MODEL=old\n", "\xef\xbb\xbfOPENAI_MODEL=gpt-x\n"},
		"empty":                    {"OPENAI_MODEL=\nA=1\n", "OPENAI_MODEL=gpt-x\nA=1\n"},
		"two in a line":            {"A=\"1\" OPENAI_MODEL=x\n", "A=\"1\" OPENAI_MODEL=x\nOPENAI_MODEL=gpt-x\n"},
		"YAML":                     {"OPENAI_MODEL: old\n", "OPENAI_MODEL: gpt-x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Edit([]byte(c.text), map[string]string{"OPENAI_MODEL": "gpt-x"}, openai.Kind())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEditTakesOutWhatContradicts(t *testing.T) {
	t.Parallel()
	got, err := Edit([]byte("OPENAI_API_KEY_FILE=/run/key\nOPENAI_API_BASE=http://old\n# keep\nGH_TOKEN=x\n"),
		map[string]string{"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "GITHUB_TOKEN": ""}, openai.Kind())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("# keep\nOPENAI_API_KEY=sk-1\nOPENAI_BASE_URL=http://127.0.0.1:1/v1\n", string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestEditRefuses(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	for name, c := range map[string]struct {
		text string
		set  map[string]string
		want string
	}{
		"a damaged file":          {"A=1\nthis is nothing\n", map[string]string{"OPENAI_API_KEY": secret}, "line 2"},
		"open quotes":             {"A=\"1\nB=2\n", map[string]string{"OPENAI_API_KEY": secret}, "line 1"},
		"no option":               {"", map[string]string{"OPENAI_KEY": secret}, "OPENAI_KEY is not an option"},
		"a space around":          {"", map[string]string{"OPENAI_API_KEY": secret + " "}, "OPENAI_API_KEY begins or ends"},
		"others refer to it":      {"OPENAI_MODEL=a\nMINE=${OPENAI_MODEL}b\n", map[string]string{"OPENAI_MODEL": "c"}, "by hand"},
		"no way to write it down": {"", map[string]string{"SYSTEM_PROMPT": "\"a' #b\""}, "cannot hold"},
		"too much":                {strings.Repeat("#", maxFile), map[string]string{"OPENAI_MODEL": "c"}, "by hand"},
	} {
		_, err := Edit([]byte(c.text), c.set, openai.Kind())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzEdit sets and takes out a value in any file: what is read afterwards is what was
// set, and nothing else differs.
func FuzzEdit(f *testing.F) {
	for _, text := range []string{"", "A=1\n", "# x\nSYSTEM_PROMPT='old' # y\n", "SYSTEM_PROMPT=\"a\nb\"\r\nB=${A}\n", "export A : 'x\\'\n", "\xef\xbb\xbfA=1\rB=2"} {
		for _, value := range []string{"x", "a b", "a#b", "a #b", "$HOME", "it's", `"q"`, "a\nb", `\n`, `a\`, "$(x)", "äö", "\x00", "'", "#"} {
			f.Add(text, value)
		}
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		value = strings.TrimSpace(value)
		before, err := parseEnvFile("x", []byte(text))
		out, refused := Edit([]byte(text), map[string]string{"SYSTEM_PROMPT": value})
		if err != nil || refused != nil {
			if refused == nil {
				t.Fatalf("%q was changed although it cannot be read", text)
			}
			return
		}
		after, err := parseEnvFile("x", out)
		if err != nil {
			t.Fatalf("%q became %q, which cannot be read", text, out)
		}
		want := maps.Clone(before)
		if want == nil {
			want = map[string]string{}
		}
		if want["SYSTEM_PROMPT"] = value; value == "" {
			delete(want, "SYSTEM_PROMPT")
		}
		if diff := cmp.Diff(want, after); diff != "" {
			t.Fatalf("%q became %q:\n%s", text, out, diff)
		}
		for line := range strings.Lines(text) { // comments and blank lines
			if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "#") && !strings.ContainsAny(text, `"'`) && !strings.Contains(string(out), trimmed) {
				t.Fatalf("%q became %q, without %q", text, out, line)
			}
		}
		if again, err := Edit(out, map[string]string{"SYSTEM_PROMPT": value}); err != nil || string(again) != string(out) {
			t.Fatalf("%q became %q and then %q: %v", text, out, again, err)
		}
	})
}

func TestReplaceKeepsTheOldFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), ".env")
	e, err := ReadEnv(Source{EnvFile: path})
	if err != nil || e.Exists {
		t.Fatalf("%+v, %v", e, err)
	}
	if e, err = e.Replace([]byte("A=1\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".bak"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there was nothing to keep: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // it is to become narrower
		t.Fatal(err)
	}
	if _, err := e.Replace([]byte("A=2\n")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path: "A=2\n", path + ".bak": "A=1\n"} {
		text, err := os.ReadFile(name) //nolint:gosec // a test's own file
		if err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := e.Replace([]byte("A=3\n")); err == nil || !strings.Contains(err.Error(), "meanwhile") {
		t.Errorf("somebody else's change was overwritten: %v", err)
	}
}

// TestReplaceFollowsALink changes the file and not the link to it.
func TestReplaceFollowsALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "options"), filepath.Join(dir, ".env")
	if err := errors.Join(os.WriteFile(file, []byte("A=1\n"), 0o600), os.Symlink(file, link)); err != nil {
		t.Skip(err)
	}
	e, err := ReadEnv(Source{EnvFile: link})
	if err == nil {
		_, err = e.Replace([]byte("A=2\n"))
	}
	text, _ := os.ReadFile(file) //nolint:gosec // a test's own file
	if info, bad := os.Lstat(link); err != nil || bad != nil || info.Mode()&fs.ModeSymlink == 0 || string(text) != "A=2\n" {
		t.Errorf("%v, %v, %q", err, bad, text)
	}
}

// brokenFile fails where a disk may.
type brokenFile struct {
	newFile

	write, sync error
}

func (b brokenFile) Write(p []byte) (int, error) {
	if b.write != nil {
		return 0, b.write
	}
	return b.newFile.Write(p)
}

func (b brokenFile) Sync() error { return errors.Join(b.sync, b.newFile.Sync()) }

// TestReplaceChangesNothingWhereItFails has each step of writing fail.
func TestReplaceChangesNothingWhereItFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		create, write, sync error
		want                string
	}{
		"a read-only folder":     {create: &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, want: "may not write"},
		"a read-only disk":       {create: &fs.PathError{Op: "open", Path: "x", Err: syscall.EROFS}, want: "can be written to"},
		"a full disk":            {write: &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, want: "full"},
		"a full disk, told late": {sync: &fs.PathError{Op: "sync", Path: "x", Err: syscall.ENOSPC}, want: "full"},
		"a broken disk":          {sync: syscall.EIO, want: "check the disk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, after := range []int{0, 1} { // while keeping the old one, and while writing the new one
				dir := t.TempDir()
				path := filepath.Join(dir, ".env")
				if err := os.WriteFile(path, []byte("A=1\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				e, err := ReadEnv(Source{EnvFile: path})
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				_, err = e.replace([]byte("A=2\n"), func(dir string) (newFile, error) {
					f, err := createFile(dir)
					if n++; n <= after || err != nil {
						return f, err
					}
					if c.create != nil {
						return nil, errors.Join(c.create, f.Close(), os.Remove(f.Name()))
					}
					return brokenFile{f, c.write, c.sync}, nil
				})
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v", err)
				}
				if text, err := os.ReadFile(path); err != nil || string(text) != "A=1\n" { //nolint:gosec // a test's own file
					t.Errorf("%q, %v", text, err)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, partPattern)); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			}
		})
	}
}

// A file that a process left when it was killed may hold secrets.
func TestWhatWasLeftHalfWrittenIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bot [old]")
	old, fresh := filepath.Join(dir, ".env.1.tmp"), filepath.Join(dir, ".env.2.tmp")
	past := time.Now().Add(-2 * time.Hour)
	err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(old, []byte("A=1"), 0o600), os.WriteFile(fresh, []byte("A=1"), 0o600), os.Chtimes(old, past, past))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (EnvText{Path: filepath.Join(dir, ".env")}).Replace([]byte("A=2\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was left: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("what another process may be writing: %v", err)
	}
}

func TestReadEnvRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	damaged, large := filepath.Join(dir, "damaged"), filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(damaged, []byte("A=1\nOPENAI_API_KEY hunter2\n"), 0o600), os.WriteFile(large, make([]byte, maxFile+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{damaged: ":2 is not NAME=value", large: "larger than", dir: "not a file"} {
		if _, err := ReadEnv(Source{EnvFile: path}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root can make files of others
	}
	foreign := filepath.Join(dir, "foreign")
	if err := errors.Join(os.WriteFile(foreign, nil, 0o600), os.Chown(foreign, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEnv(Source{EnvFile: foreign}); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("%v", err)
	}
}

func TestPinned(t *testing.T) {
	t.Parallel()
	text := []byte("OPENAI_MODEL=a\nLOG_LEVEL=debug\nDATA_DIR=/x\n")
	c, err := Load(Source{Flags: map[string]string{"log-level": "warn"}, Environ: []string{"OPENAI_MODEL=b"}, EnvText: &text}, openai.Kind())
	if err != nil || !c.Pinned("OPENAI_MODEL") || !c.Pinned("LOG_LEVEL") || c.Pinned("DATA_DIR") || c.Pinned("LISTEN_ADDR") || c.DataDir != "/x" {
		t.Errorf("%v, %+v", err, c.values)
	}
}
