package store

import (
	"slices"
	"sync"
)

// chunkKey names the content of a chunk of sketches. A chunk changes only by
// losing rows, and counts them: so its number and how many rows it has say what is
// in it, as far as it was committed.
type chunkKey struct{ id, live int64 }

// chunkCacheSize is how many bytes of chunks are kept: those of 300,000 memories.
const chunkCacheSize = 32 << 20

// chunkCache keeps chunks of sketches, which a recall reads all, so that it only
// asks the database which there are. Only what a read-only snapshot saw may be put
// in: a number can come again when the transaction that gave it out is undone.
type chunkCache struct {
	mu     sync.Mutex
	size   int
	chunks map[chunkKey][]byte
}

func newChunkCache() *chunkCache { return &chunkCache{chunks: make(map[chunkKey][]byte)} }

// get returns a chunk, which may not be changed.
func (c *chunkCache) get(key chunkKey) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chunk, ok := c.chunks[key]
	return chunk, ok
}

// put keeps a copy of a chunk. If it gets too much, others go, whichever.
func (c *chunkCache) put(key chunkKey, chunk []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.chunks[key]; there {
		return
	}
	for other, old := range c.chunks {
		if c.size+len(chunk) <= chunkCacheSize {
			break
		}
		c.size -= len(old)
		delete(c.chunks, other)
	}
	c.chunks[key] = slices.Clone(chunk)
	c.size += len(chunk)
}
