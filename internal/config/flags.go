package config

import (
	"fmt"

	"remote-agent/internal/option"
)

// Flag is an option on the command line.
type Flag struct {
	Name, Help, Group string
	Placeholder       string // for its value
}

// Flags lists the part of the command line that options can be set with, made from
// the table. A secret is given as a file.
func Flags(sections ...option.Section) []Flag {
	options := Options(sections...)
	flags := make([]Flag, 0, len(options))
	for _, o := range options {
		f := Flag{Name: o.Flag(), Help: o.Help, Group: o.Group, Placeholder: "VALUE"}
		if o.Secret {
			f.Help = fmt.Sprintf("File that contains %s. %s", o.Name, o.Help)
			f.Placeholder = "FILE"
		} else if o.Default != "" {
			f.Placeholder = o.Default
		}
		f.Help += fmt.Sprintf(" ($%s)", envName(o))
		flags = append(flags, f)
	}
	return flags
}

func envName(o option.Option) string {
	if o.Secret {
		return o.Name + option.FileSuffix
	}
	return o.Name
}
