package child_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/child"
	"remote-agent/internal/waittest"
)

// manner is a variable that turns this test into a process that behaves in a way.
const manner = "CHILD_TEST_MANNER"

func TestMain(m *testing.M) {
	switch os.Getenv(manner) {
	case "":
		os.Exit(m.Run())
	case "obeys":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, os.Interrupt)
		fmt.Println("ready")
		<-asked
		os.Exit(0)
	case "hangs":
		signal.Notify(make(chan os.Signal, 1), os.Interrupt) // nobody hears it; ignored, Go would call this a deadlock
		fmt.Println("ready")
		select {}
	case "fails":
		fmt.Println(strings.Repeat("x", 5000) + "the reason")
		os.Exit(3)
	}
}

func start(t *testing.T, how string) (p *child.Process) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p, err = child.Start(dir, filepath.Join(dir, "log"), []string{manner + "=" + how}, self)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if how != "fails" {
		waittest.Until(t, "the process is ready", func() bool { return strings.Contains(p.Said(), "ready") })
	}
	return p
}

func TestStopAndKill(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	if err := start(t, "obeys").Stop(time.Minute); err != nil {
		t.Errorf("stopped in order: %v", err)
	}
	hangs := start(t, "hangs")
	if hangs.Ended() {
		t.Error("it ended before it was stopped")
	}
	if err := hangs.Stop(time.Millisecond); err == nil || !hangs.Ended() {
		t.Errorf("one that hangs: %v, ended %t", err, hangs.Ended())
	}
	killed := start(t, "obeys")
	killed.Kill()
	if err := killed.Err(); err == nil {
		t.Error("a process that was killed says that all is well")
	}
}

func TestEarlyEnd(t *testing.T) {
	t.Parallel()
	p := start(t, "fails")
	<-p.Done()
	if err := p.Early(); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.HasSuffix(err.Error(), "the reason") || len(err.Error()) > 4500 {
		t.Errorf("error = %v", err)
	}
	if _, err := child.Start(t.TempDir(), filepath.Join(t.TempDir(), "log"), nil, "/nonexistent/program"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}
