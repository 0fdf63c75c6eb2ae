package terminal

import (
	"strings"
	"unicode/utf8"
)

// complete goes on with what is typed as far as there is one way to, and lists the
// ways when Tab is pressed again.
func (t *Terminal) complete() {
	if t.config.Complete == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.line.text[:t.line.at]
	from, candidates := t.config.Complete(before)
	if len(candidates) == 0 {
		return
	}
	typed := before[from:]
	common := commonPrefix(candidates)
	switch {
	case len(candidates) == 1:
		if !strings.HasSuffix(common, "/") {
			common += " "
		}
		t.replace(from, common)
	case len(common) > len(typed) && strings.HasPrefix(common, typed):
		t.replace(from, common)
	case t.listed == before:
		columns, _ := t.size()
		_ = t.repaint(t.list(candidates, columns-1)) // as in handle
	}
	t.listed = t.line.text[:t.line.at]
}

// replace puts a text in the place of what stands between from and the cursor.
func (t *Terminal) replace(from int, text string) {
	t.line.remove(from, t.line.at)
	t.line.insert(text)
	_ = t.repaint(nil) // as in handle
}

// list lays candidates out in columns.
func (t *Terminal) list(candidates []string, columns int) []row {
	var cells []cell
	for i, c := range candidates {
		if i > 0 {
			cells = append(cells, blanks(2)...)
		}
		for _, one := range cellsOf(Clean(c), dim) {
			if one.text == " " {
				one.text = "\u00a0" // no place to break a line at
			}
			cells = append(cells, one)
		}
	}
	return wrapped(cells, max(columns, minColumns), t.markdown.styled)
}

func commonPrefix(all []string) string {
	common := all[0]
	for _, s := range all[1:] {
		for !strings.HasPrefix(s, common) {
			_, size := utf8.DecodeLastRuneInString(common)
			common = common[:len(common)-size]
		}
	}
	return common
}
