package sessions_test

import (
	"maps"
	"testing"

	"remote-agent/internal/sessions"
)

func TestNext(t *testing.T) {
	t.Parallel()
	planning := sessions.CommandMeta{Name: "plan-feature", Produces: sessions.Plan}
	executing := sessions.CommandMeta{Name: "execute", Consumes: sessions.Plan}
	other := sessions.CommandMeta{Name: "prime"}
	plain := sessions.CommandMeta{}
	tests := map[string]struct {
		last *sessions.CommandMeta // nil: no command ran in the session
		next sessions.CommandMeta
		want sessions.Transition
	}{
		"PlanThenExecute":     {&planning, executing, sessions.Restart},
		"PlanThenTalk":        {&planning, plain, sessions.Continue},
		"PlanThenPlan":        {&planning, planning, sessions.Continue},
		"PlanThenOther":       {&planning, other, sessions.Continue},
		"ExecuteAlone":        {nil, executing, sessions.Continue},
		"ExecuteTwice":        {&executing, executing, sessions.Continue},
		"OtherThenExecute":    {&other, executing, sessions.Continue},
		"FirstMessage":        {nil, plain, sessions.Continue},
		"OtherPlannerCounts":  {&sessions.CommandMeta{Name: "design", Produces: sessions.Plan}, executing, sessions.Restart},
		"OtherExecutorCounts": {&planning, sessions.CommandMeta{Name: "build", Consumes: sessions.Plan}, sessions.Restart},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sessions.Metadata{"custom": "kept"}
			if tt.last != nil {
				maps.Copy(m, sessions.Remember(*tt.last))
				if m.LastCommand() != tt.last.Name {
					t.Errorf("lastCommand is %q", m.LastCommand())
				}
			}
			if got := sessions.Next(m, tt.next); got != tt.want {
				t.Errorf("Next = %s, want %s", got, tt.want)
			}
		})
	}
}
