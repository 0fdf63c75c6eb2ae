package order_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"remote-agent/internal/order"
)

func TestSortsAsSlicesDoes(t *testing.T) {
	t.Parallel()
	type pair struct{ key, place int }
	compare := func(a, b pair) int { return a.key - b.key }
	rapid.Check(t, func(t *rapid.T) {
		var list []pair
		for i, key := range rapid.SliceOf(rapid.IntRange(-3, 3)).Draw(t, "keys") {
			list = append(list, pair{key, i})
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, compare)
		if order.By(list, compare); !slices.Equal(list, want) {
			t.Fatalf("sorted to %v, want %v", list, want)
		}
	})
}
