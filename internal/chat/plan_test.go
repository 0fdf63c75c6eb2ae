package chat

import (
	"strings"
	"testing"

	"remote-agent/internal/command"
)

func TestPromptsAreExpandedOnce(t *testing.T) {
	t.Parallel()
	planning, executing := planCommand().Prompt, executeCommand().Prompt
	tests := map[string]struct {
		prompt     *command.Prompt
		text, plan string
		want       string
	}{
		"Goal":               {planning, "/plan add a flag", "", "Goal: add a flag"},
		"Invoked":            {planning, `/command-invoke plan-feature "Add dark mode" now`, "", `Goal: "Add dark mode" now`},
		"ArgumentsInAPlan":   {executing, "/execute use $PLAN", "1. $ARGUMENTS", "Plan:\n\n1. $ARGUMENTS\n\nNote: use $PLAN"},
		"WithoutANote":       {executing, "/execute", "1. Do it.", "Plan:\n\n1. Do it."},
		"WithoutAPlanSaysSo": {executing, "/execute", "", "there is no plan"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, _ := command.Parse(tt.text)
			if got, _ := tt.prompt.Expand(call, tt.plan); !strings.Contains(got, tt.want) {
				t.Errorf("%q is not in %q", tt.want, got)
			}
		})
	}
}
