//go:build unix && !linux

package cluster

import "syscall"

func childAttr(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who, Setpgid: true}
}

// scratch returns where the cluster is made.
func scratch() string { return "/tmp" }
