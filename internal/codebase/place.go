package codebase

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

// folder is the workspace on disk: it finds what is below Root and runs git on it.
// All parts of a Workspace work in it.
type folder struct {
	cfg   Config
	root  *os.Root
	hosts remote.Hosts
	git   *gitcmd.Git
	locks *locks
	log   *slog.Logger
}

// Root returns the workspace's directory.
func (f *folder) Root() string { return f.cfg.Root }

// Parse reads an address as Clone does; see remote.Hosts.Parse.
func (f *folder) Parse(input string) (remote.Remote, error) { return f.hosts.Parse(input) }

func (f *folder) abs(rel string) string { return filepath.Join(f.cfg.Root, filepath.FromSlash(rel)) }

// place is where git's data of a codebase is, and how git has to be run on it.
type place struct {
	repo   Repo
	rel    string // of its worktrees below .worktrees; also the name of its locks
	gitDir string
	local  bool // the repository of a local folder, which has its own configuration
	config []gitcmd.Pair
	holds  *os.File // see gitcmd.Call.Holds; nil for none
}

// Usable says why nothing can be done in the workspace, or nil: what was opened when the
// process began is no longer what is there.
func (f *folder) Usable() error {
	open, err := f.root.Stat(".")
	if err != nil {
		return fault.Wrap(err, fault.Internal, "looking at the workspace")
	}
	if there, err := os.Stat(f.cfg.Root); err != nil || !os.SameFile(open, there) {
		return &fault.Error{Kind: fault.NotFound, Err: err,
			Public: "The folder of repositories (WORKSPACE_PATH) was deleted or replaced while the bot ran. An operator has to start the bot again; then they are cloned anew."}
	}
	return nil
}

// place finds git's data for a codebase. It trusts nothing in repo but Dir, and
// that only if it is a clone of this workspace or an absolute path that an
// operator added.
func (f *folder) place(ctx context.Context, repo Repo) (place, error) {
	if err := f.Usable(); err != nil {
		return place{}, err
	}
	if rel, ok := cloneRel(f.cfg.Root, repo.Dir); ok {
		p := place{repo: repo, rel: rel, gitDir: filepath.Join(repo.Dir, ".git")}
		if info, err := f.root.Lstat(rel + "/.git"); err != nil || !info.IsDir() {
			return place{}, fault.Newf(fault.NotFound, "The clone of %s no longer exists. Clone it again.", repo.Name)
		}
		return p, nil
	}
	if err := checkLocal(f.cfg.Root, repo.Dir); err != nil {
		return place{}, err
	}
	key := localKey(repo.Dir)
	p := place{repo: repo, rel: path.Join(".local", key), local: true}
	gitDir, err := f.discover(ctx, repo.Dir)
	if err != nil {
		return place{}, err
	}
	if gitDir == "" {
		p.gitDir, p.repo.Plain, p.local = f.abs(path.Join(plainDir, key)), true, false
		return p, f.initPlain(ctx, p)
	}
	p.gitDir = gitDir
	if p.config, err = f.disarm(ctx, p); err != nil {
		return place{}, err
	}
	return p, nil
}

// Present says why no codebase can be in a folder, or nil: fault.NotFound if it
// is not there, fault.Invalid if it can be none. root is the workspace's folder,
// which need not be there. It changes nothing and does not run git, which may
// still refuse the folder.
func Present(root, dir string) error {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	if _, ok := cloneRel(root, dir); !ok {
		return checkLocal(root, dir)
	}
	if info, err := os.Lstat(filepath.Join(dir, ".git")); err != nil || !info.IsDir() {
		return fault.Newf(fault.NotFound, "There is no clone in %s.", dir)
	}
	return nil
}

// cloneRel returns the place of a clone below root, if dir can be one.
func cloneRel(root, dir string) (string, bool) {
	rel, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(rel) || filepath.Clean(dir) != dir {
		return "", false
	}
	rel = filepath.ToSlash(rel)
	parts := strings.Split(rel, "/")
	want := 2
	if strings.ContainsAny(parts[0], ".+") {
		want = 3
	}
	return rel, len(parts) == want && parts[0][0] != '.'
}

func localKey(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	name := strings.Trim(unsafeName.ReplaceAllString(filepath.Base(dir), "-"), "-.")
	if len(name) > 40 {
		name = name[:40]
	}
	return name + "-" + hex.EncodeToString(sum[:5])
}

var unsafeName = pattern.Lazy(`[^A-Za-z0-9._-]+`)

// checkLocal checks the path of a local folder. root is the workspace's.
func checkLocal(root, dir string) error {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' }) {
		return fault.New(fault.Invalid, "Give the folder as an absolute path, without “..”.")
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Newf(fault.NotFound, "There is no folder %s.", dir)
	case err != nil:
		return &fault.Error{Kind: fault.Invalid, Public: "Cannot read " + dir + ".", Err: err}
	case !info.IsDir():
		return fault.Newf(fault.Invalid, "%s is not a folder.", dir)
	}
	for _, pair := range [][2]string{{root, dir}, {dir, root}} {
		if rel, err := filepath.Rel(pair[0], pair[1]); err == nil && filepath.IsLocal(rel) {
			return fault.New(fault.Invalid, "The folder and the workspace (WORKSPACE_PATH) cannot contain each other.")
		}
	}
	return nil
}

// discover returns the git directory of a local folder, or nothing if it is not
// the top of a repository. Finding it is left to git because git checks who owns
// it: somebody else's repository can hold configuration that runs programs.
func (f *folder) discover(ctx context.Context, dir string) (string, error) {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		if isBare(dir) {
			return "", fault.Newf(fault.Invalid, "%s is a bare repository: it has no files to work on. Add a clone of it.", dir)
		}
		return "", nil
	}
	out, err := f.git.Run(ctx, &gitcmd.Call{Dir: dir, Args: []string{"rev-parse", "--absolute-git-dir", "--show-toplevel", "--path-format=absolute", "--git-common-dir"}})
	if err != nil {
		switch {
		case said(err, "dubious ownership"):
			return "", &fault.Error{Kind: fault.Forbidden, Public: dir + " belongs to another user of this machine. Change its owner (chown) first.", Err: err}
		case fault.Is(err, fault.Internal):
			return "", &fault.Error{Kind: fault.Invalid, Public: "Git cannot read the repository " + dir + ". `git status` in it says why.", Err: err}
		}
		return "", fmt.Errorf("looking at %s: %w", dir, err)
	}
	lines := strings.Split(strings.TrimRight(string(out.Data), "\n"), "\n")
	if real, err := filepath.EvalSymlinks(dir); err != nil || len(lines) != 3 || lines[1] != real {
		return "", fault.Newf(fault.Invalid, "%s is not the top folder of its repository.", dir)
	}
	if lines[0] != lines[2] {
		return "", fault.Newf(fault.Invalid, "%s is a worktree of another repository. Add that one.", dir)
	}
	return lines[0], nil
}

// isBare reports whether a folder is what other repositories have in .git.
func isBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// said reports whether git failed with a text.
func said(err error, text string) bool {
	e, ok := errors.AsType[*gitcmd.Error](err)
	return ok && strings.Contains(e.Stderr, text)
}

// disarm returns configuration that switches off what the repository of a local
// folder has configured to be run: filters, and hooks that are configured.
func (f *folder) disarm(ctx context.Context, p place) ([]gitcmd.Pair, error) {
	out, err := f.git.Run(ctx, &gitcmd.Call{GitDir: p.gitDir, Args: []string{"config", "--list", "--name-only", "-z"}})
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of %s: %w", p.repo.Name, err)
	}
	var pairs []gitcmd.Pair
	for name := range strings.SplitSeq(string(out.Data), "\x00") {
		section, rest, _ := strings.Cut(name, ".")
		i := strings.LastIndexByte(rest, '.')
		if i < 0 {
			continue
		}
		value := ""
		switch variable := rest[i+1:]; {
		case section == "filter" && variable == "required":
			value = "false"
		case section == "filter" && (variable == "clean" || variable == "smudge" || variable == "process"):
		case section == "merge" && variable == "driver", section == "hook" && variable == "command":
			value = "false"
		default:
			continue
		}
		pairs = append(pairs, gitcmd.Pair{Key: name, Value: value})
	}
	return pairs, nil
}

// initPlain makes git's data for a plain folder if there is none yet.
func (f *folder) initPlain(ctx context.Context, p place) error {
	unlock, err := f.locks.lock(ctx, "init "+p.rel)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(p.gitDir, "HEAD")); err == nil {
		return nil
	}
	_, err = f.git.Run(ctx, &gitcmd.Call{Args: []string{"init", "--quiet", "--bare", "--initial-branch=main", "--", p.gitDir}})
	return fault.Note(err, "preparing the folder")
}

// run runs git on the shared part of a codebase and returns its trimmed output.
func (f *folder) run(ctx context.Context, p *place, c *gitcmd.Call) (string, error) {
	c.GitDir = cmp.Or(c.GitDir, p.gitDir)
	c.Config = append(c.Config, p.config...)
	c.Holds = p.holds
	out, err := f.git.Run(ctx, c)
	return strings.TrimRight(string(out.Data), "\n"), err
}

// just is run with arguments alone.
//
//go:noinline // a Call is large, and there are many
func (f *folder) just(ctx context.Context, p *place, args ...string) (string, error) {
	return f.run(ctx, p, &gitcmd.Call{Args: args})
}

// resolve returns the object name of a revision, or nothing if there is none.
func (f *folder) resolve(ctx context.Context, p place, revision string) (string, error) {
	out, err := f.just(ctx, &p, "rev-parse", "--verify", "--quiet", "--end-of-options", revision)
	if gitcmd.ExitCode(err) == 1 {
		return "", nil
	}
	return out, err
}

// checkSize refuses a commit whose files are larger in sum than a repository may
// be.
func (f *folder) checkSize(ctx context.Context, p place, commit string) error {
	out, err := f.git.Run(ctx, &gitcmd.Call{
		GitDir: p.gitDir, Config: p.config,
		Args: []string{"ls-tree", "-r", "--format=%(objectsize)", commit}, MaxOutput: 256 << 20,
	})
	if err != nil {
		return fmt.Errorf("measuring the files: %w", err)
	}
	var sum int64
	for line := range bytes.Lines(out.Data) {
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
		if err == nil { // a submodule has "-"
			sum += n
		}
		if sum > f.cfg.MaxBytes || sum < 0 {
			return fault.Newf(fault.Exhausted, "The repository's files exceed the limit of %d MiB.", f.cfg.MaxBytes>>20)
		}
	}
	return nil
}

// checkout writes the files of a commit into an empty directory and makes the
// index for it. Unlike "git checkout" it overwrites nothing that is there.
func (f *folder) checkout(ctx context.Context, p place, gitDir, dir, commit string) error {
	_, err := f.run(ctx, &p, &gitcmd.Call{
		Args:   []string{"read-tree", "-m", "-u", "--no-recurse-submodules", commit},
		GitDir: gitDir, WorkTree: dir, Config: parallel(), Timeout: f.cfg.CloneTimeout,
	})
	switch {
	case said(err, "from promisor remote"):
		return &fault.Error{Kind: fault.Unsupported, Public: p.repo.Name + " lacks files of this commit: it is a partial clone. Clone it again without --filter.", Err: err}
	case err != nil:
		return fmt.Errorf("writing the files: %w", err)
	}
	return nil
}

// parallel makes git write files with several processes, which hides the latency
// of the disk.
func parallel() []gitcmd.Pair {
	return []gitcmd.Pair{{Key: "checkout.workers", Value: "4"}, {Key: "checkout.thresholdForParallelism", Value: "500"}}
}

// origin returns the address that a clone came from.
func (f *folder) origin(ctx context.Context, p place) (remote.Remote, error) {
	out, err := f.just(ctx, &p, "config", "--local", "--get", "remote.origin.url")
	if err != nil {
		return remote.Remote{}, fmt.Errorf("reading where %s came from: %w", p.repo.Name, err)
	}
	r, err := f.hosts.Parse(out)
	if err == nil && r.Dir() != p.rel {
		err = fault.Newf(fault.Conflict, "The folder %s contains a clone of another repository.", p.rel)
	}
	return r, err
}

// endpoint returns where a remote is, with the credential for it.
func (f *folder) endpoint(ctx context.Context, r remote.Remote) (*gitcmd.Endpoint, error) {
	e := &gitcmd.Endpoint{
		Scheme: r.Scheme, Address: r.Address(), Origin: r.Origin(), Loopback: r.Loopback, MaxBytes: f.cfg.MaxBytes,
	}
	if f.cfg.RepoToken != nil {
		token, err := f.cfg.RepoToken(ctx, r.URL())
		if err != nil {
			return nil, fmt.Errorf("asking for a credential for %s: %w", r.URL(), err)
		}
		e.Token = token
	}
	if e.Token == "" {
		e.Token = f.cfg.Token(r.Host)
	}
	return e, nil
}

// reach returns the origin of a clone and its endpoint.
func (f *folder) reach(ctx context.Context, p place) (remote.Remote, *gitcmd.Endpoint, error) {
	r, err := f.origin(ctx, p)
	if err != nil {
		return r, nil, err
	}
	e, err := f.endpoint(ctx, r)
	return r, e, err
}

// advertised is what an origin says that it has.
type advertised struct {
	branch string // the default branch
	refs   map[string]string
}

// refsAtOrigin asks the origin for its default branch and for refs, of which
// empty ones are ignored.
func (f *folder) refsAtOrigin(ctx context.Context, p place, refs ...string) (advertised, error) {
	r, endpoint, err := f.reach(ctx, p)
	if err != nil {
		return advertised{}, err
	}
	args := []string{"ls-remote", "--symref", "--", r.CloneURL(), "HEAD"}
	for _, ref := range refs {
		if ref != "" {
			args = append(args, ref)
		}
	}
	out, err := f.run(ctx, &p, &gitcmd.Call{Args: args, Remote: endpoint, Timeout: f.cfg.FetchTimeout})
	if err != nil {
		return advertised{}, fmt.Errorf("asking %s for its branches: %w", r.URL(), err)
	}
	a := advertised{refs: map[string]string{}}
	var tip string
	a.branch, tip = parseHead(out)
	for line := range strings.Lines(out) {
		value, name, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if objectForm.MatchString(value) {
			a.refs[name] = value
		}
	}
	if a.branch != "" {
		a.refs[branchRef(a.branch)] = tip
	}
	return a, nil
}

// parseHead reads what ls-remote --symref prints for HEAD.
func parseHead(out string) (branch, tip string) {
	for line := range strings.Lines(out) {
		value, name, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if name != "HEAD" {
			continue
		}
		if b, ok := strings.CutPrefix(value, "ref: refs/heads/"); ok {
			branch = b
		} else {
			tip = value
		}
	}
	return branch, tip
}

func branchRef(branch string) string {
	if branch == "" {
		return ""
	}
	return "refs/heads/" + branch
}
