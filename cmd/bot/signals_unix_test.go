//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/waittest"
)

// A chat may take Ctrl-C for itself, on a terminal that makes a signal of it; what it
// calls to quit ends the program all the same. It sends a signal to the whole process, so
// it is not parallel.
func TestACaughtInterruptDoesNotEndTheProgram(t *testing.T) {
	press := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	for name, quit := range map[string]func(s *signals){
		"quits":     func(s *signals) { s.interrupt() },
		"is closed": func(*signals) { press() },
	} {
		ctx, s, stop := awaitSignals()
		pressed := make(chan struct{}, 1)
		release := s.catch(func() { pressed <- struct{}{} })
		press()
		select {
		case <-pressed:
		case <-waittest.Late(t):
			t.Fatal("Ctrl-C is lost")
		}
		if ctx.Err() != nil {
			t.Error("a caught Ctrl-C ends the program")
		}
		if name == "is closed" {
			release()
		}
		quit(s)
		select {
		case <-ctx.Done():
		case <-waittest.Late(t):
			t.Errorf("a chat that %s does not end the program", name)
		}
		release()
		stop()
	}
}

// The daemon reads its options again at SIGHUP, from the first moment on; with every other
// command it is the end of the terminal.
func TestOnlyTheDaemonOutlivesAHangup(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a daemon does not get far
	for args, outlives := range map[string]bool{"": true, "serve --no-console": true, "serve": true, "version": false, "config show": false, "sessions list": false} {
		ended := false
		environ := []string{"DATA_DIR=" + t.TempDir(), "LISTEN_ADDR=127.0.0.1:0"}
		run(ctx, strings.Fields(args), process{
			environ: environ, stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
			hangups: make(chan os.Signal), endHangups: func() { ended = true },
		})
		if ended == outlives {
			t.Errorf("bot %s: a hangup ends it: %v", args, ended)
		}
	}
}

// The daemon outlives what reads its log; any other command ends with what reads it.
func TestOnlyTheDaemonOutlivesItsReader(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{"daemon": "ready\n", "command": ""} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), helperEnv+"="+what)
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = writer
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = reader.Close() // nobody reads
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = writer.Close() // the process has its own
		if line, _ := bufio.NewReader(out).ReadString('\n'); line != want {
			t.Errorf("a %s says %q, want %q", what, line, want)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
}

// A service manager that stops the daemon while it starts has its way: nothing failed.
func TestADaemonThatIsStoppedWhileItStarts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr strings.Builder
	environ := []string{"DATA_DIR=" + t.TempDir(), "LISTEN_ADDR=127.0.0.1:0"}
	code := run(ctx, []string{"serve", "--no-console"}, process{environ: environ, stdin: strings.NewReader(""), stdout: io.Discard, stderr: &stderr})
	if code != exitOK || !strings.Contains(stderr.String(), "stopped before the start was complete") {
		t.Errorf("code %d: %s", code, &stderr)
	}
}
