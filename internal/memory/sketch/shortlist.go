package sketch

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"
)

// Estimate is a row that may be similar.
type Estimate struct {
	ID         int64
	Similarity float64 // estimated
	Upper      float64 // the true one is hardly ever more
}

// Shortlist collects the rows that may be most similar to a Probe.
type Shortlist struct {
	probe *Probe
	floor float64
	limit int
	now   uint32
	list  []Estimate
}

// NewShortlist returns a Shortlist of at most limit rows that have not expired by
// now and whose similarity may be floor or more.
func NewShortlist(p *Probe, limit int, floor float64, now time.Time) *Shortlist {
	return &Shortlist{probe: p, limit: limit, floor: floor, now: uint32(max(0, now.Unix())), //nolint:gosec // until 2106
		list: make([]Estimate, 0, 2*limit)}
}

// Add looks through a chunk. What is left of it after the last whole sketch is
// ignored.
func (s *Shortlist) Add(chunk []byte) {
	for ; len(chunk) >= Size; chunk = chunk[Size:] {
		one := chunk[:Size:Size]
		id := int64(binary.LittleEndian.Uint64(one)) //nolint:gosec // as Append wrote it
		expires := binary.LittleEndian.Uint32(one[atExpires:])
		if id == 0 || expires != 0 && expires < s.now {
			continue
		}
		similarity, upper := s.probe.estimate(one, s.floor)
		if upper < s.floor {
			continue
		}
		if s.list = append(s.list, Estimate{id, similarity, upper}); len(s.list) == cap(s.list) {
			s.cut()
		}
	}
}

// cut keeps the best, and lets none in from now on that is worse than those.
func (s *Shortlist) cut() {
	slices.SortFunc(s.list, func(a, b Estimate) int {
		return cmp.Or(cmp.Compare(b.Upper, a.Upper), cmp.Compare(b.ID, a.ID))
	})
	if len(s.list) >= s.limit {
		s.list = s.list[:s.limit]
		s.floor = max(s.floor, s.list[s.limit-1].Upper)
	}
}

// Best returns the collected rows, the highest Upper first.
func (s *Shortlist) Best() []Estimate {
	s.cut()
	return s.list
}
