package bench

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Figures of processes come from /proc. Elsewhere than on Linux they are not
// there, and the report says so.

// memory is in bytes; zero is not known.
type memory struct{ resident, peak int64 }

func processMemory(pid int) memory {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return memory{}
	}
	return memory{resident: statusBytes(status, "VmRSS:"), peak: statusBytes(status, "VmHWM:")}
}

// statusBytes reads a line such as "VmRSS:	  1234 kB".
func statusBytes(status []byte, name string) int64 {
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		fields := strings.Fields(rest)
		if !ok || len(fields) == 0 {
			continue
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return 0
		}
		return n << 10
	}
	return 0
}

// processTime is the processor's time that a process has used, in user mode and
// in the kernel.
type processTime struct {
	used  time.Duration
	known bool
}

// tick is the unit of /proc/PID/stat (USER_HZ, 100 a second on every Linux).
const tick = 10 * time.Millisecond

func processCPU(pid int) processTime {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return processTime{}
	}
	return parseStat(string(stat))
}

// parseStat reads fields 14 and 15 of /proc/PID/stat. The second field is a name
// in parentheses that may hold anything.
func parseStat(stat string) processTime {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return processTime{}
	}
	fields := strings.Fields(stat[end+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return processTime{}
	}
	u, errU := strconv.ParseInt(fields[user], 10, 64)
	s, errS := strconv.ParseInt(fields[system], 10, 64)
	if errU != nil || errS != nil {
		return processTime{}
	}
	return processTime{used: time.Duration(u+s) * tick, known: true}
}

func (p processTime) since(before processTime) processTime {
	return processTime{used: p.used - before.used, known: p.known && before.known}
}

// perTurn returns zero if the time is not known.
func (p processTime) perTurn(turns int) time.Duration {
	if !p.known || turns == 0 {
		return 0
	}
	return p.used / time.Duration(turns)
}

// processorName is what Linux calls the processor, or nothing.
func processorName() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// fsyncRate appends 4 KiB and flushes the file to the disk, again and again for
// a while, and returns how often that goes in a second. It is what a database
// that flushes at every commit can hope for.
func fsyncRate(dir string, during time.Duration) (rate float64, err error) {
	f, err := os.Create(filepath.Join(dir, "fsync")) //nolint:gosec // our own directory
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = f.Close() // removed with its directory
		_ = os.Remove(f.Name())
	}()
	block := make([]byte, 4<<10)
	begin, n := time.Now(), 0
	for time.Since(begin) < during {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
