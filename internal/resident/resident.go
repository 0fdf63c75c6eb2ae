// Package resident keeps small what the process has in memory.
package resident

import (
	"context"
	"runtime/debug"
	"sync"
	"time"
)

// Release gives back what only the start needed: garbage, and on Linux the pages of
// the program's file, of which those that are used again come back from the
// system's cache, at about a millisecond in all. It is called a few times in the
// life of a process. It does nothing that can fail for the caller.
func Release() {
	debug.FreeOSMemory()
	ReleaseProgram()
}

// roomy is how much garbage there may be at a start or a rush, in percent of what is in
// use.
const roomy = 200

// room is for whom the heap may grow faster now.
var room struct {
	sync.Mutex // guards all below

	holders int
	before  int // percent that hold without them
}

// GiveRoom lets the heap grow to three times of what is in use until back is called, for
// this caller and all others. What is in use is little, so that a crowd makes it be gone
// through a dozen times a second, and that takes a fifth of the processors; a start does so
// seven times, a tenth of what it takes. A limit of memory (GOMEMLIMIT) is kept.
func GiveRoom() (back func()) {
	room.Lock()
	defer room.Unlock()
	if room.holders++; room.holders == 1 {
		room.before = debug.SetGCPercent(roomy)
		if room.before < 0 || room.before > roomy { // the operator's choice has more room
			debug.SetGCPercent(room.before)
		}
	}
	return sync.OnceFunc(func() {
		room.Lock()
		defer room.Unlock()
		if room.holders--; room.holders == 0 {
			debug.SetGCPercent(room.before)
		}
	})
}

// ReleaseProgram gives back the pages of the program's file alone.
func ReleaseProgram() {
	for _, m := range programMappings() {
		m.release()
	}
}

// trimEvery is how long pages stay that a rare event has used. Those of each turn come back
// within the second, at a few thousandths of a second of processor each time.
const trimEvery = time.Minute

// trimSteps is into how many steps that is divided, so that no turn has to bring back
// everything and what is resident stays level instead of falling once a minute.
const trimSteps = 60

// Trim gives back each page of the program's file once a minute until ctx ends. Else what
// happens once an hour would add to what is resident, 64 KiB for each place in the code,
// for as long as the process lives.
func Trim(ctx context.Context) {
	all := programMappings()
	if len(all) == 0 {
		return
	}
	trim(ctx, func(step int) {
		for _, m := range all {
			m.part(step, trimSteps).release()
		}
	})
}

func trim(ctx context.Context, release func(step int)) {
	again := time.NewTicker(trimEvery / trimSteps)
	defer again.Stop()
	for step := 0; ; step = (step + 1) % trimSteps {
		select {
		case <-again.C:
			release(step)
		case <-ctx.Done():
			return
		}
	}
}
