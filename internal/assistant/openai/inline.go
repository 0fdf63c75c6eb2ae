package openai

import "strings"

const (
	opening = "<think>"
	closing = "</think>"
	spaces  = " \t\r\n"
)

// inline takes the reasoning out of a text that begins with it, between tags, as LM Studio,
// MiniMax, and servers without a parser for their model send it. Elsewhere in a text the tags
// are what the model has to say.
type inline struct {
	held  string // what may be a part of a tag, or comes before one
	where place
}

type place int

const (
	atStart place = iota
	within        // the reasoning
	behind        // but for spaces
	inText
)

// split returns the text and the reasoning that a piece of the stream completes.
func (t *inline) split(piece string) (text, thought string) {
	t.held += piece
	if t.where == atStart {
		begin := strings.TrimLeft(t.held, spaces)
		if strings.HasPrefix(opening, begin) && begin != opening {
			return "", ""
		}
		t.where = inText
		if rest, opened := strings.CutPrefix(begin, opening); opened {
			t.where, t.held = within, rest
		}
	}
	if t.where == within {
		before, after, closed := strings.Cut(t.held, closing)
		if !closed {
			known := len(before)
			for n := min(len(closing)-1, known); n > 0; n-- {
				if strings.HasSuffix(before, closing[:n]) {
					known -= n
					break
				}
			}
			thought, t.held = before[:known], before[known:]
			return "", thought
		}
		thought, t.held, t.where = before, after, behind
	}
	if t.where == behind {
		if t.held = strings.TrimLeft(t.held, spaces); t.held != "" {
			t.where = inText
		}
	}
	text, t.held = t.held, ""
	return text, thought
}

// rest returns what is left of the text at the end of the stream.
func (t *inline) rest() string {
	if t.where == within {
		return ""
	}
	return t.held
}
