package spend

import (
	"cmp"
	"slices"
	"time"

	"remote-agent/internal/order"
)

// Tally makes sums from days: of each thing that they are grouped by, and of all. A turn
// counts once in each sum that it belongs to.
type Tally struct {
	column        int
	by            By
	actor, within string // only the records of this person and codebase; empty: all
	groups        []tallied
	of            map[string]int // a place in groups, by the name as it is encoded
	all           tallied
	view          dayView // is used for each day
}

// tallied is a sum with those turns in it that other days may count too.
type tallied struct {
	Sum
	seen   bool // something was added
	spread map[string]struct{}
}

func (s *tallied) add(o Sum) {
	s.seen = true
	s.Turns += o.Turns
	s.InputTokens += o.InputTokens
	s.OutputTokens += o.OutputTokens
	s.Micros += o.Micros
	s.UnpricedToken += o.UnpricedToken
}

// once counts a turn that has an id once.
func (s *tallied) once(id string) {
	if _, counted := s.spread[id]; counted {
		return
	}
	if s.spread == nil {
		s.spread = make(map[string]struct{})
	}
	s.spread[id] = struct{}{}
	s.Turns++
}

// NewTally returns a Tally without days. Of f it observes the person and the codebase.
func NewTally(by By, f Filter) *Tally {
	return &Tally{column: columnOf[by], by: by, actor: f.Actor, within: f.CodebaseID, of: make(map[string]int)}
}

// dayView is a day that is being added.
type dayView struct {
	dayReader
	names  [columns]int // how many there are
	groups []int        // places in Tally.groups, by place of a name; that of a ByDay is the only one
	wanted [columns][]bool
	cells  []int // the group of each cell; -1 if it is not wanted
	mine   []int // groups of an entry
}

// Add adds a day, in days since 1970, as it is encoded. One that was damaged adds nothing
// and is an error.
func (t *Tally) Add(day int64, encoded []byte) error {
	body, ok := checked(encoded)
	if !ok {
		return errDay
	}
	v := &t.view
	v.dayReader = dayReader{b: body}
	t.names(v, day)
	t.cells(v)
	for range v.count() { // in several cells
		v.touched()
		if len(v.mine) > 0 {
			t.all.Turns++
		}
		for _, g := range v.mine {
			t.groups[g].Turns++
		}
	}
	for range v.count() { // on several days
		name := v.name()
		if v.touched(); len(v.mine) == 0 {
			continue
		}
		id := readName(name)
		t.all.once(id)
		for _, g := range v.mine {
			t.groups[g].once(id)
		}
	}
	if v.broken {
		return errDay
	}
	return nil
}

// names reads the columns: which of their names are wanted, and the groups of those that
// sums are made by.
func (t *Tally) names(v *dayView, day int64) {
	v.groups = v.groups[:0]
	for column := range columns {
		n := v.count()
		v.names[column] = n
		want := ""
		switch column {
		case byActor:
			want = t.actor
		case byCodebase:
			want = t.within
		}
		v.wanted[column] = v.wanted[column][:0]
		for range n {
			name := v.name()
			if want != "" {
				v.wanted[column] = append(v.wanted[column], readName(name) == want)
			}
			if column == t.column {
				v.groups = append(v.groups, t.group(name))
			}
		}
	}
	if t.column == columns {
		v.groups = append(v.groups, t.group(appendName(nil, time.Unix(day*86_400, 0).UTC().Format(time.DateOnly))))
	}
}

// group returns the place of the group of a name as it is encoded.
func (t *Tally) group(name []byte) int {
	at, known := t.of[string(name)]
	if !known {
		at = len(t.groups)
		t.groups, t.of[string(name)] = append(t.groups, tallied{}), at
	}
	return at
}

// cells adds what is in the cells that are wanted.
func (t *Tally) cells(v *dayView) {
	v.cells = v.cells[:0]
	for range v.count() {
		at, wanted := 0, true
		for column := range columns {
			place := v.below(v.names[column])
			if v.broken {
				return
			}
			wanted = wanted && (len(v.wanted[column]) == 0 || v.wanted[column][place])
			if column == t.column {
				at = place
			}
		}
		s := Sum{Turns: int(v.int()), InputTokens: v.int(), OutputTokens: v.int(), Micros: v.int(), UnpricedToken: v.int()}
		if !wanted {
			v.cells = append(v.cells, -1)
			continue
		}
		g := v.groups[at]
		v.cells = append(v.cells, g)
		t.groups[g].add(s)
		t.all.add(s)
	}
}

// touched reads the cells of an entry, and notes the groups of those that are wanted, each
// once.
func (v *dayView) touched() {
	v.mine = v.mine[:0]
	for range v.count() {
		at := v.below(len(v.cells))
		if v.broken {
			return
		}
		if g := v.cells[at]; g >= 0 && !slices.Contains(v.mine, g) {
			v.mine = append(v.mine, g)
		}
	}
}

// Sum returns the sum of all.
func (t *Tally) Sum() Sum { return t.all.Sum }

// Groups returns the sums: the dearest first, days the newest first, up to limit; 0 is all.
func (t *Tally) Groups(limit int) []Group {
	var list []Group
	for name, at := range t.of {
		if g := t.groups[at]; g.seen {
			list = append(list, Group{Key: readName([]byte(name)), Sum: g.Sum})
		}
	}
	order.By(list, func(a, b Group) int {
		if t.by == ByDay {
			return cmp.Compare(b.Key, a.Key)
		}
		return cmp.Or(cmp.Compare(b.Micros, a.Micros), cmp.Compare(b.UnpricedToken, a.UnpricedToken), cmp.Compare(a.Key, b.Key))
	})
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list
}
