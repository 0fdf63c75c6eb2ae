// Package pattern has regular expressions that are compiled when they are first
// used. The program has about two hundred, and most runs of it, such as the one
// that confines a program of an assistant, need few: compiling all took half of
// the time before main and 5 MB.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression, or will be. Its methods are those of
// regexp.Regexp. It is safe for concurrent use.
type Pattern struct{ compiled func() *regexp.Regexp }

// Lazy returns the pattern of an expression. One that cannot be compiled panics
// with the first use; a test in internal/arch compiles them all.
//
//go:noinline // its code in each of its callers makes the program larger, and every start slower
func Lazy(expr string) Pattern {
	return Pattern{compiled: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// Regexp returns the compiled expression.
func (p Pattern) Regexp() *regexp.Regexp { return p.compiled() }

// The methods of regexp.Regexp that are in use.

// MatchString is that of regexp.Regexp.
func (p Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// Match is that of regexp.Regexp.
func (p Pattern) Match(b []byte) bool { return p.compiled().Match(b) }

// FindString is that of regexp.Regexp.
func (p Pattern) FindString(s string) string { return p.compiled().FindString(s) }

// FindStringIndex is that of regexp.Regexp.
func (p Pattern) FindStringIndex(s string) []int { return p.compiled().FindStringIndex(s) }

// FindStringSubmatch is that of regexp.Regexp.
func (p Pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// FindAllString is that of regexp.Regexp.
func (p Pattern) FindAllString(s string, n int) []string { return p.compiled().FindAllString(s, n) }

// FindAllStringIndex is that of regexp.Regexp.
func (p Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch is that of regexp.Regexp.
func (p Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compiled().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is that of regexp.Regexp.
func (p Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringSubmatchIndex(s, n)
}

// FindAllSubmatch is that of regexp.Regexp.
func (p Pattern) FindAllSubmatch(b []byte, n int) [][][]byte {
	return p.compiled().FindAllSubmatch(b, n)
}

// ReplaceAllString is that of regexp.Regexp.
func (p Pattern) ReplaceAllString(s, by string) string { return p.compiled().ReplaceAllString(s, by) }

// ReplaceAllStringFunc is that of regexp.Regexp.
func (p Pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	return p.compiled().ReplaceAllStringFunc(s, by)
}
