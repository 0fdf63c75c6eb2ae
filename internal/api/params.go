package api

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// maxPage is how many rows a page may have, and usualPage how many it has if
// nobody says.
const (
	maxPage   = 200
	usualPage = 50
	maxOffset = 100_000
	maxText   = 400 // bytes of a parameter
	maxQuery  = 8 << 10
)

// kind is what a parameter may hold.
type kind int

const (
	text   kind = iota
	whole       // a whole number from min to max
	choice      // one of a few words
	moment      // RFC 3339
	flag        // true or false
	rowID       // a UUID
	number      // a positive number, as text
	cursor      // that a page ended with
	person      // platform/user
	place       // a conversation: its id, or platform/id
)

// param is a parameter of a route.
type param struct {
	name     string
	inPath   bool
	required bool
	kind     kind
	words    []string // of a choice
	min, max int64    // of a whole number
	usual    any      // the value if it is not given
}

// values are checked parameters by name: string, int64, bool or time.Time.
type values map[string]any

func (v values) text(name string) string {
	s, _ := v[name].(string)
	return s
}

func (v values) number(name string) int64 {
	n, _ := v[name].(int64)
	return n
}

func (v values) time(name string) time.Time {
	t, _ := v[name].(time.Time)
	return t
}

// flag returns nil if the parameter was not given.
func (v values) flag(name string) *bool {
	b, ok := v[name].(bool)
	if !ok {
		return nil
	}
	return &b
}

func (v values) has(name string) bool { _, ok := v[name]; return ok }

// parse reads the parameters of a request. Everything that the route does not
// have, that is there twice or not as it should be is a problem that names it.
func parse(params []param, path map[string]string, rawQuery string) (values, error) {
	if len(rawQuery) > maxQuery {
		return nil, &problem{Status: 400, Code: codeRequest, Detail: fmt.Sprintf("The query is longer than %d bytes.", maxQuery)}
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, &problem{Status: 400, Code: codeRequest, Detail: "Invalid query string: separate parameters with & and escape them with %."}
	}
	out := make(values)
	for _, p := range params {
		given := query[p.name]
		if p.inPath {
			given = []string{path[p.name]}
		}
		delete(query, p.name)
		switch {
		case len(given) > 1:
			return nil, badParameter(p.name, "It is given more than once.")
		case len(given) == 1 && given[0] != "":
			value, err := p.read(given[0])
			if err != nil {
				return nil, err
			}
			out[p.name] = value
		case p.required || len(given) == 1:
			return nil, badParameter(p.name, "It is missing or empty; it must be "+p.wants()+".")
		case p.usual != nil:
			out[p.name] = p.usual
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		return nil, badParameter(shorten(name), "Unknown parameter; expected "+known(params)+".")
	}
	return out, nil
}

func known(params []param) string {
	var names []string
	for _, p := range params {
		if !p.inPath {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// shorten makes a name that a client sent fit into an answer.
func shorten(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) > 60 {
		return strings.ToValidUTF8(name[:60], "") + "…"
	}
	return name
}

// wants says what a parameter has to be.
func (p param) wants() string {
	switch p.kind {
	case whole:
		return fmt.Sprintf("a whole number from %d to %d", p.min, p.max)
	case choice:
		return "one of " + strings.Join(p.words, ", ")
	case moment:
		return "a time such as 2026-11-21T14:00:00Z, and after 0001-01-01T00:00:00Z"
	case flag:
		return "true or false"
	case rowID:
		return "an id such as 0198c2d1-7a3b-7c4d-8e5f-0123456789ab"
	case number:
		return "an ID from a list"
	case cursor:
		return "next_cursor of the previous page"
	case person:
		return "a person as platform/user, such as telegram/42"
	case place:
		return "the id of a conversation, or platform/id such as telegram/42"
	case text:
	}
	return fmt.Sprintf("a text of at most %d bytes, in UTF-8 and without NUL", maxText)
}

// read reads a value that is not empty.
func (p param) read(s string) (any, error) {
	wrong := badParameter(p.name, "It must be "+p.wants()+".")
	if len(s) > maxText || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return nil, wrong
	}
	switch p.kind {
	case whole, number:
		least, most := p.min, p.max
		if p.kind == number {
			least, most = 1, math.MaxInt64
		}
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= least && n <= most && s[0] != '+' {
			return n, nil
		}
		return nil, wrong
	case choice:
		if !slices.Contains(p.words, s) {
			return nil, wrong
		}
		return s, nil
	case moment:
		// A plus that was not escaped has become a blank.
		at, err := time.Parse(time.RFC3339Nano, strings.Replace(s, " ", "+", 1))
		if err != nil || !at.After(time.Time{}) || at.UTC().Year() > 9999 { // the zero time would count as not given
			return nil, wrong
		}
		return at.UTC(), nil
	case flag:
		if s != "true" && s != "false" {
			return nil, wrong
		}
		return s == "true", nil
	case rowID:
		if !isID(s) {
			return nil, wrong
		}
		return strings.ToLower(s), nil
	case person:
		if platform, user, ok := strings.Cut(s, "/"); !ok || platform == "" || user == "" || len(s) > 300 {
			return nil, wrong
		}
		return s, nil
	case place:
		platform, id, ok := strings.Cut(s, "/")
		if !ok && isID(s) {
			return strings.ToLower(s), nil
		}
		if !ok || platform == "" || id == "" {
			return nil, wrong
		}
		return s, nil
	case text, cursor:
	}
	return s, nil
}

func isID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// newCursor makes the cursor of a kind of list from what it goes on behind.
func newCursor(list string, parts ...string) *string {
	c := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(append([]string{list}, parts...), "|")))
	return &c
}

// readCursor returns the parts of a cursor that newCursor made for a kind of
// list; none for no cursor.
func readCursor(list, c string, parts int) ([]string, error) {
	if c == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(c)
	found := strings.Split(string(raw), "|")
	if err != nil || !utf8.Valid(raw) || len(found) != parts+1 || found[0] != list {
		return nil, badParameter("cursor", "It is not a cursor of this list.")
	}
	return found[1:], nil
}

// readNumberCursor is readCursor of one number.
func readNumberCursor(list, c string) (int64, error) {
	parts, err := readCursor(list, c, 1)
	if err != nil || parts == nil {
		return 0, err
	}
	n, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || n <= 0 {
		return 0, badParameter("cursor", "It is not a cursor of this list.")
	}
	return n, nil
}
