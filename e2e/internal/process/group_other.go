//go:build unix && !linux

package process

import "syscall"

func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
