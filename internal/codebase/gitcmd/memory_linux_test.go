package gitcmd_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// TestMemoryOfAWorktree: git reads a .gitignore of any size whole, and outside of the sandbox.
func TestMemoryOfAWorktree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "git")
	writeProgram(t, path, `#!/bin/sh
until [ "$(ulimit -d)" = "$1" ]; do :; done
echo "fatal: Out of memory, malloc failed" >&2
exit 128
`)
	g := open(t, gitcmd.Config{Path: path})
	for limit, index := range map[string]string{"1048576": filepath.Join(dir, "index"), "unlimited": ""} {
		_, err := g.Run(t.Context(), &gitcmd.Call{Args: []string{limit}, Index: index, Timeout: 30 * time.Second})
		if f, ok := errors.AsType[*fault.Error](err); !ok || (f.Kind == fault.Exhausted) != (index != "") || gitcmd.ExitCode(err) != 128 {
			t.Errorf("with an index %q: %v", index, err)
		}
	}
}
