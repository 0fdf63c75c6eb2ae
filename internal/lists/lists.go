// Package lists makes lists of lists, and finds in them.
package lists

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
