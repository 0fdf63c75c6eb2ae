package platform_test

import (
	"testing"

	"remote-agent/internal/platform"
)

func TestRecentForgetsTheOldest(t *testing.T) {
	t.Parallel()
	r := platform.NewRecent[string, int](2)
	r.Put("a", 1)
	r.Put("b", 2)
	r.Put("a", 3) // known: nothing is forgotten, and it stays the oldest
	if v := r.First("b", 9); v != 2 {
		t.Errorf("b was first put with %d", v)
	}
	if v := r.First("c", 4); v != 4 {
		t.Errorf("c became %d", v)
	}
	if _, ok := r.Get("a"); ok {
		t.Error("the oldest is still known")
	}
	if v, ok := r.Take("b", 5); !ok || v != 2 {
		t.Errorf("took %d, %v", v, ok)
	}
	if v := r.Change("b", func(v int) int { return v + 1 }); v != 6 {
		t.Errorf("b became %d", v)
	}
	if v := r.Change("d", func(v int) int { return v + 1 }); v != 1 {
		t.Errorf("an unknown key became %d", v)
	}
	if _, ok := r.Get("b"); ok {
		t.Error("the oldest of a full ring is still known")
	}
}
