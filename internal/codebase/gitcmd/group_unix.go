//go:build unix

package gitcmd

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts git as the leader of a process group, so that its children end
// with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup asks the whole group to end.
func endGroup(cmd *exec.Cmd) error { return signal(cmd, syscall.SIGTERM) }

// killGroup ends what is left of the group.
func killGroup(cmd *exec.Cmd) error { return signal(cmd, syscall.SIGKILL) }

func signal(cmd *exec.Cmd, s syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// holdOpen has the process keep a file open.
func holdOpen(cmd *exec.Cmd, f *os.File) { cmd.ExtraFiles = append(cmd.ExtraFiles, f) }
