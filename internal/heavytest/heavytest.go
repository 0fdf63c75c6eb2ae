// Package heavytest sizes the tests that take minutes in full: a repository of
// 100,000 files, a thousand programs, the kills of a crash test. Everybody runs them,
// in a size that finds the mistake; TEST_HEAVY=1, which CI sets for exactly these
// tests, runs them in full.
package heavytest

import "os"

// On reports whether tests run in full.
func On() bool { return os.Getenv("TEST_HEAVY") == "1" }

// Size returns how much of something a test makes: everyday, or full with
// TEST_HEAVY=1. Call it in the test itself, because .ci/run finds the tests by it.
func Size(everyday, full int) int {
	if On() {
		return full
	}
	return everyday
}
