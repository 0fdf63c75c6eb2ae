package terminal

import (
	"slices"
	"strings"
)

// maxShown is how many messages are remembered: enough for any that can still
// change, and a bound for a terminal that stays open for months.
const maxShown = 512

// shown is a message on the screen.
type shown struct {
	id       string
	text     string
	rows     []row // of all of it
	scrolled []row // those that have scrolled away and cannot change any more
	final    bool
}

// rest returns the rows that have not scrolled away; all of them if what has is not
// how the message begins now.
func (m *shown) rest() []row {
	if len(m.scrolled) <= len(m.rows) && slices.Equal(m.scrolled, m.rows[:len(m.scrolled)]) {
		return m.rows[len(m.scrolled):]
	}
	return m.rows
}

// Show brings a message on the screen, in Markdown. As long as it is not final it
// stays above the typed line and may change; the same id again gives it a new text.
// A final text that changes is shown anew, below. Nothing that comes late changes a
// final text that is there. A Plain terminal shows final texts only.
func (t *Terminal) Show(id, text string, final bool) error {
	if t.config.Plain && !final {
		return nil
	}
	columns, _ := t.size()
	if !final {
		// A cursor mark at the end is of no use where there is a real one.
		text = strings.TrimRight(text, " \n\t…▌▍█")
	}
	rows := t.markdown.rows(text, columns-1) // before the lock: typing does not wait for it
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.message(id)
	if m.final && (!final || m.text == text) {
		return nil
	}
	if m.final {
		m.scrolled = nil
	}
	m.text, m.rows, m.final = text, rows, final
	if !final {
		return t.repaint(nil)
	}
	above := slices.Concat(m.rest(), []row{{}})
	m.rows, m.scrolled = nil, nil
	return t.repaint(above)
}

// message returns what is known of a message, after a new one is made of it.
func (t *Terminal) message(id string) *shown {
	for _, m := range t.shown {
		if m.id == id {
			return m
		}
	}
	m := &shown{id: id}
	if t.shown = append(t.shown, m); len(t.shown) > maxShown {
		t.shown = slices.Delete(t.shown, 0, 1)
	}
	return m
}

// Note shows a line of the program's own above the typed line.
func (t *Terminal) Note(text string) {
	columns, _ := t.size()
	rows := wrapped(cellsOf(Clean(text), dim), max(columns-1, minColumns), t.markdown.styled)
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.repaint(rows) // a terminal that is closed shows at the next answer
}

// Write shows text above the typed line, as a log does, once its lines are complete.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open {
		return t.config.Out.Write(p)
	}
	t.partial += string(p)
	var rows []row
	for {
		line, rest, ok := strings.Cut(t.partial, "\n")
		if !ok {
			break
		}
		t.partial = rest
		rows = append(rows, row{text: strings.TrimRight(line, "\r")})
	}
	if len(rows) == 0 {
		return len(p), nil
	}
	return len(p), t.repaint(rows)
}

// Status shows a line right above the typed one that says what is under way; an
// empty one takes it away.
func (t *Terminal) Status(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status == text || t.config.Plain {
		return
	}
	t.status = text
	_ = t.repaint(nil) // as in Note
}

// repaint shows everything as it is now, below rows that are finished.
func (t *Terminal) repaint(above []row) error {
	if !t.open || t.config.Plain {
		return t.writeRows(above)
	}
	columns, height := t.size()
	prompt := t.prompt(columns)
	typed := t.line.layOut(row{prompt, columnsOf(prompt)}, columns-1, max(height/2, 1))
	var status []row
	if t.status != "" {
		status = []row{paint(cellsOf(fit(t.status, columns-1), dim), t.markdown.styled)}
	}
	room := height - 1 - len(typed.rows) - len(status)
	var live []row
	for _, m := range t.shown {
		if m.final {
			continue
		}
		rest := m.rest()
		fresh := len(m.rows) == len(m.scrolled)+len(rest) // else what scrolled away has changed since
		if excess := len(rest) - lastOf(rest, max(room, 1), columns); excess > 0 {
			if fresh {
				above = append(above, rest[:excess]...)
				m.scrolled = m.rows[:len(m.scrolled)+excess]
			}
			rest = rest[excess:]
		}
		live = append(live, rest...)
		room -= linesOf(rest, columns)
	}
	now := slices.Concat(live, status, typed.rows)
	return t.screen.update(above, now, len(live)+len(status)+typed.row, typed.column, columns)
}

// writeRows writes rows to a terminal on which nothing is painted.
func (t *Terminal) writeRows(rows []row) error {
	var b strings.Builder
	if t.prompted && len(rows) > 0 {
		b.WriteString("\n")
		t.prompted = false
	}
	for _, r := range rows {
		b.WriteString(r.text)
		b.WriteString("\n")
	}
	if t.open && len(rows) > 0 {
		b.WriteString(t.config.Prompt)
		t.prompted = true
	}
	_, err := t.config.Out.Write([]byte(b.String()))
	return err
}
