package terminal

import (
	"strconv"
	"strings"
	"sync"
	"testing"
)

// glass is what a person would see: it obeys the sequences that this package writes,
// and no others.
type glass struct {
	t *testing.T

	mu            sync.Mutex
	columns, rows int
	lines         [][]string // all there ever were; the last rows of them are visible
	y, x          int
	pending       string
	modes         map[string]bool
}

func newGlass(t *testing.T, columns, rows int) *glass {
	t.Helper()
	return &glass{t: t, columns: columns, rows: rows, lines: [][]string{nil}, modes: map[string]bool{}}
}

func (g *glass) size() (columns, rows int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.columns, g.rows
}

// top is the first visible line.
func (g *glass) top() int { return max(len(g.lines)-g.rows, 0) }

func (g *glass) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := g.pending + string(p)
	for in != "" {
		if in[0] == '\x1b' {
			n := strings.IndexFunc(in[min(2, len(in)):], func(r rune) bool { return r >= '@' && r <= '~' })
			if n < 0 {
				break
			}
			g.sequence(in[2:2+n], in[2+n])
			in = in[n+3:]
			continue
		}
		cluster, columns := next(in)
		in = in[len(cluster):]
		switch cluster {
		case "\r":
			g.x = 0
		case "\n":
			g.down()
		default:
			g.put(cluster, columns)
		}
	}
	g.pending = in
	return len(p), nil
}

func (g *glass) down() {
	if g.y++; g.y == len(g.lines) {
		g.lines = append(g.lines, nil)
	}
}

func (g *glass) put(cluster string, columns int) {
	if columns == 0 {
		g.t.Errorf("a character without width: %q", cluster)
		return
	}
	if g.x+columns > g.columns {
		g.down()
		g.x = 0
	}
	line := g.lines[g.y]
	for len(line) < g.x+columns {
		line = append(line, " ")
	}
	line[g.x] = cluster
	for i := 1; i < columns; i++ {
		line[g.x+i] = ""
	}
	g.lines[g.y] = line
	g.x += columns
}

func (g *glass) sequence(parameters string, final byte) {
	n, _ := strconv.Atoi(parameters)
	switch final {
	case 'A':
		g.y = max(g.y-n, g.top())
	case 'B':
		g.y = min(g.y+n, len(g.lines)-1)
	case 'C':
		g.x = min(g.x+n, g.columns-1)
	case 'H':
		g.y, g.x = g.top(), 0
	case 'J':
		if parameters == "2" {
			g.lines = append(g.lines, make([][]string, g.rows)...)
			g.y, g.x = g.top(), 0
			return
		}
		g.lines = g.lines[:g.y+1]
		g.lines[g.y] = g.lines[g.y][:min(g.x, len(g.lines[g.y]))]
	case 'm':
	case 'h', 'l':
		g.modes[parameters] = final == 'h'
	default:
		g.t.Errorf("sequence %q%c", parameters, final)
	}
}

// text is everything, with what has scrolled away, and a bar where the cursor is.
func (g *glass) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for y, line := range g.lines {
		s := strings.Join(line, "")
		if y == g.y {
			for len(line) < g.x {
				line = append(line, " ")
			}
			s = strings.Join(line[:g.x], "") + "▏" + strings.Join(line[g.x:], "")
		}
		b.WriteString(strings.TrimRight(s, " ") + "\n")
	}
	return b.String()
}
