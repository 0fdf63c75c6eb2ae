// Package terminal is what a person at a terminal sees and types at: a line editor,
// messages in Markdown that grow above it, notes, and a line that says what is under
// way. The typed line is kept apart from all of them.
package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/fault"
)

const (
	// again is how soon a second Ctrl-C has to follow to be one that quits.
	again = 2 * time.Second

	// maxEcho is how many rows of a text stay on the screen when it is sent.
	maxEcho = 20

	// maxCanonical is the longest line that a terminal passes on by itself (Linux
	// N_TTY, 4,096 bytes with the line feed); it drops the rest without a word.
	maxCanonical = 4095
)

// Config configures a Terminal.
type Config struct {
	In  io.Reader
	Out io.Writer

	// Size returns the columns and rows of the terminal; nil is 80 and 24.
	Size func() (columns, rows int)

	// Raw has the terminal pass every key on at once and print none by itself;
	// restore ends that. Nil if it does so already.
	Raw func() (restore func() error, err error)

	Plain  bool // a terminal without escape sequences (TERM=dumb): no editor, final texts only
	Styled bool // bold, colors and the like may be used

	// Signals has handle called for the signal that a Plain terminal makes of Ctrl-C,
	// until release is called; nil leaves that to the program.
	Signals func(handle func()) (release func())

	Prompt  string
	History *History

	// Complete returns what the text before the cursor may go on with: candidates for
	// the part of it behind from. Nil completes nothing.
	Complete func(before string) (from int, candidates []string)

	// Pasted returns what to insert for a text that was pasted, and whether that counts
	// as typed; nil: the text, which does not.
	Pasted func(text string) (insert string, typed bool)
}

// Input is a text that a person has entered. It may have several lines.
type Input struct {
	Text   string
	Pasted []Range // what of it was not typed: another's text, for all that is known
}

// IsPasted reports whether some of a stretch of the text, in bytes, was not typed.
func (i Input) IsPasted(from, to int) bool { return overlaps(i.Pasted, from, to) }

// Handler is told what a person does. Nothing that is typed has an effect before it
// returns: it must not wait for anything.
type Handler struct {
	// Submit is given a text.
	Submit func(ctx context.Context, in Input)

	// Interrupt is told of Ctrl-C, and whether it is the second one in a row. It
	// reports whether it has done something; else what is typed is dropped.
	Interrupt func(ctx context.Context, second bool) bool
}

// Terminal is safe for concurrent use.
type Terminal struct {
	config   Config
	markdown *markdown

	mu       sync.Mutex // guards what follows
	screen   screen
	line     line
	shown    []*shown
	status   string
	partial  string // of a line that Write was given
	search   search
	open     bool // Run works
	prompted bool // Plain: the cursor is behind the prompt

	// Only Run uses these.
	decoder     decoder
	place       int  // in the history, from its end; 0 is the text that is typed
	draft       line // what was typed before somebody looked into the history
	interrupted time.Time
	listed      string // what the candidates were listed for
}

// New returns a Terminal that has read and written nothing yet.
func New(config Config) *Terminal {
	if config.Size == nil {
		config.Size = func() (int, int) { return 80, 24 }
	}
	if config.History == nil {
		config.History = &History{}
	}
	return &Terminal{config: config, markdown: newMarkdown(config.Styled && !config.Plain), screen: screen{out: config.Out}}
}

func (t *Terminal) size() (columns, rows int) {
	columns, rows = t.config.Size()
	if columns < 4 || rows < 3 { // not known, or too small to work with
		return 80, 24
	}
	return columns, rows
}

// Run reads what is typed until the input or ctx ends, or Ctrl-D is pressed on an
// empty line. It leaves the terminal as it was. A Read of Config.In cannot be
// interrupted: the goroutine that is in one when Run returns stays until it yields.
func (t *Terminal) Run(ctx context.Context, h Handler) error {
	if t.config.Raw != nil && !t.config.Plain {
		restore, rawErr := t.config.Raw()
		if rawErr != nil {
			return fault.Wrap(rawErr, fault.Unsupported, "set the terminal up")
		}
		defer restore() //nolint:errcheck // a terminal that was hung up has no state any more
	}
	t.begin()
	defer t.end()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if t.config.Plain {
		return t.runPlain(ctx, h)
	}
	reads := make(chan []byte)
	go t.read(ctx, reads)
	for {
		select {
		case <-ctx.Done():
			return nil
		case in, ok := <-reads:
			if !ok {
				return nil
			}
			for _, e := range t.decoder.feed(in) {
				if !t.handle(ctx, h, e) {
					return nil
				}
			}
		}
	}
}

// read passes on what is typed until the input ends.
func (t *Terminal) read(ctx context.Context, reads chan<- []byte) {
	defer close(reads)
	for {
		buffer := make([]byte, 4096)
		n, err := t.config.In.Read(buffer)
		if n > 0 {
			select {
			case reads <- buffer[:n]:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return // also a terminal that was hung up: the input has ended
		}
	}
}

func (t *Terminal) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = true
	if t.config.Plain {
		t.prompted = true
		_, _ = io.WriteString(t.config.Out, t.config.Prompt) // a closed terminal shows at the first answer
		return
	}
	_, _ = io.WriteString(t.config.Out, "\x1b[?2004h") // bracketed paste, as above
	_ = t.repaint(nil)
}

func (t *Terminal) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = false
	if t.config.Plain {
		if t.prompted {
			_, _ = io.WriteString(t.config.Out, "\n") // so that the shell's prompt gets its own line
		}
		return
	}
	var above []row
	for _, m := range t.shown {
		if !m.final {
			above = append(above, m.rest()...)
		}
	}
	columns, _ := t.size()
	_ = t.screen.leave(above, columns)                 // the program ends in any case
	_, _ = io.WriteString(t.config.Out, "\x1b[?2004l") // as above
}

// handle does what a key asks for. It reports false when the input ends.
func (t *Terminal) handle(ctx context.Context, h Handler, e event) bool {
	if t.searched(e) {
		return true
	}
	switch e.do {
	case submit:
		t.submit(ctx, h)
	case interrupt:
		t.interrupt(ctx, h)
	case complete:
		t.complete()
	case endOfInput:
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.line.text == "" {
			return false
		}
		t.line.edit(deleteNext)
		_ = t.repaint(nil) // a closed terminal ends the input
	default:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.key(e)
		_ = t.repaint(nil) // as above
	}
	return true
}

// key does what a key does to what is typed.
func (t *Terminal) key(e event) {
	t.interrupted = time.Time{}
	switch e.do {
	case insert, paste:
		pasted := e.do == paste
		if pasted && t.config.Pasted != nil {
			var typed bool
			e.text, typed = t.config.Pasted(e.text)
			pasted = !typed
		}
		if e.do == paste && e.text == "" || !t.line.put(e.text, pasted) {
			_ = t.repaint([]row{{text: "That is too long (more than 1 MiB) and was left out."}})
		}
	case newLine:
		t.line.insert("\n")
	case older:
		t.recall(1)
	case newer:
		t.recall(-1)
	case up:
		if !t.line.vertical(false) {
			t.recall(1)
		}
	case down:
		if !t.line.vertical(true) {
			t.recall(-1)
		}
	case redraw:
		_, _ = io.WriteString(t.config.Out, "\x1b[H\x1b[2J") // as in handle
		t.screen.painted, t.screen.row = nil, 0
	default:
		t.line.edit(e.do)
	}
}

// recall shows an earlier text, or a later one.
func (t *Terminal) recall(by int) {
	entries := t.config.History.entries
	place := t.place + by
	if place < 0 || place > len(entries) {
		return
	}
	if t.place == 0 {
		t.draft = t.line
	}
	if t.place = place; place == 0 {
		t.restore(t.draft)
		return
	}
	t.line.set(entries[len(entries)-place])
}

// restore shows what was typed before; what was killed since is kept.
func (t *Terminal) restore(l line) {
	l.killed, l.killedPasted = t.line.killed, t.line.killedPasted
	t.line = l
}

// submit hands what is typed over, and shows it among what was said.
func (t *Terminal) submit(ctx context.Context, h Handler) {
	t.mu.Lock()
	if t.line.wantsMore() {
		t.line.edit(backspace)
		t.line.insert("\n")
		_ = t.repaint(nil) // as in handle
		t.mu.Unlock()
		return
	}
	text, in := t.line.text, Input{Text: t.line.text, Pasted: t.line.pasted}
	columns, _ := t.size()
	said := t.line.layOut(row{t.config.Prompt, columnsOf(t.config.Prompt)}, columns-1, len(text)+1)
	t.line.set("")
	t.place, t.draft, t.interrupted = 0, line{}, time.Time{}
	rows := said.rows
	switch {
	case strings.TrimSpace(text) == "":
		rows = nil
	case len(rows) > maxEcho:
		more := fmt.Sprintf("%s… %d more lines", strings.Repeat(" ", columnsOf(t.config.Prompt)), len(rows)-maxEcho+1)
		rows = append(rows[:maxEcho-1:maxEcho-1], paint(cellsOf(more, dim), t.markdown.styled))
	}
	_ = t.repaint(rows) // as in handle
	t.mu.Unlock()
	if rows == nil {
		return
	}
	if err := t.config.History.Add(text); err != nil {
		t.Note("Input history is not saved: " + fault.Public(err))
	}
	h.Submit(ctx, in)
}

// interrupt passes Ctrl-C on, or drops what is typed.
func (t *Terminal) interrupt(ctx context.Context, h Handler) {
	second := time.Since(t.interrupted) < again
	done := h.Interrupt(ctx, second)
	t.interrupted = time.Now()
	if done {
		return
	}
	t.mu.Lock()
	typed := t.line.text != ""
	t.line.set("")
	t.place = 0
	_ = t.repaint(nil) // as in handle
	t.mu.Unlock()
	if !typed {
		t.Note("Press Ctrl-C again to quit.")
	}
}

// runPlain reads whole lines, as the terminal edits them.
func (t *Terminal) runPlain(ctx context.Context, h Handler) error {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for r := bufio.NewReader(t.config.In); ; {
			text, err := r.ReadString('\n')
			if text != "" {
				select {
				case lines <- text:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	pressed := make(chan struct{}, 2)
	if t.config.Signals != nil {
		defer t.config.Signals(func() {
			select {
			case pressed <- struct{}{}:
			default: // two are on their way
			}
		})()
	}
	for pending := ""; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-pressed: // the terminal has dropped the line
			pending = ""
			t.interrupt(ctx, h)
		case text, ok := <-lines:
			if !ok {
				return nil
			}
			pending = t.takePlain(ctx, h, pending, text)
		}
	}
}

// takePlain takes a line and returns what goes on in the next one.
func (t *Terminal) takePlain(ctx context.Context, h Handler, pending, text string) string {
	t.interrupted = time.Time{}
	t.mu.Lock()
	t.prompted = false
	t.mu.Unlock()
	defer t.promptPlain()
	if len(text) >= maxCanonical {
		t.Note("That line was not sent: this terminal cuts lines at 4,095 bytes. Send longer text through a pipe: bot chat < FILE.")
		return ""
	}
	text = pending + strings.TrimRight(text, "\r\n")
	if rest, more := strings.CutSuffix(text, `\`); more {
		return rest + "\n"
	}
	if text = Clean(strings.ToValidUTF8(text, "\uFFFD")); strings.TrimSpace(text) != "" {
		h.Submit(ctx, Input{Text: text})
	}
	return ""
}

func (t *Terminal) promptPlain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.prompted {
		t.prompted = true
		_, _ = io.WriteString(t.config.Out, t.config.Prompt) // as in begin
	}
}
