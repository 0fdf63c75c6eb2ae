package turn

import (
	"strings"
	"testing"

	"remote-agent/internal/plan"
)

func TestDriftIsToldOnlyWhenTheBranchMoved(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		made, now string
		told      bool
	}{
		"Same":           {"abc", "abc", false},
		"Moved":          {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", true},
		"NoCodebaseThen": {"", "abc", false},
		"NoCodebaseNow":  {"abc", "", false},
	}
	for name, tt := range tests {
		b := begunTurn{plan: &plan.Plan{Number: 1, Head: tt.made}, work: Prepared{Head: tt.now}}
		if text := b.drift(); (text != "") != tt.told || (tt.told && !strings.Contains(text, tt.now[:10])) {
			t.Errorf("%s: told %q", name, text)
		}
	}
	if text := (&begunTurn{work: Prepared{Head: "abc"}}).drift(); text != "" {
		t.Errorf("a plain turn tells %q", text)
	}
}
