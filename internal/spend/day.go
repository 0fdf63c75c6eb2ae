package spend

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/google/uuid"
)

// Use is what one record adds to sums.
type Use struct {
	EntryID        string // empty if it was deleted
	Spread         bool   // other days may have records of the entry too
	Actor          string
	ConversationID string
	CodebaseID     string
	Model          string // with what is shown where a record has none
	Input, Output  int64
	Micros         int64 // meaningless unless Known
	Known          bool
}

// Part names what of a day is kept by itself and answers a question of a Tally, so that
// not all of the day has to be read for it; empty if it takes all.
func Part(by By, f Filter) string {
	switch {
	case f.CodebaseID != "":
		return ""
	case f.Actor != "":
		return "of " + f.Actor
	}
	return "by " + string(by)
}

// Parts returns the parts of a day that a record belongs to, each with what is summed of it
// there.
func (u Use) Parts() map[string]Use {
	parts := make(map[string]Use, columns+2)
	for _, by := range []By{ByPerson, ByConversation, ByCodebase, ByModel, ByDay} {
		o := u
		o.Actor, o.ConversationID, o.CodebaseID, o.Model = "", "", "", ""
		switch by {
		case ByPerson:
			o.Actor = u.Actor
		case ByConversation:
			o.ConversationID = u.ConversationID
		case ByCodebase:
			o.CodebaseID = u.CodebaseID
		case ByModel:
			o.Model = u.Model
		case ByDay:
		}
		parts[Part(by, Filter{})] = o
	}
	if u.Actor != "" {
		parts[Part("", Filter{Actor: u.Actor})] = u
	}
	return parts
}

// What a Day is divided by.
const (
	byActor = iota
	byConversation
	byCodebase
	byModel
	columns
)

var columnOf = map[By]int{ //nolint:gochecknoglobals // a constant
	ByPerson: byActor, ByConversation: byConversation, ByCodebase: byCodebase, ByModel: byModel, ByDay: columns,
}

// Day gathers what was used on one day. The zero value is a day without anything. What it
// is encoded as answers every question a Tally asks, at a hundredth of the time that the
// records take: sums are kept by cells, whose person, conversation, repository and model
// are the same, and of the turns only those by themselves that are in several cells or
// in several days, and so would be counted twice.
type Day struct {
	names   [columns][]string
	places  [columns]map[string]int
	cells   []cell
	of      map[[columns]int]int // a place in cells
	entries map[string]*touched
	order   []string // of entries, as they came
}

type cell struct {
	key [columns]int
	sum Sum
}

// touched are the cells that an entry has records in.
type touched struct {
	spread bool
	cells  []int
}

// Add adds a record.
func (d *Day) Add(u Use) {
	var key [columns]int
	for i, name := range [columns]string{u.Actor, u.ConversationID, u.CodebaseID, u.Model} {
		place, known := d.places[i][name]
		if !known {
			if d.places[i] == nil {
				d.places[i] = make(map[string]int)
			}
			place = len(d.names[i])
			d.names[i], d.places[i][name] = append(d.names[i], name), place
		}
		key[i] = place
	}
	at, known := d.of[key]
	if !known {
		if d.of == nil {
			d.of, d.entries = make(map[[columns]int]int), make(map[string]*touched)
		}
		at = len(d.cells)
		d.cells, d.of[key] = append(d.cells, cell{key: key}), at
	}
	s := &d.cells[at].sum
	s.InputTokens += u.Input
	s.OutputTokens += u.Output
	if u.Known {
		s.Micros += u.Micros
	} else {
		s.UnpricedToken += u.Input + u.Output
	}
	if u.EntryID != "" {
		d.touch(u, at)
	}
}

func (d *Day) touch(u Use, at int) {
	e := d.entries[u.EntryID]
	if e == nil {
		e = &touched{}
		d.entries[u.EntryID] = e
		d.order = append(d.order, u.EntryID)
	}
	e.spread = e.spread || u.Spread
	if !slices.Contains(e.cells, at) {
		e.cells = append(e.cells, at)
	}
}

// DayFormat is the version of what Encode writes, and of which parts there are. A Tally
// reads this one only.
const DayFormat = 2

// Encode returns the day as a Tally reads it: the names of each column, the cells, the
// entries in several cells, and those in several days with their ids.
func (d *Day) Encode() []byte {
	var several, spread []string
	turns := make([]int64, len(d.cells)) // that are only there
	for _, id := range d.order {
		switch e := d.entries[id]; {
		case e.spread:
			spread = append(spread, id)
		case len(e.cells) > 1:
			several = append(several, id)
		default:
			turns[e.cells[0]]++
		}
	}
	var b []byte
	for _, names := range d.names {
		b = binary.AppendUvarint(b, uint64(len(names)))
		for _, name := range names {
			b = appendName(b, name)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(d.cells)))
	for i, c := range d.cells {
		for _, place := range c.key {
			b = binary.AppendUvarint(b, uint64(place)) //nolint:gosec // not negative
		}
		for _, n := range []int64{turns[i], c.sum.InputTokens, c.sum.OutputTokens, c.sum.Micros, c.sum.UnpricedToken} {
			b = binary.AppendVarint(b, n)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(several)))
	for _, id := range several {
		b = d.appendCells(b, id)
	}
	b = binary.AppendUvarint(b, uint64(len(spread)))
	for _, id := range spread {
		b = d.appendCells(appendName(b, id), id)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// checked returns what Encode wrote without the sum of its bytes, if that is right.
func checked(b []byte) (body []byte, ok bool) {
	at := len(b) - crc32.Size
	if at < 0 || crc32.ChecksumIEEE(b[:at]) != binary.LittleEndian.Uint32(b[at:]) {
		return nil, false
	}
	return b[:at], true
}

func (d *Day) appendCells(b []byte, id string) []byte {
	cells := d.entries[id].cells
	b = binary.AppendUvarint(b, uint64(len(cells)))
	for _, at := range cells {
		b = binary.AppendUvarint(b, uint64(at)) //nolint:gosec // not negative
	}
	return b
}

// appendName writes a text with twice its length before it, or an id in less with 1.
func appendName(b []byte, name string) []byte {
	if id, err := uuid.Parse(name); err == nil && id.String() == name {
		return append(append(b, 1), id[:]...)
	}
	return append(binary.AppendUvarint(b, uint64(len(name))*2), name...)
}

// readName returns what appendName wrote.
func readName(b []byte) string {
	if b[0] == 1 {
		return uuid.UUID(b[1:17]).String()
	}
	_, n := binary.Uvarint(b)
	return string(b[n:])
}

var errDay = errors.New("a day of usage cannot be read")

// dayReader reads what Encode wrote. It counts on and does not cut, which in millions of
// steps the collector of garbage would see.
type dayReader struct {
	b      []byte
	at     int
	broken bool
}

// uint returns the next number. Most take a byte or two.
func (r *dayReader) uint() uint64 {
	at, b := r.at, r.b
	if at+1 < len(b) {
		if b[at] < 0x80 {
			r.at = at + 1
			return uint64(b[at])
		}
		if b[at+1] < 0x80 {
			r.at = at + 2
			return uint64(b[at])&0x7f | uint64(b[at+1])<<7
		}
	}
	return r.long()
}

func (r *dayReader) long() uint64 {
	n, size := binary.Uvarint(r.b[r.at:])
	if size <= 0 {
		r.at, r.broken = len(r.b), true
		return 0
	}
	r.at += size
	return n
}

// int returns a number as AppendVarint writes it.
func (r *dayReader) int() int64 {
	n := r.uint()
	return int64(n>>1) ^ -int64(n&1) //nolint:gosec // as encoding/binary does it
}

// below returns a number that is less than most.
func (r *dayReader) below(most int) int {
	n := r.uint()
	if n >= uint64(most) { //nolint:gosec // not negative
		r.broken = true
		return 0
	}
	return int(n) //nolint:gosec // less than most
}

// count returns how many things follow, each of which takes a byte at least.
func (r *dayReader) count() int { return r.below(len(r.b) - r.at + 1) }

// name returns what appendName wrote, as it is.
func (r *dayReader) name() []byte {
	from := r.at
	n := r.uint()
	length := n / 2
	if n == 1 {
		length = uint64(len(uuid.UUID{}))
	}
	if r.broken || n%2 == 1 && n != 1 || length > uint64(len(r.b)-r.at) { //nolint:gosec // not negative
		r.broken = true
		return []byte{0}
	}
	r.at += int(length) //nolint:gosec // no more than there is
	return r.b[from:r.at]
}
