//go:build linux

package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/sandbox"
)

func TestLevel(t *testing.T) {
	t.Parallel()
	full := sandbox.Level{
		Mode: sandbox.Best, Files: true, TCP: true, UDP: true, Sockets: true, Secrets: true, Signals: true, Tree: true, Limits: true,
		View: true, Landlock: 7, Network: true, Processes: true, Seccomp: true,
	}
	partial := sandbox.Level{Files: true, TCP: true, UDP: true, Sockets: true, Secrets: true, Limits: true, Landlock: 4, Seccomp: true, Reasons: []string{"no user namespaces"}}
	for want, l := range map[string]sandbox.Level{
		"full: files, TCP, UDP, sockets, secrets of other processes, signals, process tree, limits (by Landlock 7, mount+PID+network namespaces, seccomp)": full,
		"partial: files, TCP, UDP, sockets, secrets of other processes, limits; NOT signals, process tree (by Landlock 4, seccomp); no user namespaces":    partial,
		"none: limits; NOT files, TCP, UDP, sockets, secrets of other processes, signals, process tree; SANDBOX=off":                                       {Mode: sandbox.Off, Limits: true, Reasons: []string{"SANDBOX=off"}},
	} {
		if diff := cmp.Diff(want, l.String()); diff != "" {
			t.Error(diff)
		}
		if l.Full() != strings.HasPrefix(want, "full") {
			t.Errorf("Full is %v for %s", l.Full(), want)
		}
	}
}

func TestOff(t *testing.T) {
	t.Parallel()
	r, err := sandbox.New(sandbox.Config{Mode: sandbox.Off})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if l := r.Level(); l.Full() || l.Files || !l.Limits || l.Mode != sandbox.Off {
		t.Errorf("%+v", l)
	}
	file := write(t, "visible", t.TempDir(), "file")
	s := script(`cat "$1"; ulimit -n; env`, file)
	if _, out := run(t, r, s); !strings.HasPrefix(out, "visible4096\n") || strings.Contains(out, "GOPATH") {
		t.Errorf("%s", out)
	}
}

func TestStrict(t *testing.T) {
	t.Parallel()
	best, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = best.Close() })
	strict, err := sandbox.New(sandbox.Config{Mode: sandbox.Strict})
	if !best.Level().Full() {
		if !fault.Is(err, fault.Unsupported) {
			t.Errorf("strict on %s: %v", best.Level(), err)
		}
		t.Skip("the full level is out of reach here: " + best.Level().String())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = strict.Close() })
	if got, out := run(t, strict, script("echo yes")); got.Code != 0 || out != "yes\n" {
		t.Errorf("%+v %s", got, out)
	}
}

// TestWeakSystems makes Runners in processes from which the kernel's offers were
// taken away.
func TestWeakSystems(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	weak := func(mode, missing string) string {
		out, _ := exec.CommandContext(t.Context(), self, "probe", "weak", mode, missing).CombinedOutput()
		return string(out)
	}
	if out := weak("best", "Landlock"); !strings.HasPrefix(out, "partial: ") || !strings.Contains(out, "NOT files") ||
		!strings.Contains(out, "no Landlock") || !strings.Contains(out, "user namespaces cannot be used here") || !strings.HasSuffix(out, "it runs\ndone\n") {
		t.Errorf("best without namespaces and Landlock: %s", out)
	}
	if out := weak("strict", "Landlock"); !strings.HasPrefix(out, "unsupported: SANDBOX=strict refuses") || !strings.Contains(out, "no protection of files") {
		t.Errorf("strict without namespaces and Landlock: %s", out)
	}
	if out := weak("best", "namespaces"); !strings.Contains(out, "user namespaces cannot be used here") || !strings.HasSuffix(out, "it runs\ndone\n") {
		t.Errorf("best without namespaces: %s", out)
	}
}

// TestOrdinaryUser runs the tests of what is confined as somebody who is not root.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("the other tests run as an ordinary user already")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "sandbox-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const nobody = 65534
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "test")
	for to, from := range map[string]string{name: self, filepath.Join(dir, "helper"): helperProgram} {
		program, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), name, "-test.v", "-test.run=^Test(Secrets|Files|Worktree|Network|Privileges|Home|Tree|ForkBomb)$/^(everything|no_namespaces)$")
	asUser(cmd, nobody, dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "--- PASS: TestFiles/"); n == 0 && !strings.Contains(out.String(), "--- SKIP") {
		t.Errorf("nothing was tested:\n%s", out.String())
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("1 (sh) S 7 8 8 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 3 0 100 2670592 250 18446744073709551615")
	f.Add("1 (a) b) (c) Z 7 8 8 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 3 0 100 2670592 250 1")
	f.Add("1 (")
	f.Add(")")
	f.Fuzz(func(t *testing.T, text string) {
		parent, group, threads, pages, ok := sandbox.ParseStat(text)
		if !ok && (parent != 0 || group != 0 || threads != 0 || pages != 0) {
			t.Error("values without a process")
		}
		if strings.HasSuffix(text, ") S 7 8 8 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 3 0 100 2670592 250 1") &&
			(!ok || parent != 7 || group != 8 || threads != 3 || pages != 250) {
			t.Errorf("%d %d %d %d %v", parent, group, threads, pages, ok)
		}
	})
}

// BenchmarkStart is the overhead of running a program that does nothing, against
// running it without a sandbox.
func BenchmarkStart(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, w := range []weaker{everything, likeDocker, nothing} {
		b.Run(strings.ReplaceAll(w.name, " ", "-"), func(b *testing.B) {
			r := newRunner(b, w, sandbox.Config{})
			for b.Loop() {
				p, err := r.Command(b.Context(), sandbox.Spec{Argv: []string{"true"}})
				if err != nil {
					b.Fatal(err)
				}
				if result, err := p.Run(); err != nil || result.Code != 0 {
					b.Fatal(result, err)
				}
			}
		})
	}
}
