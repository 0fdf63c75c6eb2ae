// Package lists makes lists and sets, and finds in them.
package lists

import "strings"

// Map returns what f makes of each element; nil of nil.
func Map[E, R any](list []E, f func(E) R) []R {
	if list == nil {
		return nil
	}
	made := make([]R, len(list))
	for i, e := range list {
		made[i] = f(e)
	}
	return made
}

// First returns the first element that is what is looked for, or the zero value.
func First[E any](list []E, is func(E) bool) (first E) {
	for _, e := range list {
		if is(e) {
			return e
		}
	}
	return first
}

// Words returns the set of the words of a text, as spaces part them.
func Words(text string) map[string]bool {
	words := make(map[string]bool)
	for w := range strings.FieldsSeq(text) {
		words[w] = true
	}
	return words
}
