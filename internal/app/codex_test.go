package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/config"
)

func TestFinding8CodexIsToldOfOurSandbox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before string
		ours   bool
	}{
		"new":           {"", true},
		"with settings": {"model = \"x\"\n[features]\nplugins = false\n", true},
		"own profile":   {"default_permissions = \"mine\"\n[permissions.mine.network]\nenabled = true\n", false},
		"own sandbox":   {"sandbox_mode = \"workspace-write\"\n", false},
	} {
		home := t.TempDir()
		file := filepath.Join(home, ".codex", "config.toml")
		if c.before != "" {
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var texts []string
		for range 2 { // again at each start
			ours, err := addCodexProfile(home)
			if err != nil || ours != c.ours {
				t.Fatalf("%s: %v, %v", name, ours, err)
			}
			text, _ := os.ReadFile(file)
			texts = append(texts, string(text))
		}
		if texts[0] != texts[1] || !strings.Contains(texts[0], c.before) || c.ours != strings.Contains(texts[0], "[permissions.remote-agent.filesystem]") {
			t.Errorf("%s: %q, then %q", name, texts[0], texts[1])
		}
	}
}

// TestCodexHomeIsNotLeft: the home is the agent's, and may hold links.
func TestCodexHomeIsNotLeft(t *testing.T) {
	t.Parallel()
	for _, link := range []string{".codex", ".codex/config.toml", ".codex/config.toml.new"} {
		home, outside := t.TempDir(), t.TempDir()
		file := filepath.Join(outside, "config.toml")
		if err := os.WriteFile(file, []byte("x = 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		target := file
		if link == ".codex" {
			target = outside
		} else if err := os.Mkdir(filepath.Join(home, ".codex"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
		if _, err := addCodexProfile(home); err == nil {
			t.Errorf("%s: a link out of the home was followed", link)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "x = 1\n" {
			t.Errorf("%s: the file outside is %q, %v", link, text, err)
		}
	}
}

// TestCodexHomeHoldsNothingUp: an agent may leave there what never ends, and every later
// turn of Codex would wait for it.
func TestCodexHomeHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(file string) error{
		"a pipe in its place":   func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"a pipe beside it":      func(file string) error { return syscall.Mkfifo(file+".new", 0o600) },
		"more than fits memory": func(file string) error { return errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 1<<40)) },
	} {
		home := t.TempDir()
		file := filepath.Join(home, ".codex", "config.toml")
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), put(file)); err != nil {
			t.Fatal(err)
		}
		if ours, err := addCodexProfile(home); err == nil || ours {
			t.Errorf("%s: %v, %v", name, ours, err)
		}
	}
}

// Codex's front end logs in with a key only if it is told to.
func TestCodexUsesTheKeyThatItIsGiven(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"CODEX_API_KEY": true, "OPENAI_API_KEY": true, "ANTHROPIC_API_KEY": false} {
		c, _ := config.Inspect(config.Source{Environ: []string{"DATA_DIR=" + t.TempDir()}}, Sections()...)
		ps := newPrograms(c, Env{Log: slog.New(slog.DiscardHandler), Lookup: func(asked string) (string, bool) { return "sk-0123456789", asked == name }})
		agents, err := ps.knownAgents()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range agents {
			if told := slices.Contains(a.config.Env, codexUsesKey); told != (want && a.config.Name == acp.CodexName) {
				t.Errorf("%s: %s is told %t", name, a.config.Name, told)
			}
		}
	}
}

// TestCodexAsksWhateverItsModesAreCalled: in a default mode that has no person asked, whoever
// said that commands are to be asked for would not be.
func TestCodexAsksWhateverItsModesAreCalled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ offered, ask, edit string }{
		{"read-only auto granular guardian-approvals full-access", "read-only", "auto"},
		{"read-only workspace-write danger-full-access", "read-only", "workspace-write"},
		{"edit-internal agent agent-full-access", "edit-internal", "edit-internal"},
	} {
		offered := strings.Fields(c.offered)
		for mode, want := range map[string]string{"ask": c.ask, "plan": c.ask, "edit": c.edit, "auto": c.edit} {
			modes := alternatives(agentModes[acp.CodexName][mode])
			i := slices.IndexFunc(modes, func(m string) bool { return slices.Contains(offered, m) })
			if i < 0 || modes[i] != want {
				t.Errorf("%s: of %s, none of %q or not %s", mode, c.offered, modes, want)
			}
		}
	}
}
