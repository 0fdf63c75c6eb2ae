package cluster

import (
	"os"
	"syscall"
)

func childAttr(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who, Setpgid: true, Pdeathsig: syscall.SIGQUIT}
}

const (
	memory     = "/dev/shm"
	tmpfsMagic = 0x01021994
	enough     = 4 << 30 // bytes; a container may have 64 MiB only
)

// scratch returns where the cluster is made. Thousands of small files come and go
// with the databases, so it is memory if there is plenty.
func scratch() string {
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) != nil || fs.Type != tmpfsMagic || fs.Bavail*uint64(fs.Bsize) < enough { //nolint:gosec // the size of a block is positive
		return "/tmp"
	}
	probe, err := os.MkdirTemp(memory, "botpg")
	if err != nil || os.Remove(probe) != nil {
		return "/tmp"
	}
	return memory
}
