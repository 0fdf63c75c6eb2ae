package child

import "syscall"

// attributes have the kernel end a process whose parent is gone, however that ended.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
