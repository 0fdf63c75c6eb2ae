package turn

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// ownShare is what a process that accepts a message counts among those that may work on
// it, of whom each other one counts 1: it has had the work of accepting.
const ownShare = 0.75

// Elsewhere returns which other process is to work on a conversation that nobody holds;
// empty if it is this one. While the same processes take offers it is always the same one,
// which so has what it remembers of the conversation, and if one comes or goes, only what
// falls to it changes (weighted rendezvous hashing).
func (o *Turns) Elsewhere(key string) string {
	if o.config.Takers == nil {
		return ""
	}
	place, best := "", -1.0
	for _, taker := range o.config.Takers() {
		if v := draw(taker, key); v > best {
			place, best = taker, v
		}
	}
	if place == "" || math.Pow(draw(o.owner, key), 1/ownShare) > best {
		return ""
	}
	return place
}

// draw is what a process draws for a conversation, evenly between 0 and 1; the highest
// has it.
func draw(owner, key string) float64 {
	sum := sha256.Sum256([]byte(owner + " " + key))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
