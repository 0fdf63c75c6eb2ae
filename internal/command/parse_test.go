package command_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/command"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want command.Call
		ok   bool
	}{
		"Plain":            {"/help", command.Call{Name: "help"}, true},
		"LeadingSpace":     {" \n /help", command.Call{Name: "help"}, true},
		"BotName":          {"/help@Acme_Bot stop", command.Call{Name: "help", Rest: "stop", Args: []string{"stop"}}, true},
		"HyphenAndCase":    {"/Plan-Feature x", command.Call{Name: "plan_feature", Rest: "x", Args: []string{"x"}}, true},
		"Quotes":           {`/run "a b" 'c "d' e\ f`, command.Call{Name: "run", Rest: `"a b" 'c "d' e\ f`, Args: []string{"a b", `c "d`, "e f"}}, true},
		"PhoneQuotes":      {"/run “a b” c", command.Call{Name: "run", Rest: "“a b” c", Args: []string{"a b", "c"}}, true},
		"EmptyQuotes":      {`/run "" x`, command.Call{Name: "run", Rest: `"" x`, Args: []string{"", "x"}}, true},
		"Unclosed":         {`/run "a b`, command.Call{Name: "run", Rest: `"a b`, Args: []string{"a b"}}, true},
		"MultilineRest":    {"/plan do\nthis", command.Call{Name: "plan", Rest: "do\nthis", Args: []string{"do", "this"}}, true},
		"NewlineAfterName": {"/plan\nbody", command.Call{Name: "plan", Rest: "body", Args: []string{"body"}}, true},
		"BackslashInQuote": {`/run "a\n \" \\"`, command.Call{Name: "run", Rest: `"a\n \" \\"`, Args: []string{`a\n " \`}}, true},
		"Path":             {"/etc/passwd is what?", command.Call{}, false},
		"Comment":          {"// hello", command.Call{}, false},
		"Slash":            {"/", command.Call{}, false},
		"InText":           {"use /help", command.Call{}, false},
		"NotLatin":         {"/помощь", command.Call{}, false},
		"TooLong":          {"/" + strings.Repeat("a", 41), command.Call{}, false},
		"JustShortEnough":  {"/" + strings.Repeat("a", 40), command.Call{Name: strings.Repeat("a", 40)}, true},
		"LastLetters":      {"/AZ-az_09", command.Call{Name: "az_az_09"}, true},
		"NextToLetters":    {"/a[b", command.Call{}, false},
		"GermanQuotes":     {"/run „a b“ c", command.Call{Name: "run", Rest: "„a b“ c", Args: []string{"a b", "c"}}, true},
		"QuotesInQuotes":   {`/run "it's" 'say "x"'`, command.Call{Name: "run", Rest: `"it's" 'say "x"'`, Args: []string{"it's", `say "x"`}}, true},
		"SingleQuotesKeep": {`/run 'a\'`, command.Call{Name: "run", Rest: `'a\'`, Args: []string{`a\`}}, true},
		"BackslashAtEnd":   {`/run a\`, command.Call{Name: "run", Rest: `a\`, Args: []string{`a\`}}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := command.Parse(tt.text)
			if ok != tt.ok {
				t.Fatalf("Parse(%q) ok = %v, want %v", tt.text, ok, tt.ok)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"help", "status", "stop", "reset", "whoami", "start"}
	tests := map[string]string{
		"staus": "status", "hlep": "help", "sotp": "stop", "rest": "reset", "who": "whoami",
		"xyzzy": "", "frobnicate": "",
		"s": "", "st": "status", "w": "", "hlpe": "help", "tsop": "stop",
	}
	// Two letters in the wrong order are one mistake.
	if got, _ := command.Nearest("sotp", []string{"shop", "stop"}); got != "stop" {
		t.Errorf("the nearest to sotp is %q", got)
	}
	// A wrong last letter is a rare mistake, and these are far apart in what they do.
	for _, candidates := range [][]string{{"halt", "help"}, {"help", "halt"}} {
		for typed, want := range map[string]string{"ha" + "lp": "help", "helt": "halt"} {
			if got, _ := command.Nearest(typed, candidates); got != want {
				t.Errorf("the nearest of %q to %s is %q", candidates, typed, got)
			}
		}
	}
	for typed, want := range tests {
		if got, _ := command.Nearest(typed, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"/help", `/a "b`, "/a \\", "/a '\xff", " /x@y z", "/é", "/a “b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		call, ok := command.Parse(text)
		if !ok {
			return
		}
		if again, ok := command.Canonical(call.Name); !ok || again != call.Name {
			t.Errorf("name %q is not canonical", call.Name)
		}
		total := 0
		for _, w := range call.Args {
			total += len(w)
			if utf8.ValidString(text) && !utf8.ValidString(w) {
				t.Errorf("word %q of valid text is not valid UTF-8", w)
			}
		}
		if total > len(call.Rest) {
			t.Errorf("words are longer than the text: %d > %d", total, len(call.Rest))
		}
	})
}
