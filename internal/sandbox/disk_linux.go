package sandbox

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// disk is a file system that a tree can write to. The daemon writes to it as well, so that
// a full one stops everybody's work.
type disk struct {
	fd   int
	keep int64 // bytes that stay free
}

// free is how many bytes can still be written.
func (d disk) free() int64 {
	var system unix.Statfs_t
	if unix.Fstatfs(d.fd, &system) != nil {
		return math.MaxInt64
	}
	return int64(system.Bavail) * int64(system.Bsize) //nolint:gosec,unconvert // not 64 bits everywhere
}

// disks are the file systems that the tree can write to, each once.
func (s *supervisor) disks() []disk {
	o, tmp := s.order, s.order.Tmp
	if o.Limits.FreeDisk <= 0 {
		return nil
	}
	if o.Have.Namespaces {
		tmp = "/tmp"
	}
	var list []disk
	seen := map[uint64]bool{}
	for _, path := range append(slices.Clone(o.Writable), tmp) {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		var file unix.Stat_t
		if unix.Fstat(fd, &file) != nil || seen[file.Dev] {
			_ = unix.Close(fd)
			continue
		}
		seen[file.Dev] = true
		d := disk{fd: fd}
		d.keep = min(o.Limits.FreeDisk, d.free()/2)
		list = append(list, d)
	}
	return list
}

// room is how many bytes may still be written to the fullest of disks.
func room(disks []disk) int64 {
	least := int64(math.MaxInt64)
	for _, d := range disks {
		least = min(least, d.free()-d.keep)
	}
	return least
}
