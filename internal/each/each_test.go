package each_test

import (
	"slices"
	"strconv"
	"testing"

	"remote-agent/internal/each"
)

func TestOf(t *testing.T) {
	t.Parallel()
	if got := each.Of([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("got %v", got)
	}
	if got := each.Of(nil, strconv.Itoa); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
