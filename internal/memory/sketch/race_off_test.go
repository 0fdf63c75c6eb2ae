//go:build !race

package sketch_test

// How many vectors are compared, and how long a shortlist of them is.
const (
	estimated   = 4000
	searched    = 20_000
	shortlisted = 500
)
