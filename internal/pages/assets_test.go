package pages_test

import (
	"regexp"
	"testing"

	"remote-agent/internal/store/storetest"
)

// What a browser loads besides a page, once, is less than 60 kB.
func TestStyleAndScriptAreSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	b := w.browser()
	page := b.get("/sign-in")
	paths := regexp.MustCompile(`(?:href|src)="(/assets/[^"]+\.(?:css|js)\?v=[^"]*)"`).FindAllStringSubmatch(page, -1)
	size := 0
	for _, m := range paths {
		size += len(b.get(m[1]))
	}
	if len(paths) != 2 || size < 5_000 || size >= 60_000 {
		t.Errorf("%d files with %d bytes together", len(paths), size)
	}
}

func BenchmarkNew(b *testing.B) {
	w := newWorld(b, storetest.SQLite(b)(b))
	for b.Loop() {
		w.talks()
	}
}
