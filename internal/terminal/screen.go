package terminal

import (
	"fmt"
	"io"
	"strings"
)

// screen paints the lowest rows of a terminal again and again, and lets finished
// ones scroll away above them.
type screen struct {
	out     io.Writer
	painted []row
	row     int // of the cursor, within painted
}

// update writes the rows in above for good, shows now below them and puts the cursor
// there. It is one write: a terminal shows no half of it. Of rows that are painted
// already only what differs is written.
func (s *screen) update(above, now []row, cursorRow, cursorColumn, columns int) error {
	var b strings.Builder
	s.toTop(&b, columns)
	same := 0
	if len(above) == 0 {
		for same < len(now)-1 && same < len(s.painted)-1 && now[same] == s.painted[same] {
			same++
		}
	}
	if down := linesOf(now[:same], columns); down > 0 {
		fmt.Fprintf(&b, "\x1b[%dB", down)
	}
	b.WriteString("\x1b[J")
	for _, r := range above {
		b.WriteString(r.text)
		b.WriteString("\r\n")
	}
	for i, r := range now[same:] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(r.text)
	}
	if up := linesOf(now[cursorRow+1:], columns); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	if cursorColumn > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", cursorColumn)
	}
	s.painted, s.row = now, cursorRow
	_, err := io.WriteString(s.out, b.String())
	return err
}

// linesOf returns how many lines of a terminal rows take: one that is too long, as of a
// URL or because the terminal has become narrower, is broken by the terminal.
func linesOf(rows []row, columns int) int {
	n := 0
	for _, r := range rows {
		n += max((r.columns-1)/max(columns, 1), 0) + 1
	}
	return n
}

// lastOf returns how many of the last rows there is room for, in lines of a terminal.
func lastOf(rows []row, room, columns int) int {
	for i := range rows {
		if room -= linesOf(rows[len(rows)-1-i:len(rows)-i], columns); room < 0 {
			return i
		}
	}
	return len(rows)
}

// toTop moves the cursor to the first of the painted rows.
func (s *screen) toTop(b *strings.Builder, columns int) {
	if up := linesOf(s.painted[:min(s.row, len(s.painted))], columns); up > 0 {
		fmt.Fprintf(b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
}

// leave removes what is painted, so that others can write to the terminal.
func (s *screen) leave(above []row, columns int) error {
	err := s.update(above, []row{{}}, 0, 0, columns)
	s.painted, s.row = nil, 0
	return err
}
