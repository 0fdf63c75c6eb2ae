// Package dialog sets the program up in a conversation at a terminal, or with answers
// that come through a pipe.
package dialog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/setup"
)

// Screen is where the conversation takes place.
type Screen interface {
	// Print shows a text.
	Print(text string)

	// Line asks for a line, without its end. The error is io.EOF when nothing more
	// comes, and that of ctx when it ends. An answer that comes later is the next one.
	Line(ctx context.Context, prompt string) (string, error)

	// Secret does so without showing what is typed.
	Secret(ctx context.Context, prompt string) (string, error)
}

// Dialog is one conversation.
type Dialog struct {
	Service setup.Service
	Screen  Screen
}

// errSkip ends a step that the person leaves as it is, and errDone the conversation.
var (
	errSkip = errors.New("skipped")
	errDone = errors.New("done")
)

// Run goes through the step that is named, or through those that the person chooses. An
// answer that does not come ends it with a fault.Invalid; what was kept until then stays.
func (d *Dialog) Run(ctx context.Context, only string) error {
	err := d.run(ctx, only)
	switch {
	case ctx.Err() != nil:
		return &fault.Error{Kind: fault.Canceled, Public: "Stopped. What was saved stays.", Err: ctx.Err()}
	case errors.Is(err, io.EOF):
		return fault.New(fault.Invalid, "The input has ended: what was saved stays. Run `bot setup` in a terminal, or pipe one answer a line; `bot setup --check` only looks.")
	case errors.Is(err, errDone), errors.Is(err, errSkip):
		return nil
	}
	return err
}

func (d *Dialog) run(ctx context.Context, only string) error {
	if only != "" {
		s, err := d.find(ctx, only)
		if err != nil {
			return err
		}
		return d.step(ctx, s)
	}
	seen := make(map[string]bool)
	for {
		s, err := d.choose(ctx, seen)
		if err != nil {
			return err
		}
		seen[s.Name] = true
		switch err := d.step(ctx, s); {
		case fault.Is(err, fault.Invalid):
			d.say("✖ %s\n", fault.Public(err))
		case err != nil && !errors.Is(err, errSkip):
			return err
		}
	}
}

// find returns the step with a name or number.
func (d *Dialog) find(ctx context.Context, name string) (setup.Step, error) {
	steps := d.Service.Steps(ctx)
	names := make([]string, 0, len(steps))
	for i, s := range steps {
		if strings.EqualFold(s.Name, name) || strconv.Itoa(i+1) == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return setup.Step{}, fault.Newf(fault.Invalid, "There is no step %q: use %s.", name, strings.Join(names, ", "))
}

// choose shows how everything stands, and asks what to do next.
func (d *Dialog) choose(ctx context.Context, seen map[string]bool) (setup.Step, error) {
	steps := d.Service.Steps(ctx)
	d.overview(ctx, steps)
	next := ""
	for _, s := range steps {
		if next == "" && !seen[s.Name] && !d.Service.State(ctx, s).On {
			next = s.Name
		}
	}
	for {
		prompt := "Which one? Name or number, q to leave: "
		if next != "" {
			prompt = "Which one? Name or number, Enter for " + next + ", q to leave: "
		}
		answer, err := d.line(ctx, prompt)
		switch {
		case err != nil:
			return setup.Step{}, err
		case strings.EqualFold(answer, "q"), answer == "" && next == "":
			return setup.Step{}, errDone
		case answer == "":
			answer = next
		}
		s, err := d.find(ctx, answer)
		if err == nil {
			return s, nil
		}
		d.say("✖ %s\n", fault.Public(err))
	}
}

func (d *Dialog) overview(ctx context.Context, steps []setup.Step) {
	d.say("\n")
	for i, s := range steps {
		state := d.Service.State(ctx, s)
		sign := "-"
		if state.On {
			sign = "✔"
		}
		d.say("  %d %s %-11s %s\n", i+1, sign, s.Name, state.Line)
	}
	d.say("\n")
}

// step does one step.
func (d *Dialog) step(ctx context.Context, s setup.Step) error {
	d.say("\n%s\n", s.Title)
	for _, v := range d.Service.State(ctx, s).Values {
		if v.Set || v.Pinned {
			d.say("  %s = %s (%s)\n", v.Name, v.Text, v.Origin)
		}
	}
	w, err := d.way(ctx, s)
	if err != nil {
		return err
	}
	if why := d.Service.Blocked(w); why != "" {
		return fault.New(fault.Invalid, why)
	}
	d.say("\n")
	for i, line := range w.Guide {
		d.say("  %d. %s\n", i+1, line)
	}
	if w.Link != "" {
		d.say("\n  %s\n", w.Link)
	}
	d.say("\n")
	typed := make(map[string]string)
	for {
		err := d.attempt(ctx, s, w, typed)
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// way asks which way, if there are several.
func (d *Dialog) way(ctx context.Context, s setup.Step) (setup.Way, error) {
	if len(s.Ways) == 1 {
		return s.Ways[0], nil
	}
	d.say("\n")
	for i, w := range s.Ways {
		d.say("  %d  %-10s %s\n", i+1, w.Name, w.Title)
	}
	for {
		answer, err := d.line(ctx, "How? Name or number, Enter for "+s.Ways[0].Name+", s to skip: ")
		if err != nil {
			return setup.Way{}, err
		}
		n, bad := strconv.Atoi(answer)
		w, ok := s.Way(strings.ToLower(answer))
		switch {
		case answer == "":
			return s.Ways[0], nil
		case ok:
			return w, nil
		case strings.EqualFold(answer, "s"):
			return w, errSkip
		case bad == nil && n >= 1 && n <= len(s.Ways):
			return s.Ways[n-1], nil
		}
		d.say("✖ %q is not one of these.\n", visible(answer))
	}
}

// show prints what came of checks.
func (d *Dialog) show(out setup.Outcome) {
	for _, p := range out.Problems {
		d.say("✖ %s\n", p)
	}
	for _, w := range out.Warnings {
		d.say("⚠ %s\n", w)
	}
	_ = doctor.Report{Findings: out.Findings}.WriteFindings(printer{d.Screen}) // a screen takes everything
}

// printer writes to a screen.
type printer struct{ screen Screen }

// Write implements io.Writer.
func (p printer) Write(text []byte) (int, error) {
	p.screen.Print(string(text))
	return len(text), nil
}

func (d *Dialog) line(ctx context.Context, prompt string) (string, error) {
	answer, err := d.Screen.Line(ctx, prompt)
	return strings.TrimSpace(answer), err
}

func (d *Dialog) say(format string, args ...any) { d.Screen.Print(fmt.Sprintf(format, args...)) }

// visible shows what was typed without acting on the terminal.
func visible(text string) string {
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
