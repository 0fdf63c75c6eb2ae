package app

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/assistant/openai"
	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
)

func TestDoctorNamesWhatIsWrongWithEachListOfHosts(t *testing.T) {
	t.Parallel()
	var cfg config.Config
	cfg.Tools.Hosts, cfg.Agents.Hosts = []string{"https://example.com"}, []string{"claude=10.0.0.1"}
	found := newExamination(cfg, Env{Log: slog.New(slog.DiscardHandler)}).examineHosts(t.Context())
	if len(found) != 2 || !strings.HasPrefix(found[0].Detail, "TOOL_HOSTS: ") || !strings.HasPrefix(found[1].Detail, "AGENT_HOSTS: ") {
		t.Errorf("it finds %+v", found)
	}
}

func TestDoctorNamesTheAddressOfAModelThatIsAway(t *testing.T) {
	t.Parallel()
	m, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	found := newExamination(config.Config{}, Env{Log: slog.New(slog.DiscardHandler)}).examineModel(t.Context(), m)
	if len(found) != 1 || found[0].Status != doctor.Fail || !strings.Contains(found[0].Detail, "127.0.0.1:1: connect") || !strings.Contains(found[0].Fix, "OPENAI_API_KEY, OPENAI_BASE_URL and the model's name") {
		t.Errorf("it finds %+v", found)
	}
}

// The list of model APIs is that of Sections, which bot setup model asks about.
func TestDoctorNamesTheCommandThatSetsUpAnyModel(t *testing.T) {
	t.Parallel()
	checks := newExamination(config.Config{Assistant: config.AssistantDemo}, Env{Log: slog.New(slog.DiscardHandler)}).modelChecks()
	found := checks[len(checks)-1].Run(t.Context())
	if len(found) != 1 || found[0].Fix != "bot setup model" {
		t.Errorf("it finds %+v", found)
	}
}

// A folder that no backup can be written to is said before the first backup is needed: by
// the doctor, and by the start, which goes on.
func TestABackupDirThatCannotBeWrittenTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, file := filepath.Join(dir, "bot.db"), filepath.Join(dir, "file")
	for _, name := range []string{db, file} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config.Config{Database: config.Database{Driver: config.DriverSQLite, Path: db}}
	for _, c := range []struct {
		folder string
		bad    bool
	}{{file, true}, {filepath.Join(file, "in", "it"), true}, {dir, false}, {filepath.Join(dir, "new", "one"), false}} {
		cfg.BackupDir = c.folder
		if found := newExamination(cfg, Env{}).examineBackup(time.Now()); (found.Status == doctor.Fail) != c.bad || !strings.Contains(found.Detail, c.folder) {
			t.Errorf("%s: the doctor finds %+v", c.folder, found)
		} else if c.bad && (!strings.HasSuffix(found.Detail, ": not a directory") || strings.Contains(found.Fix, "chown")) {
			t.Errorf("%s: no owner is at fault, but the doctor finds %+v", c.folder, found)
		}
		var said bytes.Buffer
		warnBackups(t.Context(), cfg, slog.New(slog.NewTextHandler(&said, nil)))
		if strings.Contains(said.String(), "BACKUP_DIR") != c.bad {
			t.Errorf("%s: the start says %q", c.folder, said.String())
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTheDoctorSaysWhyAFolderCannotBeUsed(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{syscall.EACCES: "chown -R", syscall.EPERM: "chown -R", syscall.ENOSPC: "df -i", syscall.EROFS: "mount"} {
		found := cannotUse("folder", "DATA_DIR", "/data", &fs.PathError{Op: "open", Path: "/data/.doctor-1", Err: err})
		if found.Status != doctor.Fail || found.Detail != "cannot use DATA_DIR /data: "+err.Error() || !strings.Contains(found.Fix, want) {
			t.Errorf("%v: %+v", err, found)
		}
	}
}

// A DATA_DIR that the start could not create is no folder that "the first start creates".
func TestTheDoctorSeesAFolderThatCannotBeCreated(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]doctor.Status{"/proc/none/data": doctor.Fail, filepath.Join(t.TempDir(), "new", "one"): doctor.Skip} {
		if _, err := os.Stat("/proc/self"); err != nil && want == doctor.Fail {
			continue // root may write everywhere else
		}
		found := newExamination(config.Config{DataDir: dir}, Env{}).examineFolder(t.Context())
		if len(found) != 1 || found[0].Status != want || !strings.Contains(found[0].Detail, dir) {
			t.Errorf("%s: the doctor finds %+v", dir, found)
		}
	}
}
