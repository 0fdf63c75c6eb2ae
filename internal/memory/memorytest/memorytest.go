// Package memorytest has a double of an embedding model. It is for tests only:
// for recall, full text is better than it.
package memorytest

import (
	"context"
	"hash/fnv"

	"remote-agent/internal/lists"
	"remote-agent/internal/memory"
)

// Model is the name of the double.
const Model = "hash-test"

// Vector embeds a text by hashing its terms: texts with the same words are alike,
// whatever their order. A text without words gets a vector of its own.
func Vector(text string) memory.Vector {
	v := make(memory.Vector, memory.Dimensions)
	terms := memory.Terms(text)
	if len(terms) == 0 {
		terms = []string{"\x00" + text}
	}
	for _, term := range terms {
		h := fnv.New64a()
		h.Write([]byte(term)) //nolint:errcheck // cannot fail
		sum := h.Sum64()
		sign := float32(1)
		if sum>>63 == 1 {
			sign = -1
		}
		v[sum%memory.Dimensions] += sign
	}
	if v.Check() != nil { // the terms cancel each other out
		v[0] = 1
	}
	return v
}

// Embedding is Vector with the name of the double.
func Embedding(text string) memory.Embedding {
	return memory.Embedding{Vector: Vector(text), Model: Model}
}

// Embedder embeds with Vector.
type Embedder struct{}

// Model returns Model.
func (Embedder) Model() string { return Model }

// Embed embeds each text.
func (Embedder) Embed(_ context.Context, texts []string) ([]memory.Vector, error) {
	return lists.Map(texts, Vector), nil
}

// EmbedEach is Embed: it refuses no text.
func (e Embedder) EmbedEach(ctx context.Context, texts []string) ([]memory.Vector, error) {
	return e.Embed(ctx, texts)
}
