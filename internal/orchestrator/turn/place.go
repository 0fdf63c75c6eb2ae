package turn

import (
	"crypto/sha256"
	"encoding/binary"
)

// Elsewhere returns which other process is to work on a conversation that nobody holds;
// empty if it is this one. While the same processes take offers it is always the same one,
// whoever asks: it has what it remembers of the conversation, and the files. If one comes or
// goes, only what falls to it changes (rendezvous hashing).
func (o *Turns) Elsewhere(key string) string {
	if o.config.Takers == nil {
		return ""
	}
	place, best := "", draw(o.owner, key)
	for _, taker := range o.config.Takers() {
		if v := draw(taker, key); v > best {
			place, best = taker, v
		}
	}
	return place
}

// draw is what a process draws for a conversation, evenly between 0 and 1; the highest
// has it.
func draw(owner, key string) float64 {
	sum := sha256.Sum256([]byte(owner + " " + key))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
