package telegram

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/order"
)

const (
	maxText     = 4096 // code points
	maxCaption  = 1024 // code points
	maxEntities = 100  // more are ignored
)

// utf16Len returns the length of a valid UTF-8 text in UTF-16 code units.
func utf16Len(text string) int {
	n := 0
	for _, r := range text {
		n += units(r)
	}
	return n
}

func units(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// field is where a call has a text.
type field struct {
	text, entities string
	limit          int
	tooLong        string
}

var (
	textField    = field{"text", "entities", maxText, "message is too long"}
	captionField = field{"caption", "caption_entities", maxCaption, "message caption is too long"}
)

// readText returns the text and entities of a call as they will be shown.
func readText(p params, in field, allowEmpty bool) (string, []Entity, *apiError) {
	text := p[in.text]
	if text == "" && !allowEmpty {
		return "", nil, badRequest("message text is empty")
	}
	if mode := p["parse_mode"]; mode != "" {
		if refused := checkParseMode(mode, text); refused != nil {
			return "", nil, refused
		}
	}
	var entities []Entity
	if _, refused := p.json(in.entities, &entities); refused != nil {
		return "", nil, refused
	}
	entities, detail := checkEntities(text, entities)
	if detail != "" {
		return "", nil, badRequest("can't parse entities: %s", detail)
	}
	text, entities = clean(text, entities)
	if text == "" && !allowEmpty {
		return "", nil, badRequest("text must be non-empty")
	}
	if utf8.RuneCountInString(text) > in.limit {
		return "", nil, badRequest("%s", in.tooLong)
	}
	return text, entities, nil
}

// checkParseMode refuses what the emulator would have to parse. A text without
// any special character is the same in every mode.
func checkParseMode(mode, text string) *apiError {
	var special string
	switch strings.ToLower(mode) {
	case "markdownv2":
		special = "_*[]()~`>#+-=|{}.!\\"
	case "markdown":
		special = "_*`["
	case "html":
		special = "<>&"
	default:
		return badRequest("unsupported parse_mode")
	}
	if i := strings.IndexAny(text, special); i >= 0 {
		return badRequest("can't parse entities: the emulator does not parse %s, found %q at byte offset %d; send entities",
			mode, text[i], i)
	}
	return nil
}

// checkEntities returns the entities that count, sorted, or what is wrong.
func checkEntities(text string, entities []Entity) ([]Entity, string) {
	if len(entities) == 0 {
		return nil, ""
	}
	starts := boundaries(text)
	total := len(starts) - 1
	var kept []Entity
	for _, e := range entities {
		switch {
		case e.Offset < 0 || e.Offset > 1_000_000:
			return nil, fmt.Sprintf("receive an entity with incorrect offset %d", e.Offset)
		case e.Length < 0 || e.Length > 1_000_000:
			return nil, fmt.Sprintf("receive an entity with incorrect length %d", e.Length)
		case e.Offset > total:
			return nil, fmt.Sprintf("entity begins after the end of the text at UTF-16 offset %d", e.Offset)
		case e.Offset+e.Length > total:
			return nil, fmt.Sprintf("entity beginning at UTF-16 offset %d ends after the end of the text at UTF-16 offset %d",
				e.Offset, e.Offset+e.Length)
		case !starts[e.Offset]:
			return nil, fmt.Sprintf("entity begins in a middle of a UTF-16 symbol at UTF-16 offset %d", e.Offset)
		case !starts[e.Offset+e.Length]:
			return nil, fmt.Sprintf("entity beginning at UTF-16 offset %d ends in a middle of a UTF-16 symbol", e.Offset)
		}
		if detail := checkEntity(e); detail != "" {
			return nil, detail
		}
		if e.Length > 0 {
			kept = append(kept, e)
		}
	}
	order.By(kept, func(a, b Entity) int {
		if a.Offset != b.Offset {
			return a.Offset - b.Offset
		}
		return b.Length - a.Length
	})
	return kept[:min(len(kept), maxEntities)], ""
}

// boundaries reports for each UTF-16 offset whether a character starts there.
func boundaries(text string) []bool {
	starts := make([]bool, 0, len(text)+1)
	for _, r := range text {
		starts = append(starts, true)
		if units(r) == 2 {
			starts = append(starts, false)
		}
	}
	return append(starts, true)
}

func checkEntity(e Entity) string {
	switch e.Type {
	case "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number",
		"bold", "italic", "underline", "strikethrough", "spoiler",
		"blockquote", "expandable_blockquote", "code", "pre", "date_time":
	case "text_link":
		if u, err := url.Parse(e.URL); e.URL == "" || err != nil || u.Scheme == "" && u.Host == "" && u.Path == "" {
			return "can't find field \"url\""
		}
	case "text_mention":
		if e.User == nil {
			return "can't find field \"user\""
		}
	case "custom_emoji":
		if e.CustomEmojiID == "" {
			return "can't find field \"custom_emoji_id\""
		}
	default:
		return fmt.Sprintf("unsupported type %q", e.Type)
	}
	return ""
}

// conflicts names entities that the real server would silently change: styles
// inside of code, and entities that overlap without nesting.
func conflicts(entities []Entity) string {
	for i, a := range entities {
		for _, b := range entities[i+1:] {
			if b.Offset >= a.Offset+a.Length {
				break
			}
			if isCode(a.Type) || isCode(b.Type) && isStyle(a.Type) || isQuote(a.Type) && isQuote(b.Type) {
				return fmt.Sprintf("%s at %d is mixed with %s at %d", a.Type, a.Offset, b.Type, b.Offset)
			}
			if b.Offset+b.Length > a.Offset+a.Length {
				return fmt.Sprintf("%s at %d and %s at %d overlap", a.Type, a.Offset, b.Type, b.Offset)
			}
		}
	}
	return ""
}

func isCode(kind string) bool { return kind == "code" || kind == "pre" }

func isQuote(kind string) bool { return kind == "blockquote" || kind == "expandable_blockquote" }

func isStyle(kind string) bool {
	switch kind {
	case "bold", "italic", "underline", "strikethrough", "spoiler":
		return true
	}
	return false
}

// clean removes carriage returns, replaces other control characters by spaces
// and trims space: at the end, and at the start up to the first entity.
func clean(text string, entities []Entity) (string, []Entity) {
	var out strings.Builder
	out.Grow(len(text))
	removed := []int{} // UTF-16 offsets of removed units
	at := 0
	for _, r := range text {
		switch {
		case r == '\r':
			removed = append(removed, at)
		case r < ' ' && r != '\n' && r != '\t':
			out.WriteByte(' ')
		default:
			out.WriteRune(r)
		}
		at += units(r)
	}
	cleaned := strings.TrimRightFunc(out.String(), unicode.IsSpace)
	shifted := shift(entities, removed, 0)
	lead := 0
	for lead < len(cleaned) && (cleaned[lead] == ' ' || cleaned[lead] == '\n') &&
		(len(shifted) == 0 || lead < shifted[0].Offset) {
		lead++
	}
	cleaned = cleaned[lead:]
	shifted = shift(shifted, nil, lead)
	total := utf16Len(cleaned)
	fit := shifted[:0]
	for _, e := range shifted {
		if e.Length = min(e.Length, total-e.Offset); e.Length > 0 {
			fit = append(fit, e)
		}
	}
	return cleaned, fit
}

// shift returns the entities after the units at removed, and lead units at the
// start, were taken out of the text.
func shift(entities []Entity, removed []int, lead int) []Entity {
	if len(entities) == 0 {
		return nil
	}
	before := func(offset int) int {
		n, _ := slices.BinarySearch(removed, offset)
		return offset - n - lead
	}
	out := make([]Entity, len(entities))
	for i, e := range entities {
		start, end := before(e.Offset), before(e.Offset+e.Length)
		e.Offset, e.Length = start, end-start
		out[i] = e
	}
	return out
}

// FindEntities returns what Telegram itself finds in a text that a person
// writes: commands, mentions and links.
func FindEntities(text string) []Entity {
	var found []Entity
	offset := 0
	rest, prev := text, ' '
	for rest != "" {
		kind, size := entityAt(rest, prev)
		if kind != "" {
			length := utf16Len(rest[:size])
			found = append(found, Entity{Type: kind, Offset: offset, Length: length})
			offset += length
			rest, prev = rest[size:], 'a'
			continue
		}
		r, n := utf8.DecodeRuneInString(rest)
		offset += units(r)
		rest, prev = rest[n:], r
	}
	return found
}

// entityAt returns the entity that starts with the text, after the character
// prev, and its size in bytes.
func entityAt(text string, prev rune) (kind string, size int) {
	inWord := unicode.IsLetter(prev) || unicode.IsDigit(prev) || prev == '_'
	switch {
	case text[0] == '/' && !inWord && prev != '/' && prev != '<' && prev != '>':
		n := wordLen(text[1:])
		if n == 0 || n > 64 {
			return "", 0
		}
		size = 1 + n
		if size < len(text) && text[size] == '@' {
			if m := wordLen(text[size+1:]); m >= 3 {
				size += 1 + m
			}
		}
		if size < len(text) && text[size] == '/' {
			return "", 0 // a path
		}
		return "bot_command", size
	case text[0] == '@' && !inWord:
		if n := wordLen(text[1:]); n >= 3 && n <= 32 {
			return "mention", 1 + n
		}
	case !inWord && (strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")):
		if end := strings.IndexFunc(text, unicode.IsSpace); end < 0 {
			return "url", len(text)
		} else if end > len("https://") {
			return "url", end
		}
	}
	return "", 0
}

func wordLen(text string) int {
	n := 0
	for n < len(text) && (text[n] == '_' || text[n] < utf8.RuneSelf &&
		(unicode.IsLetter(rune(text[n])) || unicode.IsDigit(rune(text[n])))) {
		n++
	}
	return n
}
