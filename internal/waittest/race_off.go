//go:build !race

package waittest

const instrumented = 1
