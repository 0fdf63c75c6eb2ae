package console

import (
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"remote-agent/internal/messages"
)

const (
	promptText = "you> "
	clearLine  = "\r\x1b[K"

	// narrow is how long a text may be, in code points, to be sure that it has
	// not wrapped: only then can it be replaced by clearing one line.
	narrow = 60
)

// screen keeps track of where the cursor is, in as far as it can be known while
// the terminal echoes what the person types.
type screen struct {
	out      io.Writer
	terminal bool

	mu       sync.Mutex // guards what follows
	shown    recent[messages.MessageID, shown]
	open     messages.MessageID // the cursor is right behind this message
	prompted bool               // the cursor is in the prompt's line
}

// shown is what a message looks like.
type shown struct {
	text  string
	stage stage
}

// stage says what may still happen to a message on the screen.
type stage int

const (
	placed  stage = iota + 1 // posted; a line of its own that may be followed by an answer
	growing                  // being written
	done                     // final
)

// show brings a message on the screen. Text that extends what is there is
// appended; showing the same again changes nothing.
func (s *screen) show(id messages.MessageID, text string, to stage) error {
	if to == growing && !s.terminal {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, _ := s.shown.get(id)
	text = clean(text)
	if to == growing {
		// A cursor mark at the end would keep the next text from extending it.
		text = strings.TrimRight(text, " \n\t…▌▍█")
	}
	if old.stage == done && to == growing || old.stage != growing && old.text == text {
		return nil
	}
	before := old.text
	if old.stage != growing {
		before = "" // a finished line stays and the new text gets its own
	}
	out, replaced := s.transition(id, before, text, to == growing)
	if !replaced {
		text = before
	}
	if to != growing {
		out += s.finish(id)
	}
	s.shown.put(id, shown{text: text, stage: to})
	_, err := io.WriteString(s.out, out)
	return err
}

// transition returns what to write to turn the old text of a message into the
// new one; more says that another text will follow. replaced is false if the
// screen is better left as it is until then.
func (s *screen) transition(id messages.MessageID, old, text string, more bool) (out string, replaced bool) {
	rest, extends := strings.CutPrefix(text, old)
	switch {
	case old == text:
		return "", true
	case extends && s.open == id:
		return rest, true
	case extends:
		out = s.newLine() + strings.TrimLeft(rest, " \n")
	case s.open == id && utf8.RuneCountInString(old) <= narrow && !strings.Contains(old, "\n"):
		out = clearLine + text
	case more:
		return "", false // wait for the final text rather than fill the screen
	default:
		out = s.newLine() + text
	}
	s.open = id
	return out, true
}

// finish ends the line of a message and asks for the next input.
func (s *screen) finish(id messages.MessageID) string {
	var out string
	if s.open == id {
		out = "\n"
		s.open = ""
	}
	if s.terminal && s.open == "" && !s.prompted {
		out += promptText
		s.prompted = true
	}
	return out
}

// newLine leaves whatever line the cursor is in.
func (s *screen) newLine() string {
	switch {
	case s.prompted:
		s.prompted = false
		return clearLine
	case s.open != "":
		s.open = ""
		return "\n"
	}
	return ""
}

// entered is called after a line was read: the person's own line break has moved
// the cursor.
func (s *screen) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompted, s.open = false, ""
}

// prompt asks for input if it is not asked for already.
func (s *screen) prompt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal || s.prompted || s.open != "" {
		return
	}
	s.prompted = true
	_, _ = io.WriteString(s.out, promptText) // a broken output shows at the next answer
}

// note shows a line of the console's own.
func (s *screen) note(text string) {
	s.mu.Lock()
	out := s.newLine() + text + "\n"
	s.mu.Unlock()
	_, _ = io.WriteString(s.out, out) // as in prompt
	s.prompt()
}

// leave ends the prompt's line, so that the shell's prompt gets its own.
func (s *screen) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompted || s.open != "" {
		s.prompted, s.open = false, ""
		_, _ = io.WriteString(s.out, "\n") // as in prompt
	}
}

// clean removes what could move the cursor, change colors or reorder text:
// models repeat what they read. Each rune is treated by itself, so that the
// clean form of a longer text extends that of a shorter one.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || (r >= 0x7f && r <= 0x9f):
			return -1
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional overrides
			return -1
		}
		return r
	}, text)
}
