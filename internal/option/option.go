// Package option is the vocabulary of the program's options: what one is, how its
// text is parsed, and what a part of the configuration that belongs to another
// package, such as a platform's, consists of. Package config reads them.
package option

import (
	"fmt"
	"strings"
)

// GroupModel is the group of what concerns the models: the options of their APIs come
// first in it.
const GroupModel = "Model"

// Option describes one option of a section.
type Option struct {
	Name    string // of the environment variable
	Default string // empty if unset is meaningful; then Empty says what it means
	Empty   string // what it means that the option is not set
	Secret  bool   // never shown, no flag of its own, can be read from NAME_FILE
	Live    bool   // a running process takes a change of it (SIGHUP)
	Aliases []Alias
	Group   string
	Help    string // one sentence
	Example string // a value for the example file; Default if empty

	// Parse checks text, which is not empty, and stores it in the section. Its error
	// says what is wrong and what to do, without the variable's name and without the
	// text of a secret.
	Parse Parser

	// Mask returns the part of a secret that may be shown; nil shows nothing.
	Mask func(text string) string
}

// Alias is another name that is accepted for an option.
type Alias struct {
	Name    string
	Renamed bool // an older name: using it is worth a warning

	// Convert turns the alias' value into the option's; nil takes it as it is.
	Convert func(text string) (string, error)
}

// FileSuffix ends the name of the variable that names the file of a secret.
const FileSuffix = "_FILE"

// Flag returns the name of the command-line flag, without dashes. Arguments are
// visible to every user of a machine, so a secret has a flag for its file only.
func (o Option) Flag() string {
	name := o.Name
	if o.Secret {
		name += FileSuffix
	}
	return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}

// Parser checks the text of an option and stores it.
type Parser = func(text string) error

// Section is a part of the configuration that belongs to another package. One value
// belongs to one reading of the configuration.
type Section interface {
	// Options returns the options, in the order in which they are listed.
	Options() []Option

	// Check looks for what is wrong between options. It is called once, when all of
	// them have been read, also if some could not be parsed.
	Check(c *Check)

	// WithLive returns the section with what a running process can take of next,
	// which is a later reading of the same section.
	WithLive(next Section) Section
}

// Answerer is the section of an assistant. The first one that is configured answers new
// conversations where DEFAULT_AI_ASSISTANT names none.
type Answerer interface {
	Section

	// Assistant returns the name, as conversations keep it.
	Assistant() string

	// Configured reports whether the options say whom to ask.
	Configured() bool
}

// Host is the section of a platform, where people have accounts.
type Host interface {
	Section

	// Accounts returns what the names of accounts there begin with, before the slash.
	Accounts() string
}

// Check is what a section can see of the other options, and where it says what it
// found.
type Check struct {
	PublicURL string // without a trailing slash; empty if there is none
	Assistant string // that answers new conversations

	// IsSet reports whether an option has a value that is not its default. Sound
	// reports whether none of the options has a problem of its own: rules about those
	// that have one are skipped.
	IsSet func(name string) bool
	Sound func(names ...string) bool

	Problems, Warnings []string
}

// Problem adds a line that names the option, what is wrong and what to do. None may
// hold a secret. It stops the program.
func (c *Check) Problem(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}

// Warn adds a line that does not stop the program.
func (c *Check) Warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}
