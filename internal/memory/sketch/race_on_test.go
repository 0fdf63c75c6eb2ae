//go:build race

package sketch_test

// Making sketches is arithmetic, which the race detector slows down tenfold: fewer
// do here. CI runs the tests without it as well.
const (
	estimated   = 1000
	searched    = 5000
	shortlisted = 250
)
