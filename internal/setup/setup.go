// Package setup says what setting the program up consists of: steps as values, which a
// terminal and a page in the browser show alike. A step knows what to tell, what to ask
// for and what it changes; package app proves values and keeps them.
package setup

import (
	"context"
	"net/url"
	"slices"

	"remote-agent/internal/doctor"
)

// Step is one thing that can be set up, such as a platform.
type Step struct {
	Name  string // as in `bot setup telegram`
	Title string
	Ways  []Way // at least one; the first is the usual one
}

// Way returns the way with a name.
func (s Step) Way(name string) (Way, bool) {
	i := slices.IndexFunc(s.Ways, func(w Way) bool { return w.Name == name })
	if i < 0 {
		return Way{}, false
	}
	return s.Ways[i], true
}

// Way is one way of doing a step.
type Way struct {
	Name, Title string
	Guide       []string // where to click, in at most three lines
	Link        string   // a page that does some of that; may be empty
	Fields      []Field

	// Set is what the way changes besides its fields; an empty value takes an option out.
	Set map[string]string

	// Proof says which checks of doctor prove the values.
	Proof Proof

	// Opens says what is possible then.
	Opens string

	// Obtain, if not nil, gets the values of options from a service, by way of the
	// person's browser. Fields are then what it needs to know.
	Obtain *Obtain

	// Act, if not nil, does something other than changing options, and says what. It
	// gets the fields' values by their names. Its errors are for people.
	Act func(ctx context.Context, values map[string]string) (said string, err error)
}

// Field is a value to ask for.
type Field struct {
	Name     string // of the option, or a name of its own where the way has Act or Obtain
	Label    string
	Secret   bool
	Optional bool
	File     bool   // the person names a file, and what it holds is the value
	Default  string // shown, and taken for an empty answer

	// For names the option that a secret belongs to, such as the address of the server
	// that it opens. With another address, the secret that is set is not kept: it would be
	// sent to a server that it is not for.
	For string
}

// Proof names checks of doctor.
type Proof struct {
	Areas []string
	Only  string   // the beginning of what they are called; empty: all of the areas
	Later []string // those that may fail before everything is in place; shown, and tried again afterwards
	After bool     // only possible once the values are in effect
}

// Obtain gets values from a service: the browser posts a form, the person agrees there,
// and the browser comes back with a code.
type Obtain struct {
	// Form returns what the browser posts. back is the address where it comes back to,
	// and state is what it brings along unchanged.
	Form func(values map[string]string, back, state string) (Form, error)

	// Exchange returns the values of options for what the browser came back with, and
	// the page on which the person goes on; that may be empty.
	Exchange func(ctx context.Context, query url.Values) (values map[string]string, next string, err error)
}

// Form is what a browser posts to a service.
type Form struct {
	Action string
	Fields map[string]string
}

// State is how a step stands.
type State struct {
	On     bool
	Line   string // what is on, or what is off without it
	Values []Value
}

// Value is an option as it is now. Text holds no secret.
type Value struct {
	Name, Text, Origin string
	Set, Pinned        bool
}

// Verdict is what checks make of values.
type Verdict int

// The verdicts, from good to bad.
const (
	Good     Verdict = iota
	Doubtful         // they can be kept, but something is not as it should be or could not be asked
	Bad              // they are refused
)

// Outcome is what came of trying values.
type Outcome struct {
	Verdict  Verdict
	Problems []string // one line each, which name the option and what to do
	Warnings []string // the same of what is accepted
	Findings []doctor.Finding
	Later    bool // one of Proof.Later failed
}

// Service changes the configuration. Its texts hold no secret.
type Service interface {
	// Steps returns all steps, in order, as the configuration is now.
	Steps(ctx context.Context) []Step

	// State says how a step stands.
	State(ctx context.Context, s Step) State

	// Value returns what is known of an option.
	Value(option string) Value

	// Blocked says why a way cannot be gone: a flag or the environment sets what it has
	// to change. It is empty if nothing does.
	Blocked(w Way) string

	// CheckValue says what is wrong with the value of an option by itself; empty if
	// nothing is.
	CheckValue(option, value string) string

	// Try proves the values of a way without keeping them. Those that are not given stay
	// as they are.
	Try(ctx context.Context, s Step, w Way, values map[string]string) Outcome

	// Keep writes the values and has a running bot take them. It says, a line each, what
	// came of that. An error changes nothing; it is a fault.Invalid if the values were
	// refused, by the file's owner or by the bot that runs.
	Keep(ctx context.Context, s Step, w Way, values map[string]string) ([]string, error)

	// PutAside writes the values beside what is in effect, where only their owner reads
	// them, and says where.
	PutAside(w Way, values map[string]string) (path string, err error)

	// Prove runs the checks of a way on what is kept.
	Prove(ctx context.Context, w Way) Outcome
}
