package waittest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// slowest bounds what is believed of a machine: patience times this stays
	// well below the ten minutes that go test gives a package.
	slowest = 15

	// What the work of measure takes on an idle machine of the kind that
	// continuous integration has.
	idleCPU  = 15 * time.Millisecond
	idleSync = 4 * time.Millisecond
)

// worst is the largest result of measure in this test binary. A machine that has
// been slow may have been slow for this wait, too.
var worst struct {
	sync.Mutex
	factor float64
	at     time.Time // of the last measurement
}

// fresh is how long a measurement is good for. Hundreds of waits may end at once, and
// would be measured one after the other, also those of tests that have ended.
const fresh = time.Second

// scaled returns what takes d on an idle machine in the time of this one.
func scaled(d time.Duration) time.Duration {
	worst.Lock()
	defer worst.Unlock()
	if time.Since(worst.at) > fresh {
		worst.factor = max(worst.factor, measure())
		worst.at = time.Now()
	}
	return time.Duration(float64(d) * worst.factor)
}

// measure returns how many times as long as on an idle machine things take now.
func measure() float64 {
	slow := max(1, float64(timeCPU())/float64(idleCPU), float64(timeSync())/float64(idleSync), load())
	return min(slow*instrumented, slowest)
}

// sink keeps the compiler from removing the work.
var sink atomic.Uint64

// timeCPU returns how long a known piece of arithmetic takes, waiting for a
// processor included.
func timeCPU() time.Duration {
	begin := time.Now()
	x := uint64(begin.UnixNano()) | 1 //nolint:gosec // after 1970
	for range 12_000_000 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink.Store(x)
	return time.Since(begin)
}

// timeSync returns how long it takes to have a few small writes on the disk. A
// machine where that fails is not slow for it.
func timeSync() time.Duration {
	dir, err := os.MkdirTemp("", "waittest")
	if err != nil {
		return 0
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // it is thrown away
	begin := time.Now()
	for range 4 {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0
		}
		if err := f.Sync(); err != nil {
			return 0
		}
	}
	return time.Since(begin)
}

// load returns how many programs wanted a processor lately for each that there
// is. It is 0 where the system does not say.
func load() float64 {
	var lately float64
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(text), &lately); err != nil {
		return 0
	}
	return lately / float64(runtime.NumCPU())
}
