package terminal

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// action is what a key does.
type action int

// The actions.
const (
	ignore action = iota
	insert        // event.text
	paste         // event.text, as one
	submit
	newLine
	complete
	interrupt
	endOfInput // or delete, if there is a text
	backspace
	deleteNext
	left
	right
	up
	down
	older
	newer
	home
	end
	wordLeft
	wordRight
	killWord
	killNextWord
	killToEnd
	killToStart
	yank
	redraw
	searchOlder
	leaveSearch
)

// event is a key that was pressed, or a text that was pasted.
type event struct {
	do   action
	text string
}

// maxSequence is the longest escape sequence that is waited for, in bytes.
const maxSequence = 32

var (
	pasteStart = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// controls are the control characters, as GNU Readline has them by default. A line
// feed submits as well as a carriage return: programs that type for people send it.
var controls = map[byte]action{
	1: home, 2: left, 3: interrupt, 4: endOfInput, 5: end, 6: right, 7: leaveSearch, 8: backspace, '\t': complete, '\n': submit,
	11: killToEnd, 12: redraw, '\r': submit, 14: newer, 16: older, 18: searchOlder, 21: killToStart, 23: killWord, 25: yank, 127: backspace,
}

// sequences are what terminals send for other keys, behind ESC.
var sequences = map[string]action{
	"[A": up, "[B": down, "[C": right, "[D": left, "[H": home, "[F": end,
	"OA": up, "OB": down, "OC": right, "OD": left, "OH": home, "OF": end,
	"[1~": home, "[3~": deleteNext, "[4~": end, "[7~": home, "[8~": end,
	"[1;5C": wordRight, "[1;5D": wordLeft, "[1;3C": wordRight, "[1;3D": wordLeft, "[3;5~": killNextWord,
	"b": wordLeft, "f": wordRight, "d": killNextWord, "\x7f": killWord, "\b": killWord,
	"\r": newLine, "\n": newLine, "[13;2u": newLine, "[27;2;13~": newLine, // Alt-Enter, and Shift-Enter where it is told apart
}

// decoder makes events of what a terminal sends. The zero value is ready.
type decoder struct {
	rest    []byte // of a sequence that is not complete
	pasting bool
	pasted  []byte
	tooLong bool
}

// feed takes what was read and returns the keys in it. A sequence that is cut off
// goes on with the next call.
func (d *decoder) feed(read []byte) []event {
	in := slices.Concat(d.rest, read)
	d.rest = nil
	var events []event
	for len(in) > 0 {
		var e event
		var n int
		if d.pasting {
			e, n = d.paste(in)
		} else {
			e, n = d.key(in)
		}
		if n == 0 {
			d.rest = bytes.Clone(in)
			break
		}
		in = in[n:]
		if last := len(events) - 1; e.do == insert && last >= 0 && events[last].do == insert {
			events[last].text += e.text
		} else if e.do != ignore {
			events = append(events, e)
		}
	}
	return events
}

// paste takes what is pasted up to its end. n of 0 means that more has to be read.
func (d *decoder) paste(in []byte) (e event, n int) {
	at := bytes.Index(in, pasteEnd)
	n = at
	if at < 0 { // the end may be cut off
		n = len(in)
		for k := min(len(pasteEnd)-1, len(in)); k > 0; k-- {
			if bytes.HasPrefix(pasteEnd, in[len(in)-k:]) {
				n -= k
				break
			}
		}
	}
	if len(d.pasted)+n > MaxText {
		d.tooLong = true
	} else {
		d.pasted = append(d.pasted, in[:n]...)
	}
	if at < 0 {
		return event{}, n
	}
	text := string(d.pasted)
	if d.tooLong {
		text = ""
	}
	d.pasting, d.pasted, d.tooLong = false, nil, false
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return event{do: paste, text: Clean(strings.ToValidUTF8(text, "\uFFFD"))}, at + len(pasteEnd)
}

// key takes one key. n of 0 means that more has to be read.
func (d *decoder) key(in []byte) (e event, n int) {
	switch c := in[0]; {
	case c == 0x1b:
		return d.escape(in)
	case c < ' ' || c == 0x7f:
		return event{do: controls[c]}, 1
	case !utf8.FullRune(in):
		return event{}, 0
	}
	r, size := utf8.DecodeRune(in)
	return event{do: insert, text: Clean(string(r))}, size
}

func (d *decoder) escape(in []byte) (e event, n int) {
	switch {
	case bytes.HasPrefix(in, pasteStart):
		d.pasting = true
		return event{}, len(pasteStart)
	case len(in) < 2:
		return event{}, 0
	case in[1] == 0x1b:
		return event{}, 1
	case in[1] == 'O' && len(in) < 3:
		return event{}, 0
	case in[1] == 'O':
		return event{do: sequences[string(in[1:3])]}, 3
	case in[1] != '[':
		return event{do: sequences[string(in[1:2])]}, 2
	}
	for i := 2; i < len(in) && i < maxSequence; i++ {
		if in[i] >= 0x40 && in[i] <= 0x7e { // the final byte (ECMA-48, 5.4)
			return event{do: sequences[string(in[1:i+1])]}, i + 1
		}
		if in[i] < 0x20 {
			return event{}, i // no sequence after all
		}
	}
	if len(in) >= maxSequence {
		return event{}, maxSequence
	}
	return event{}, 0
}
