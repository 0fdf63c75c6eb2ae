package journey_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
	"remote-agent/internal/waittest"
)

// failing returns the checks of /readyz that fail, by name; nothing if the service
// is ready.
func (p *process) failing(t *testing.T) map[string]string {
	t.Helper()
	base := httpLine.FindStringSubmatch(p.out.String())
	if base == nil {
		t.Fatal("it did not say where HTTP listens")
	}
	response, err := http.Get(base[1] + "/readyz") //nolint:noctx // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Ready  bool
		Checks []struct {
			Name, Error string
			OK          bool
		}
	}
	if err := json.Unmarshal(text, &body); err != nil || body.Ready != (response.StatusCode == http.StatusOK) {
		t.Fatalf("/readyz answers %s, %v: %s", response.Status, err, text)
	}
	bad := make(map[string]string)
	for _, c := range body.Checks {
		if !c.OK {
			bad[c.Name] = c.Error
		}
	}
	if body.Ready != (len(bad) == 0) {
		t.Errorf("ready is %v beside %v", body.Ready, bad)
	}
	return bad
}

// limitFiles sets how long files of a process may get, as a disk that is full does.
func (p *process) limitFiles(t *testing.T, size uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Skipf("limits of another process cannot be set here: %v", err)
	}
}

// TestReadyzTellsThatNothingCanBeStored takes the room for any file away, and gives
// it back: the service says it is not ready, why, and is ready by itself again.
// Nothing that was acknowledged is lost.
func TestReadyzTellsThatNothingCanBeStored(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t, "", "HTTP")
	p := runProcess(t, "", w.env)
	root := w.sl.User(slackAn).In(channel).Mentions("hello")
	w.threadShows(root.TS, "echo: hello")

	p.limitFiles(t, 1)
	second := w.sl.User(slackAn).In("C2").Mentions("is anybody there?")
	waittest.Until(t, "it is not ready", func() bool { return len(p.failing(t)) > 0 })
	bad := p.failing(t)
	if !strings.Contains(bad["writes"], "The last write failed: the disk") || len(bad) != 1 {
		t.Errorf("what fails is %v", bad)
	}

	p.limitFiles(t, unix.RLIM_INFINITY)
	waittest.Until(t, "it is ready again", func() bool { return len(p.failing(t)) == 0 })
	w.threadIn("C2", second.TS, "echo: ", "is anybody there?")
}

// TestDamageStopsTheStartAndNamesTheWayOut starts the bot on files that something
// has written over.
func TestDamageStopsTheStartAndNamesTheWayOut(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(file []byte) []byte{
		"Header":    func(file []byte) []byte { return append([]byte(strings.Repeat("?", 100)), file[100:]...) },
		"Truncated": func(file []byte) []byte { return file[:len(file)/2] },
		"Pages": func(file []byte) []byte {
			for page := range 4 {
				at := (3 + 7*page) * 4096
				copy(file[at:at+4096], strings.Repeat("\xd3\x11\x7f", 1366))
			}
			return file
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "").migrated()
			w.start()
			w.says(ann, "hello")
			w.seesText(ann, "echo: hello")
			w.shutdown()
			if err := os.MkdirAll(filepath.Join(w.env["DATA_DIR"], "backups"), 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(w.env["DATA_DIR"], "bot.db")
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(file), 0o600); err != nil {
				t.Fatal(err)
			}
			err = w.fails()
			if public := fault.Public(err); !fault.Is(err, fault.Damaged) || !containsAll(public, []string{path, "damaged; restore the newest backup with `bot backup restore ", "or salvage with `bot salvage`, which copies what can be read"}) {
				t.Errorf("it says %q: %v", public, err)
			}
		})
	}
}

// TestFewDescriptorsDelayNobodyAndBlameNobody has 114 people write at once to a bot
// that may open 64 files: all are acknowledged and answered, nobody is told that the
// model cannot be reached, and the log names what has to be raised.
func TestFewDescriptorsDelayNobodyAndBlameNobody(t *testing.T) {
	t.Parallel()
	const people, first = 114, int64(5000)
	w := newWorld(t, "")
	addr := freePort(t)
	w.with(map[string]string{
		"TELEGRAM_ALLOWED_USER_IDS": "*", "MAX_CONCURRENT_CONVERSATIONS": "100", "LISTEN_ADDR": addr,
		"TELEGRAM_MODE": "webhook", "TELEGRAM_WEBHOOK_SECRET": "0123456789abcdef0123", "PUBLIC_URL": "http://" + addr,
	})
	p := runProcess(t, "ulimit -n 64", w.env)
	if out := p.out.String(); !containsAll(out, []string{"MAX_CONCURRENT_CONVERSATIONS is 100", "64 file descriptors are only enough for", "LimitNOFILE"}) {
		t.Errorf("the log does not name descriptors: %s", out)
	}
	for person := range int64(people) {
		w.says(first+person, fmt.Sprintf("hello from %d.", person))
	}
	for person := range int64(people) {
		w.seesText(first+person, fmt.Sprintf("hello from %d.", person))
		for _, text := range w.tg.Ledger().Chat(first + person).BotTexts() {
			if strings.Contains(text, "cannot be reached") || strings.Contains(text, "too many files") {
				t.Errorf("somebody was told %q", text)
			}
		}
	}
	info, err := http.Get(w.tg.URL() + "/bot" + token + "/getWebhookInfo") //nolint:noctx // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer info.Body.Close() //nolint:errcheck // only read
	if told, err := io.ReadAll(info.Body); err != nil || strings.Contains(string(told), "last_error") || !strings.Contains(string(told), `"pending_update_count":0`) {
		t.Errorf("an update was not acknowledged at once: %s, %v", told, err)
	}
	if bad := p.failing(t); len(bad) > 0 {
		t.Errorf("afterwards: %v", bad)
	}
}

// fails starts a bot that has to refuse to, and returns why.
func (w *world) fails() error {
	w.t.Helper()
	done := make(chan error, 1)
	w.run(w.t.Context(), done)
	select {
	case err := <-done:
		if err == nil {
			return errors.New("it ended without an error")
		}
		return err
	case <-waittest.Late(w.t):
		w.t.Fatal("it did not refuse to start")
		return nil
	}
}
