package dialog

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/setup"
)

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
		case skips(f, value):
			return errSkip
		case value == "":
			value = f.Default
		}
		if value == "" && !f.Optional {
			d.say("✖ This is needed. Type s to skip this step; Ctrl-C ends the setup.\n")
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

// skips reports whether an answer leaves a step as it is: no value that is needed is that short.
func skips(f setup.Field, answer string) bool { return !f.Optional && strings.EqualFold(answer, "s") }

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
			notes = append(notes, none+" removes it")
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
		if err != nil || !f.File || answer == "" || skips(f, answer) {
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
		return "", fault.Newf(fault.Invalid, "%s is not a readable file of at most 64 KiB: correct the path.", visible(path))
	}
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil || strings.TrimSpace(string(text)) == "" {
		return "", fault.Newf(fault.Invalid, "%s is empty or cannot be read: correct the path.", visible(path))
	}
	return strings.TrimSpace(string(text)), nil
}
