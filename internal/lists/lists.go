// Package lists makes lists of lists.
package lists

// Map returns what f makes of each element. It is never nil.
func Map[E, R any](list []E, f func(E) R) []R {
	made := make([]R, len(list))
	for i, e := range list {
		made[i] = f(e)
	}
	return made
}
