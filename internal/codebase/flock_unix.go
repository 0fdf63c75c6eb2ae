//go:build unix

package codebase

import (
	"os"
	"syscall"
)

// supported says that there are process groups and file locks, which keep git's
// children and other processes in check.
const supported = true

// errLocked is what flock returns while another process holds the lock.
const errLocked = syscall.EWOULDBLOCK

// flock takes the lock of a file without waiting. It ends with the process.
func flock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a descriptor fits
}
