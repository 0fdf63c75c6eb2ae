//go:build linux

package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
	"remote-agent/internal/sandbox"
)

// probe is what this test program does when a test runs it as another daemon. It
// prints "done", or the reason why not.
func probe(what string, args []string) int {
	probes := map[string]func(args []string) error{"daemon": daemon, "weak": weak}
	if err := probes[what](args); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("done")
	return 0
}

// daemon runs a program in a sandbox until it is killed: args are the level, the
// Runner's directory, a variable, and the program.
func daemon(args []string) error {
	r, err := sandbox.New(sandbox.Config{Dir: args[1]})
	if err != nil {
		return err
	}
	if args[0] == "weak" {
		r.Weaken(false, false, false, true, 99)
	}
	p, err := r.Command(context.Background(), sandbox.Spec{Argv: args[3:], Env: []string{args[2]}})
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	fmt.Println("started")
	_, err = p.Wait()
	return err
}

// weak takes away what the kernel offers before it makes a Runner: args are the
// mode, and what is missing.
func weak(args []string) error {
	missing := map[string][]uintptr{
		"namespaces": nil,
		"Landlock":   {unix.SYS_LANDLOCK_CREATE_RULESET},
	}
	if err := sandbox.Cripple(missing[args[1]]...); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/tmp", "weak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := sandbox.New(sandbox.Config{Mode: sandbox.Mode(args[0]), Dir: dir})
	if err != nil {
		return fmt.Errorf("%s: %s", fault.KindOf(err), fault.Public(err))
	}
	fmt.Println(r.Level())
	out := sandbox.NewCapture(0)
	p, err := r.Command(context.Background(), sandbox.Spec{Argv: []string{"echo", "it", "runs"}, Stdout: out})
	if err != nil {
		return err
	}
	result, err := p.Run()
	fmt.Print(out)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("%+v", result)
	}
	return err
}

// asUser runs a program as another user with only what it needs in the environment.
func asUser(cmd *exec.Cmd, uid uint32, dir string) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir, helperVariable + "=" + filepath.Join(dir, "helper")}
}

// refusedWith reports whether a probe failed, and not for a reason of its own.
func refusedWith(out string, reasons ...string) bool {
	for _, r := range reasons {
		if strings.Contains(out, r) {
			return true
		}
	}
	return false
}
