package resident

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram unmaps the pages of the program's code and constants. The kernel
// maps 64 KiB around each that is touched, so that after a start nearly all of the
// file counts as this process's memory, though most of it is never used again. The
// mappings are private and cannot be written, so what is needed again is the same.
func releaseProgram() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return // there is no /proc here
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		begin, end, ok := programPages(line, program)
		if !ok {
			continue
		}
		// A refusal leaves everything as it is.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, begin, end-begin, syscall.MADV_DONTNEED)
	}
}

// programPages reads a line of /proc/PID/maps such as
//
//	00400000-0161a000 r-xp 00001000 fe:00 1234    /usr/bin/bot
//
// and returns the range if it holds pages of program that cannot be written.
func programPages(line, program string) (begin, end uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || !strings.HasSuffix(strings.TrimRight(line, "\n"), " "+program) {
		return 0, 0, false
	}
	if mode := fields[1]; mode != "r-xp" && mode != "r--p" {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	b, errB := strconv.ParseUint(from, 16, 64)
	e, errE := strconv.ParseUint(to, 16, 64)
	if errB != nil || errE != nil || e <= b {
		return 0, 0, false
	}
	return uintptr(b), uintptr(e), true
}
