package lists_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"remote-agent/internal/lists"
)

func TestMap(t *testing.T) {
	t.Parallel()
	if got := lists.Map([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("of 3, 1 and 2: %q", got)
	}
	if got := lists.Map(nil, strconv.Itoa); got != nil {
		t.Errorf("of nil: %#v", got)
	}
	if got := lists.Map([]int{}, strconv.Itoa); got == nil || len(got) > 0 {
		t.Errorf("of an empty list: %#v", got)
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	big := func(n int) bool { return n > 1 }
	if got := lists.First([]int{1, 3, 2}, big); got != 3 {
		t.Errorf("the first above 1 in 1, 3 and 2: %d", got)
	}
	if got := lists.First([]int{1}, big); got != 0 {
		t.Errorf("the first above 1 in 1: %d", got)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	if got := lists.Words(" not\n  no not"); !maps.Equal(got, map[string]bool{"not": true, "no": true}) {
		t.Errorf("of not, no and not: %v", got)
	}
}
