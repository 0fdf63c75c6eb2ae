package app

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"syscall"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/fault"
)

// codexProfile is the permission profile that Codex gets for modes in which it may
// change files. It restricts nothing, so that Codex does not wrap commands in a
// sandbox of its own: that needs namespaces, which ours forbids to programs, and
// ours confines Codex with all that it starts. What Codex asks for it still asks.
const codexProfile = "remote-agent"

// The modes of Codex in which a person is asked, whatever its front end calls them. In its
// default mode, it may run commands without asking, or have a model decide about them.
const (
	codexReads = "read-only|edit-internal"
	codexEdits = "workspace-write|auto|edit-internal"
)

// maxCodexConfig is more than any configuration has, in bytes.
const maxCodexConfig = 1 << 20

const (
	codexDefault = "# Commands run in the sandbox of Remote Agent, so Codex needs none of its own.\ndefault_permissions = \"" + codexProfile + "\"\n\n"
	codexTables  = "\n[permissions." + codexProfile + ".filesystem]\n\":root\" = \"write\"\n\n[permissions." + codexProfile + ".network]\nenabled = true\n"
)

var (
	codexHas = regexp.MustCompile(`(?m)^\s*\[permissions\.` + codexProfile + `\.`)
	codexOwn = regexp.MustCompile(`(?m)^\s*(\[?permissions\b|default_permissions\b|sandbox_mode\b)`)
)

// modesOf are the modes of an agent for our own.
func (ps *programs) modesOf(name assistant.Name, home string) map[string]string {
	if name != acp.CodexName || !ps.runner.Level().Files {
		return agentModes[name]
	}
	if elsewhere, ok := ps.lookup("CODEX_HOME"); ok && elsewhere != "" && filepath.Clean(elsewhere) != filepath.Join(home, ".codex") {
		return agentModes[name] // it is the operator's
	}
	ours, err := addCodexProfile(home)
	switch {
	case err != nil:
		ps.log.Warn("could not configure Codex for the sandbox; its commands will ask or fail", "err", err)
	case !ours:
		ps.log.Warn("the configuration of Codex has permissions of its own; where its own sandbox does not start in ours, its commands will ask or fail", "home", home)
	default:
		mode := "permission-profile:" + codexProfile + "|" + codexEdits
		return map[string]string{"ask": codexReads, "plan": codexReads, "edit": mode, "auto": mode}
	}
	return agentModes[name]
}

// addCodexProfile adds the profile to the configuration in the agent's home and
// reports whether it is there. Permissions that somebody else wrote are left alone.
// The home is the agent's to write, so no link is followed out of it, nobody waits for
// what comes through a pipe, and what is no configuration by its size is not read.
func addCodexProfile(home string) (bool, error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return false, err
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return false, err
	}
	defer root.Close() //nolint:errcheck // what was written is closed
	if err := root.Mkdir(".codex", 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	name := path.Join(".codex", "config.toml")
	text, err := confine.ReadFile(root, name, maxCodexConfig)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	switch {
	case codexHas.Match(text):
		return true, nil
	case codexOwn.Match(text):
		return false, nil
	}
	f, err := root.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return false, err
	}
	_, err = f.WriteString(codexDefault + string(text) + codexTables)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	return true, root.Rename(name+".new", name)
}
