package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/config"
	"remote-agent/internal/heavytest"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sandbox"
	"remote-agent/internal/sessions"
	"remote-agent/internal/tool/mcp"
	"remote-agent/internal/tool/shell"
)

func TestMain(m *testing.M) {
	sandbox.RunIfHelper()
	os.Exit(m.Run())
}

// secret is in every file that no program may read.
const secret = "hunter2-nobody-may-read-this"

// levels are the four that a system can offer.
var levels = map[string][]string{
	"everything": nil, "no network namespaces": {"net"}, "no PID namespaces": {"pids"}, "Landlock alone": {"namespaces"},
}

// confinement is a service as the programs of its assistants meet it.
type confinement struct {
	t      testing.TB
	d      *programs
	space  *codebase.Workspace
	repo   codebase.Repo
	tree   codebase.Tree
	tools  *toolSets
	hosts  []string // of MCP servers
	around string   // a checkout of the operator's, in which the data directory lies

	secrets []string // files that no program may read
	doors   []string // files that no program may make
}

func newConfinement(t *testing.T, without []string, change ...func(*programs)) *confinement {
	t.Helper()
	around, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &confinement{t: t, around: around}
	data := filepath.Join(around, "data")
	cfg := config.Config{DataDir: data, WorkspacePath: filepath.Join(data, "workspace"), BackupDir: filepath.Join(data, "backups")}
	cfg.Agents.Home, cfg.Database = filepath.Join(data, "agents"), config.Database{Driver: config.DriverSQLite, Path: filepath.Join(data, "bot.db")}
	cfg.Tools.Sandbox = "best"
	log := slog.New(slog.DiscardHandler)
	c.d = &programs{config: cfg, log: log, env: Env{Log: log, Lookup: os.LookupEnv, SandboxWithout: without}}
	for _, f := range change {
		f(c.d)
	}
	if err := c.d.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.d.runner.Close(), c.d.outside.proxy.Close() })
	c.tools = &toolSets{config: c.d.config, runner: c.d.runner, outside: c.d.outside, homes: c.dir(data, "homes")}
	c.openCodebase(data)
	other, err := c.space.Worktree(t.Context(), c.repo, "another conversation")
	if err != nil {
		t.Fatal(err)
	}
	c.command("init", "-q", around)
	for _, dir := range []string{around, data, cfg.BackupDir, other.Dir, c.repo.Dir, c.dir(data, "agents", "other"), c.dir(data, "homes", "other"), c.dir(t.TempDir(), "keys")} {
		path := filepath.Join(dir, "secret")
		c.dir(dir)
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		c.secrets = append(c.secrets, path)
	}
	for _, dir := range []string{filepath.Join(around, ".git"), c.tree.GitData()} {
		c.doors = append(c.doors, filepath.Join(dir, "hooks", "post-commit"), filepath.Join(dir, "config.worktree"), filepath.Join(dir, "info", "attributes"))
	}
	c.doors = append(c.doors, filepath.Join(data, "new"), filepath.Join(filepath.Dir(c.tree.Dir), "new"))
	return c
}

// openCodebase clones a repository and makes the worktree of the conversation.
func (c *confinement) openCodebase(data string) {
	c.t.Helper()
	server := gittest.NewServer(c.t)
	server.Repo("acme/web", map[string]string{"sub/file": "1\n"})
	space, err := codebase.New(c.t.Context(), codebase.Config{Root: filepath.Join(data, "workspace"), AllowedHosts: []string{server.Host()}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = space.Close() })
	c.space = space
	if c.repo, err = space.Clone(c.t.Context(), server.URL("acme/web"), nil); err != nil {
		c.t.Fatal(err)
	}
	c.tree = c.worktree()
}

func (c *confinement) worktree() codebase.Tree {
	c.t.Helper()
	tree, err := c.space.Worktree(c.t.Context(), c.repo, "conversation")
	if err != nil {
		c.t.Fatal(err)
	}
	return tree
}

func (c *confinement) dir(parts ...string) string {
	c.t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	return dir
}

func (c *confinement) command(args ...string) {
	c.t.Helper()
	if out, err := exec.CommandContext(c.t.Context(), "git", args...).CombinedOutput(); err != nil {
		c.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// as runs a script as one kind of program, the way the service does that, in the
// worktree as the service knows it.
func (c *confinement) as(kind, script string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	tree := c.tree // within one turn nothing is put back
	dir := filepath.Join(tree.Dir, "sub")
	argv := []string{"/bin/sh", "-c", script}
	switch kind {
	case "bash":
		run, err := c.tools.commands(orchestrator.ToolTurn{Conversation: sessions.Conversation{ID: "conversation"}, Dir: dir, Tree: tree.Dir, GitData: tree.GitData()})
		if err != nil {
			c.t.Fatal(err)
		}
		out, err := run(ctx, shell.Command{Argv: argv, Dir: dir, Timeout: time.Minute, Head: 64 << 10, Tail: 64 << 10})
		return string(out.Head) + string(out.Tail) + c.started(err)
	case "agent", "reader":
		p, err := c.d.startAgent("robot", c.dir(c.d.config.Agents.Home, "robot"))(ctx, acp.StartSpec{
			Command: argv, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: dir, Tree: tree.Dir, GitData: tree.GitData(), ReadOnly: kind == "reader",
		})
		if err != nil {
			return c.started(err)
		}
		out, _ := io.ReadAll(p.Stdout())
		_ = p.Wait()
		return string(out) + p.StderrTail()
	default:
		start := c.d.outside.startServer(c.dir(c.d.config.DataDir, "mcp", "server"))
		p, err := start(ctx, mcp.Server{Name: "server", Command: argv, Hosts: c.hosts})
		if err != nil {
			return c.started(err)
		}
		out, _ := io.ReadAll(p.Stdout)
		_ = p.Stop()
		return string(out)
	}
}

// started takes an error of a start: the folder that a program is to work in can
// be gone, and then it does not run.
func (c *confinement) started(err error) string {
	if err == nil {
		return ""
	}
	return "not started: " + err.Error()
}

var kinds = []string{"bash", "agent", "mcp"}

// mutation is a script that changes what a later grant could be made of. $S is a
// folder with a secret.
func mutation(t *rapid.T, c *confinement) string {
	folder := filepath.Dir(rapid.SampledFrom(c.secrets).Draw(t, "secret"))
	home := `"$HOME"`
	tree := "'" + c.tree.Dir + "'"
	return fmt.Sprintf("S='%s'; ", folder) + rapid.SampledFrom([]string{
		`printf 'gitdir: %s/x/y' "$S" >` + tree + `/.git`,
		`printf 'gitdir: %s' "$S" >../.git; printf 'gitdir: %s/a/b\n' "$S" >.git`,
		`rm -rf ` + tree + `/.git`,
		`rm -rf ` + tree + `/.git; ln -s "$S" ` + tree + `/.git`,
		`mv ` + tree + `/.git ` + tree + `/moved; mkdir -p ` + tree + `/.git/objects/info; echo "$S" >` + tree + `/.git/commondir; echo "$S" >` + tree + `/.git/objects/info/alternates`,
		`rm -rf ` + tree + `/.git; cd ` + tree + ` && git init -q . && git config core.worktree "$S" && git config core.hooksPath "$S"`,
		`ln ` + tree + `/.git ` + tree + `/hard; echo "gitdir: $S/x/y" >` + tree + `/hard`,
		`cd ` + tree + ` && rm -rf sub && ln -s "$S" sub`,
		`cd ` + tree + ` && mkdir -p a && ln -sfn "$S" a/link; ln -sfn ../../.. up`,
		`cd ` + tree + ` && git config core.fsmonitor "touch $S/x"; git config --global core.worktree "$S"; git worktree add ../evil`,
		`rm -rf ` + home + `/x; ln -s "$S" ` + home + `/x; rmdir ` + home + `; mv ` + home + ` "$HOME-moved"; ln -s "$S" "$HOME"`,
		`mount --bind "$S" ` + tree + `; unshare -rm true; umount ` + tree + `/.git`,
		`mkdir -p "$HOME/.config/git"; printf '[core]\n\tworktree = %s\n' "$S" >"$HOME/.gitconfig"`,
	}).Draw(t, "mutation")
}

// spy is a script that reads and writes whatever it can reach.
func (c *confinement) spy() string {
	var b strings.Builder
	b.WriteString("exec 2>&1\n")
	for _, path := range c.secrets {
		fmt.Fprintf(&b, "cat '%s'; ls '%s'; cat .git/secret ../.git/secret sub/secret a/link/secret up/*/secret \"$HOME\"/x/secret secret\n", path, filepath.Dir(path))
	}
	for _, path := range c.doors {
		fmt.Fprintf(&b, "mkdir -p '%s'; echo 'touch /tmp/owned' >'%s'; ln -sf /dev/null '%s'\n", filepath.Dir(path), path, path)
	}
	// What git finds by itself, it may write to.
	b.WriteString(`d=$(git rev-parse --absolute-git-dir) && echo x >"$d/hooks/post-commit" && echo "DOOR $d"; git config core.fsmonitor x; true` + "\n")
	return b.String()
}

// TestFinding1GrantsAreFixed lets programs change all that they can reach, and
// looks what the next ones are given.
func TestFinding1GrantsAreFixed(t *testing.T) {
	rounds := heavytest.Size(2, 5) // each is a dozen programs
	for name, without := range levels {
		t.Run(name, func(t *testing.T) {
			c := newConfinement(t, without)
			if level := c.d.runner.Level(); !level.Files || level.View == slices.Contains(without, "namespaces") {
				t.Skipf("this system does not offer the level: %s", level)
			}
			c.checkFixed(t, rounds)
		})
	}
}

func (c *confinement) checkFixed(t *testing.T, rounds int) {
	t.Helper()
	before := granted(filepath.Join(c.tree.Dir, "sub"), c.tree.Dir, c.tree.GitData(), "home")
	if !slices.Equal(before.ReadOnly, []string{filepath.Join(c.repo.Dir, ".git")}) || !slices.Equal(before.Writable, []string{c.tree.Dir}) {
		t.Fatalf("granted %+v", before)
	}
	gitFile, err := os.ReadFile(filepath.Join(c.tree.Dir, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	if out := c.as("bash", "git status --short && git log --format=%s"); out == "" || strings.Contains(out, "fatal") {
		t.Fatalf("git in the sandbox: %s", out)
	}
	done := 0
	rapid.Check(t, func(rt *rapid.T) {
		if done++; done > rounds {
			return
		}
		c.reset()
		var said []string
		for _, kind := range kinds {
			script := mutation(rt, c) + "\n" + mutation(rt, c)
			said = append(said, kind+": "+script+"\n"+c.as(kind, "exec 2>&1\n"+script))
		}
		if c.d.runner.Level().View {
			if text, err := os.ReadFile(filepath.Join(c.tree.Dir, ".git")); err != nil || string(text) != string(gitFile) {
				rt.Errorf("a program changed .git to %q (%v)\n%s", text, err, strings.Join(said, "\n"))
			}
		}
		tree := c.worktree()
		if diff := cmp.Diff(before, granted(filepath.Join(tree.Dir, "sub"), tree.Dir, tree.GitData(), "home")); diff != "" {
			rt.Errorf("other grants:\n%s\n%s", diff, strings.Join(said, "\n"))
		}
		if text, err := os.ReadFile(filepath.Join(tree.Dir, ".git")); err != nil || string(text) != string(gitFile) {
			rt.Errorf(".git is %q (%v)", text, err)
		}
		for _, kind := range kinds {
			out := c.as(kind, c.spy())
			if strings.Contains(out, secret) || strings.Contains(out, "DOOR") {
				rt.Errorf("%s got out after\n%s\n%s", kind, strings.Join(said, "\n"), out)
			}
		}
		for _, path := range c.doors {
			if _, err := os.Lstat(path); err == nil && !strings.HasSuffix(path, "info/attributes") {
				rt.Errorf("a program made %s after\n%s", path, strings.Join(said, "\n"))
			}
		}
		if err := c.openedOutside(tree); err != nil {
			rt.Errorf("%v after\n%s", err, strings.Join(said, "\n"))
		}
	})
}

// TestATurnThatReadsChangesNothing has an agent that asks nobody: in a turn that may only
// read it cannot change the worktree, and reads it as in any other.
func TestATurnThatReadsChangesNothing(t *testing.T) {
	for name, without := range levels {
		t.Run(name, func(t *testing.T) {
			c := newConfinement(t, without)
			if level := c.d.runner.Level(); !level.Files || level.View == slices.Contains(without, "namespaces") {
				t.Skipf("this system does not offer the level: %s", level)
			}
			const script = `cat file; git log --format=%s; echo 2 > file; touch ../new; rm -f file; mkdir made; echo changed > "$HOME/own" && cat "$HOME/own"`
			out := c.as("reader", script)
			if text, err := os.ReadFile(filepath.Join(c.tree.Dir, "sub", "file")); err != nil || string(text) != "1\n" {
				t.Errorf("the file is %q (%v)", text, err)
			}
			if left, err := filepath.Glob(filepath.Join(c.tree.Dir, "*", "made")); err != nil || len(left) > 0 || !strings.HasPrefix(out, "1\n") || !strings.Contains(out, "changed\n") || strings.Contains(out, "fatal") {
				t.Errorf("%v, %v\n%s", left, err, out)
			}
			if _, err := os.Lstat(filepath.Join(c.tree.Dir, "new")); err == nil {
				t.Error("it made a file")
			}
			c.as("agent", script)
			if _, err := os.Lstat(filepath.Join(c.tree.Dir, "new")); err != nil {
				t.Errorf("in another turn: %v", err)
			}
		})
	}
}

// openedOutside opens the folder of the file tools, which may be a link by now.
func (c *confinement) openedOutside(tree codebase.Tree) error {
	root, err := openWorkDir(orchestrator.ToolTurn{Dir: filepath.Join(tree.Dir, "sub"), Tree: tree.Dir})
	if err != nil {
		return nil //nolint:nilerr // refused
	}
	defer root.Close() //nolint:errcheck // only read
	if text, err := root.ReadFile("secret"); err == nil {
		return fmt.Errorf("the file tools read %q", text)
	}
	return nil
}

// reset makes the worktree usable again.
func (c *confinement) reset() {
	c.t.Helper()
	sub := filepath.Join(c.tree.Dir, "sub")
	if info, err := os.Lstat(sub); err != nil || !info.IsDir() {
		_ = os.RemoveAll(sub)
		c.dir(sub)
	}
}

// TestFinding1GitFileIsNotBelieved is the attack as it was found: a command names
// a folder in .git, and the next one reads it.
func TestFinding1GitFileIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, without := range levels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConfinement(t, without)
			key := c.secrets[len(c.secrets)-1]
			c.as("bash", fmt.Sprintf("printf 'gitdir: %s/x/y' >../.git; rm -f ../.git", filepath.Dir(key)))
			c.as("bash", fmt.Sprintf("printf 'gitdir: %s/x/y' >../.git", filepath.Dir(key)))
			for _, kind := range kinds {
				if out := c.as(kind, fmt.Sprintf("cat '%s' '%s'; git -C .. config x.y z; true", key, c.secrets[0])); strings.Contains(out, secret) {
					t.Errorf("%s reads what .git names: %s", kind, out)
				}
			}
			if text, err := os.ReadFile(filepath.Join(c.around, ".git", "config")); err != nil || strings.Contains(string(text), "[x]") {
				t.Errorf("the checkout around: %v\n%s", err, text)
			}
		})
	}
}

// TestFinding1AsOrdinaryUser runs the same as somebody who is not root.
func TestFinding1AsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the other tests run as an ordinary user already")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "grants-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "test")
	if err := os.WriteFile(name, program, 0o755); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), name, "-test.v", "-test.run=^TestFinding1GrantsAreFixed$/^(everything|Landlock_alone)$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFinding1GrantsAreFixed/") && !strings.Contains(string(out), "--- SKIP") {
		t.Errorf("%v\n%s", err, out)
	}
}
