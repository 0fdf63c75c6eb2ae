package store

import (
	"sync"

	"remote-agent/internal/memory/sketch"
)

// chunkKey names the content of a chunk of sketches. A chunk changes only by
// losing rows, and counts them: so its number and how many rows it has say what is
// in it, as far as it was committed.
type chunkKey struct{ id, live int64 }

// chunkCacheSize is how many chunks are kept: those of 256,000 memories, in about 38 MB.
const chunkCacheSize = 4000

// chunkCache keeps chunks of sketches, which a recall reads all, so that it only
// asks the database which there are. Only what a read-only snapshot saw may be put
// in: a number can come again when the transaction that gave it out is undone.
type chunkCache struct {
	mu     sync.Mutex
	chunks map[chunkKey]*sketch.Chunk
}

func newChunkCache() *chunkCache { return &chunkCache{chunks: make(map[chunkKey]*sketch.Chunk)} }

func (c *chunkCache) get(key chunkKey) (chunk *sketch.Chunk, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chunk, ok = c.chunks[key]
	return chunk, ok
}

// put keeps a chunk. If it gets too much, another goes, whichever.
func (c *chunkCache) put(key chunkKey, chunk *sketch.Chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.chunks[key]; !there && len(c.chunks) >= chunkCacheSize {
		for other := range c.chunks {
			delete(c.chunks, other)
			break
		}
	}
	c.chunks[key] = chunk
}
