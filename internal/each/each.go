// Package each turns lists into others.
package each

// Of returns what of makes of each element of list; nil of none.
func Of[T, V any](list []T, of func(T) V) []V {
	if len(list) == 0 {
		return nil
	}
	out := make([]V, len(list))
	for i, v := range list {
		out[i] = of(v)
	}
	return out
}
