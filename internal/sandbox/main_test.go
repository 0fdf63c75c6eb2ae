//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/sandbox"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) {
	sandbox.RunIfHelper()
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		os.Exit(probe(os.Args[2], os.Args[3:]))
	}
	flag.Parse()
	remove, err := buildHelper()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		remove()
		os.Exit(code)
	}))
}

// helperVariable names the helper of testdata if it was built already.
const helperVariable = "SANDBOX_TEST_HELPER"

// helperProgram is the helper of testdata, set before any test.
var helperProgram string

// buildHelper builds it.
func buildHelper() (remove func(), err error) {
	if helperProgram = os.Getenv(helperVariable); helperProgram != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "sandbox-helper-")
	if err != nil {
		return nil, err
	}
	helperProgram = filepath.Join(dir, "helper")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", helperProgram, "./testdata/helper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the helper: %w\n%s", err, out)
	}
	return func() { _ = os.RemoveAll(dir) }, nil
}

// weaker is a Runner that uses less than the system offers, as it would on a
// system that offers less.
type weaker struct {
	name                          string
	namespaces, pids, net, filter bool
	landlock                      int
}

var (
	everything = weaker{"everything", true, true, true, true, 99}
	viewOnly   = weaker{"namespaces only", true, true, true, false, 0}
	noPIDs     = weaker{"no PID namespace", true, false, true, true, 99}
	likeDocker = weaker{"no namespaces", false, false, false, true, 99}
	likeOld    = weaker{"no namespaces, Landlock 3", false, false, false, true, 3}
	filterOnly = weaker{"filter only", false, false, false, true, 0}
	nothing    = weaker{"nothing", false, false, false, false, 0}
	confining  = []weaker{everything, viewOnly, noPIDs, likeDocker, likeOld}
	allLevels  = append(append([]weaker(nil), confining...), filterOnly, nothing)
)

// newRunner makes a Runner and closes it after the test.
func newRunner(tb testing.TB, w weaker, cfg sandbox.Config) *sandbox.Runner {
	tb.Helper()
	cfg.Self = helperProgram
	r, err := sandbox.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	level := r.Weaken(w.namespaces, w.pids, w.net, w.filter, w.landlock)
	if w.namespaces && !level.View {
		tb.Skip("this system has no user namespaces: " + level.String())
	}
	if w.landlock > 0 && level.Landlock == 0 {
		tb.Skip("this kernel has no Landlock: " + level.String())
	}
	return r
}

// run runs a program and returns its output. Without a directory it gets a new one.
func run(tb testing.TB, r *sandbox.Runner, s sandbox.Spec) (sandbox.Result, string) {
	tb.Helper()
	if s.Dir == "" {
		s.Dir = tb.TempDir()
		s.Writable = append(s.Writable, s.Dir)
	}
	if s.Timeout == 0 {
		s.Timeout = time.Minute
	}
	out := sandbox.NewCapture(1 << 20)
	if s.Stdout == nil {
		s.Stdout, s.Stderr = out, out
	}
	p, err := r.Command(tb.Context(), s)
	if err != nil {
		tb.Fatal(err)
	}
	result, err := p.Run()
	if err != nil {
		tb.Fatalf("%q: %v\n%s", s.Argv, err, out)
	}
	return result, out.String()
}

// script is a Spec that runs a shell script.
func script(text string, args ...string) sandbox.Spec {
	return sandbox.Spec{Argv: append([]string{"/bin/sh", "-c", text, "sh"}, args...)}
}

// probing is a Spec that tries one thing, which is the helper's other use.
func probing(args ...string) sandbox.Spec {
	return sandbox.Spec{Argv: append([]string{helperProgram}, args...), ReadOnly: []string{helperProgram}}
}

// canary is a variable by which the processes of one test are found.
func canary(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf("CANARY=%s-%d-%d", strings.ReplaceAll(tb.Name(), " ", "_"), os.Getpid(), time.Now().UnixNano())
}

// living lists the processes with a variable in their environment.
func living(variable string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+variable+"\x00")) {
			out = append(out, filepath.Dir(f))
		}
	}
	return out
}

// waitFor polls a condition.
func waitFor(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	waittest.Until(tb, what, ok)
}

// write makes a file.
func write(tb testing.TB, content string, path ...string) string {
	tb.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
	return name
}

func read(tb testing.TB, path ...string) string {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// linesOf splits output, without empty lines.
func linesOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
}

func number(tb testing.TB, s string) int {
	tb.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
