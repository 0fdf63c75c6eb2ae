package work

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"remote-agent/internal/codebase"
	"remote-agent/internal/orchestrator"
)

func TestGuideReadsWhatTheRepositorySays(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of notes, ä\n", 3000)
	tests := map[string]struct {
		files                     map[string]string
		cwd                       string
		instructions, notes, from string
		notice                    string
	}{
		"nothing":         {},
		"instructions":    {files: map[string]string{".agents/system.md": "\ufeffBe terse.\n"}, instructions: "Be terse."},
		"notes":           {files: map[string]string{"AGENTS.md": "Use make.", "CLAUDE.md": "no"}, notes: "Use make.", from: "AGENTS.md"},
		"the other name":  {files: map[string]string{"CLAUDE.md": "Use make.\n"}, notes: "Use make.", from: "CLAUDE.md"},
		"the nearest":     {files: map[string]string{"AGENTS.md": "root", "web/CLAUDE.md": "web"}, cwd: "web", notes: "web", from: "web/CLAUDE.md"},
		"above":           {files: map[string]string{"AGENTS.md": "root", "web/x": ""}, cwd: "web", notes: "root", from: "AGENTS.md"},
		"empty":           {files: map[string]string{"AGENTS.md": "\n", "CLAUDE.md": "x"}, notes: "x", from: "CLAUDE.md"},
		"binary":          {files: map[string]string{".agents/system.md": "a\x00b", "AGENTS.md": "\xff"}, notice: "not a text file"},
		"too large":       {files: map[string]string{".agents/system.md": strings.Repeat("x", maxGuidanceFile+1)}, notice: "larger than 256 KiB"},
		"out of the tree": {files: map[string]string{".agents/system.md": "-> ../../secret"}, notice: "leads out"},
		"long":            {files: map[string]string{"AGENTS.md": long}, from: "AGENTS.md"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "tree")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "..", "secret"), []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			for file, text := range tt.files {
				full := filepath.Join(dir, filepath.FromSlash(file))
				err := os.MkdirAll(filepath.Dir(full), 0o700)
				if target, link := strings.CutPrefix(text, "-> "); link && err == nil {
					err = os.Symlink(target, full)
				} else if err == nil {
					err = os.WriteFile(full, []byte(text), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			var p orchestrator.Prepared
			(&Service{log: slog.New(slog.DiscardHandler)}).guide(t.Context(), codebase.Tree{Dir: dir}, tt.cwd, &p)
			if name == "long" {
				if len(p.Notes) > maxGuidance+100 || !utf8.ValidString(p.Notes) || !strings.Contains(p.Notes, "more bytes of AGENTS.md") {
					t.Errorf("%d bytes of notes, ending with %q", len(p.Notes), p.Notes[len(p.Notes)-80:])
				}
				tt.notes = p.Notes
			}
			if p.Instructions != tt.instructions || p.Notes != tt.notes || p.NotesFrom != tt.from {
				t.Errorf("instructions %q, notes %q from %q", p.Instructions, p.Notes, p.NotesFrom)
			}
			if (p.Notice != "") != (tt.notice != "") || !strings.Contains(p.Notice, tt.notice) {
				t.Errorf("the person is told %q, want %q", p.Notice, tt.notice)
			}
		})
	}
}
