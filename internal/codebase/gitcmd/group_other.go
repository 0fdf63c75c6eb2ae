//go:build !unix

package gitcmd

import (
	"os"
	"os/exec"
)

// There are no process groups here. The workspace is not offered on such
// systems; this only lets the rest of the program build.

func ownGroup(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func holdOpen(*exec.Cmd, *os.File) {}
