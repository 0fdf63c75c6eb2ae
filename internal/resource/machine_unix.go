//go:build unix

package resource

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
)

// Descriptors returns how many files and connections this process has open, and how
// many it may have; ok is false if that is not known.
func Descriptors() (open, limit int, ok bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, 0, false
	}
	limit = int(min(uint64(l.Cur), 1<<31-1)) //nolint:gosec,unconvert // bounded; signed on some systems
	dir, err := os.Open("/dev/fd")
	if kind, own := fault.Resource(err); own && kind == fault.Descriptors {
		return limit, limit, true
	}
	if err != nil {
		return 0, limit, true
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return 0, limit, true
	}
	return len(names) - 1, limit, true // the one that reads them is closed by now
}

// DiskFree returns how many bytes this user can write where dir is, and whether a new
// file has a place there (file systems without inodes count none); ok is false if that
// is not known.
func DiskFree(dir string) (bytes int64, files, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false, false
	}
	return int64(s.Bavail) * int64(s.Bsize), s.Ffree > 0 || s.Files == 0, true //nolint:gosec,unconvert // types differ between systems
}

// DiskSpace returns how many bytes the disk of a folder has free for this process, and how many
// in all; zero if it cannot be found out.
func DiskSpace(dir string) (free, total int64) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize) //nolint:gosec,unconvert // types differ between systems
}
