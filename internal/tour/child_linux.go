package tour

import "syscall"

// childAttr has the kernel end the bot when the demo is gone, however that ended.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
