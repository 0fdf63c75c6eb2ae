package config

import (
	"fmt"
	"io"
	"strings"

	"remote-agent/internal/option"
)

const redacted = "[redacted]"

// Show prints every effective value and where it came from; secrets are masked.
func (c Config) Show(w io.Writer) error {
	var out strings.Builder
	group := ""
	for _, o := range c.table {
		if o.Group != group {
			if group != "" {
				out.WriteByte('\n')
			}
			group = o.Group
			fmt.Fprintf(&out, "# %s\n", group)
		}
		v := c.values[o.Name]
		fmt.Fprintf(&out, "%-29s %s  (%s)\n", o.Name, c.shown(o, v.text), v.origin)
	}
	for _, warning := range c.Warnings {
		fmt.Fprintf(&out, "\nwarning: %s", warning)
	}
	if len(c.Warnings) > 0 {
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// shown returns the text of a value for people, on one line.
func (c Config) shown(o Option, text string) string {
	switch {
	case text == "" && o.Name == "DEFAULT_AI_ASSISTANT":
		return c.Assistant
	case text == "" && o.Name == "WORKSPACE_PATH":
		return c.WorkspacePath
	case text == "" && o.Name == "DATABASE_URL":
		return "sqlite:" + c.Database.Path
	case text == "":
		return "- " + o.Empty
	case o.mask != nil:
		return o.mask(text)
	case o.Secret:
		return redacted
	case strings.ContainsAny(text, "\n\r\t\x1b"):
		return fmt.Sprintf("%q", text)
	}
	return text
}

// WriteExample prints an example .env file: every option, commented out, with
// its default.
func WriteExample(w io.Writer, sections ...option.Section) error {
	var out strings.Builder
	out.WriteString(`# Nothing here is required: the bot starts without any of it.
# Copy this file to .env and take the # away from what you change. Flags and the
# environment win over this file. Every secret can be read from a file instead:
# NAME_FILE=/path. Put values with $ or # in them between single quotes.
#
# Written by: go run ./cmd/bot config example
`)
	group := ""
	for _, o := range tableOf(sections) {
		if o.Group != group {
			group = o.Group
			fmt.Fprintf(&out, "\n# --- %s ---\n", group)
		}
		out.WriteByte('\n')
		writeWrapped(&out, o.Help)
		example := o.Default
		if example == "" {
			example = o.Example
			writeWrapped(&out, "Not set: "+o.Empty+".")
		}
		if o.Live() {
			writeWrapped(&out, "SIGHUP takes a change while the bot runs.")
		}
		for _, a := range o.Aliases {
			writeWrapped(&out, "Also accepted: "+a.Name+".")
		}
		fmt.Fprintf(&out, "#%s=%s\n", o.Name, example)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeWrapped writes text as comment lines of at most 80 columns.
func writeWrapped(out *strings.Builder, text string) {
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 80 && line != "#" {
			out.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	out.WriteString(line + "\n")
}
