package sandbox_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"remote-agent/internal/sandbox"
)

// TestCapture compares with keeping everything.
func TestCapture(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		c := sandbox.NewCapture(limit)
		var all []byte
		for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 60)).Draw(t, "writes") {
			if n, err := c.Write(p); n != len(p) || err != nil {
				t.Fatalf("Write: %d %v", n, err)
			}
			all = append(all, p...)
		}
		head, tail, omitted := c.Bytes()
		want := min(len(all), limit)
		if len(head)+len(tail) != want || omitted != int64(len(all)-want) || c.Total() != int64(len(all)) {
			t.Fatalf("kept %d and %d, omitted %d of %d", len(head), len(tail), omitted, len(all))
		}
		if !strings.HasPrefix(string(all), string(head)) || !strings.HasSuffix(string(all), string(tail)) {
			t.Fatalf("%q ... %q of %q", head, tail, all)
		}
		if !utf8.ValidString(c.String()) {
			t.Fatalf("%q", c.String())
		}
	})
}

func TestCaptureText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit       int
		write, want string
	}{
		{8, "", ""},
		{8, "12345678", "12345678"},
		{8, "123456789", "1234\n[... 1 bytes left out ...]\n6789"},
		{8, "ab\xff", "ab\uFFFD"},
		{8, "123é56789é1", "123\n[... 6 bytes left out ...]\n9é1"},
		{8, "1234567é12é", "1234\n[... 5 bytes left out ...]\n12é"},
		{8, "1234zzzzzzé123", "1234\n[... 8 bytes left out ...]\n123"},
		{1, "abc", "a\n[... 2 bytes left out ...]\n"},
		{0, strings.Repeat("x", sandbox.DefaultCapture), strings.Repeat("x", sandbox.DefaultCapture)},
	} {
		w := sandbox.NewCapture(c.limit)
		fmt.Fprint(w, c.write)
		if got := w.String(); got != c.want {
			t.Errorf("%d %q: %q, want %q", c.limit, c.write, got, c.want)
		}
	}
	var zero sandbox.Capture
	fmt.Fprint(&zero, "usable")
	if zero.String() != "usable" {
		t.Errorf("%q", zero.String())
	}
}

func TestCaptureConcurrent(t *testing.T) {
	t.Parallel()
	c := sandbox.NewCapture(1000)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 1000 {
				fmt.Fprint(c, "line\n")
				_ = c.Total()
			}
		})
	}
	writers.Wait()
	if c.Total() != 8*1000*5 || strings.Count(c.String(), "line\n") < 190 {
		t.Errorf("%d\n%s", c.Total(), c)
	}
}
