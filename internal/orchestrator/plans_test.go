package orchestrator

import (
	"strings"
	"testing"

	"remote-agent/internal/plan"
)

func TestPlanNumber(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]int64{"p-9": 9, "P-9": 9, "9": 9} {
		if got, ok := PlanNumber(arg); !ok || got != want {
			t.Errorf("PlanNumber(%q) = %d, %v", arg, got, ok)
		}
	}
	for _, arg := range []string{"", "p-", "p-0", "-1", "2fa", "09", "p-9x", "1.", "quickly"} {
		if got, ok := PlanNumber(arg); ok {
			t.Errorf("PlanNumber(%q) = %d", arg, got)
		}
	}
}

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
