package tour

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/emulator/telegram"
)

// speaker is the width of the column with the names.
const speaker = 8

// longText is how much may be shown again when a message grows, in bytes.
const longText = 200

// shown is what of a message is on the screen.
type shown struct {
	edits int
	text  string
}

// screen shows what happens in the chats. On a terminal the message that changes
// is redrawn in its line; elsewhere it is shown when it has settled.
type screen struct {
	out      io.Writer
	terminal bool
	color    bool
	width    int

	mu     sync.Mutex // guards all below
	live   *telegram.Message
	before map[int64]map[int]shown // messages that were shown already, by chat and id
	own    bool                    // the person types: what they say is on the screen already
}

func newScreen(opts Options) *screen {
	return &screen{
		out: opts.Out, terminal: opts.Terminal, color: opts.Color, width: max(opts.Width, 40),
		before: make(map[int64]map[int]shown),
	}
}

const (
	bold  = "\x1b[1m"
	faint = "\x1b[2m"
	cyan  = "\x1b[36m"
	plain = "\x1b[0m"
	clear = "\r\x1b[2K"
)

func (s *screen) paint(style, text string) string {
	if !s.color || style == "" {
		return text
	}
	return style + text + plain
}

func (s *screen) print(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format, args...) // a screen that is gone does not stop the bot
}

func (s *screen) header(title string, lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print("\n%s\n", s.paint(bold, title))
	for _, l := range lines {
		s.indented("", l, "")
	}
}

func (s *screen) scene(n int, title, shows string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print("\n%s\n", s.paint(bold, fmt.Sprintf("%d. %s", n, title)))
	s.indented("   ", shows, faint)
}

// indented shows a text that nobody in a chat has said.
func (s *screen) indented(indent, text, style string) {
	lines := []string{text}
	if room := s.width - len(indent); utf8.RuneCountInString(text) > room {
		lines = wrap(text, room)
	}
	for _, l := range lines {
		s.print("%s%s\n", indent, s.paint(style, l))
	}
}

// note is a remark of the narrator.
func (s *screen) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeze()
	s.block("", "· "+fmt.Sprintf(format, args...), faint)
}

// said is what a person sent with a file.
func (s *screen) said(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeze()
	s.block(name, text, cyan)
}

// typed tells that the person types in this terminal from now on.
func (s *screen) typed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = true
}

// settle shows what changes in its final form.
func (s *screen) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeze()
}

// changed is told of every change in the emulated Telegram.
func (s *screen) changed(c telegram.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := c.Message
	switch {
	case c.Kind == telegram.ChangeReceived && m.Text == "": // a picture: see said
	case c.Kind == telegram.ChangeReceived && !s.own:
		s.freeze()
		s.block(m.From.FirstName, m.Text, cyan)
	case c.Kind == telegram.ChangeSent, c.Kind == telegram.ChangeEdited && m.FromBot:
		if s.live != nil && (s.live.ID != m.ID || s.live.ChatID != m.ChatID) {
			s.freeze()
		}
		s.live = &m
		if s.terminal {
			s.print("%s%s", clear, s.line("Bot", m.Text))
		}
		if standing(m.Text) || (s.own && !s.terminal && !isPlaceholder(m.Text)) {
			s.freeze()
		}
	}
}

// standing reports whether a text says that something waits: a person has time
// to read it, although it is replaced later.
func standing(text string) bool {
	return strings.HasPrefix(text, "⏳") || strings.HasPrefix(text, "⏸")
}

// isPlaceholder reports whether a text only holds a place: it has no words.
func isPlaceholder(text string) bool { return !strings.ContainsFunc(text, unicode.IsLetter) }

// freeze ends the line that changes.
func (s *screen) freeze() {
	m := s.live
	if m == nil {
		return
	}
	s.live = nil
	if s.terminal {
		s.print(clear)
	}
	if isPlaceholder(m.Text) {
		return // it says nothing yet
	}
	if s.before[m.ChatID] == nil {
		s.before[m.ChatID] = make(map[int]shown)
	}
	earlier, again := s.before[m.ChatID][m.ID]
	s.before[m.ChatID][m.ID] = shown{m.Edits, m.Text}
	if again && earlier.edits == m.Edits {
		return
	}
	text := m.Text
	if rest, ok := strings.CutPrefix(text, earlier.text); again && ok && len(earlier.text) > longText && strings.TrimSpace(rest) != "" {
		text = "… " + strings.TrimSpace(rest)
	}
	s.block("Bot", text, "")
	switch {
	case again:
		s.block("", "(the same message, edited)", faint)
	case m.Edits > 1 && !standing(m.Text):
		s.block("", fmt.Sprintf("(edited %d times)", m.Edits), faint)
	}
}

// block shows a text below each other, with a name before it.
func (s *screen) block(name, text, style string) {
	for _, l := range wrap(text, s.width-speaker-1) { // an emoji takes two columns
		if l == "" {
			s.print("\n")
			continue
		}
		s.print("%s%s\n", pad(name), s.paint(style, l))
		name = ""
	}
}

// line shows the end of a text in one line.
func (s *screen) line(name, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	room := s.width - speaker - 2
	if n := utf8.RuneCountInString(text); n > room {
		runes := []rune(text)
		text = "…" + string(runes[n-room+1:])
	}
	return pad(name) + text
}

func pad(name string) string {
	return name + strings.Repeat(" ", max(0, speaker-utf8.RuneCountInString(name)))
}

// wrap breaks a text into lines of at most width characters where there are
// spaces to break at.
func wrap(text string, width int) []string {
	var out []string
	for line := range strings.Lines(text) {
		current := ""
		for word := range strings.FieldsSeq(line) {
			switch {
			case current == "":
				current = word
			case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) <= width:
				current += " " + word
			default:
				out = append(out, current)
				current = word
			}
		}
		out = append(out, current)
	}
	return out
}
