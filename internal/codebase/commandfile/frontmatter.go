package commandfile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/pattern"
)

const (
	maxFrontMatter = 16 << 10
	maxValue       = 1000 // bytes of one value
)

// The values of produces and consumes.
const (
	Plan = "plan"
	None = "none" // also that of a key without a value
)

// Meta is the front matter of a command file. Everything may be empty.
type Meta struct {
	Description  string
	ArgumentHint string
	Produces     string // Plan or None; empty where it is not said
	Consumes     string // the same
	Model        string
}

var modelName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`)

// Split reads the front matter of a command file and returns the rest as body. A
// file whose first line is not "---" has none.
//
// The format is a small part of YAML: lines of "key: value", where the value is
// plain or in single or double quotes, up to a line "---". The keys that are
// known are description, argument-hint, produces, consumes and model; everything
// below another key is skipped, indented lines and lists included. A plain value
// is taken literally, also if it holds a "#" or brackets. What is wrong with a
// known key is an error with its line.
func Split(text string) (Meta, string, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return Meta{}, text, nil
	}
	var meta Meta
	seen := map[string]bool{}
	known := "" // the key that an indented line would belong to
	for number, used := 2, 0; ; number++ {
		line, after, more := strings.Cut(rest, "\n")
		line = strings.TrimRight(line, " \t\r")
		if line == "---" {
			return meta, after, nil
		}
		if used += len(line) + 1; !more || used > maxFrontMatter {
			return Meta{}, "", fmt.Errorf("the front matter is not closed: a line “---” is missing")
		}
		rest = after
		next, err := meta.line(line, known, seen)
		if err != nil {
			return Meta{}, "", fmt.Errorf("line %d: %w", number, err)
		}
		known = next
	}
}

// line takes one line and returns the known key that a following indented line
// would belong to.
func (m *Meta) line(line, known string, seen map[string]bool) (string, error) {
	if line == "" || strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") {
		return known, nil
	}
	if strings.ContainsAny(line[:1], " \t-") {
		if known != "" {
			return "", fmt.Errorf("%s must be on one line", known)
		}
		return "", nil
	}
	key, value, ok := strings.Cut(line, ":")
	if !ok || (value != "" && !strings.ContainsAny(value[:1], " \t")) {
		return "", fmt.Errorf("“%s” is not of the form “key: value”", clip(line))
	}
	key = strings.TrimSpace(key)
	field := m.field(key)
	if field == nil {
		return "", nil
	}
	if seen[key] {
		return "", fmt.Errorf("%s is there twice", key)
	}
	seen[key] = true
	text, err := scalar(strings.TrimSpace(value))
	if err == nil {
		err = checkValue(key, text)
	}
	if err != nil {
		return "", fmt.Errorf("%s %w", key, err)
	}
	if text == "" && isArtifact(key) {
		text = None
	}
	*field = text
	return key, nil
}

func (m *Meta) field(key string) *string {
	switch key {
	case "description":
		return &m.Description
	case "argument-hint":
		return &m.ArgumentHint
	case "produces":
		return &m.Produces
	case "consumes":
		return &m.Consumes
	case "model":
		return &m.Model
	}
	return nil
}

func isArtifact(key string) bool { return key == "produces" || key == "consumes" }

func checkValue(key, text string) error {
	switch {
	case len(text) > maxValue:
		return fmt.Errorf("is longer than %d bytes", maxValue)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("contains a control character")
	case isArtifact(key) && text != "" && text != Plan && text != None:
		return fmt.Errorf("must be “plan” or “none”, not “%s”", clip(text))
	case key == "model" && text != "" && !modelName.MatchString(text):
		return fmt.Errorf("is not a model name")
	}
	return nil
}

// scalar reads a value that is plain or quoted.
func scalar(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	switch s[0] {
	case '|', '>':
		return "", fmt.Errorf("must be on one line, not a block (“%s”)", clip(s))
	case '&', '*', '!', '%', '@', '`', '{':
		return "", fmt.Errorf("begins with “%s”, which needs quotes", s[:1])
	case '\'':
		inner, ok := strings.CutSuffix(s[1:], "'")
		if !ok || strings.Contains(strings.ReplaceAll(inner, "''", ""), "'") {
			return "", fmt.Errorf("has an unclosed quote, or text after it")
		}
		return strings.ReplaceAll(inner, "''", "'"), nil
	case '"':
		return unquote(s[1:])
	}
	return s, nil
}

func unquote(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			if i != len(s)-1 {
				return "", fmt.Errorf("has text after the closing quote")
			}
			return b.String(), nil
		case '\\':
			if i++; i == len(s) || !strings.ContainsRune(`"\/`, rune(s[i])) {
				return "", fmt.Errorf("has an unknown escape; use only \\\" and \\\\")
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("has an unclosed quote")
}

func clip(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return s
}
