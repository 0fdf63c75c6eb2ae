package app

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
	"remote-agent/internal/setup"
)

// settingUp returns a Setup over a file with a text, and the file.
func settingUp(t *testing.T, text string) (s *Setup, file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, ".env")
	if err := os.WriteFile(file, []byte("DATA_DIR="+dir+"\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := NewSetup(config.Source{EnvFile: file}, Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler), EnvFile: file})
	if err != nil {
		t.Fatal(err)
	}
	return s, file
}

// What is wrong in the file already is as wrong when it is entered again.
func TestAWrongValueIsNotProvenByBeingThere(t *testing.T) {
	t.Parallel()
	s, _ := settingUp(t, "PUBLIC_URL=bot.example.com\nCONTEXT_TOKENS=many\n")
	if len(s.Problems()) != 2 {
		t.Fatalf("problems: %q", s.Problems())
	}
	w := setup.Way{Fields: []setup.Field{{Name: "PUBLIC_URL"}}, Proof: setup.Proof{After: true}}
	out := s.Try(t.Context(), setup.Step{}, w, map[string]string{"PUBLIC_URL": "bot.example.com"})
	if out.Verdict != setup.Bad || len(out.Problems) != 1 || !strings.Contains(out.Problems[0], "PUBLIC_URL") {
		t.Errorf("the same wrong value: %+v", out)
	}
	if out := s.Try(t.Context(), setup.Step{}, w, map[string]string{"PUBLIC_URL": "https://bot.example.com"}); out.Verdict != setup.Good {
		t.Errorf("a right value beside another one that is wrong: %+v", out)
	}
}

func TestNothingTriedIsNothingProven(t *testing.T) {
	t.Parallel()
	s, _ := settingUp(t, "")
	w := setup.Way{Proof: setup.Proof{Areas: []string{"telegram"}}}
	if out := s.Try(t.Context(), setup.Step{}, w, nil); out.Verdict != setup.Doubtful {
		t.Errorf("a platform that is off: %+v", out)
	}
}

// A server that does not answer does not show that a key is wrong.
func TestAnUnreachableModelIsDoubtful(t *testing.T) {
	t.Parallel()
	s, _ := settingUp(t, "")
	var server setup.Way
	for _, w := range s.Steps(t.Context())[0].Ways {
		if w.Name == "server" {
			server = w
		}
	}
	values := map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_MODEL": "m"}
	if out := s.Try(t.Context(), setup.Step{}, server, values); out.Verdict != setup.Doubtful {
		t.Errorf("nobody listens: %+v", out)
	}
}

// What a running bot refuses would not let it start again.
func TestWhatTheBotRefusesIsTakenBack(t *testing.T) {
	t.Parallel()
	s, file := settingUp(t, "OPENAI_MODEL=m\n")
	before, err := os.ReadFile(file) //nolint:gosec // of this test
	if err != nil {
		t.Fatal(err)
	}
	c, _ := s.now()
	l, err := localsocket.Listen(t.Context(), socketPath(c))
	if err != nil {
		t.Skip("no local sockets here: ", err)
	}
	requests := make(chan string, 1)
	go func() {
		_ = localsocket.Serve(t.Context(), l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // ends with the test
			body, _ := io.ReadAll(r.Body) // shown below
			requests <- string(body)
			localsocket.WriteError(w, fault.New(fault.Invalid, "The running bot refuses its configuration."))
		}))
	}()
	w := setup.Way{Fields: []setup.Field{{Name: "OPENAI_API_KEY"}}}
	said, err := s.Keep(t.Context(), setup.Step{}, w, map[string]string{"OPENAI_API_KEY": "sk-new-0123456789"})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "refuses") {
		t.Errorf("it said %q, %v", said, err)
	}
	after, err := os.ReadFile(file) //nolint:gosec // of this test
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file is now %q (%v), was %q", after, err, before)
	}
	if asked := <-requests; strings.Contains(asked, "sk-new") || !strings.Contains(asked, file) || !strings.Contains(asked, "OPENAI_API_KEY") {
		t.Errorf("the bot was asked %s", asked)
	}
	if v := s.Value("OPENAI_API_KEY"); v.Set {
		t.Errorf("the value is still taken for set: %+v", v)
	}
	aside, err := s.PutAside(w, map[string]string{"OPENAI_API_KEY": "sk-new-0123456789"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(aside) //nolint:gosec // of this test; what it has is looked at
	if info, err := os.Stat(aside); err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(text), "OPENAI_MODEL=m") || !strings.Contains(string(text), "sk-new-0123456789") {
		t.Errorf("%s has %v, %q", aside, info.Mode(), text)
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(before, now) || !slices.Contains(config.EnvFiles(file), aside) { //nolint:gosec // of this test
		t.Errorf("the file is now %q (%v), and programs may read %s", now, err, aside)
	}
}
