package sandbox

import (
	"bufio"
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
	fillPerSecond = 8 << 30                // bytes that a program can make resident in a second, at most
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
	if limit.bytes <= 0 && limit.threads <= 0 {
		return
	}
	own, page := os.Getpid(), int64(os.Getpagesize())
	var now, before usage
	for {
		s.pause(untilNextLook(limit, now, before), limit.threads, others)
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
		// Pages that several processes share were counted for each of them.
		if limit.bytes > 0 && now.bytes > limit.bytes && proportional(tree, page) > limit.bytes {
			s.enforce(EndedMemory)
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
func untilNextLook(limit, now, before usage) time.Duration {
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
	room := time.Duration(float64(limit.bytes-now.bytes) / fillPerSecond * float64(time.Second))
	return min(max(room, watchSoonest), latest)
}

// proportional adds up the memory with shared pages counted once.
func proportional(tree []process, page int64) int64 {
	var sum int64
	for _, p := range tree {
		if n, ok := pss(p.pid); ok {
			sum += n
		} else {
			sum += p.pages * page
		}
	}
	return sum
}

// pss reads the proportional set size of a process in bytes.
func pss(pid int) (int64, bool) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, false
	}
	defer f.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return kb << 10, err == nil
		}
	}
	return 0, false
}

// hardNumber reports whether the kernel bounds the processes of this tree.
func (s *supervisor) hardNumber() bool {
	o := s.order
	return o.Have.Namespaces && !o.Global || o.Have.PIDs && o.Have.PIDMax
}
