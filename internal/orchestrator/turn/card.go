package turn

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/wording"
)

// Verbosity is how much of a turn people see while it runs.
const (
	verboseResult = 0 // that it works, and the result
	verbosePhases = 1 // a row for each step that changes something; reads are counted
	verboseAll    = 2 // every call with its arguments and the head of its output
)

// maxRows is how many rows a card has; earlier ones are counted.
const maxRows = 7

// card is the state of a turn as people see it while it runs. It is plain data:
// progress guards it.
type card struct {
	verbose int
	begin   time.Time
	rows    []row
	byID    map[string]int // index of a call's row
	steps   []assistant.Step
	thought string        // the newest line of reasoning
	notes   int           // messages that were taken in
	waiting []string      // the questions that the turn waits for
	silence time.Duration // since something was heard of the turn
}

// row is a tool call.
type row struct {
	kind     assistant.PermissionKind
	text     string // what it does
	note     string // how it went
	output   string // the head of its output
	began    time.Time
	took     time.Duration
	done, ok bool
}

func newCard(verbose int, begin time.Time) card {
	return card{verbose: verbose, begin: begin, byID: make(map[string]int)}
}

func (c *card) started(e assistant.ToolStarted, now time.Time) {
	text := wording.OneLine(e.Summary)
	if text == "" {
		text = wording.OneLine(e.Name)
	}
	c.byID[e.ID] = len(c.rows)
	c.rows = append(c.rows, row{kind: e.Kind, text: text, began: now})
}

func (c *card) at(id string) *row {
	if i, ok := c.byID[id]; ok {
		return &c.rows[i]
	}
	return nil
}

func (c *card) finished(id string, ok bool, now time.Time) {
	if r := c.at(id); r != nil {
		r.done, r.ok, r.took = true, ok, now.Sub(r.began)
	}
}

// worked reports whether there is anything to tell of the way to the answer.
func (c *card) worked() bool { return len(c.rows) > 0 || len(c.steps) > 0 }

// render returns the card as CommonMark, empty if there is nothing to show yet.
func (c *card) render(now time.Time) string {
	elapsed := now.Sub(c.begin)
	var lines []string
	if len(c.waiting) > 0 {
		lines = append(lines, "✋ Waiting for approval of "+strings.Join(c.waiting, ", "))
	}
	if c.verbose >= verbosePhases {
		lines = append(lines, c.stepLines()...)
		lines = append(lines, c.rowLines(now)...)
	}
	if c.verbose >= verboseAll && c.thought != "" {
		lines = append(lines, "💭 "+wording.Head(c.thought, 200))
	}
	if c.notes > 0 {
		lines = append(lines, "📥 "+wording.Count(c.notes, "note added", "notes added"))
	}
	if len(lines) == 0 && elapsed < quietAfter && !c.worked() {
		return ""
	}
	if len(lines) == 0 || elapsed >= quietAfter {
		line := "◐ Working · " + wording.Clock(elapsed)
		if c.silence >= stalledAfter && len(c.waiting) == 0 {
			line += " · no output for " + wording.Clock(c.silence)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "  \n")
}

func (c *card) stepLines() []string {
	lines := make([]string, 0, len(c.steps))
	for _, s := range c.steps {
		mark := "○"
		switch {
		case s.Done:
			mark = "✔"
		case s.Now:
			mark = "◐"
		}
		lines = append(lines, mark+" "+wording.Head(wording.OneLine(s.Text), 200))
	}
	return lastRows(lines)
}

// rowLines are the rows for calls: at verbosePhases what only reads is counted,
// unless it is running now.
func (c *card) rowLines(now time.Time) []string {
	var lines []string
	reads := 0
	for _, r := range c.rows {
		if c.verbose < verboseAll && r.kind == assistant.KindRead && r.done {
			reads++
			continue
		}
		line := r.line(now)
		if c.verbose >= verboseAll && r.output != "" {
			line += "  \n```\n" + strings.ReplaceAll(r.output, "```", "'''") + "\n```"
		}
		lines = append(lines, line)
	}
	lines = lastRows(lines)
	if reads > 0 {
		lines = append([]string{"✔ Read " + wording.Count(reads, "time", "times")}, lines...)
	}
	return lines
}

func lastRows(lines []string) []string {
	if n := len(lines) - maxRows; n > 0 {
		return append([]string{fmt.Sprintf("✔ %s", wording.Count(n, "earlier step", "earlier steps"))}, lines[n:]...)
	}
	return lines
}

func (r row) line(now time.Time) string {
	mark, took := "◐", now.Sub(r.began)
	if r.done {
		mark, took = "✔", r.took
		if !r.ok {
			mark = "✖"
		}
	}
	text := wording.Head(r.text, 200)
	if r.kind != assistant.KindExecute { // which is shown as code
		text = wording.Literal(text)
	}
	switch r.kind {
	case assistant.KindWrite:
		text = "✎ " + text
	case assistant.KindExecute:
		text = "▶ `" + strings.ReplaceAll(text, "`", "'") + "`"
	case assistant.KindNetwork:
		text = "⇡ " + text
	case assistant.KindRead, assistant.KindOther, assistant.KindQuestion:
	}
	if r.note != "" {
		text += " " + wording.OneLine(r.note)
	}
	if took >= 5*time.Second {
		text += " · " + wording.Clock(took)
	}
	return mark + " " + text
}

// summary is what the card says when the turn is over: "Worked for 0:42 · 3
// edits, 12 reads".
func (c *card) summary(took time.Duration, used string) string {
	parts := []string{"✔ Worked for " + wording.Clock(took)}
	counts := map[assistant.PermissionKind]int{}
	for _, r := range c.rows {
		kind := cmp.Or(r.kind, assistant.KindOther)
		counts[kind]++
	}
	var did []string
	for _, k := range []struct {
		kind      assistant.PermissionKind
		one, many string
	}{
		{assistant.KindWrite, "edit", "edits"}, {assistant.KindExecute, "command", "commands"},
		{assistant.KindRead, "read", "reads"}, {assistant.KindNetwork, "request", "requests"}, {assistant.KindOther, "tool call", "tool calls"},
	} {
		if n := counts[k.kind]; n > 0 {
			did = append(did, wording.Count(n, k.one, k.many))
		}
	}
	if len(did) > 0 {
		parts = append(parts, strings.Join(did, ", "))
	}
	if used != "" {
		parts = append(parts, used)
	}
	return strings.Join(parts, " · ")
}

// results keeps the heads of outputs for people who want to see everything.
func (c *card) results(m messages.Message) {
	for _, b := range m.Blocks {
		result, ok := b.(messages.ToolResult)
		if r := c.at(result.CallID); ok && r != nil {
			lines := strings.SplitN(strings.TrimSpace(result.Content), "\n", 6)
			r.output = wording.Head(strings.Join(lines[:min(len(lines), 5)], "\n"), 500)
		}
	}
}
