//go:build linux

package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/sandbox"
)

const secret = "hunter2-do-not-read"

// TestSecrets looks for what only the daemon may know, in every place where a
// program could find it.
func TestSecrets(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	write(t, secret, data, "bot.db")
	worktree := filepath.Join(data, "worktrees", "one")
	env := write(t, "TOKEN="+secret, worktree, ".env")
	other := write(t, secret, data, "worktrees", "two", "file")
	cfg := sandbox.Config{
		Hidden:     []string{data, env, filepath.Join(data, "missing")},
		Grantable:  []sandbox.Area{{Dir: filepath.Join(data, "worktrees"), Write: true}},
		AllowedEnv: []string{"ALLOWED", "MISSING"},
		Env: func(name string) (string, bool) {
			value, ok := map[string]string{"TOKEN": secret, "ALLOWED": "a b=c", "PATH": "/usr/bin:/bin"}[name]
			return value, ok
		},
	}
	victim := exec.CommandContext(t.Context(), "sleep", "300")
	victim.Env = []string{"VICTIM=" + secret}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	for _, w := range confining {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, cfg)
			s := script(`
			env; cat /proc/self/environ /proc/$PPID/environ /proc/$1/environ /proc/$2/environ /proc/[0-9]*/environ
			for p in $PPID $1 $2; do cat /proc/$p/mem /proc/$p/maps; ls -l /proc/$p/fd/ /proc/$p/root/ /proc/$p/cwd/; done
			cat "$3/bot.db" "$3"/* "$4" .env ../two/file "$3/worktrees/two/file"; ls -a "$3"
			ln -s "$3/bot.db" link; cat link; cp .env copy; cat copy; grep -r hunter . "$3"
			mv .env moved; cat moved; cat <.env; true
		`, strconv.Itoa(os.Getpid()), strconv.Itoa(victim.Process.Pid), data, other)
			s.Dir, s.Writable = worktree, []string{worktree}
			s.Env = []string{"GIVEN=yes"}
			_, out := run(t, r, s)
			if strings.Contains(out, secret) {
				t.Errorf("the secret was found:\n%s", out)
			}
			for _, want := range []string{"ALLOWED=a b=c\n", "PATH=/usr/bin:/bin\n", "GIVEN=yes\n", "TERM=dumb\n", "HOME=", "TMPDIR="} {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
			if strings.Contains(out, "/bin/sh\x00") && strings.Contains(out, "sandbox-supervise") {
				t.Errorf("the helper's environment or arguments:\n%s", out)
			}
		})
	}
}

// TestFiles reads and writes what was granted, and tries to get at the rest.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, w := range confining {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			outside, readOnly, worktree := t.TempDir(), t.TempDir(), t.TempDir()
			write(t, secret, outside, "file")
			write(t, secret, outside, "dir", "file")
			write(t, "readable", readOnly, "file")
			if err := os.Symlink(outside, filepath.Join(worktree, "escape")); err != nil {
				t.Fatal(err)
			}
			s := script(`
			echo "inside" >file && cat file && mkdir -p a/b && mv file a/b/ && rm -r a && echo 1-ok
			printf '#!/bin/sh\necho executed\n' >run && chmod +x run && ./run && echo 2-ok
			cat "$2/file" && echo 3-ok
			echo x >"$TMPDIR/t" && echo x >"$HOME/h" && echo 4-ok
			ln -s "$1/file" link; ln -s ../../../../../../../../../"$1" up
			cat "$1/file" link escape/file escape/dir/file up/file "$(pwd)/../$(basename $1)/file" /proc/self/root/"$1/file" /proc/self/cwd/escape/file
			ls "$1" escape/ up/
			ln "$1/file" hard && cat hard
			cat /etc/shadow /etc/sudoers && echo BAD-shadow
			echo x >"$1/new" && echo BAD-new; echo x >link && echo BAD-link; echo x >escape/new && echo BAD-escape
			rm -f "$1/file"; mv "$1/file" stolen; mv run "$1/run" && echo BAD-moved
			echo x >"$2/file" && echo BAD-readonly; touch "$2/new" && echo BAD-readonly-new; rm -f "$2/file" && echo BAD-readonly-rm
			touch /usr/bin/x /etc/x /x /dev/x /proc/sys/x && echo BAD-system
			echo x >/proc/sys/kernel/core_pattern && echo BAD-core-pattern
			mkdir /var/x && echo BAD-var; cat /root/.bashrc && echo BAD-root; : >"$1/file"; true
		`, outside, readOnly)
			s.Dir, s.Writable, s.ReadOnly = worktree, []string{worktree}, []string{readOnly}
			_, out := run(t, r, s)
			for _, want := range []string{"inside\n1-ok", "executed\n2-ok", "readable3-ok", "4-ok"} {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
			if strings.Contains(out, "BAD") || strings.Contains(out, secret) {
				t.Errorf("got out:\n%s", out)
			}
			if got := read(t, outside, "file"); got != secret {
				t.Errorf("the file outside is now %q", got)
			}
			if got := read(t, readOnly, "file"); got != "readable" {
				t.Errorf("the read-only file is now %q", got)
			}
			for _, dir := range []string{outside, readOnly} {
				if _, err := os.Lstat(filepath.Join(dir, "new")); err == nil {
					t.Errorf("%s has a new file", dir)
				}
			}
		})
	}
}

// TestWorktree uses git in a worktree, whose repository is elsewhere.
func TestWorktree(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git here")
	}
	for _, w := range []weaker{everything, likeDocker} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			clone, tree := filepath.Join(t.TempDir(), "clone"), filepath.Join(t.TempDir(), "tree")
			for _, args := range [][]string{
				{"init", "-q", clone},
				{"-C", clone, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "first"},
				{"-C", clone, "worktree", "add", "-q", "-b", "work", tree},
			} {
				if out, err := exec.CommandContext(t.Context(), git, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
			}
			write(t, "not for the worktree", clone, "file")
			s := script(`echo 1 >f && git add f && git -c user.name=x -c user.email=x@y commit -q -m second && git log --format=%s; cat "$1/file"`, clone)
			s.Dir, s.Writable = tree, []string{tree, filepath.Join(clone, ".git")}
			result, out := run(t, r, s)
			if !strings.HasPrefix(out, "second\nfirst\n") || strings.Contains(out, "not for") {
				t.Errorf("%+v\n%s", result, out)
			}
		})
	}
}

// TestNoPipeInAWorktree: git, which runs outside of the sandbox, would wait at one called
// .gitignore. Elsewhere programs need them.
func TestNoPipeInAWorktree(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, likeDocker, likeOld} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			tree, err := os.MkdirTemp("/var/tmp", "tree") // what lies in /tmp has the rights of /tmp
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(tree) })
			s := script(`mkfifo "$TMPDIR/pipe" && echo made; mkfifo .gitignore; mv "$TMPDIR/pipe" .gitignore; ln "$TMPDIR/pipe" .gitignore; ls -A`)
			s.Dir, s.Writable = tree, []string{tree}
			_, out := run(t, r, s)
			if _, err := os.Lstat(filepath.Join(tree, ".gitignore")); err == nil || !strings.Contains(out, "made\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestSealed tries to change a protected file of a granted directory by every way.
func TestSealed(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, viewOnly, noPIDs} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			dir := t.TempDir()
			sealed := write(t, "kept", dir, "tree", ".git")
			before, err := os.Lstat(sealed)
			if err != nil {
				t.Fatal(err)
			}
			s := script(`cat .git; echo x >.git; rm -f .git; mv .git y; ln .git hard && echo x >hard; ln -s / l; mv l .git
			cd ..; mv tree elsewhere; rm -rf tree; cd tree; touch .git; chmod 777 .git; mkdir .git; truncate -s0 .git; echo made >other; true`)
			s.Dir, s.Writable, s.Sealed = filepath.Join(dir, "tree"), []string{filepath.Join(dir, "tree")}, []string{sealed}
			if _, out := run(t, r, s); !strings.HasPrefix(out, "kept") {
				t.Errorf("it cannot be read: %s", out)
			}
			if got := read(t, sealed); got != "kept" {
				t.Errorf("it is now %q", got)
			}
			if info, err := os.Lstat(sealed); err != nil || info.Mode() != before.Mode() {
				t.Errorf("%v %v", info, err)
			}
			if err := os.Remove(sealed); err != nil {
				t.Fatal(err)
			}
			for _, target := range []string{"", "/etc"} {
				if target != "" && os.Symlink(target, sealed) != nil {
					t.Fatal("no link")
				}
				if _, err := r.Command(t.Context(), s); !fault.Is(err, fault.Conflict) {
					t.Errorf("replaced by %q: %v", target, err)
				}
			}
		})
	}
}

// listener counts who comes.
func listener(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tcp := listener(t, "tcp", "127.0.0.1:0").Addr().String()
	second := listener(t, "tcp", "127.0.0.1:0").Addr().String()
	path := listener(t, "unix", filepath.Join(dir, "socket")).Addr().String()
	abstract := "@" + filepath.Base(dir) + strconv.Itoa(os.Getpid())
	listener(t, "unix", abstract)
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packets.Close() })
	refusals := []string{"refused", "denied", "not permitted", "unreachable", "no such file"}

	for _, w := range []weaker{everything, viewOnly, noPIDs, likeDocker, likeOld, filterOnly} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			for _, to := range [][2]string{
				{"tcp", tcp}, {"udp", packets.LocalAddr().String()}, {"unix", path}, {"unix", abstract},
				{"tcp", "192.0.2.1:80"}, {"udp", "192.0.2.1:53"}, {"udp", "[2001:db8::1]:53"},
			} {
				_, out := run(t, r, probing("dial", to[0], to[1]))
				if to[1] == packets.LocalAddr().String() && r.Level().Network {
					continue // it can be sent, but goes nowhere; see the end of the test
				}
				if !refusedWith(out, refusals...) {
					t.Errorf("%s %s: %s", to[0], to[1], out)
				}
			}
			if _, out := run(t, r, probing("loopback")); (out == "done\n") != r.Level().Loopback {
				t.Errorf("a server inside, which works is %v: %s", r.Level().Loopback, out)
			}
			open := probing("dial", "tcp", tcp)
			open.Network = true
			if _, out := run(t, r, open); out != "done\n" {
				t.Errorf("TCP that is allowed: %s", out)
			}
			if r.Level().Landlock < 4 {
				return
			}
			_, port, _ := net.SplitHostPort(tcp)
			open.Ports = []uint16{uint16(number(t, port))}
			if _, out := run(t, r, open); out != "done\n" {
				t.Errorf("a port that is allowed: %s", out)
			}
			closed := probing("dial", "tcp", second)
			closed.Network, closed.Ports = true, open.Ports
			if _, out := run(t, r, closed); !refusedWith(out, refusals...) {
				t.Errorf("another port: %s", out)
			}
		})
	}
	// Nothing has arrived: what is sent now is the first.
	if _, err := packets.WriteTo([]byte("end"), packets.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 16)
	t.Cleanup(func() {
		if n, _, err := packets.ReadFrom(buffer); err != nil || string(buffer[:n]) != "end" {
			t.Errorf("a packet from inside: %q %v", buffer[:n], err)
		}
	})
}

// TestOutlets gives a program ports that this process serves, and nothing else of
// the network.
func TestOutlets(t *testing.T) {
	t.Parallel()
	outside := listener(t, "tcp", "127.0.0.1:0").Addr().String()
	for _, w := range []weaker{everything, noPIDs} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			serve := func(l net.Listener) {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					fmt.Fprintln(conn, "served", l.Addr())
					_ = conn.Close()
				}
			}
			for _, port := range []string{"3128", "80"} {
				s := sandbox.Spec{Argv: []string{"/bin/bash", "-c", "cat </dev/tcp/127.0.0.1/" + port}}
				s.Outlets = []sandbox.Outlet{{Port: 3128, Serve: serve}, {Port: 80, Serve: serve}}
				if _, out := run(t, r, s); out != "served 127.0.0.1:"+port+"\n" {
					t.Errorf("port %s: %s", port, out)
				}
			}
			for _, to := range []string{outside, "127.0.0.1:3129", "192.0.2.1:80"} {
				s := probing("dial", "tcp", to)
				s.Outlets = []sandbox.Outlet{{Port: 3128, Serve: serve}}
				if _, out := run(t, r, s); !refusedWith(out, "refused", "unreachable", "denied") {
					t.Errorf("%s: %s", to, out)
				}
			}
			both := probing("x")
			both.Network, both.Outlets = true, []sandbox.Outlet{{Port: 1, Serve: serve}}
			if _, err := r.Command(t.Context(), both); !fault.Is(err, fault.Invalid) {
				t.Errorf("network and outlets: %v", err)
			}
			gone := sandbox.Spec{Argv: []string{"no-such-program"}, Outlets: []sandbox.Outlet{{Port: 1, Serve: serve}}}
			p, err := r.Command(t.Context(), gone)
			if err == nil {
				err = p.Start()
			}
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("a program that is not there: %v", err)
			}
		})
	}
	r := newRunner(t, likeDocker, sandbox.Config{})
	s := script("true")
	s.Outlets = []sandbox.Outlet{{Port: 1}}
	if _, err := r.Command(t.Context(), s); !fault.Is(err, fault.Unsupported) {
		t.Errorf("outlets without a namespace: %v", err)
	}
}

// TestStrictNeedsANamespaceForTheNetwork: without one the network of this machine
// would be the program's.
func TestStrictNeedsANamespaceForTheNetwork(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, likeDocker} {
		r := newRunner(t, w, sandbox.Config{Mode: sandbox.Strict})
		s := script("true")
		s.Network = true
		if _, err := r.Command(t.Context(), s); !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err), "SANDBOX=strict refuses to start") {
			t.Errorf("%s: %v", w.name, err)
		}
	}
}

// TestPrivileges tries what takes privileges, or rights over other processes.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	own := strconv.Itoa(os.Getpid())
	for _, w := range []weaker{everything, viewOnly, noPIDs, likeDocker, likeOld, filterOnly} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			probes := [][]string{{"mount"}}
			if r.Level().Files {
				probes = append(probes, []string{"attach", own}, []string{"open", "/proc/" + own + "/mem"}, []string{"open", "/dev/kmsg"})
			}
			if r.Level().Seccomp {
				probes = append(probes, []string{"unshare"}, []string{"keys"}, []string{"signal", own})
				if !r.Level().Processes {
					probes = append(probes, []string{"signal all"})
				}
				if !r.Level().View {
					probes = append(probes, []string{"segment"})
				}
			}
			for _, p := range probes {
				_, out := run(t, r, probing(p...))
				if !refusedWith(out, "not permitted", "denied", "no such", "not implemented") {
					t.Errorf("%v: %s", p, out)
				}
			}
			_, out := run(t, r, script(`grep -E '^(Cap(Prm|Eff|Bnd|Inh|Amb)|NoNewPrivs)' /proc/self/status; ls -l /proc/self/fd | wc -l`))
			if strings.Count(out, "0000000000000000") != 5 && os.Geteuid() == 0 || !strings.Contains(out, "NoNewPrivs:\t1") {
				t.Errorf("privileges inside:\n%s", out)
			}
		})
	}
}

// TestDescriptors looks for files that were open in the daemon.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, likeDocker, nothing} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			_, out := run(t, r, script(`for f in /proc/self/fd/*; do echo "${f##*/}"; done`))
			if got := linesOf(out); len(got) < 3 || len(got) > 4 { // the shell's own for the directory
				t.Errorf("descriptors %q", got)
			}
			if _, out := run(t, r, script(`cat /proc/$PPID/fd/3 /proc/$PPID/cmdline /proc/self/cmdline`)); strings.Contains(out, "Argv") {
				t.Errorf("the order: %q", out)
			}
		})
	}
}
