package platform_test

import (
	"testing"

	"remote-agent/internal/platform"
)

func TestOneSlip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"staus", "status", true},
		{"status", "staus", true},
		{"sttaus", "status", true},
		{"stotus", "status", true},
		{"statuss", "status", true},
		{"tatus", "status", true},
		{"statsu", "status", true},
		{"status", "status", false},
		{"hello", "help", false},
		{"tsuats", "status", false},
		{"stts", "status", false},
		{"", "a", true},
		{"", "", false},
		{"ab", "ba", true},
		{"abc", "cab", false},
	} {
		if got := platform.OneSlip(c.a, c.b); got != c.want {
			t.Errorf("OneSlip(%q, %q) is %v", c.a, c.b, got)
		}
	}
}
