package work

import (
	"os"
	"path/filepath"
	"testing"

	"remote-agent/internal/codebase"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// A turn works in a folder of its worktree, whatever became of the folder since it was
// chosen, and whatever another program wrote.
func TestTheFolderOfAConversationIsInItsWorktree(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "src", "server"), 0o700),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.Symlink(elsewhere, filepath.Join(dir, "out")),
		os.Symlink("src", filepath.Join(dir, "in")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	repo := sessions.Codebase{Name: "shop", DefaultCwd: "/srv/shop"}
	for cwd, want := range map[string]struct {
		dir  string
		kind fault.Kind
	}{
		"":                     {dir: ""},
		"src/server":           {dir: "src/server"},
		"in/server":            {dir: "in/server"},
		"/srv/shop":            {dir: ""},
		"/srv/shop/src":        {dir: "src"},
		"/srv/other":           {kind: fault.Invalid},
		"out":                  {kind: fault.Invalid},
		"../..":                {kind: fault.Invalid},
		"src/../../etc":        {kind: fault.Invalid},
		"/srv/shop/out":        {kind: fault.Invalid},
		"gone":                 {kind: fault.NotFound},
		"file":                 {kind: fault.NotFound},
		"file/below":           {kind: fault.NotFound},
		"/srv/shop/src/server": {dir: "src/server"},
	} {
		got, err := folderOf(repo, sessions.Conversation{Cwd: cwd}, codebase.Tree{Dir: dir})
		if got != want.dir || fault.KindOf(err) != want.kind {
			t.Errorf("%q: %q, %v; want %q, %q", cwd, got, err, want.dir, want.kind)
		}
	}
}
