package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// The memory of a tree is watched, not reserved: limits of address space would
// break every program that reserves more than it uses, such as node or a Go
// program built with the race detector, and would count per process.

const (
	watchSoonest  = 20 * time.Millisecond
	watchLatest   = 250 * time.Millisecond
	watchIdle     = 500 * time.Millisecond // when nothing changes
	fillPerSecond = 8 << 30                // bytes that a program can make resident or write in a second, at most
)

// usage is what a tree uses.
type usage struct {
	bytes   int64
	threads int
}

// watch ends the tree when it uses too much. Others is how many processes and threads the
// system had before the tree.
func (s *supervisor) watch(others int) {
	limit := usage{s.order.Limits.Memory, s.order.Limits.Processes}
	if s.hardNumber() {
		limit.threads = 0
	}
	disks := s.disks()
	if limit.bytes <= 0 && limit.threads <= 0 && len(disks) == 0 {
		return
	}
	own, page := os.Getpid(), int64(os.Getpagesize())
	var now, before usage
	var most int64 // that it can use, as far as is known
	for {
		left := room(disks)
		if left < 0 {
			s.enforce(EndedDisk)
		}
		s.pause(min(untilNextLook(limit, now, before, most), untilFull(left)), limit.threads, others)
		before, now = now, usage{}
		others = allTasks()
		tree := descendants(own)
		for _, p := range tree {
			now.bytes += p.pages * page
			now.threads += p.threads
		}
		others -= now.threads
		if limit.threads > 0 && now.threads > limit.threads {
			s.enforce(EndedProcesses)
		}
		// Pages that several processes share were counted for each of them, and memory that
		// no process has mapped is somewhere in what the system shares.
		if most = now.bytes + sharedMemory(); limit.bytes > 0 && most > limit.bytes {
			if most = s.exact(tree, page); most > limit.bytes {
				s.enforce(EndedMemory)
			}
		}
	}
}

// pause waits for d, but with a limit of threads only until the system has more of them
// than the limit and others, the number of those besides the tree: a program that
// multiplies has thousands in a quarter of a second, and then a look at each takes longer
// than it has. Nearly all of them lose their parents and are given to this process, so
// that its children tell that they are of the tree.
func (s *supervisor) pause(d time.Duration, limit, others int) {
	if limit <= 0 {
		time.Sleep(d)
		return
	}
	for ; d > 0; d -= watchSoonest {
		time.Sleep(min(d, watchSoonest))
		if allTasks() <= others+limit {
			continue
		}
		if children() > limit {
			s.enforce(EndedProcesses)
		}
		return
	}
}

// children is how many children this process has that lost their parents, or zero where
// the kernel does not list them.
func children() int {
	own := strconv.Itoa(os.Getpid())
	list, err := os.ReadFile("/proc/" + own + "/task/" + own + "/children") //nolint:gosec // our own
	if err != nil {
		return 0
	}
	return bytes.Count(list, []byte{' '})
}

// untilNextLook is short enough that not much more than the limit can be used
// meanwhile, and long enough to cost next to nothing.
func untilNextLook(limit, now, before usage, most int64) time.Duration {
	latest := watchLatest
	if now == before && now.threads > 0 {
		latest = watchIdle
	}
	if limit.threads > 0 && now.threads > limit.threads/4 {
		latest = 2 * watchSoonest
	}
	if limit.bytes <= 0 {
		return latest
	}
	return min(untilFull(limit.bytes-most), latest)
}

// untilFull is how long it takes at least to use what is left, but worth a pause.
func untilFull(left int64) time.Duration {
	return max(time.Duration(float64(left)/fillPerSecond*float64(time.Second)), watchSoonest)
}

// exact adds up the memory with shared pages counted once. What is held otherwise can be
// mapped as well, so that the greater one of the two counts.
func (s *supervisor) exact(tree []process, page int64) int64 {
	var sum, shared int64
	for _, p := range tree {
		if all, shm, ok := pss(p.pid); ok {
			sum += all - shm
			shared += shm
		} else {
			sum += p.pages * page
		}
	}
	unmapped := held(tree)
	if s.order.Have.Namespaces {
		unmapped += segments()
	}
	return sum + max(shared, unmapped)
}

// pss reads the proportional set size of a process in bytes, and how much of it is shared
// memory.
func pss(pid int) (all, shm int64, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch {
		case err != nil:
		case name == "Pss":
			all, ok = kb<<10, true
		case name == "Pss_Shmem":
			shm = kb << 10
		}
	}
	return all, shm, ok
}

// hardNumber reports whether the kernel bounds the processes of this tree.
func (s *supervisor) hardNumber() bool {
	o := s.order
	return o.Have.Namespaces && !o.Global || o.Have.PIDs && o.Have.PIDMax
}
