package dialog_test

import (
	"context"
	"io"
	"maps"
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

	tried, kept []map[string]string
}

func (s *service) Steps(context.Context) []setup.Step {
	return []setup.Step{{Name: "model", Title: "Model", Ways: []setup.Way{s.way}}}
}
func (s *service) State(context.Context, setup.Step) setup.State { return setup.State{} }
func (s *service) Value(option string) setup.Value               { return s.values[option] }
func (s *service) Blocked(setup.Way) string                      { return "" }
func (s *service) CheckValue(string, string) string              { return "" }
func (s *service) Prove(context.Context, setup.Way) setup.Outcome {
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
		"what is set":              {answers: []string{"", ""}, want: map[string]string{}, shown: []string{"Enter keeps what is set; - takes it out"}},
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
