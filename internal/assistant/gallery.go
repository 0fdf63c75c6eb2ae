package assistant

import (
	"fmt"

	"remote-agent/internal/messages"
)

const (
	maxPictures = 10
	maxPictured = 16 << 20 // in bytes
)

// Gallery names the pictures that a turn makes for people, as many as are shown of one turn: ten,
// and 16 MB. The zero value is empty.
type Gallery struct{ pictures, bytes int }

// Add returns the name of a picture that is to be shown. It is empty for what is none (see
// messages.PictureKind), and for one too many.
func (g *Gallery) Add(data []byte) (name string) {
	kind := messages.PictureKind(data)
	if kind == "" || g.pictures == maxPictures || g.bytes+len(data) > maxPictured {
		return ""
	}
	g.pictures++
	g.bytes += len(data)
	return fmt.Sprintf("picture-%d.%s", g.pictures, kind)
}
