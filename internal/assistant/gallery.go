package assistant

import (
	"fmt"

	"remote-agent/internal/messages"
)

const (
	maxPictures = 10
	maxPictured = 16 << 20 // in bytes
)

// Gallery names the pictures that a turn makes, and counts those that people are shown, which are
// ten, and 16 MB. The zero value is empty.
type Gallery struct{ named, shown, bytes int }

// Add returns the name of a picture. It is empty for what is none (see messages.PictureKind). show
// is false for what people are not shown any more.
func (g *Gallery) Add(data []byte) (name string, show bool) {
	kind := messages.PictureKind(data)
	if kind == "" {
		return "", false
	}
	g.named++
	name = fmt.Sprintf("picture-%d.%s", g.named, kind)
	if g.shown == maxPictures || g.bytes+len(data) > maxPictured {
		return name, false
	}
	g.shown++
	g.bytes += len(data)
	return name, true
}

// Resume has the names go on behind n that an earlier run of the turn may have given.
func (g *Gallery) Resume(n int) { g.named = max(g.named, n) }
