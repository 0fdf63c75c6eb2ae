// Package texts lists what the program says, so that a person can read through it:
// its test makes docs/texts.md from the source.
package texts
