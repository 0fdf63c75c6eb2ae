package files

import (
	"fmt"
	"slices"
	"strings"
)

const (
	diffContext = 3
	// maxDistance bounds the search for the shortest diff; beyond it the changed
	// part is shown as removed and added as a whole. Its cost in memory is
	// maxDistance² integers.
	maxDistance = 1000
)

// edit kinds in a script.
const (
	same    = ' '
	removed = '-'
	added   = '+'
)

type diffLine struct {
	kind byte
	text string // without the line end that Split took
}

// change is the difference between two texts.
type change struct {
	unified        string // in the unified format, empty if the texts are equal
	added, removed int    // lines
}

// note is the size of a change for people.
func (c change) note() string { return fmt.Sprintf("+%d −%d", c.added, c.removed) }

// diff compares two texts line by line. An old name of "" means that there was no
// file.
func diff(oldName, newName, before, after string) change {
	if before == after && oldName != "" {
		return change{}
	}
	script := compare(lines(before), lines(after))
	var c change
	for _, l := range script {
		switch l.kind {
		case added:
			c.added++
		case removed:
			c.removed++
		}
	}
	from, to := "/dev/null", "b/"+newName
	if oldName != "" {
		from = "a/" + oldName
	}
	c.unified = fmt.Sprintf("--- %s\n+++ %s\n", from, to) + hunks(script)
	return c
}

// lines cuts a text into lines that keep their ends.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	out := strings.SplitAfter(s, "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// compare returns a script that makes b of a.
func compare(a, b []string) []diffLine {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	script := mark(nil, same, a[:start])
	script = append(script, middle(a[start:len(a)-end], b[start:len(b)-end])...)
	return mark(script, same, a[len(a)-end:])
}

func mark(script []diffLine, kind byte, text []string) []diffLine {
	for _, t := range text {
		script = append(script, diffLine{kind, t})
	}
	return script
}

// middle is the greedy algorithm of Myers ("An O(ND) Difference Algorithm and Its
// Variations", 1986): trace[d] has, per diagonal, how far d edits reach.
func middle(a, b []string) []diffLine {
	if len(a) == 0 || len(b) == 0 {
		return mark(mark(nil, removed, a), added, b)
	}
	limit := min(len(a)+len(b), maxDistance)
	reach := make([]int32, 2*limit+3)
	at := func(k int) *int32 { return &reach[k+limit+1] }
	var trace [][]int32
	for d := 0; d <= limit; d++ {
		trace = append(trace, append([]int32(nil), reach[limit+1-d:limit+2+d]...))
		for k := -d; k <= d; k += 2 {
			var x int32
			if k == -d || k != d && *at(k - 1) < *at(k + 1) {
				x = *at(k + 1)
			} else {
				x = *at(k - 1) + 1
			}
			for int(x) < len(a) && int(x)-k < len(b) && a[x] == b[int(x)-k] {
				x++
			}
			*at(k) = x
			if int(x) >= len(a) && int(x)-k >= len(b) {
				return walkBack(a, b, trace)
			}
		}
	}
	return mark(mark(nil, removed, a), added, b)
}

// walkBack follows the furthest paths from the end to the start. trace[d] is the
// state before step d, for the diagonals -d to d.
func walkBack(a, b []string, trace [][]int32) []diffLine {
	var back []diffLine
	x, y := len(a), len(b)
	for d := len(trace) - 1; d > 0; d-- {
		before := trace[d]
		at := func(k int) int {
			if k < -d || k > d {
				return -1
			}
			return int(before[k+d])
		}
		k := x - y
		from := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			from = k + 1
		}
		fromX := at(from)
		fromY := fromX - from
		for x > fromX && y > fromY {
			x, y = x-1, y-1
			back = append(back, diffLine{same, a[x]})
		}
		if from == k+1 {
			y--
			back = append(back, diffLine{added, b[y]})
		} else {
			x--
			back = append(back, diffLine{removed, a[x]})
		}
	}
	for x > 0 && y > 0 {
		x, y = x-1, y-1
		back = append(back, diffLine{same, a[x]})
	}
	slices.Reverse(back)
	return back
}

// hunks writes the changed parts of a script with their surroundings.
func hunks(script []diffLine) string {
	var b strings.Builder
	oldLine, newLine := 1, 1 // the lines before script[i]
	for i := 0; i < len(script); {
		if script[i].kind == same {
			i, oldLine, newLine = i+1, oldLine+1, newLine+1
			continue
		}
		start := i
		for start > 0 && i-start < diffContext && script[start-1].kind == same {
			start--
		}
		end := hunkEnd(script, i)
		writeHunk(&b, script[start:end], oldLine-(i-start), newLine-(i-start))
		for ; i < end; i++ {
			if script[i].kind != added {
				oldLine++
			}
			if script[i].kind != removed {
				newLine++
			}
		}
	}
	return b.String()
}

// hunkEnd returns where the hunk ends whose first change is at i: after a change
// that no other follows within twice the context.
func hunkEnd(script []diffLine, i int) int {
	end, quiet := i+1, 0
	for j := i + 1; j < len(script) && quiet <= 2*diffContext; j++ {
		if script[j].kind == same {
			quiet++
			continue
		}
		end, quiet = j+1, 0
	}
	return min(end+diffContext, len(script))
}

func writeHunk(b *strings.Builder, hunk []diffLine, oldLine, newLine int) {
	olds, news := 0, 0
	for _, l := range hunk {
		if l.kind != added {
			olds++
		}
		if l.kind != removed {
			news++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(oldLine, olds), span(newLine, news))
	for _, l := range hunk {
		b.WriteByte(l.kind)
		b.WriteString(l.text)
		if !strings.HasSuffix(l.text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func span(line, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}
