package app

import (
	"bytes"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/assistant/openai"
	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
	"remote-agent/internal/localsocket"
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

// A budget in dollars limits a model without a listed price if its API says what it costs.
func TestDoctorTakesThePriceThatTheAPISays(t *testing.T) {
	t.Parallel()
	for usage, warns := range map[string]bool{`"cost":0.00002`: false, `"total_tokens":2`: true} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"OK"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,`+usage+"}}\n\ndata: [DONE]\n\n")
		}))
		defer api.Close()
		m, err := openai.New(openai.Config{BaseURL: api.URL + "/v1", Model: "vendor/new"})
		if err != nil {
			t.Fatal(err)
		}
		defer m.CloseIdleConnections()
		var cfg config.Config
		cfg.Budget.DayMicros = 1_000_000
		found := newExamination(cfg, Env{Log: slog.New(slog.DiscardHandler)}).examineModel(t.Context(), m)
		if got := slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Status == doctor.Warn }); got != warns || found[0].Status != doctor.OK {
			t.Errorf("of an answer with %s it finds %+v", usage, found)
		}
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
		if c.bad && (strings.Contains(said.String(), "owner") || !strings.Contains(said.String(), "df -h")) {
			t.Errorf("%s: no owner is at fault, but the start says %q", c.folder, said.String())
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

// "chmod 777", which seems to mend every trouble with a folder, lets others put another database in it.
func TestTheDoctorSeesAFolderThatEverybodyMayWriteTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for mode, want := range map[fs.FileMode]doctor.Status{0o777: doctor.Warn, 0o770: doctor.OK, 0o755: doctor.OK} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if found := newExamination(config.Config{DataDir: dir}, Env{}).examineFolder(t.Context()); found[0].Status != want {
			t.Errorf("%o: the doctor finds %+v", mode, found[0])
		}
	}
}

// What answers at LISTEN_ADDR may be a bot with another DATA_DIR, which this one could not start beside.
func TestTheDoctorTellsThisBotFromAnother(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	cfg := config.Config{DataDir: t.TempDir(), ListenAddr: server.Listener.Addr().String()}
	found := newExamination(cfg, Env{}).examineListen(t.Context())
	if len(found) != 1 || found[0].Status != doctor.Warn || !strings.Contains(found[0].Detail, cfg.DataDir) || !strings.Contains(found[0].Fix, "LISTEN_ADDR") {
		t.Errorf("another bot: the doctor finds %+v", found)
	}
	local, err := localsocket.Listen(t.Context(), socketPath(cfg))
	if err != nil {
		t.Skip(err)
	}
	here := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	t.Cleanup(func() { _ = here.Close() })
	go func() { _ = here.Serve(local) }()
	if found := newExamination(cfg, Env{}).examineListen(t.Context()); len(found) != 1 || found[0].Status != doctor.OK {
		t.Errorf("this bot: the doctor finds %+v", found)
	}
	cfg.ListenAddr = "192.0.2.1:3000" // only for documentation: nobody has it, and nothing is sent there
	if found := newExamination(cfg, Env{}).examineListen(t.Context()); len(found) != 1 || found[0].Status != doctor.Fail || strings.HasPrefix(found[0].Fix, "ss ") {
		t.Errorf("somebody else's address: the doctor finds %+v", found)
	}
}

// Without a platform there are the console and the pages in the browser.
func TestTheDoctorNamesWhatIsLeftWithoutPlatforms(t *testing.T) {
	t.Parallel()
	found := newExamination(config.Config{}, Env{Log: slog.New(slog.DiscardHandler)}).examineAccess(t.Context())
	if len(found) != 1 || found[0].Status != doctor.Skip || !strings.Contains(found[0].Detail, "its console and in the browser") {
		t.Errorf("the doctor finds %+v", found)
	}
}
