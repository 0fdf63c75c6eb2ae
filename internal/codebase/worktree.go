package codebase

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
	"remote-agent/internal/order"
	"remote-agent/internal/pattern"
)

// Tree is the worktree of a conversation. It is a value of the moment: get it
// again for each turn, it may have been swept meanwhile.
type Tree struct {
	Repo         Repo
	Conversation string
	Dir          string // absolute
	Branch       string // bot/<short>; it is never pushed under this name
	Base         string // the commit that it started from

	// Of a worktree that WorktreeAt made:
	Remote     string // the branch at the origin that Push pushes to; may be empty
	BaseBranch string // what it is to be merged into; empty: the default branch
	ReadOnly   bool   // made of a ref that nobody can push to
	Protected  bool   // files for assistants are those of BaseBranch; see Protected

	// Created and Reopened are set by the call that made it, or brought it back
	// from its saved state. Note then says what a person should know, such as
	// that there could be no fetch; usually it is empty.
	Created, Reopened bool
	Note              string

	place place
	short string
	from  origins
}

// Known is the branch that people know the work by: the one that it is pushed to, or
// that of the worktree if there is none.
func (t Tree) Known() string { return cmp.Or(t.Remote, t.Branch) }

// worktrees knows the worktrees that there are, and runs git in them.
type worktrees struct{ *folder }

// meta is stored beside a worktree once it is complete.
type meta struct {
	Conversation string `json:"conversation"`
	Dir          string `json:"dir"` // of the codebase
	Base         string `json:"base"`
	origins

	rel, short string // where it was found
}

// origins are what WorktreeAt was told. They are in a ref too, which outlasts
// the worktree.
type origins struct {
	Remote     string `json:"remote,omitempty"`
	BaseBranch string `json:"base_branch,omitempty"`
	ReadOnly   bool   `json:"read_only,omitempty"`
	Protected  bool   `json:"protected,omitempty"`
	Fetched    string `json:"fetched,omitempty"` // the ref of a ReadOnly worktree
	Head       string `json:"head,omitempty"`    // the commit of the origin that it is at
}

func (t *Tree) set(o origins) {
	t.Remote, t.BaseBranch, t.ReadOnly, t.Protected = o.Remote, o.BaseBranch, o.ReadOnly, o.Protected
	t.from = o
}

var (
	uuidForm  = pattern.Lazy(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	shortForm = pattern.Lazy(`^[0-9a-f]{12}$`)
)

// Short returns what stands for a conversation in the names of branches and
// directories: the last twelve digits of a UUID, which are random in every
// version in use, or else of a hash. That two conversations have the same is
// noticed and refused.
func Short(conversation string) string {
	if uuidForm.MatchString(conversation) {
		return strings.ToLower(conversation[len(conversation)-12:])
	}
	sum := sha256.Sum256([]byte(conversation))
	return hex.EncodeToString(sum[:6])
}

// treeOf returns the worktree that a conversation has or will have.
func (w *worktrees) treeOf(p place, conversation, short string) Tree {
	return Tree{
		Repo: p.repo, Conversation: conversation, Branch: "bot/" + short, place: p, short: short,
		Dir: w.abs(path.Join(worktreesDir, p.rel, short)),
	}
}

// Existing returns the worktree that a conversation has at this moment; ok is false if
// it has none, or none that is whole. It makes and changes nothing.
func (w *worktrees) Existing(ctx context.Context, repo Repo, conversation string) (t Tree, ok bool, err error) {
	p, err := w.place(ctx, repo)
	if err != nil {
		return Tree{}, false, err
	}
	t = w.treeOf(p, conversation, Short(conversation))
	m, found, err := w.readMeta(p.rel, t.short)
	if err != nil || !found || m.Conversation != conversation || m.Dir != repo.Dir || !w.intact(t) {
		return Tree{}, false, err
	}
	t.Base = m.Base
	t.set(m.origins)
	return t, true, nil
}

func (w *worktrees) lockTree(ctx context.Context, t Tree) (func(), error) {
	return w.locks.lock(ctx, "tree "+t.place.rel+" "+t.short)
}

// intact reports whether the directory and git's notes about it are there, and those are of
// no other directory.
func (w *worktrees) intact(t Tree) bool {
	info, err := os.Lstat(t.Dir)
	if err != nil || !info.IsDir() {
		return false
	}
	_, err = os.Stat(filepath.Join(t.gitDir(), "HEAD"))
	return err == nil && w.beside(t) == ""
}

func (t Tree) rel() string { return path.Join(worktreesDir, t.place.rel, t.short) }

// gitDir is git's directory for the worktree. It is always given to git by name:
// the file .git in the worktree can be changed by whoever works there.
func (t Tree) gitDir() string { return adminDir(t.place, t.short) }

// GitData returns the folder with git's data that programs in the worktree may
// read, or nothing: that of a clone of this workspace or of a plain folder, and of
// a local repository the folder .git in it. It follows from where the codebase is
// and from nothing that a program in the worktree could have written.
func (t Tree) GitData() string {
	if t.place.local && t.place.gitDir != filepath.Join(t.place.repo.Dir, ".git") {
		return "" // its .git is a file that names another place
	}
	return t.place.gitDir
}

// relink puts the file .git of a worktree back if somebody changed it. This
// package does not read it, but whoever runs git there by hand would run what it
// names.
func (w *worktrees) relink(ctx context.Context, t Tree) error {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return fault.Wrap(err, fault.NotFound, "opening the worktree")
	}
	defer func() { _ = root.Close() }()
	want := "gitdir: " + t.gitDir() + "\n"
	if info, err := root.Lstat(".git"); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(want)) {
		if text, err := root.ReadFile(".git"); err == nil && string(text) == want {
			return nil
		}
	}
	w.log.WarnContext(ctx, "the file .git of a worktree was changed; it is put back", "conversation_id", t.Conversation, "codebase", t.Repo.Name)
	if err := root.RemoveAll(".git"); err != nil {
		return fault.Wrap(err, fault.Internal, "removing a changed .git")
	}
	return fault.Wrap(root.WriteFile(".git", []byte(want), 0o600), fault.Internal, "putting .git back")
}

func adminDir(p place, short string) string { return filepath.Join(p.gitDir, "worktrees", short) }

func removeAdmin(p place, short string) error {
	if !shortForm.MatchString(short) {
		return fault.Newf(fault.Internal, "not the name of a worktree: %q", short)
	}
	return fault.Wrap(os.RemoveAll(adminDir(p, short)), fault.Internal, "removing git's notes about a worktree")
}

func (t Tree) ref(name string) string { return "refs/bot/" + t.short + "/" + name }

// runIn runs git in the worktree.
func (w *worktrees) runIn(ctx context.Context, t *Tree, c *gitcmd.Call) (string, error) {
	c.GitDir, c.WorkTree = t.gitDir(), t.Dir
	return w.run(ctx, &t.place, c)
}

// justIn is runIn with arguments alone.
//
//go:noinline // a Call is large, and there are many
func (w *worktrees) justIn(ctx context.Context, t *Tree, args ...string) (string, error) {
	return w.runIn(ctx, t, &gitcmd.Call{Args: args})
}

func (w *worktrees) writeMeta(t Tree) error {
	data, err := json.Marshal(meta{Conversation: t.Conversation, Dir: t.Repo.Dir, Base: t.Base, origins: t.from})
	if err != nil {
		return fault.Wrap(err, fault.Internal, "encoding a worktree's notes")
	}
	f, err := w.root.OpenFile(t.rel()+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(data)
		err = errors.Join(err, f.Sync(), f.Close()) // else a power failure may leave the name without the text
	}
	if err == nil {
		err = w.root.Rename(t.rel()+".new", t.rel()+".json")
	}
	return fault.Wrap(err, fault.Internal, "writing a worktree's notes")
}

func (w *worktrees) readMeta(rel, short string) (meta, bool, error) {
	data, err := w.root.ReadFile(path.Join(worktreesDir, rel, short+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return meta{}, false, nil
	}
	if err != nil {
		return meta{}, false, fault.Wrap(err, fault.Internal, "reading a worktree's notes")
	}
	m := meta{rel: rel, short: short}
	if err := json.Unmarshal(data, &m); err != nil || Short(m.Conversation) != short {
		return meta{}, false, nil //nolint:nilerr // as if it were not there: it is made again from its refs
	}
	return m, true, nil
}

// metas returns the notes of all worktrees of one codebase.
func (w *worktrees) metas(rel string) ([]meta, error) {
	entries, err := fs.ReadDir(w.root.FS(), path.Join(worktreesDir, rel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "listing worktrees")
	}
	var out []meta
	for _, e := range entries {
		short, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !shortForm.MatchString(short) {
			continue
		}
		m, found, err := w.readMeta(rel, short)
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, m)
		}
	}
	return out, nil
}

// Branch returns the branch that is checked out in a worktree, or nothing if none
// is.
func (w *worktrees) Branch(ctx context.Context, t Tree) (string, error) {
	out, err := w.justIn(ctx, &t, "symbolic-ref", "--quiet", "--short", "HEAD")
	if gitcmd.ExitCode(err) == 1 {
		return "", nil
	}
	return out, err
}

// Head returns the commit that a worktree is at.
func (w *worktrees) Head(ctx context.Context, t Tree) (string, error) {
	return w.justIn(ctx, &t, "rev-parse", "--verify", "HEAD^{commit}")
}

// Kept is a worktree that is there.
type Kept struct {
	Conversation string
	Branch       string // that it began on; the bot's own
	Made         time.Time
}

// Trees returns the worktrees of a codebase on this machine, the newest first. It does
// not run git in them.
func (w *worktrees) Trees(ctx context.Context, repo Repo) ([]Kept, error) {
	p, err := w.place(ctx, repo)
	if err != nil {
		return nil, err
	}
	metas, err := w.metas(p.rel)
	if err != nil {
		return nil, err
	}
	var list []Kept
	for _, m := range metas {
		info, err := w.root.Stat(path.Join(worktreesDir, m.rel, m.short+".json"))
		if errors.Is(err, fs.ErrNotExist) || err == nil && m.Dir != repo.Dir {
			continue // it was put away meanwhile, or is another's
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "listing worktrees")
		}
		list = append(list, Kept{Conversation: m.Conversation, Branch: "bot/" + m.short, Made: info.ModTime()})
	}
	order.By(list, func(a, b Kept) int {
		return cmp.Or(b.Made.Compare(a.Made), strings.Compare(a.Conversation, b.Conversation))
	})
	return list, nil
}

// write checks out paths of a commit through a temporary index.
func (w *worktrees) write(ctx context.Context, t Tree, commit string, paths *bytes.Buffer) error {
	tmp, err := w.temporary()
	if err != nil {
		return err
	}
	defer tmp.end()
	index := tmp.sub("index")
	if _, err := w.runIn(ctx, &t, &gitcmd.Call{Index: index, Args: []string{"read-tree", commit}}); err != nil {
		return fmt.Errorf("reading the checkpoint: %w", err)
	}
	_, err = w.runIn(ctx, &t, &gitcmd.Call{Index: index, Stdin: paths, Args: []string{"checkout-index", "--force", "-z", "--stdin"}})
	return fault.Note(err, "writing the files of the checkpoint")
}

// remember keeps what t was started with in a ref, which a sweep leaves.
func (w *worktrees) remember(ctx context.Context, t Tree) error {
	if t.from == (origins{}) {
		return nil
	}
	data, err := json.Marshal(t.from)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "encoding a worktree's start")
	}
	blob, err := w.run(ctx, &t.place, &gitcmd.Call{Args: []string{"hash-object", "-w", "--stdin"}, Stdin: strings.NewReader(string(data))})
	if err == nil {
		_, err = w.just(ctx, &t.place, "update-ref", t.ref("origins"), blob)
	}
	return fault.Note(err, "noting a worktree's start")
}

// recall reads what remember kept.
func (w *worktrees) recall(ctx context.Context, t *Tree) error {
	blob, err := w.resolve(ctx, t.place, t.ref("origins"))
	if err != nil || blob == "" {
		return err
	}
	out, err := w.just(ctx, &t.place, "cat-file", "blob", blob)
	if err != nil {
		return fmt.Errorf("reading a worktree's start: %w", err)
	}
	var o origins
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		return fault.Wrap(err, fault.Internal, "reading a worktree's start")
	}
	t.set(o)
	return nil
}
