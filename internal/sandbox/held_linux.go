package sandbox

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory that no process has mapped can still be held: by descriptors, as that of
// memfd_create(2) and of files of a tmpfs that were deleted, and in segments of System V,
// which last until somebody removes them.

// sharedMemory is how many bytes of such memory, and of what processes share, the whole
// system has: at most so many are the tree's.
func sharedMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Sharedram) * int64(info.Unit) //nolint:gosec,unconvert // not 64 bits everywhere
}

// inode is a file, however many descriptors lead to it.
type inode struct {
	major, minor uint32
	number       uint64
}

// held adds up the memory that descriptors of the tree hold.
func held(tree []process) int64 {
	var sum int64
	seen := map[inode]bool{}
	for _, p := range tree {
		dir, err := os.Open("/proc/" + strconv.Itoa(p.pid) + "/fd")
		if err != nil {
			continue // it has just ended
		}
		names, _ := dir.Readdirnames(-1) // what could be read
		for _, name := range names {
			sum += heldBy(int(dir.Fd()), name, seen) //nolint:gosec // a descriptor fits
		}
		_ = dir.Close()
	}
	return sum
}

// segments adds up what the segments of System V have resident. Their namespace has to be
// the tree's own.
func segments() int64 {
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0 // the kernel has none
	}
	return parseSegments(string(text))
}

func parseSegments(text string) (sum int64) {
	for line := range strings.Lines(text) {
		const resident = 14 // of the fields of sysvipc_shm_proc_show, each of which is a number
		if f := strings.Fields(line); len(f) > resident {
			n, _ := strconv.ParseInt(f[resident], 10, 64) // none in the heading
			sum += n
		}
	}
	return sum
}

// heldBy is the memory that a descriptor holds and that was not seen before. It never
// waits for a file system.
func heldBy(dir int, name string, seen map[inode]bool) int64 {
	var f unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_NLINK|unix.STATX_INO|unix.STATX_BLOCKS, &f)
	if err != nil || f.Mode&unix.S_IFMT != unix.S_IFREG || f.Nlink > 0 || f.Blocks == 0 {
		return 0
	}
	id := inode{f.Dev_major, f.Dev_minor, f.Ino}
	if seen[id] {
		return 0
	}
	seen[id] = true
	var system unix.Statfs_t
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	if unix.Fstatfs(fd, &system) != nil || system.Type != unix.TMPFS_MAGIC {
		return 0
	}
	return int64(f.Blocks) * 512 //nolint:gosec // fits
}
