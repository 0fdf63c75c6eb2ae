package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"remote-agent/internal/waittest"
)

// Where the output goes elsewhere, there is no chat in the terminal whose end would end the
// bot: a hangup does. While the terminal is there, it has the options read again.
func TestABareBotEndsWithItsTerminal(t *testing.T) {
	t.Parallel()
	person, stdin := openPTY(t)
	ctx, interrupt := context.WithCancel(waittest.Context(t.Context(), t))
	defer interrupt()
	hangups, out := make(chan os.Signal), &shared{}
	ended := make(chan int, 1)
	go func() {
		environ := []string{"DATA_DIR=" + t.TempDir(), "LISTEN_ADDR=127.0.0.1:0"}
		ended <- run(ctx, nil, process{environ: environ, stdin: stdin, stdout: out, stderr: out, hangups: hangups, interrupt: interrupt})
	}()
	hangups <- syscall.SIGHUP
	waittest.Until(t, "the options are read again", func() bool { return strings.Contains(out.String(), "the configuration was reloaded") })
	_ = person.Close()
	hangups <- syscall.SIGHUP
	select {
	case code := <-ended:
		if code != exitOK {
			t.Errorf("code %d\n%s", code, out.String())
		}
	case <-waittest.Late(t):
		t.Error("it goes on without its terminal")
	}
}

// openPTY returns the two ends of a terminal: what a person has, and what a program has.
func openPTY(tb testing.TB) (person, program *os.File) {
	tb.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		tb.Skipf("there are no terminals here: %v", err)
	}
	tb.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd()) //nolint:gosec // a descriptor fits
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		tb.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		tb.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = program.Close() })
	return person, program
}
