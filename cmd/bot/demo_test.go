package main

import (
	"os"
	"strings"
	"testing"
)

func TestDemoNeedsNothing(t *testing.T) {
	r := bot(t, []string{"PATH=" + os.Getenv("PATH")}, "demo", "--fast")
	if r.code != exitOK || r.stderr != "" {
		t.Errorf("code %d, stderr %q", r.code, r.stderr)
	}
	for _, want := range []string{"scripted, not an AI", "lost               0", "doubled            0"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in %s", want, r.stdout)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
