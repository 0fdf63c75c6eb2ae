// Package order sorts lists of structs with little code. The functions of package slices
// are compiled anew for each type of element, which is 14 to 24 KB of the program for a
// sort that runs a few times a day; for numbers, strings and pointers, which share one, and
// where it has to be fast, use those.
package order

import "sort"

// By sorts list in place so that compare of an element and the next is not positive.
// Equal elements keep their order.
func By[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
