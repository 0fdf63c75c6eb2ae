package media

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestAveragesAreThoseOfTheirCells: each pixel is the mean of its cell, rounded, whichever
// way it is computed.
func TestAveragesAreThoseOfTheirCells(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, size := range [][3]int{{16, 6, 1}, {22, 8, 1}, {2, 2, 1}, {1000, 4, 1}, {18, 8, 3}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			width, height, channels := size[0], size[1], size[2]
			pix := make([]byte, width*height*channels)
			for i := range pix {
				pix[i] = byte(random.IntN(256))
				if random.IntN(4) == 0 {
					pix[i] = 255
				}
			}
			half := raster{width, height, channels, func(y int, to []byte) { copy(to, pix[y*width*channels:]) }}.averaged(2, 2)
			if half.width != width/2 || half.height != height/2 {
				t.Fatalf("%d x %d", half.width, half.height)
			}
			row := make([]byte, half.width*channels)
			for y := range half.height {
				half.row(y, row)
				for i, got := range row {
					x, c := i/channels, i%channels
					at := func(dx, dy int) int { return int(pix[((2*y+dy)*width+2*x+dx)*channels+c]) }
					if want := (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1) + 2) / 4; int(got) != want {
						t.Fatalf("at %d,%d: %d, want %d", x, y, got, want)
					}
				}
			}
		})
	}
}
