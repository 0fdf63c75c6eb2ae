package terminal

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// Of returns the configuration for the terminal that a person types at and looks at.
// lookup finds variables of the environment: with NO_COLOR nothing is colored or bold,
// with TERM=dumb there are no escape sequences at all.
func Of(in, out *os.File, lookup func(name string) (string, bool)) Config {
	value := func(name string) string {
		text, _ := lookup(name)
		return text
	}
	kind, noColor := value("TERM"), value("NO_COLOR") // no-color.org: any value but none
	return Config{
		In: in, Out: out,
		Plain:  kind == "dumb",
		Styled: noColor == "" && kind != "dumb",
		Size: func() (columns, rows int) {
			columns, rows, _ = term.GetSize(int(out.Fd())) //nolint:gosec // a descriptor fits
			return columns, rows
		},
		Raw: func() (restore func() error, err error) {
			before, err := term.MakeRaw(int(in.Fd())) //nolint:gosec // as above
			if err != nil {
				return nil, fmt.Errorf("switch the terminal: %w", err)
			}
			return func() error { return term.Restore(int(in.Fd()), before) }, nil //nolint:gosec // as above
		},
	}
}

// IsTerminal reports whether a stream is one that a person types at or looks at.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // as above
}

// Render lays a text in Markdown out as Show does, for a terminal that is only
// written to.
func Render(c Config, text string) string {
	t := New(c)
	columns, _ := t.size()
	var out strings.Builder
	for _, r := range t.markdown.rows(text, columns-1) {
		out.WriteString(r.text + "\n")
	}
	return out.String()
}

// Fold breaks the lines of a text at words; what goes on of an indented line is indented
// as given, unless it is a URL that would not fit then.
func Fold(c Config, text string, indent int) string {
	columns, _ := New(c).size()
	var b strings.Builder
	given := indent
	for line := range strings.Lines(text) {
		if indent = given; !strings.HasPrefix(line, " ") {
			indent = 0
		}
		cells, _ := strings.CutSuffix(line, "\n")
		parts := wrap(cellsOf(cells, plain), columns-1)
		if len(parts) > 1 { // the further ones have less room
			var left []cell
			for i, part := range parts[1:] {
				if i > 0 {
					left = append(left, cell{" ", 1, plain})
				}
				left = append(left, part...)
			}
			parts = append(parts[:1], wrap(left, max(columns-1-indent, minColumns))...)
		}
		for i, part := range parts {
			r := paint(part, false)
			if i > 0 {
				b.WriteString("\n")
			}
			if i > 0 && indent+r.columns < columns {
				b.WriteString(strings.Repeat(" ", indent))
			}
			b.WriteString(r.text)
		}
		b.WriteString(line[len(cells):])
	}
	return b.String()
}
