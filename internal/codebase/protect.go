package codebase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// protectedNames are files and folders that tell an assistant, or the programs
// it starts, what to do. Whoever opens a pull request could give orders with
// them, so they come from the base branch.
var protectedNames = []string{
	".agents", ".aider.conf.yml", ".amazonq", ".amp", ".augment", ".augment-guidelines", ".claude", ".claude.json", ".clinerules", ".codex",
	".continue", ".copilot", ".crush", ".crush.json", ".cursor", ".cursorignore", ".cursorrules", ".devcontainer", ".devin", ".envrc",
	".factory", ".gemini", ".gitmodules", ".goose", ".goosehints", ".husky", ".junie", ".kilo", ".kilocode", ".kilocodemodes", ".kimi",
	".kimi-code", ".kiro", ".mcp.json", ".opencode", ".openhands", ".pre-commit-config.yaml", ".qwen", ".ripgreprc", ".roo", ".roomodes",
	".trae", ".vibe", ".vscode", ".windsurf", ".windsurfrules", ".zed", "AGENT.md", "AGENTS.md", "AGENTS.override.md", "CLAUDE.local.md",
	"CLAUDE.md", "CRUSH.md", "GEMINI.md", "QWEN.md", "WARP.md", "crush.json", "kilo.json", "kilo.jsonc", "lefthook.yml", "opencode.json",
	"opencode.jsonc",
}

// Protected reports whether a path, with slashes, is a file that in the worktree
// of a pull request is that of the base branch: configuration of assistants and
// of programs that run by themselves, at any depth. Changes to such files there
// are no changes of the conversation: they are in no Diff, Commit or Checkpoint,
// and are put back by the next WorktreeAt.
func Protected(p string) bool { return protectedPrefix(p) != "" }

// protectedPrefix returns the path as far as what protects it, or nothing.
func protectedPrefix(p string) string {
	parts := strings.Split(strings.TrimSuffix(p, "/"), "/")
	for i, part := range parts {
		// Some file systems do not tell apart upper and lower case.
		if slices.ContainsFunc(protectedNames, func(name string) bool { return strings.EqualFold(name, part) }) {
			return path.Join(parts[:i+1]...)
		}
		if strings.EqualFold(part, ".github") && i+1 < len(parts) {
			switch strings.ToLower(parts[i+1]) {
			case "agents", "chatmodes", "copilot", "copilot-instructions.md", "hooks", "instructions", "mcp.json", "prompts", "skills":
				return path.Join(parts[:i+2]...)
			}
		}
	}
	return ""
}

// guard keeps the protected files of worktrees those of the base branch.
type guard struct{ *worktrees }

// treeEntry is a file of a commit.
type treeEntry struct{ mode, object, path string }

// protectedIn lists the protected files of a commit.
func (g *guard) protectedIn(ctx context.Context, p place, commit string) ([]treeEntry, error) {
	out, err := g.git.Run(ctx, &gitcmd.Call{
		GitDir: p.gitDir, Config: p.config, MaxOutput: 256 << 20,
		Args: []string{"ls-tree", "-r", "-z", "--full-tree", commit},
	})
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	var entries []treeEntry
	for line := range bytes.SplitSeq(out.Data, []byte{0}) {
		head, name, ok := strings.Cut(string(line), "\t")
		fields := strings.Fields(head) // mode type object
		if ok && len(fields) == 3 && fields[1] == "blob" && Protected(name) {
			entries = append(entries, treeEntry{fields[0], fields[2], name})
		}
	}
	return entries, nil
}

// protect puts the protected files of the base branch in the place of those of
// the branch. The index keeps those of the branch and is told not to look at the
// files, so that whoever commits in the worktree commits no change of them. It
// may run any number of times.
func (g *guard) protect(ctx context.Context, t Tree) error {
	if !t.Protected {
		return nil
	}
	wanted, err := g.protectedIn(ctx, t.place, t.ref("into"))
	if err != nil {
		return err
	}
	own, err := g.hide(ctx, t)
	if err != nil {
		return err
	}
	if err := clearProtected(t, own, wanted); err != nil {
		return err
	}
	if len(wanted) == 0 {
		return nil
	}
	return g.write(ctx, t, t.ref("into"), list(wanted))
}

// list is the paths as git takes them.
func list(entries []treeEntry) *bytes.Buffer {
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(e.path + "\x00")
	}
	return &b
}

// protectedNow returns HEAD and its protected files.
func (g *guard) protectedNow(ctx context.Context, t Tree) (head string, own []treeEntry, err error) {
	if head, err = g.Head(ctx, t); err == nil {
		own, err = g.protectedIn(ctx, t.place, head)
	}
	return head, own, err
}

// hide makes the protected files of the index those of HEAD, which it returns, and
// has git not look at the files themselves.
func (g *guard) hide(ctx context.Context, t Tree) ([]treeEntry, error) {
	head, own, err := g.protectedNow(ctx, t)
	if err != nil {
		return nil, err
	}
	out, err := g.git.Run(ctx, &gitcmd.Call{
		GitDir: t.gitDir(), WorkTree: t.Dir, Config: t.place.config, MaxOutput: 128 << 20, Args: []string{"ls-files", "-z", "--cached"},
	})
	if err != nil {
		return nil, fmt.Errorf("reading the index: %w", err)
	}
	var script bytes.Buffer
	for name := range bytes.SplitSeq(out.Data, []byte{0}) {
		if len(name) > 0 && Protected(string(name)) {
			_, _ = fmt.Fprintf(&script, "0 %s\t%s\x00", strings.Repeat("0", len(head)), name)
		}
	}
	for _, e := range own {
		_, _ = fmt.Fprintf(&script, "%s %s\t%s\x00", e.mode, e.object, e.path)
	}
	if script.Len() > 0 {
		if _, err := g.runIn(ctx, &t, &gitcmd.Call{Args: []string{"update-index", "-z", "--index-info"}, Stdin: &script}); err != nil {
			return nil, fmt.Errorf("setting the index: %w", err)
		}
	}
	if len(own) == 0 {
		return nil, nil
	}
	if _, err := g.runIn(ctx, &t, &gitcmd.Call{Args: []string{"update-index", "-z", "--skip-worktree", "--stdin"}, Stdin: list(own)}); err != nil {
		return nil, fmt.Errorf("setting the index: %w", err)
	}
	return own, nil
}

// unprotect has git look at all files again, before they are replaced.
func (g *guard) unprotect(ctx context.Context, t Tree) error {
	_, own, err := g.protectedNow(ctx, t)
	if err != nil || len(own) == 0 {
		return err
	}
	_, err = g.runIn(ctx, &t, &gitcmd.Call{Args: []string{"update-index", "-z", "--no-skip-worktree", "--stdin"}, Stdin: list(own)})
	return fault.Note(err, "setting the index")
}

// clearProtected removes what is in the way of the wanted files: those of the
// branch, and at the top, where assistants look, whatever there is.
func clearProtected(t Tree, own, wanted []treeEntry) error {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return fault.Wrap(err, fault.NotFound, "opening the worktree")
	}
	defer func() { _ = root.Close() }()
	remove := map[string]bool{}
	for _, e := range slices.Concat(own, wanted) {
		remove[protectedPrefix(e.path)] = true
	}
	for _, dir := range []string{".", ".github"} {
		entries, err := fs.ReadDir(root.FS(), dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && dir == "." {
			return fault.Wrap(err, fault.Internal, "listing the worktree")
		}
		for _, e := range entries {
			if prefix := protectedPrefix(path.Join(dir, e.Name())); prefix != "" {
				remove[prefix] = true
			}
		}
	}
	for prefix := range remove {
		// A link on the way out of the worktree is refused by the root; nothing
		// that could be read there is the worktree's.
		if err := root.RemoveAll(prefix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(err, fault.Internal, "removing files that come from the base branch")
		}
	}
	return nil
}
