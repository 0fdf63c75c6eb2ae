package dialog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/setup"
)

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
	later, ended := d.prove(ctx, s, w, values)
	switch {
	case errors.Is(ended, errSkip), errors.Is(ended, errAgain):
		return ended
	case ended != nil && w.Obtain == nil: // the person has gone, and types nothing again
		d.putAside(w, values)
		return ended
	}
	// What a service gives only once is kept, also of a person who has gone.
	said, err := d.keep(context.WithoutCancel(ctx), s, w, values)
	if err != nil {
		return err
	}
	d.say("✔ %s\n", strings.Join(said, "\n  "))
	if ended != nil {
		return ended
	}
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
		if err := d.judge(ctx, out, w.Obtain != nil); !errors.Is(err, errAgain) || w.Obtain == nil {
			return out.Later, err
		}
	}
}

// keep writes the values. What a service has made is tried again as it is.
func (d *Dialog) keep(ctx context.Context, s setup.Step, w setup.Way, values map[string]string) ([]string, error) {
	for {
		said, err := d.Service.Keep(ctx, s, w, values)
		if err == nil {
			return said, nil
		}
		if fault.Is(err, fault.Invalid) {
			d.say("✖ %s\n", fault.Public(err))
			err = d.afterBad(ctx)
		}
		again := errors.Is(err, errAgain)
		if !again && (w.Obtain != nil || !errors.Is(err, errSkip)) {
			d.putAside(w, values)
		}
		if !again || w.Obtain == nil {
			return nil, err
		}
	}
}

// putAside keeps what was refused and can or will not be entered again: a service gives
// its values only once, and a person who has gone types nothing.
func (d *Dialog) putAside(w setup.Way, values map[string]string) {
	if len(values) == 0 {
		return
	}
	path, err := d.Service.PutAside(w, values)
	if err != nil {
		d.say("✖ What you entered could not be saved elsewhere either: %s\n", fault.Public(err))
		return
	}
	d.say("What you entered is in %s, which only you can read. Nothing uses that file: once the problem is fixed, put it in place of the other one.\n", path)
}

// judge asks what to do about values that are not right. Those that a service has made
// can be kept all the same.
func (d *Dialog) judge(ctx context.Context, out setup.Outcome, made bool) error {
	prompt := "Enter to try again, k to keep it as it is, s to skip: "
	switch {
	case out.Verdict == setup.Good:
		return nil
	case made:
		prompt = "These values are given only once. Enter to check them again, k to keep them, s to discard them: "
	case out.Verdict == setup.Bad:
		return d.afterBad(ctx)
	}
	answer, err := d.pick(ctx, prompt, "k", "s")
	switch {
	case err != nil:
		return err
	case answer == "k":
		return nil
	case answer == "s":
		return errSkip
	}
	return errAgain
}

func (d *Dialog) afterBad(ctx context.Context) error {
	answer, err := d.pick(ctx, "Nothing was changed. Enter to try again, s to skip: ", "s")
	if err == nil && answer == "s" {
		return errSkip
	}
	if err == nil {
		err = errAgain
	}
	return err
}

// pick asks until the answer is one of the letters, or nothing. Somebody may type the value
// itself there: they have to know that it was not taken.
func (d *Dialog) pick(ctx context.Context, prompt string, letters ...string) (string, error) {
	for {
		answer, err := d.line(ctx, prompt)
		if answer = strings.ToLower(answer); err != nil || answer == "" || slices.Contains(letters, answer) {
			return answer, err
		}
		d.say("✖ What you typed was not used: press Enter, or type %s.\n", strings.Join(letters, " or "))
	}
}

// rest does what can only be done once the values are in effect: the person goes on at a
// page, and the checks that could not pass before are made again.
func (d *Dialog) rest(ctx context.Context, w setup.Way, next string, check bool) error {
	if next == "" && !check {
		return nil
	}
	prompt := ""
	if next != "" {
		d.say("\n  Continue at %s\n", next)
		prompt = "Enter when that is done, s to do it later: "
	}
	for {
		if prompt != "" {
			answer, err := d.pick(ctx, prompt, "s")
			if err != nil {
				return err
			}
			if answer == "s" {
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
