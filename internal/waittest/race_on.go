//go:build race

package waittest

// instrumented is how many times as long the race detector makes things take.
const instrumented = 3
