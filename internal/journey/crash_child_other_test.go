//go:build unix && !linux

package journey_test

import "syscall"

func childOf() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
