package command_test

import (
	"strings"
	"testing"

	"remote-agent/internal/command"
)

func TestParseWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		word command.Word
		rest string
	}{
		"no":                              {command.WordNo, ""},
		" No! ":                           {command.WordNo, ""},
		"don’t":                           {command.WordNo, ""},
		"no, use the staging database":    {command.WordNo, "use the staging database"},
		"No. It is too large.":            {command.WordNo, "It is too large."},
		"no\nIt is too large.":            {command.WordNo, "It is too large."},
		"yes. It is small.":               {},
		"maybe, later":                    {},
		"no.":                             {command.WordNo, ""},
		"🛑 cancel":                        {command.WordStop, ""},
		"$yes":                            {command.WordYes, ""},
		"no problem":                      {},
		"no rush, take your time":         {},
		"nobody":                          {},
		"yes":                             {command.WordYes, ""},
		"Go ahead":                        {command.WordYes, ""},
		"yes, and also the tests":         {},
		"stop":                            {command.WordStop, ""},
		"Stop!!":                          {command.WordStop, ""},
		"stop the server on staging":      {},
		"why?":                            {command.WordWhy, ""},
		"Why do you need that":            {command.WordWhy, ""},
		"why " + strings.Repeat("x", 116): {command.WordWhy, ""},
		"why " + strings.Repeat("x", 117): {},
		"":                                {},
		"?!":                              {},
		"/no":                             {command.WordNo, ""}, // a command is looked for before
		"hello":                           {},
	} {
		w, rest, ok := command.ParseWord(text)
		if command.IsStop(text) != (strings.Trim(strings.ToLower(text), " !") == "stop") {
			t.Errorf("IsStop(%q) is %v", text, command.IsStop(text))
		}
		if w != want.word || rest != want.rest || ok != (want.word != "") {
			t.Errorf("%q is %q %q %v, want %+v", text, w, rest, ok, want)
		}
	}
}
