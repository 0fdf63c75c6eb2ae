// Package dialog sets the program up in a conversation at a terminal, or with answers
// that come through a pipe.
package dialog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
		if err := d.step(ctx, s); err != nil && !errors.Is(err, errSkip) {
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
		d.say("✖ %s\n", why)
		return errSkip
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
		d.say("✖ %q is none of these.\n", visible(answer))
	}
}

// errAgain has the fields asked for again.
var errAgain = errors.New("again")

// attempt asks for the values, proves them and keeps them.
func (d *Dialog) attempt(ctx context.Context, s setup.Step, w setup.Way, typed map[string]string) error {
	for _, f := range w.Fields {
		if err := d.ask(ctx, w, f, typed); err != nil {
			return err
		}
	}
	if w.Act != nil {
		said, err := w.Act(ctx, typed)
		if err != nil && ctx.Err() == nil {
			d.say("✖ %s\n", fault.Public(err))
			return d.afterBad(ctx)
		}
		if err == nil {
			d.say("✔ %s\n  %s\n", strings.TrimSpace(said), w.Opens)
		}
		return err
	}
	values, next := typed, ""
	if w.Obtain != nil {
		var err error
		if values, next, err = d.obtain(ctx, w, typed); err != nil {
			return err
		}
	}
	later, err := d.prove(ctx, s, w, values)
	if err != nil {
		return err
	}
	said, err := d.keep(ctx, s, w, values)
	if err != nil {
		return err
	}
	d.say("✔ %s\n", strings.Join(said, "\n  "))
	if err := d.rest(ctx, w, next, later || w.Proof.After); err != nil {
		return err
	}
	if w.Opens != "" {
		d.say("  %s\n", w.Opens)
	}
	return nil
}

// prove tries the values before they are kept. What a service has made is tried again as
// it is: it is not made a second time. later tells that something has to be checked again.
func (d *Dialog) prove(ctx context.Context, s setup.Step, w setup.Way, values map[string]string) (later bool, err error) {
	for {
		if !w.Proof.After {
			d.say("Checking …\n")
		}
		out := d.Service.Try(ctx, s, w, values)
		d.show(out)
		if err := d.judge(ctx, out); !errors.Is(err, errAgain) || w.Obtain == nil {
			return out.Later, err
		}
	}
}

// keep writes the values. What a service has made is tried again as it is.
func (d *Dialog) keep(ctx context.Context, s setup.Step, w setup.Way, values map[string]string) ([]string, error) {
	for {
		said, err := d.Service.Keep(ctx, s, w, values)
		if !fault.Is(err, fault.Invalid) {
			return said, err
		}
		d.say("✖ %s\n", fault.Public(err))
		if err := d.afterBad(ctx); !errors.Is(err, errAgain) || w.Obtain == nil {
			return nil, err
		}
	}
}

// judge asks what to do about values that are not right.
func (d *Dialog) judge(ctx context.Context, out setup.Outcome) error {
	switch out.Verdict {
	case setup.Bad:
		return d.afterBad(ctx)
	case setup.Doubtful:
		answer, err := d.line(ctx, "Enter to try again, k to keep it as it is, s to skip: ")
		switch {
		case err != nil:
			return err
		case strings.EqualFold(answer, "k"):
			return nil
		case strings.EqualFold(answer, "s"):
			return errSkip
		}
		return errAgain
	default:
		return nil
	}
}

func (d *Dialog) afterBad(ctx context.Context) error {
	answer, err := d.line(ctx, "Nothing was changed. Enter to try again, s to skip: ")
	if err == nil && strings.EqualFold(answer, "s") {
		return errSkip
	}
	if err == nil {
		err = errAgain
	}
	return err
}

// rest does what can only be done once the values are in effect: the person goes on at a
// page, and the checks that could not pass before are made again.
func (d *Dialog) rest(ctx context.Context, w setup.Way, next string, check bool) error {
	if next == "" && !check {
		return nil
	}
	prompt := ""
	if next != "" {
		d.say("\n  Go on there: %s\n", next)
		prompt = "Enter when that is done, s to do it later: "
	}
	for {
		if prompt != "" {
			answer, err := d.line(ctx, prompt)
			if err != nil {
				return err
			}
			if strings.EqualFold(answer, "s") {
				return nil
			}
		}
		out := d.Service.Prove(ctx, w)
		d.show(out)
		if out.Verdict == setup.Good && !out.Later {
			return nil
		}
		prompt = "Enter to check again, s to do it later: "
	}
}

// ask asks for one value until it is right by itself.
func (d *Dialog) ask(ctx context.Context, w setup.Way, f setup.Field, typed map[string]string) error {
	isOption := w.Asks()
	var known setup.Value
	if isOption {
		if known = d.Service.Value(f.Name); known.Pinned {
			d.say("%s: %s, which only %s can change\n", f.Label, known.Text, known.Origin)
			return nil
		}
	}
	before, again := typed[f.Name]
	keep := ""
	switch {
	case again && before != "":
		keep = "what you entered"
	case !again && known.Set && !setup.Moved(d.Service, w, f, typed):
		keep = "what is set"
	}
	for {
		value, err := d.value(ctx, f, keep)
		if err != nil {
			return err
		}
		switch {
		case value == "" && keep != "":
			return nil
		case value == none && f.Optional:
			value = ""
		case value == "":
			value = f.Default
		}
		if value == "" && !f.Optional {
			d.say("✖ This is needed; Ctrl-C ends the set-up.\n")
			continue
		}
		if isOption && value != "" {
			if wrong := d.Service.CheckValue(f.Name, value); wrong != "" {
				d.say("✖ %s\n", wrong)
				continue
			}
		}
		typed[f.Name] = value
		return nil
	}
}

// none is the answer that takes an optional value out.
const none = "-"

// value asks for a value once.
func (d *Dialog) value(ctx context.Context, f setup.Field, keep string) (string, error) {
	var notes []string
	if f.Secret && !f.File {
		notes = append(notes, "not shown")
	}
	switch {
	case keep != "":
		notes = append(notes, "Enter keeps "+keep)
		if f.Optional {
			notes = append(notes, none+" takes it out")
		}
	case f.Default != "":
		notes = append(notes, "Enter for "+f.Default)
	case f.Optional:
		notes = append(notes, "Enter for none")
	}
	prompt := f.Label
	if len(notes) > 0 {
		prompt += " (" + strings.Join(notes, "; ") + ")"
	}
	ask := d.Screen.Line
	if f.Secret && !f.File {
		ask = d.Screen.Secret
	}
	for {
		answer, err := ask(ctx, prompt+": ")
		answer = strings.TrimSpace(answer)
		if err != nil || !f.File || answer == "" {
			return answer, err
		}
		text, err := readValue(answer)
		if err == nil {
			return text, nil
		}
		d.say("✖ %s\n", fault.Public(err))
	}
}

// maxFile bounds a file that holds a value.
const maxFile = 64 << 10

// readValue reads a value from a file.
func readValue(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return "", fault.Newf(fault.Invalid, "%s is no file of at most 64 KiB that can be read: correct the path.", visible(path))
	}
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil || strings.TrimSpace(string(text)) == "" {
		return "", fault.Newf(fault.Invalid, "%s is empty or cannot be read: correct the path.", visible(path))
	}
	return strings.TrimSpace(string(text)), nil
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

// Check shows how each step stands, or the one that is named, and runs its checks. It
// asks for nothing. sound is false if one failed.
func (d *Dialog) Check(ctx context.Context, only string) (sound bool, err error) {
	steps := d.Service.Steps(ctx)
	if only != "" {
		s, err := d.find(ctx, only)
		if err != nil {
			return false, err
		}
		steps = []setup.Step{s}
	}
	d.overview(ctx, steps)
	sound = true
	for _, s := range steps {
		state := d.Service.State(ctx, s)
		for _, v := range state.Values {
			if v.Set || v.Pinned {
				d.say("  %s = %s (%s)\n", v.Name, v.Text, v.Origin)
			}
		}
		if !state.On {
			continue
		}
		out := d.Service.Prove(ctx, setup.Way{Proof: setup.Proof{Areas: s.Ways[0].Proof.Areas}})
		d.show(out)
		for _, f := range out.Findings {
			sound = sound && f.Status != doctor.Fail
		}
	}
	return sound, ctx.Err()
}
