// Package arch checks who may import whom (docs/architecture.md). It holds tests
// only.
package arch
