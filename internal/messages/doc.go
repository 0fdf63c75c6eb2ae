// Package messages is the vocabulary the other packages share: what came in,
// what goes out, and the provider-agnostic message array that a model reads.
//
// It is a leaf and imports only the standard library. Everything in it can be
// stored and read back by another process: there are no callbacks, no handles
// and no platform or provider SDK types, so an answer can outlive the process
// that took the question.
package messages
