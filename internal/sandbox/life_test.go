//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
	"remote-agent/internal/heavytest"
	"remote-agent/internal/sandbox"
	"remote-agent/internal/waittest"
)

func TestResult(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, likeDocker, nothing} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			if got, out := run(t, r, script("echo out; echo err >&2; exit 7")); got.Code != 7 || got.Signal != "" || got.Ended != sandbox.EndedItself || out != "out\nerr\n" {
				t.Errorf("%+v %q", got, out)
			}
			if got, _ := run(t, r, script("kill -KILL $$")); got.Code != -1 || got.Signal != "killed" || got.Ended != sandbox.EndedItself {
				t.Errorf("%+v", got)
			}
			s := script("cat; pwd")
			s.Stdin = strings.NewReader("given\n")
			if got, out := run(t, r, s); got.Code != 0 || !strings.HasPrefix(out, "given\n/") {
				t.Errorf("%+v %q", got, out)
			}
			if got, out := run(t, r, script("cat")); got.Code != 0 || out != "" {
				t.Errorf("without input: %+v %q", got, out)
			}
			bytes := "\xff\x00"[:1]
			if got, out := run(t, r, script(`printf %s "$1" | od -An -tx1`, bytes)); strings.TrimSpace(out) != "ff" {
				t.Errorf("bytes that are no UTF-8: %+v %q", got, out)
			}
			if got, _ := run(t, r, script("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")); got.CPU <= 0 || got.MaxRSS <= 0 || got.Duration < got.CPU/4 {
				t.Errorf("usage: %+v", got)
			}
		})
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, likeDocker, nothing} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			dir := t.TempDir()
			text := write(t, "no program", dir, "text")
			binary := write(t, "\x7fELF broken", dir, "broken")
			if err := os.Chmod(binary, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, c := range map[string]struct {
				argv []string
				kind fault.Kind
				text string
			}{
				"unknown":      {[]string{"no-such-program-here"}, fault.NotFound, "no-such-program-here"},
				"no file":      {[]string{"./gone"}, fault.NotFound, "./gone"},
				"no program":   {[]string{text}, fault.Forbidden, "executable"},
				"broken":       {[]string{binary}, fault.Invalid, "not a program"},
				"too long":     {[]string{"echo", strings.Repeat("x", 4<<20)}, fault.Invalid, "too long"},
				"is directory": {[]string{"./"}, fault.Forbidden, "executable"},
			} {
				p, err := r.Command(t.Context(), sandbox.Spec{Argv: c.argv, Dir: dir, Writable: []string{dir}})
				if err != nil {
					t.Fatal(err)
				}
				err = p.Start()
				if fault.KindOf(err) != c.kind || !strings.Contains(fault.Public(err), c.text) {
					t.Errorf("%s: %v: %v", name, fault.KindOf(err), err)
				}
				if _, again := p.Wait(); !errors.Is(again, err) {
					t.Errorf("%s: Wait says %v", name, again)
				}
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			p, err := r.Command(ended, script("true"))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); fault.KindOf(err) != fault.Canceled {
				t.Errorf("after the end of the context: %v", err)
			}
			if err := p.Start(); fault.KindOf(err) != fault.Invalid {
				t.Errorf("started again: %v", err)
			}
		})
	}
}

func TestSpecs(t *testing.T) {
	t.Parallel()
	dir, hidden := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(hidden, link); err != nil {
		t.Fatal(err)
	}
	area, other := filepath.Join(hidden, "homes"), filepath.Join(hidden, "other")
	for _, d := range []string{filepath.Join(area, "mine"), filepath.Join(area, "keys"), other, filepath.Join(hidden, "clones", "one")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	leads := filepath.Join(area, "leads")
	if err := os.Symlink(other, leads); err != nil {
		t.Fatal(err)
	}
	nextDoor := filepath.Join(area, "next-door")
	if err := os.Symlink("mine", nextDoor); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, nothing, sandbox.Config{
		Hidden:    []string{hidden, filepath.Join(area, "keys")},
		Grantable: []sandbox.Area{{Dir: area, Write: true}, {Dir: filepath.Join(hidden, "clones")}},
	})
	a := []string{"a"}
	for name, spec := range map[string]sandbox.Spec{
		"a home": {Argv: a, Home: filepath.Join(area, "mine")}, "a clone": {Argv: a, ReadOnly: []string{filepath.Join(hidden, "clones", "one")}},
	} {
		if _, err := r.Command(t.Context(), spec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		spec sandbox.Spec
		kind fault.Kind
	}{
		"nothing to run": {sandbox.Spec{}, fault.Invalid},
		"NUL":            {sandbox.Spec{Argv: []string{"a\x00b"}}, fault.Invalid},
		"no variable":    {sandbox.Spec{Argv: []string{"a"}, Env: []string{"x"}}, fault.Invalid},
		"no name":        {sandbox.Spec{Argv: []string{"a"}, Env: []string{"=x"}}, fault.Invalid},
		"relative":       {sandbox.Spec{Argv: []string{"a"}, Writable: []string{"x"}}, fault.Invalid},
		"relative dir":   {sandbox.Spec{Argv: []string{"a"}, Dir: "x"}, fault.Invalid},
		"everything":     {sandbox.Spec{Argv: []string{"a"}, ReadOnly: []string{"/"}}, fault.Invalid},
		"gone":           {sandbox.Spec{Argv: []string{"a"}, ReadOnly: []string{dir + "/gone"}}, fault.NotFound},
		"dir elsewhere":  {sandbox.Spec{Argv: []string{"a"}, Writable: []string{dir}, Dir: dir + "x"}, fault.Invalid},
		"hidden":         {sandbox.Spec{Argv: []string{"a"}, Writable: []string{hidden}}, fault.Forbidden},
		"hidden by link": {sandbox.Spec{Argv: []string{"a"}, ReadOnly: []string{link}}, fault.Forbidden},
		"below hidden":   {sandbox.Spec{Argv: a, ReadOnly: []string{other}}, fault.Forbidden},
		"an area":        {sandbox.Spec{Argv: a, Writable: []string{area}}, fault.Forbidden},
		"hidden in area": {sandbox.Spec{Argv: a, Writable: []string{filepath.Join(area, "keys")}}, fault.Forbidden},
		"out of an area": {sandbox.Spec{Argv: a, Writable: []string{leads}}, fault.Forbidden},
		"link in area":   {sandbox.Spec{Argv: a, Home: nextDoor}, fault.Forbidden},
		"only to read":   {sandbox.Spec{Argv: a, Writable: []string{filepath.Join(hidden, "clones", "one")}}, fault.Forbidden},
		"sealed nowhere": {sandbox.Spec{Argv: a, Sealed: []string{dir}}, fault.Invalid},
		"home gone":      {sandbox.Spec{Argv: []string{"a"}, Home: dir + "/gone"}, fault.NotFound},
	} {
		if _, err := r.Command(t.Context(), c.spec); fault.KindOf(err) != c.kind || fault.Public(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, cfg := range map[string]sandbox.Config{
		"mode": {Mode: "maximum"}, "relative": {ReadOnly: []string{"x"}}, "hidden to read": {ReadOnly: []string{other}, Hidden: []string{hidden}}, "relative hidden": {Hidden: []string{"x"}}, "relative dir": {Dir: "x"},
	} {
		if _, err := sandbox.New(cfg); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sandbox.New(sandbox.Config{Self: "/bin/true"}); fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), "RunIfHelper") {
		t.Errorf("a program that is no helper: %v", err)
	}
}

// TestHome keeps a home directory, and removes private ones whatever is in them.
func TestHome(t *testing.T) {
	t.Parallel()
	base, home := filepath.Join(t.TempDir(), "bot [old]"), t.TempDir()
	write(t, "left", base, "run-old", "home", "x")
	write(t, "not ours", base, "other")
	for _, w := range []weaker{everything} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{Dir: base})
			s := script(`echo kept >"$HOME/file"; pwd`)
			s.Home = home
			s.Dir = home
			run(t, r, s)
			if got := read(t, home, "file"); got != "kept\n" {
				t.Errorf("home has %q", got)
			}
			run(t, r, script(`mkdir -p "$HOME/a/b" /tmp/c && echo x >"$HOME/a/b/x" && chmod -R a-w "$HOME/a" && ln -s /usr "$HOME/link"`))
			entries, err := os.ReadDir(base)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != 1 || entries[0].Name() != "other" {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

// TestPipes talks with a program as with an external agent.
func TestPipes(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, likeDocker} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			p, err := r.Command(t.Context(), script(`while read -r line; do echo "<$line>"; done; echo end >&2; exit 4`))
			if err != nil {
				t.Fatal(err)
			}
			in, err := p.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := p.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			errs, err := p.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			buffer := make([]byte, 64)
			for range 3 {
				if _, err := io.WriteString(in, "hello\n"); err != nil {
					t.Fatal(err)
				}
				if n, err := out.Read(buffer); err != nil || string(buffer[:n]) != "<hello>\n" {
					t.Fatalf("%q %v", buffer[:n], err)
				}
			}
			_ = in.Close()
			<-p.Done()
			rest, _ := io.ReadAll(out)
			last, _ := io.ReadAll(errs)
			if result, err := p.Wait(); err != nil || result.Code != 4 || len(rest) != 0 || string(last) != "end\n" {
				t.Errorf("%+v %v %q %q", result, err, rest, last)
			}
			_, _ = out.Close(), errs.Close()
		})
	}
}

// TestTree leaves processes behind in every way that there is.
func TestTree(t *testing.T) {
	t.Parallel()
	// A grandchild in a session of its own, whose parent is gone, without the
	// output and with signals ignored; and one that is merely in the background.
	const stray = `(setsid sh -c 'trap "" TERM HUP INT; echo up >"$1"; while :; do sleep 300; done' sh "$PWD/$1" </dev/null >/dev/null 2>&1 &) ; sleep 300 & `
	const both = `trap "" TERM; start() { ` + stray + ` while [ ! -e "$1" ]; do sleep 0.01; done; }; start one; start two; `
	for _, w := range allLevels {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			mark := canary(t)
			gone := func(when string) {
				if left := living(mark); len(left) > 0 {
					t.Errorf("%s: still there: %v", when, left)
				}
			}
			exits := script(both + "exit 0")
			exits.Env = []string{mark}
			if got, out := run(t, r, exits); got.Code != 0 {
				t.Errorf("%+v %s", got, out)
			}
			gone("after the program's exit")

			hangs := script(both + "echo ready; while :; do sleep 1; done")
			hangs.Env, hangs.Timeout, hangs.Grace = []string{mark}, 1500*time.Millisecond, 100*time.Millisecond
			if got, _ := run(t, r, hangs); got.Ended != sandbox.EndedTimeout || waittest.TooLong(got.Duration, hangs.Timeout+2*time.Second) {
				t.Errorf("%+v", got)
			}
			gone("after the timeout")

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			hangs.Timeout = 0
			hangs.Dir = t.TempDir()
			hangs.Writable = []string{hangs.Dir}
			p, err := r.Command(ctx, hangs)
			if err != nil {
				t.Fatal(err)
			}
			out := begin(t, p)
			if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
				t.Fatal(err)
			}
			if len(living(mark)) < 4 {
				t.Errorf("the test's own processes are missing: %v", living(mark))
			}
			cancel()
			if got, err := p.Wait(); err != nil || got.Ended != sandbox.EndedCanceled || got.Signal == "" {
				t.Errorf("%+v %v", got, err)
			}
			gone("after the cancellation")
		})
	}
}

// begin starts a program and returns what it says.
func begin(t *testing.T, p *sandbox.Process) io.Reader {
	t.Helper()
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPoliteEnd ends a program that cleans up when it is asked to.
func TestPoliteEnd(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, likeDocker} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			p, err := r.Command(t.Context(), sandbox.Spec{
				Argv: []string{"sh", "-c", `trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done`}, Grace: 20 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			out := begin(t, p)
			if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
				t.Fatal(err)
			}
			p.Stop()
			p.Stop()
			rest, _ := io.ReadAll(out)
			got, err := p.Wait()
			if err != nil || got.Code != 5 || got.Ended != sandbox.EndedCanceled || string(rest) != "bye\n" || got.Duration > 15*time.Second {
				t.Errorf("%+v %v %q", got, err, rest)
			}
		})
	}
}

// TestDaemonDies kills a daemon whose program runs on.
func TestDaemonDies(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"full", "weak"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			mark := canary(t)
			daemon := exec.CommandContext(t.Context(), self, "probe", "daemon", level, t.TempDir(), mark, "/bin/sh", "-c", "trap '' TERM HUP; setsid sleep 300 & sleep 300")
			out, err := daemon.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := daemon.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(out, make([]byte, len("started\n"))); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "three processes", func() bool { return len(living(mark)) >= 3 })
			if err := daemon.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = daemon.Wait()
			waitFor(t, "no process is left", func() bool { return len(living(mark)) == 0 })
		})
	}
}

// TestHelperHangs stops the supervisor, as a program does that leaves no processor time to
// anybody: its program ends all the same, and before the supervisor is given up.
func TestHelperHangs(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{noPIDs, likeDocker, nothing} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			mark := canary(t)
			s := script("echo $PPID; sleep 300 & sleep 300")
			s.Env, s.Grace = []string{mark}, time.Millisecond
			p, err := newRunner(t, w, sandbox.Config{}).Command(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			out := begin(t, p)
			var helper int
			if _, err := fmt.Fscan(out, &helper); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(helper, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			stopped := func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", helper))
				return err == nil && strings.Contains(string(stat), ") T ")
			}
			waitFor(t, "the supervisor to stop", stopped)
			p.Stop()
			still := true // at the beginning of each look: soon it is ended itself
			waitFor(t, "the program to end", func() bool {
				still = stopped()
				return len(living(mark)) == 0
			})
			if !still {
				t.Error("the program ended with its supervisor, not before")
			}
			_ = syscall.Kill(helper, syscall.SIGCONT)
			<-p.Done()
		})
	}
}

// TestHelperDies kills the supervisor itself, which on weak systems the program
// can do.
func TestHelperDies(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, likeDocker, nothing} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{})
			mark := canary(t)
			s := script("setsid sleep 300 & kill -9 $PPID; sleep 300")
			s.Env = []string{mark}
			s.Timeout = time.Second // where the helper cannot be killed
			p, err := r.Command(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			result, err := p.Run()
			if r.Level().Tree {
				if err != nil || result.Ended != sandbox.EndedTimeout {
					t.Errorf("the helper was killed: %+v %v", result, err)
				}
			} else if !fault.Is(err, fault.Unavailable) || !fault.Uncertain(err) {
				t.Errorf("%+v %v", result, err)
			}
			if left := living(mark); len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, w := range []weaker{everything, likeDocker} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, w, sandbox.Config{Limits: sandbox.Limits{CPU: time.Second}})
			t.Run("file size", func(t *testing.T) {
				s := script("head -c 10000000000 /dev/zero >big; echo $?; stat -c %s big; rm big")
				s.Limits.FileSize = 1 << 20
				_, out := run(t, r, s)
				if lines := linesOf(out); len(lines) < 2 || lines[len(lines)-1] != "1048576" || lines[len(lines)-2] == "0" {
					t.Errorf("%q", lines)
				}
			})
			t.Run("memory", func(t *testing.T) {
				s := probing("memory")
				s.Limits.Memory = 256 << 20
				s.Limits.CPU = -1
				if got, out := run(t, r, s); got.Ended != sandbox.EndedMemory || got.Over != "it used more than 0.25 GiB of memory" {
					t.Errorf("%+v %s", got, out)
				}
			})
			t.Run("memory that only a descriptor holds", func(t *testing.T) {
				s := probing("memfd")
				s.Limits.Memory, s.Limits.FileSize, s.Limits.CPU = 256<<20, -1, -1
				if got, out := run(t, r, s); got.Ended != sandbox.EndedMemory {
					t.Errorf("%+v %s", got, out)
				}
			})
			t.Run("memory that no process holds", func(t *testing.T) {
				s := probing("segments")
				s.Limits.Memory, s.Limits.CPU = 256<<20, -1
				got, out := run(t, r, s)
				if w.namespaces && got.Ended != sandbox.EndedMemory || !w.namespaces && !refusedWith(out, "not implemented") {
					t.Errorf("%+v %s", got, out)
				}
			})
			t.Run("disk", func(t *testing.T) {
				s := script("head -c 50000000 /dev/zero >a; sleep 30")
				s.Dir = t.TempDir()
				if err := unix.Mount("tmpfs", s.Dir, "tmpfs", 0, "size=64m"); err != nil {
					t.Skip(err)
				}
				t.Cleanup(func() { _ = unix.Unmount(s.Dir, unix.MNT_DETACH) })
				s.Writable = []string{s.Dir}
				if got, out := run(t, r, s); got.Ended != sandbox.EndedDisk || got.Over == "" {
					t.Errorf("%+v %s", got, out)
				}
				s.Argv = script("head -c 5000000 /dev/zero >b; sleep 1").Argv // less than half of what is left
				if got, out := run(t, r, s); got.Ended != sandbox.EndedItself || got.Over != "" {
					t.Errorf("afterwards: %+v %s", got, out)
				}
			})
			t.Run("processor time", func(t *testing.T) {
				if got, _ := run(t, r, script("while :; do :; done")); got.Code != -1 || got.Ended != sandbox.EndedItself || got.Signal == "" {
					t.Errorf("%+v", got)
				}
			})
			t.Run("endless", func(t *testing.T) {
				s := script("while :; do sleep 1; done")
				s.Timeout, s.Grace = 200*time.Millisecond, 100*time.Millisecond
				if got, _ := run(t, r, s); got.Ended != sandbox.EndedTimeout || waittest.TooLong(got.Duration, s.Timeout+2*time.Second) {
					t.Errorf("%+v", got)
				}
			})
			t.Run("open files", func(t *testing.T) {
				s := script("ulimit -n; ulimit -c; ulimit -n 100000 && echo BAD")
				s.Limits.OpenFiles = 64
				if _, out := run(t, r, s); !strings.HasPrefix(out, "64\n0\n") || strings.Contains(out, "BAD") {
					t.Errorf("%s", out)
				}
			})
		})
	}
}

// TestSupervisorHasItsThreads: a program that takes every process there is cannot
// keep its supervisor from starting a thread, because all of them are there before.
func TestSupervisorHasItsThreads(t *testing.T) {
	t.Parallel()
	_, out := run(t, newRunner(t, nothing, sandbox.Config{}), script("grep Threads: /proc/$PPID/status"))
	var threads int
	if _, err := fmt.Sscanf(out, "Threads: %d", &threads); err != nil || threads < sandbox.ThreadsReady {
		t.Errorf("%d threads (%q), want %d or more", threads, out, sandbox.ThreadsReady)
	}
}

// TestProgramsHaveTheUsualPriority, that of the process that starts them: only the supervisor
// goes before others.
func TestProgramsHaveTheUsualPriority(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(own))
	for _, w := range allLevels {
		_, out := run(t, newRunner(t, w, sandbox.Config{}), script("exec cat /proc/self/stat"))
		f := strings.Fields(out) // the name has no spaces; proc_pid_stat(5)
		if len(f) < 41 || f[18] != want[18] || f[40] != want[40] {
			t.Errorf("%s: nice value and policy in %q, want %s and %s", w.name, out, want[18], want[40])
		}
	}
}

// TestForkBomb runs alone, for it takes all the processor time there is.
func TestForkBomb(t *testing.T) { //nolint:paralleltest // see above
	for _, w := range []weaker{everything, likeDocker} {
		t.Run(w.name, func(t *testing.T) { //nolint:paralleltest // see above
			r := newRunner(t, w, sandbox.Config{})
			mark := canary(t)
			// The shell itself starts nothing more, or it would give up where there is no process left.
			s := script(`bomb() { bomb | bomb & }; bomb; while :; do :; done`)
			s.Env, s.Timeout, s.Grace = []string{mark}, 700*time.Millisecond, 100*time.Millisecond
			s.Limits.Processes = 64
			got, _ := run(t, r, s)
			if got.Ended != sandbox.EndedTimeout && got.Ended != sandbox.EndedProcesses || waittest.TooLong(got.Duration, s.Timeout+2*time.Second) {
				t.Errorf("%+v", got)
			}
			if left := living(mark); len(left) > 0 {
				t.Errorf("still there: %d", len(left))
			}
			if got, out := run(t, r, script("echo healthy")); got.Code != 0 || out != "healthy\n" {
				t.Errorf("afterwards: %+v %s", got, out)
			}
		})
	}
}

// TestManyBytes keeps little of what a program writes.
func TestManyBytes(t *testing.T) { //nolint:paralleltest // it looks at the memory of the whole process
	r := newRunner(t, everything, sandbox.Config{})
	size := int64(heavytest.Size(128<<20, 1<<30))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	out := sandbox.NewCapture(64 << 10)
	s := script(fmt.Sprintf("echo begin; head -c %d /dev/zero; echo end", size))
	s.Stdout = out
	result, _ := run(t, r, s)
	runtime.ReadMemStats(&after)
	head, tail, omitted := out.Bytes()
	if result.Code != 0 || out.Total() != size+10 || int64(len(head)+len(tail))+omitted != size+10 || len(head)+len(tail) != 64<<10 {
		t.Errorf("%+v: total %d, kept %d and %d, omitted %d", result, out.Total(), len(head), len(tail), omitted)
	}
	if !strings.HasPrefix(string(head), "begin\n") || !strings.HasSuffix(string(tail), "\x00end\n") {
		t.Error("the beginning or the end is missing")
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 32<<20 {
		t.Errorf("the memory has grown by %d bytes", grown)
	}
}

// TestNothingLeft runs a program many times.
func TestNothingLeft(t *testing.T) { //nolint:paralleltest // it counts what the whole process has
	dir := t.TempDir()
	strong := newRunner(t, everything, sandbox.Config{Dir: filepath.Join(dir, "strong")})
	weak := newRunner(t, nothing, sandbox.Config{Dir: filepath.Join(dir, "weak")})
	once := func(r *sandbox.Runner) {
		p, err := r.Command(t.Context(), sandbox.Spec{Argv: []string{"true"}})
		if err != nil {
			t.Error(err)
			return
		}
		if result, err := p.Run(); err != nil || result.Code != 0 {
			t.Errorf("%+v %v", result, err)
		}
	}
	once(strong)
	files, routines := openFiles(t), runtime.NumGoroutine()
	runs := make(chan *sandbox.Runner)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for r := range runs {
				once(r)
			}
		})
	}
	for i := range heavytest.Size(100, 1000) {
		if i%10 == 0 {
			runs <- strong
		} else {
			runs <- weak
		}
	}
	close(runs)
	workers.Wait()
	waitFor(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= routines })
	if now := openFiles(t); now > files {
		t.Errorf("%d files were open, and now %d", files, now)
	}
	for _, d := range []string{"strong", "weak"} {
		if entries, err := os.ReadDir(filepath.Join(dir, d)); err != nil || len(entries) > 0 {
			t.Errorf("left behind: %v %v", entries, err)
		}
	}
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid != -1 || !errors.Is(err, unix.ECHILD) {
		t.Errorf("a child is left: %d %v", pid, err)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
