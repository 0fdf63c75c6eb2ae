// Package resource knows what this machine gives the process, how much of it is
// used, and how much of the configuration fits into it.
//
// What cannot be found out on a system is reported as not known, and limits nothing.
package resource

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"remote-agent/internal/fault"
)

// Limits are what the process may have; zero members are not known or unlimited.
type Limits struct {
	Descriptors int   // files and connections open at once (RLIMIT_NOFILE)
	Memory      int64 // bytes, of the process and what it starts (cgroup)
}

// Read returns the limits of this process. root is the root of the file system, as
// os.DirFS("/"); it is asked for the limits of control groups, version 2 and 1.
func Read(root fs.FS) Limits {
	limits := Limits{Memory: cgroupMemory(root)}
	if _, limit, ok := Descriptors(); ok {
		limits.Descriptors = limit
	}
	return limits
}

// unlimited is what version 1 says where there is no limit: the largest number of
// whole pages. Nobody has an exbibyte.
const unlimited = 1 << 60

// cgroupMemory returns the smallest memory limit of the control groups that the
// process is in, in bytes; zero if there is none.
func cgroupMemory(root fs.FS) (limit int64) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(own)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		base, file := "sys/fs/cgroup", "memory.max"
		switch {
		case !ok:
			continue
		case controllers == "":
		case strings.Contains(","+controllers+",", ",memory,"):
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// Each group above limits as well. In a container the path may be that of the
		// host, which is not there: then the root of the mount is the own group.
		for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
			if n := readLimit(root, path.Join(base, dir, file)); n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit
}

func readLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no number
	if err != nil || n >= unlimited {
		return 0
	}
	return n
}

// What a part of the program needs at most, measured and rounded up.
const (
	ownDescriptors   = 34 // stdio, log, runtime, listener, SQLite with its readers, pollers, sandbox
	turnDescriptors  = 3  // the model, a tool or a file, the end of another one
	agentDescriptors = 8  // the pipes of an agent and of its sandbox
	minWeb           = 8  // connections that come in
	minPlatform      = 3

	ownMemory   = 96 << 20
	turnMemory  = 6 << 20   // a window of messages, the answer, the tools' output
	agentMemory = 320 << 20 // an external agent is a program of its own
)

// Want is what the configuration asks for.
type Want struct {
	Conversations int  // MAX_CONCURRENT_CONVERSATIONS
	Agents        bool // turns are done by external agents, each a process
	Platforms     int  // that calls are made to
	Database      int  // connections to PostgreSQL
}

// Plan is what fits.
type Plan struct {
	Conversations int // at most what was wanted, at least one

	// Web and PerPlatform are how many connections may be open at once, coming in and
	// to each platform; zero is no limit.
	Web, PerPlatform int

	// Warnings say what was lowered and how to mend it, one sentence each.
	Warnings []string
}

// Make plans. It never refuses: what is too little is a warning, and one
// conversation at a time works.
func Make(l Limits, w Want) Plan {
	p := Plan{Conversations: w.Conversations}
	p.fitDescriptors(l.Descriptors, w)
	p.fitMemory(l.Memory, w)
	return p
}

func (p *Plan) fitDescriptors(limit int, w Want) {
	turn := turnDescriptors
	if w.Agents {
		turn = agentDescriptors
	}
	free := limit - ownDescriptors - w.Database
	// Plenty for everything at once: nothing has to be bounded.
	if limit == 0 || free >= 10*minWeb+50*w.Platforms+turn*w.Conversations {
		return
	}
	// What comes in has a third, so that it can be acknowledged whatever turns do.
	p.Web = max(minWeb, free/3)
	p.PerPlatform = max(minPlatform, free/4/max(w.Platforms, 1))
	fits := max(1, (free-p.Web-p.PerPlatform*w.Platforms)/turn)
	if fits < p.Conversations {
		p.Warnings = append(p.Warnings, fmt.Sprintf(
			"MAX_CONCURRENT_CONVERSATIONS is %d, but %d file descriptors are only enough for %d, which is used instead. Raise the limit of open files (ulimit -n, LimitNOFILE) to %d.",
			p.Conversations, limit, fits, ownDescriptors+w.Database+10*minWeb+50*w.Platforms+turn*p.Conversations))
		p.Conversations = fits
	}
}

func (p *Plan) fitMemory(limit int64, w Want) {
	if limit == 0 {
		return
	}
	turn := int64(turnMemory)
	if w.Agents {
		turn = agentMemory
	}
	fits := int(max(1, (limit-ownMemory)/turn))
	if fits < p.Conversations {
		p.Warnings = append(p.Warnings, fmt.Sprintf(
			"MAX_CONCURRENT_CONVERSATIONS is %d, but %d MiB of memory are only enough for %d, which is used instead. Raise the memory limit of the container or service to %d MiB.",
			p.Conversations, limit>>20, fits, (ownMemory+turn*int64(p.Conversations))>>20))
		p.Conversations = fits
	}
}

const (
	fewDescriptors = 4       // fewer than these are not enough for a turn
	littleDisk     = 4 << 20 // bytes; the write-ahead log grows by about as much between two checkpoints
)

// CheckDescriptors is a fault.Descriptors if this process has next to none left.
func CheckDescriptors() error {
	open, limit, ok := Descriptors()
	if !ok || limit == 0 || limit-open >= fewDescriptors {
		return nil
	}
	return fault.Newf(fault.Descriptors, "Out of file descriptors: %d of %d are open; raise the limit of open files (ulimit -n, LimitNOFILE).", open, limit)
}

// CheckDisk is a fault.Disk if next to nothing can be written where dir is.
func CheckDisk(dir string) error {
	free, files, ok := DiskFree(dir)
	switch {
	case ok && free < littleDisk:
		return fault.Newf(fault.Disk, "The disk of %s is full: %d KiB are left.", dir, free>>10)
	case ok && !files:
		return fault.Newf(fault.Disk, "The disk of %s is full: it has no inodes left for new files (df -i).", dir)
	}
	return nil
}
