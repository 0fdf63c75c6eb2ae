package resident

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// mapping is a range of addresses.
type mapping struct{ begin, end uintptr }

// programMappings returns where the program's code and constants are; the kernel does
// not move them while the process lives. It returns nothing where there is no /proc.
func programMappings() (all []mapping) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(maps)) {
		if m, ok := programPages(line, program); ok {
			all = append(all, m)
		}
	}
	return all
}

// release unmaps the pages. The kernel maps 64 KiB around each that is touched, so that
// after a start nearly all of the file counts as this process's memory, though most of
// it is never used again. The mappings are private and cannot be written, so what is
// needed again is the same.
func (m mapping) release() {
	if m.begin >= m.end {
		return
	}
	// A refusal leaves everything as it is.
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.begin, m.end-m.begin, syscall.MADV_DONTNEED)
}

// around is what the kernel maps at a fault, and what parts of a mapping are multiples of.
const around = 64 << 10

// part returns the i-th of n parts of the mapping, which together are all of it.
func (m mapping) part(i, n int) mapping {
	size := uintptr(1+int(m.end-m.begin-1)/n+around-1) / around * around
	begin := min(m.begin+uintptr(i)*size, m.end)
	return mapping{begin, min(begin+size, m.end)}
}

// programPages reads a line of /proc/PID/maps such as
//
//	00400000-0161a000 r-xp 00001000 fe:00 1234    /usr/bin/bot
//
// and returns the range if it holds pages of program that cannot be written.
func programPages(line, program string) (m mapping, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || !strings.HasSuffix(strings.TrimRight(line, "\n"), " "+program) {
		return mapping{}, false
	}
	if mode := fields[1]; mode != "r-xp" && mode != "r--p" {
		return mapping{}, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	b, errB := strconv.ParseUint(from, 16, 64)
	e, errE := strconv.ParseUint(to, 16, 64)
	if errB != nil || errE != nil || e <= b {
		return mapping{}, false
	}
	return mapping{uintptr(b), uintptr(e)}, true
}
