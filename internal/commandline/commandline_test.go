package commandline_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/commandline"
)

// said is what a command was run with.
type said struct{ command, text string }

type copyCommand struct {
	From  string        `arg:"" help:"What to copy."`
	To    []string      `arg:"" help:"Where to." optional:""`
	Force bool          `help:"Overwrite." short:"f"`
	Limit int           `help:"How many." default:"7"`
	Ratio float64       `help:"How much."`
	Wait  time.Duration `help:"How long."`
	Sizes []int         `help:"How big." default:"1,2"`
	Pairs []string      `help:"Old and new." sep:"none" placeholder:"OLD=NEW"`
	Form  string        `help:"Which form." enum:",flat,deep"`
	HTTP2 bool          `help:"A name of capitals."`
}

func (c copyCommand) Run(s *said) error {
	s.command = "copy"
	s.text = strings.Join(append([]string{c.From}, c.To...), " ")
	if c.Limit != 7 || c.Force || c.Ratio != 0 || c.Wait != 0 || len(c.Sizes) != 2 || c.Pairs != nil || c.Form != "" || c.HTTP2 {
		s.text += " " + cmp.Diff(copyCommand{}, c)
	}
	return nil
}

type sendCommand struct {
	Name  string `help:"Who." required:""`
	Scope string `help:"What." required:""`
}

func (c *sendCommand) Run(s *said) error { s.command, s.text = "send", c.Name+c.Scope; return nil }

type group struct {
	Send sendCommand `cmd:"" help:"Send it."`
	Copy copyCommand `cmd:"" help:"Copy it; this text is so long that it does not fit on one line of eighty columns."`
}

type whole struct {
	File string      `help:"A file." global:""`
	Copy copyCommand `cmd:"" help:"Copy." group:"Do"`
	More group       `cmd:"" help:"More." group:"Else"`
	Lost sendCommand `cmd:"" help:"Not listed." hidden:""`
}

func (w whole) Run(s *said) error { s.command = "whole " + w.File; return nil }

func TestRun(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]said{
		"":                             {"whole ", ""},
		"--file x":                     {"whole x", ""},
		"copy a":                       {"copy", "a"},
		"copy a b c --file x":          {"copy", "a b c"},
		"copy a, b,c d":                {"copy", "a, b,c d"},
		"--file=x copy a":              {"copy", "a"},
		"more send --name n --scope=s": {"send", "ns"},
	} {
		var got said
		c := commandline.New("it", &whole{}, &got)
		c.SetArgs(strings.Fields(line))
		if err := c.Execute(); err != nil || got != want {
			t.Errorf("%q: %v, %+v, want %+v", line, err, got, want)
		}
	}
}

func TestFlagsOfEveryKind(t *testing.T) {
	t.Parallel()
	var root whole
	c := commandline.New("it", &root, new(said))
	c.SetArgs(strings.Fields("copy a -f --limit 3 --ratio 0.5 --wait 90s --sizes 5,6 --sizes 7 --pairs a=b,c --pairs d=e --form deep --http2"))
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	want := copyCommand{
		From: "a", Force: true, Limit: 3, Ratio: 0.5, Wait: 90 * time.Second, Sizes: []int{5, 6, 7},
		Pairs: []string{"a=b,c", "d=e"}, Form: "deep", HTTP2: true,
	}
	if diff := cmp.Diff(want, root.Copy); diff != "" {
		t.Error(diff)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"copi":                "it has no command \"copi\"; did you mean copy?",
		"nothing":             "it has no command \"nothing\"",
		"copy":                "it copy needs <from>",
		"more":                "it more needs one of send, copy",
		"more nothing":        "it more has no command \"nothing\"",
		"more send":           "it more send needs --name and --scope",
		"more send --name n":  "it more send needs --scope",
		"more send x":         "it more send takes no argument \"x\"",
		"copy a --nothing":    "unknown flag: --nothing",
		"copy a --limit x":    "must be a whole number",
		"copy a --ratio x":    "must be a number",
		"copy a --wait 5":     "must be a time such as 90s",
		"copy a --form other": "must be one of flat, deep",
		"copy a --force=x":    "must be true or false",
	} {
		got := said{}
		c := commandline.New("it", &whole{}, &got)
		c.SetArgs(strings.Fields(line))
		err := c.Execute()
		usage, ok := err.(commandline.UsageError) //nolint:errorlint // it comes as it is
		if !ok || !strings.Contains(usage.Error(), want) || strings.Contains(usage.Error(), "\n") || got.command != "" {
			t.Errorf("%q: %v, and ran %q; want %q", line, err, got.command, want)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	c := commandline.New("it", &whole{}, new(said))
	commandline.AddOption(c, "color", "Which `color` it has.", "Looks", "red", func(string) error { return nil })
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs([]string{"more", "copy", "--help"})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Usage: it more copy <from> [<to> ...] [flags]\n", "\nArguments:\n  <from>       What to copy.\n",
		"\nFlags:\n", "--limit 7", "-f, --force", "--pairs OLD=NEW", "--file TEXT", "-h, --help",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "color") {
		t.Errorf("options are listed:\n%s", &out)
	}
	more, _, err := c.Find([]string{"more"})
	if err != nil {
		t.Fatal(err)
	}
	text := commandline.Help(more, true)
	for _, want := range []string{
		"\nCommands:\n  more send   Send it.\n  more copy   Copy it; this text is so long that it does not fit on one line of\n              eighty",
		"\nLooks:\n      --color red   Which color it has.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var names []string
	for _, child := range commandline.Commands(c) {
		names = append(names, commandline.Group(child)+" "+child.Name())
	}
	if diff := cmp.Diff([]string{"Do copy", "Else more"}, names); diff != "" {
		t.Error(diff)
	}
}
