package sandbox

import (
	"fmt"
	"time"
)

// Limits bound what a program uses. Zero means the default, and a negative value
// no limit.
type Limits struct {
	CPU       time.Duration // processor time of each process, in whole seconds; default 30 minutes
	Memory    int64         // bytes of memory of the whole tree; beyond, the tree is ended; default 4 GiB
	FileSize  int64         // bytes of each file that is written; default 2 GiB
	OpenFiles int           // of each process; default 4096
	Processes int           // processes and threads of the whole tree; default 1024

	// FreeDisk is how many bytes the tree leaves free where it can write, or half of what
	// was free there at its start, if that is less; beyond, the tree is ended. Default 128 MiB.
	FreeDisk int64
}

// The limits of a program for which nothing else was said.
const (
	DefaultCPU       = 30 * time.Minute
	DefaultMemory    = 4 << 30
	DefaultFileSize  = 2 << 30
	DefaultOpenFiles = 4096
	DefaultProcesses = 1024
	DefaultFreeDisk  = 128 << 20
)

// or returns l with what it does not say taken from other.
func (l Limits) or(other Limits) Limits {
	l.CPU = first(l.CPU, other.CPU)
	l.Memory = first(l.Memory, other.Memory)
	l.FileSize = first(l.FileSize, other.FileSize)
	l.OpenFiles = first(l.OpenFiles, other.OpenFiles)
	l.Processes = first(l.Processes, other.Processes)
	l.FreeDisk = first(l.FreeDisk, other.FreeDisk)
	return l
}

func defaultLimits() Limits {
	return Limits{CPU: DefaultCPU, Memory: DefaultMemory, FileSize: DefaultFileSize, OpenFiles: DefaultOpenFiles, Processes: DefaultProcesses, FreeDisk: DefaultFreeDisk}
}

// over says which limit a program went over that ended so.
func (l Limits) over(end End) string {
	switch end {
	case EndedMemory:
		return fmt.Sprintf("it used more than %.3g GiB of memory", float64(l.Memory)/(1<<30))
	case EndedProcesses:
		return fmt.Sprintf("it started more than %d processes and threads", l.Processes)
	case EndedDisk:
		return "the disk is nearly full"
	case EndedItself, EndedTimeout, EndedCanceled:
	}
	return ""
}

// first returns a unless it is zero.
func first[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}
