package metrics

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// writeProcess writes what Go and Linux say of this process, under the names that
// Prometheus' own clients use.
func writeProcess(w *bufio.Writer) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	describe(w, "gauge", "go_info", "The version of Go.")
	sample(w, "go_info", `version="`+runtime.Version()+`"`, 1)
	for _, g := range []struct {
		kind, name, help string
		value            float64
	}{
		{"gauge", "go_goroutines", "Goroutines that exist.", float64(runtime.NumGoroutine())},
		{"gauge", "go_gomaxprocs", "Threads that run Go at the same time.", float64(runtime.GOMAXPROCS(0))},
		{"counter", "go_gc_cycles_total", "Collections of garbage.", float64(m.NumGC)},
		{"counter", "go_gc_pause_seconds_total", "Time in which collections stopped the program.", float64(m.PauseTotalNs) / 1e9},
		{"gauge", "go_memstats_alloc_bytes", "Memory that is in use.", float64(m.Alloc)},
		{"counter", "go_memstats_alloc_bytes_total", "Memory that was ever allocated.", float64(m.TotalAlloc)},
		{"counter", "go_memstats_mallocs_total", "Objects that were ever allocated.", float64(m.Mallocs)},
		{"counter", "go_memstats_frees_total", "Objects that were ever freed.", float64(m.Frees)},
		{"gauge", "go_memstats_heap_alloc_bytes", "Heap that is in use.", float64(m.HeapAlloc)},
		{"gauge", "go_memstats_heap_inuse_bytes", "Heap in spans that are in use.", float64(m.HeapInuse)},
		{"gauge", "go_memstats_heap_idle_bytes", "Heap in spans that are not in use.", float64(m.HeapIdle)},
		{"gauge", "go_memstats_heap_released_bytes", "Heap that was given back to the system.", float64(m.HeapReleased)},
		{"gauge", "go_memstats_heap_sys_bytes", "Heap that was taken from the system.", float64(m.HeapSys)},
		{"gauge", "go_memstats_heap_objects", "Objects on the heap.", float64(m.HeapObjects)},
		{"gauge", "go_memstats_stack_inuse_bytes", "Memory of stacks.", float64(m.StackInuse)},
		{"gauge", "go_memstats_sys_bytes", "Memory that was taken from the system.", float64(m.Sys)},
		{"gauge", "go_memstats_next_gc_bytes", "Heap at which the next collection begins.", float64(m.NextGC)},
	} {
		describe(w, g.kind, g.name, g.help)
		sample(w, g.name, "", g.value)
	}
	writeSystem(w)
}

// writeSystem writes what is in /proc; where that is not to be had, nothing.
func writeSystem(w *bufio.Writer) {
	put := func(kind, name, help string, value float64) {
		describe(w, kind, name, help)
		sample(w, name, "", value)
	}
	if stat, err := os.ReadFile("/proc/self/stat"); err == nil {
		// The name, in parentheses, may have spaces; what is behind it has none.
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		number := func(field int) float64 { // as proc(5) counts them
			if field-3 >= len(f) {
				return 0
			}
			n, _ := strconv.ParseFloat(f[field-3], 64)
			return n
		}
		const ticks = 100 // a second, on every Linux
		put("counter", "process_cpu_seconds_total", "Time of processors that was used.", (number(14)+number(15))/ticks)
		put("gauge", "process_threads", "Threads of the system.", number(20))
		put("gauge", "process_virtual_memory_bytes", "Virtual memory.", number(23))
		put("gauge", "process_resident_memory_bytes", "Memory that is resident.", number(24)*float64(os.Getpagesize()))
		if up, err := os.ReadFile("/proc/uptime"); err == nil {
			seconds, _, _ := strings.Cut(string(up), " ")
			since, _ := strconv.ParseFloat(seconds, 64)
			put("gauge", "process_start_time_seconds", "When the process started, in Unix time.", float64(time.Now().UnixMilli())/1e3-since+number(22)/ticks)
		}
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		put("gauge", "process_open_fds", "Open descriptors.", float64(len(open)-1)) // but for that of the list
	}
	limits, _ := os.ReadFile("/proc/self/limits")
	for line := range strings.Lines(string(limits)) {
		if rest, is := strings.CutPrefix(line, "Max open files"); is {
			if soft, err := strconv.ParseFloat(strings.Fields(rest)[0], 64); err == nil {
				put("gauge", "process_max_fds", "Descriptors that may be open.", soft)
			}
		}
	}
}
