package chaos

import (
	"fmt"
	"hash/fnv"
	"sync"
)

// dice decides by a seed and a name, so that the decision does not depend on what
// else is decided, nor on when.
type dice uint64

// of returns a number from 0 up to 1.
func (d dice) of(name ...any) float64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, uint64(d), name) // a hash takes everything
	x := h.Sum64()                        // whose high bits hardly differ for names that hardly do
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// fault is what goes wrong with one call to a platform.
type fault string

// The faults. Those of the second group leave the caller in the dark: the call was
// carried out.
const (
	none        fault = ""
	slow        fault = "slow"
	rateLimited fault = "429"
	unavailable fault = "503"
	refused     fault = "reset before"

	silent    fault = "silence after acceptance"
	cut       fault = "half an answer"
	truncated fault = "truncated JSON"
	garbage   fault = "not JSON"
)

// ambiguous reports whether nobody can know what became of the call.
func (f fault) ambiguous() bool { return f == silent || f == cut || f == truncated || f == garbage }

var faults = []fault{slow, rateLimited, unavailable, refused, silent, cut, truncated, garbage}

// fault returns what goes wrong with the n-th call of a name.
func (d dice) fault(share float64, name string, n int) fault {
	x := d.of("fault", name, n)
	if share <= 0 || x >= share {
		return none
	}
	return faults[int(x/share*float64(len(faults)))]
}

// moment is a step of a message's way that can be seen from outside. They lie between
// the named places inside the program, and a kill some milliseconds after one of them
// comes to each of those.
type moment string

// The moments.
const (
	delivered moment = "an event is delivered"  // received, stored, acknowledged, claimed
	asked     moment = "the model is asked"     // before the model
	streaming moment = "the model answers"      // in the middle of its answer
	answered  moment = "the model has answered" // answer stored
	calling   moment = "a call comes"           // before it is carried out
	called    moment = "a call was carried out" // and nobody hears of it
	starting  moment = "the process starts"     // the first 80 ms
	anytime   moment = "50 to 1,800 ms of life" // whatever happens then
)

var allMoments = []moment{delivered, asked, streaming, answered, calling, called, starting, anytime}

// moments lets one wait for a moment.
type moments struct {
	mu    sync.Mutex // guards all below
	armed moment
	left  int
	do    func() // is called while the other side waits
}

func newMoments() *moments { return &moments{} }

// arm calls do when a moment comes for the n-th time from now on, once.
func (m *moments) arm(which moment, n int, do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed, m.left, m.do = which, n, do
}

// disarm reports whether what was armed for is being done, or was.
func (m *moments) disarm() (taken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken = m.do == nil
	m.armed, m.left, m.do = "", 0, nil
	return taken
}

// come says that a moment has come.
func (m *moments) come(which moment) {
	m.mu.Lock()
	var do func()
	if m.armed == which && m.do != nil {
		if m.left--; m.left <= 0 {
			do, m.do = m.do, nil
		}
	}
	m.mu.Unlock()
	if do != nil {
		do()
	}
}
