package dialog_test

import (
	"context"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/setup"
	"remote-agent/internal/setup/dialog"
)

// service keeps what it is given, and knows what it is told.
type service struct {
	way      setup.Way
	values   map[string]setup.Value
	outcomes []setup.Outcome // of the next tries; then good ones
	refusals []error         // of the next keeps

	on      bool
	wrong   map[string]string // what is wrong with values by themselves
	blocked string
	ways    []setup.Way // beside way

	tried, kept, aside []map[string]string
	proved             []setup.Way
}

func (s *service) Steps(context.Context) []setup.Step {
	return []setup.Step{{Name: "model", Title: "Model", Ways: append([]setup.Way{s.way}, s.ways...)}}
}
func (s *service) State(context.Context, setup.Step) setup.State { return setup.State{On: s.on} }
func (s *service) Value(option string) setup.Value               { return s.values[option] }
func (s *service) Blocked(setup.Way) string                      { return s.blocked }
func (s *service) CheckValue(_, value string) string             { return s.wrong[value] }
func (s *service) Prove(_ context.Context, w setup.Way) setup.Outcome {
	s.proved = append(s.proved, w)
	return setup.Outcome{}
}

func (s *service) Try(_ context.Context, _ setup.Step, _ setup.Way, values map[string]string) (out setup.Outcome) {
	s.tried = append(s.tried, maps.Clone(values))
	if len(s.outcomes) > 0 {
		out, s.outcomes = s.outcomes[0], s.outcomes[1:]
	}
	return out
}

func (s *service) Keep(_ context.Context, _ setup.Step, _ setup.Way, values map[string]string) ([]string, error) {
	if len(s.refusals) > 0 {
		err := s.refusals[0]
		s.refusals = s.refusals[1:]
		return nil, err
	}
	s.kept = append(s.kept, maps.Clone(values))
	return []string{"Saved."}, nil
}

func (s *service) PutAside(_ setup.Way, values map[string]string) (string, error) {
	s.aside = append(s.aside, maps.Clone(values))
	return ".env.refused", nil
}

// screen answers one line after the other.
type screen struct {
	answers []string
	shown   strings.Builder
}

func (s *screen) Print(text string) { s.shown.WriteString(text) }

func (s *screen) Line(_ context.Context, prompt string) (string, error) {
	s.Print(prompt)
	if len(s.answers) == 0 {
		return "", io.EOF
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	s.Print("[" + answer + "]\n")
	return answer, nil
}

func (s *screen) Secret(ctx context.Context, prompt string) (string, error) {
	return s.Line(ctx, prompt)
}

// server is a way with an address, a key that is for it, and a model.
func server() *service {
	return &service{
		way: setup.Way{Fields: []setup.Field{
			{Name: "URL", Label: "Address"},
			{Name: "KEY", Label: "Key", Secret: true, Optional: true, For: "URL"},
		}},
		values: map[string]setup.Value{"URL": {Text: "https://one.example.com", Set: true}, "KEY": {Text: "set", Set: true}},
	}
}

func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(s *service)
		answers []string
		want    map[string]string
		shown   []string
	}{
		"what is set":              {answers: []string{"", ""}, want: map[string]string{}, shown: []string{"Enter keeps what is set; - removes it"}},
		"the same address":         {answers: []string{"https://one.example.com", ""}, want: map[string]string{"URL": "https://one.example.com"}},
		"another address, no key":  {answers: []string{"https://two.example.com", ""}, want: map[string]string{"URL": "https://two.example.com", "KEY": ""}, shown: []string{"Key (not shown; Enter for none)"}},
		"another address and key":  {answers: []string{"https://two.example.com", "k2"}, want: map[string]string{"URL": "https://two.example.com", "KEY": "k2"}},
		"taken out":                {answers: []string{"", "-"}, want: map[string]string{"KEY": ""}},
		"an address of the way":    {change: func(s *service) { s.way.Fields = s.way.Fields[1:]; s.way.Set = map[string]string{"URL": ""} }, answers: []string{""}, want: map[string]string{"KEY": ""}},
		"an address set elsewhere": {change: func(s *service) { s.values["URL"] = setup.Value{Text: "https://one.example.com", Pinned: true} }, answers: []string{""}, want: map[string]string{}, shown: []string{"can change"}},
		"again, after a refusal": {
			change:  func(s *service) { s.refusals = []error{fault.New(fault.Invalid, "The running bot refuses that.")} },
			answers: []string{"https://two.example.com", "k2", "", "", ""}, want: map[string]string{"URL": "https://two.example.com", "KEY": "k2"},
			shown: []string{"✖ The running bot refuses that.", "Nothing was changed. Enter to try again", "Enter keeps what you entered"},
		},
		"a value in the place of Enter": {
			change:  func(s *service) { s.refusals = []error{fault.New(fault.Invalid, "The running bot refuses that.")} },
			answers: []string{"https://two.example.com", "k2", "k3", "", "", "k3"}, want: map[string]string{"URL": "https://two.example.com", "KEY": "k3"},
			shown: []string{"✖ What you typed was not used: press Enter, or type s."},
		},
		"kept in spite of doubts": {
			change: func(s *service) {
				s.outcomes = []setup.Outcome{{Verdict: setup.Doubtful, Warnings: []string{"It is far away."}}}
			},
			answers: []string{"", "", "k"}, want: map[string]string{}, shown: []string{"⚠ It is far away.", "k to keep it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, at := server(), &screen{answers: c.answers}
			if c.change != nil {
				c.change(s)
			}
			if err := (&dialog.Dialog{Service: s, Screen: at}).Run(t.Context(), "model"); err != nil {
				t.Fatalf("%v\n%s", err, at.shown.String())
			}
			if len(s.kept) != 1 {
				t.Fatalf("kept %v\n%s", s.kept, at.shown.String())
			}
			if diff := cmp.Diff(c.want, s.kept[0]); diff != "" {
				t.Errorf("kept (-want +got):\n%s\n%s", diff, at.shown.String())
			}
			for _, part := range c.shown {
				if !strings.Contains(at.shown.String(), part) {
					t.Errorf("%q was not shown:\n%s", part, at.shown.String())
				}
			}
		})
	}
}

// Another error of keeping ends it, and so does leaving after a refusal.
func TestWhatEndsIt(t *testing.T) {
	t.Parallel()
	s, at := server(), &screen{answers: []string{"", "", "s"}}
	s.refusals = []error{fault.New(fault.Invalid, "no")}
	if err := (&dialog.Dialog{Service: s, Screen: at}).Run(t.Context(), "model"); err != nil || len(s.kept) != 0 {
		t.Errorf("skipped: %v, kept %v", err, s.kept)
	}
	s, at = server(), &screen{answers: []string{"", ""}}
	s.refusals = []error{fault.New(fault.Internal, "broken")}
	if err := (&dialog.Dialog{Service: s, Screen: at}).Run(t.Context(), "model"); !fault.Is(err, fault.Internal) {
		t.Errorf("an internal error: %v", err)
	}
}

// made is a service that gives values to a browser, which comes back at once.
func made(outcomes ...setup.Outcome) *service {
	return &service{outcomes: outcomes, way: setup.Way{Obtain: &setup.Obtain{
		Form: func(_ map[string]string, _, _ string) (setup.Form, error) {
			return setup.Form{Action: "https://example.com/new"}, nil
		},
		Exchange: func(context.Context, url.Values) (map[string]string, string, error) {
			return map[string]string{"KEY": "given once"}, "", nil
		},
	}}}
}

// backAt pastes the address that the browser ends at, and answers then.
type backAt struct {
	screen

	end func() // where the answers end; nil: with io.EOF
}

var start = regexp.MustCompile(`(http://\S+)/start(\?state=\S+)`)

func (s *backAt) Line(ctx context.Context, prompt string) (string, error) {
	if strings.HasPrefix(prompt, "Waiting for the browser") {
		m := start.FindStringSubmatch(s.shown.String())
		return m[1] + "/back" + m[2] + "&code=1", nil
	}
	if len(s.answers) == 0 && s.end != nil {
		s.end()
		return "", ctx.Err()
	}
	return s.screen.Line(ctx, prompt)
}

// What a service gives only once is not lost to a check that fails, to the end of the
// input, or to Ctrl-C; only to whoever says so.
func TestWhatIsGivenOnceIsKept(t *testing.T) {
	t.Parallel()
	bad, doubtful := setup.Outcome{Verdict: setup.Bad, Problems: []string{"It cannot be reached."}}, setup.Outcome{Verdict: setup.Doubtful}
	for name, c := range map[string]struct {
		outcomes []setup.Outcome
		answers  []string
		canceled bool
		tried    int
		kept     bool
		want     fault.Kind
	}{
		"good":                       {tried: 1, kept: true},
		"bad, and kept":              {outcomes: []setup.Outcome{bad}, answers: []string{"k"}, tried: 1, kept: true},
		"bad, then good":             {outcomes: []setup.Outcome{bad, bad}, answers: []string{"", ""}, tried: 3, kept: true},
		"bad, and discarded":         {outcomes: []setup.Outcome{bad}, answers: []string{"S"}, tried: 1},
		"bad, and the input ends":    {outcomes: []setup.Outcome{bad}, tried: 1, kept: true, want: fault.Invalid},
		"in doubt, the input ends":   {outcomes: []setup.Outcome{doubtful}, tried: 1, kept: true, want: fault.Invalid},
		"bad, and it is interrupted": {outcomes: []setup.Outcome{bad}, canceled: true, tried: 1, kept: true, want: fault.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, at := made(c.outcomes...), &backAt{screen: screen{answers: c.answers}}
			if c.canceled {
				at.end = cancel
			}
			err := (&dialog.Dialog{Service: s, Screen: at}).Run(ctx, "model")
			if fault.KindOf(err) != c.want && (err != nil || c.want != "") {
				t.Errorf("it ended with %v, want %q", err, c.want)
			}
			if len(s.tried) != c.tried || (len(s.kept) == 1) != c.kept || c.kept && s.kept[0]["KEY"] != "given once" {
				t.Errorf("tried %v, kept %v\n%s", s.tried, s.kept, at.shown.String())
			}
			if strings.Contains(at.shown.String(), "given once"+"\n") {
				t.Errorf("the value is shown:\n%s", at.shown.String())
			}
		})
	}
}

// What a running bot refuses is not lost with the person who leaves, nor what a service
// gave only once.
func TestWhatIsRefusedIsPutAside(t *testing.T) {
	t.Parallel()
	typed, once := map[string]string{"URL": "https://two.example.com", "KEY": "k2"}, map[string]string{"KEY": "given once"}
	for name, c := range map[string]struct {
		service *service
		answers []string
		want    map[string]string // nothing: nothing is put aside
	}{
		"typed, and the input ends":  {server(), []string{"https://two.example.com", "k2"}, typed},
		"typed, and skipped":         {server(), []string{"https://two.example.com", "k2", "s"}, nil},
		"given once, the input ends": {made(), nil, once},
		"given once, and skipped":    {made(), []string{"s"}, once},
		"given once, then taken":     {made(), []string{""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := &backAt{screen: screen{answers: c.answers}}
			c.service.refusals = []error{fault.New(fault.Invalid, "The running bot refuses that.")}
			_ = (&dialog.Dialog{Service: c.service, Screen: at}).Run(t.Context(), "model") // how it ends is looked at elsewhere
			var want []map[string]string
			if c.want != nil {
				want = append(want, c.want)
			}
			if diff := cmp.Diff(want, c.service.aside); diff != "" || strings.Contains(at.shown.String(), ".env.refused") != (c.want != nil) {
				t.Errorf("put aside (-want +got):\n%s\n%s", diff, at.shown.String())
			}
		})
	}
}

// What a check found bad is put aside when the person has gone; who says so discards it.
func TestWhatACheckFoundBadIsPutAside(t *testing.T) {
	t.Parallel()
	typed := map[string]string{"URL": "https://two.example.com", "KEY": "k2"}
	entered := []string{"https://two.example.com", "k2"}
	for name, c := range map[string]struct {
		verdict  setup.Verdict
		answers  []string
		canceled bool
		want     bool
	}{
		"bad, and the input ends":       {verdict: setup.Bad, want: true},
		"in doubt, and the input ends":  {verdict: setup.Doubtful, want: true},
		"bad, and it is interrupted":    {verdict: setup.Bad, canceled: true, want: true},
		"bad again, and the input ends": {verdict: setup.Bad, answers: []string{"", "", ""}, want: true},
		"bad, and skipped":              {verdict: setup.Bad, answers: []string{"s"}},
		"in doubt, and kept":            {verdict: setup.Doubtful, answers: []string{"k"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, at := server(), &backAt{screen: screen{answers: append(slices.Clone(entered), c.answers...)}}
			s.outcomes = []setup.Outcome{{Verdict: c.verdict}, {Verdict: c.verdict}}
			if c.canceled {
				at.end = cancel
			}
			_ = (&dialog.Dialog{Service: s, Screen: at}).Run(ctx, "model") // how it ends is looked at elsewhere
			var want []map[string]string
			if c.want {
				want = append(want, typed)
			}
			if diff := cmp.Diff(want, s.aside); diff != "" || strings.Contains(at.shown.String(), ".env.refused") != c.want {
				t.Errorf("put aside (-want +got):\n%s\n%s", diff, at.shown.String())
			}
		})
	}
	s, at := server(), &backAt{} // nothing is put aside of nothing
	s.outcomes = []setup.Outcome{{Verdict: setup.Bad}}
	at.answers = []string{"", ""}
	if _ = (&dialog.Dialog{Service: s, Screen: at}).Run(t.Context(), "model"); len(s.aside) != 0 {
		t.Errorf("put aside %v", s.aside)
	}
}

// A code works once: who goes while it is exchanged loses nothing.
func TestInterruptedWhileTheServiceGivesItsValues(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, at := made(), new(backAt)
	s.way.Obtain.Exchange = func(ctx context.Context, _ url.Values) (map[string]string, string, error) {
		cancel()
		return map[string]string{"KEY": "given once"}, "", ctx.Err()
	}
	if err := (&dialog.Dialog{Service: s, Screen: at}).Run(ctx, "model"); len(s.kept) != 1 || s.kept[0]["KEY"] != "given once" {
		t.Errorf("%v, kept %v\n%s", err, s.kept, at.shown.String())
	}
}

// Bad input is asked for again with what is wrong with it, and changes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, text := range map[string]string{"key.pem": " the key\n", "empty": " \n", "large": strings.Repeat("x", 64<<10+1)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	needed := setup.Way{Name: "one", Fields: []setup.Field{{Name: "URL", Label: "Address"}}}
	file := setup.Way{Name: "one", Fields: []setup.Field{{Name: "KEY", Label: "File", File: true, Secret: true}}}
	for name, c := range map[string]struct {
		service *service
		only    string // the step; empty: it is chosen
		answers []string
		want    map[string]string // nil: nothing is kept
		shown   []string
	}{
		"no such step":   {service: &service{way: needed}, answers: []string{"telepathy", "0", "2", "q"}, shown: []string{`There is no step "telepathy": use model.`, `no step "0"`, `no step "2"`}},
		"a step by name": {service: &service{way: needed}, answers: []string{"MODEL", "u", "q"}, want: map[string]string{"URL": "u"}},
		"no such way": {service: &service{way: needed, ways: []setup.Way{{Name: "two"}}}, only: "1", answers: []string{"three", "0", "3", "-1", "\x1b[2Jx", "2"}, want: map[string]string{},
			shown: []string{`✖ "three" is not one of these.`, `✖ "0" is not one`, `✖ "3" is not one`, `✖ "-1" is not one`, `✖ "[2Jx" is not one`}},
		"a way is skipped":     {service: &service{way: needed, ways: []setup.Way{{Name: "two"}}}, only: "model", answers: []string{"S"}},
		"a way is blocked":     {service: &service{way: needed, blocked: "A flag sets it."}, answers: []string{"model", "q"}, shown: []string{"✖ A flag sets it."}},
		"nothing":              {service: &service{way: needed}, only: "model", answers: []string{"", "  ", "u"}, want: map[string]string{"URL": "u"}, shown: []string{"✖ This is needed"}},
		"nothing, and skipped": {service: &service{way: needed}, only: "model", answers: []string{"", "s"}, shown: []string{"Type s to skip this step"}},
		"a file is skipped":    {service: &service{way: file}, only: "model", answers: []string{"S"}},
		"a wrong value":        {service: &service{way: needed, wrong: map[string]string{"x": "URL: x is no address."}}, only: "model", answers: []string{"x", "u"}, want: map[string]string{"URL": "u"}, shown: []string{"✖ URL: x is no address."}},
		"files": {service: &service{way: file}, only: "model",
			answers: []string{filepath.Join(dir, "none"), dir, filepath.Join(dir, "large"), filepath.Join(dir, "empty"), filepath.Join(dir, "key.pem")}, want: map[string]string{"KEY": "the key"},
			shown: []string{"none is not a readable file", "large is not a readable file of at most 64 KiB", "empty is empty or cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := &screen{answers: c.answers}
			if err := (&dialog.Dialog{Service: c.service, Screen: at}).Run(t.Context(), c.only); err != nil {
				t.Fatalf("%v\n%s", err, at.shown.String())
			}
			if c.want == nil && len(c.service.kept) != 0 || c.want != nil && (len(c.service.kept) != 1 || cmp.Diff(c.want, c.service.kept[0]) != "") {
				t.Errorf("kept %v, want %v", c.service.kept, c.want)
			}
			if len(at.answers) != 0 {
				t.Errorf("not asked for: %q", at.answers)
			}
			for _, part := range c.shown {
				if !strings.Contains(at.shown.String(), part) {
					t.Errorf("%q was not shown:\n%s", part, at.shown.String())
				}
			}
			if strings.Contains(at.shown.String(), "✖ \"\x1b") {
				t.Error("what was typed acts on the terminal")
			}
		})
	}
}

// The checks are those of all ways: agents answer, too.
func TestCheckLooksAtAllWays(t *testing.T) {
	t.Parallel()
	of := func(areas ...string) setup.Way { return setup.Way{Proof: setup.Proof{Areas: areas, Only: "some"}} }
	s, at := &service{on: true, way: of("models"), ways: []setup.Way{of("models"), of(), of("agents")}}, new(screen)
	sound, err := (&dialog.Dialog{Service: s, Screen: at}).Check(t.Context(), "")
	if !sound || err != nil || len(s.proved) != 1 || !slices.Equal(s.proved[0].Proof.Areas, []string{"models", "agents"}) || s.proved[0].Proof.Only != "" {
		t.Errorf("checked %+v: %t, %v", s.proved, sound, err)
	}
}

// What runs one step from a script learns that it came to nothing.
func TestAStepThatIsBlockedFails(t *testing.T) {
	t.Parallel()
	s := &service{way: setup.Way{Name: "w"}, blocked: "A flag sets it."}
	if err := (&dialog.Dialog{Service: s, Screen: &screen{}}).Run(t.Context(), "model"); fault.Public(err) != "A flag sets it." {
		t.Error(err)
	}
}
