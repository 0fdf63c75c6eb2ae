package journey_test

import "syscall"

// childOf makes the kernel end a bot whose test process is gone.
func childOf() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
