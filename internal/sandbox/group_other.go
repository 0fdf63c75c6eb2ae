//go:build !unix

package sandbox

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func signalGroup(cmd *exec.Cmd, _ bool) { _ = cmd.Process.Kill() }

func signalName(*os.ProcessState) string { return "killed" }
