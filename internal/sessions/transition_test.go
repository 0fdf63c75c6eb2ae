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

// What seed 002's own program wrote has lastCommand and nothing else.
func TestNextHonorsLastCommandAlone(t *testing.T) {
	t.Parallel()
	executing := sessions.CommandMeta{Name: "execute", Consumes: sessions.Plan}
	for last, want := range map[string]sessions.Transition{
		"plan-feature": sessions.Restart, "plan_feature": sessions.Restart, "Plan-Feature": sessions.Restart, "plan": sessions.Restart,
		"prime": sessions.Continue, "execute": sessions.Continue, "": sessions.Continue,
	} {
		if got := sessions.Next(sessions.Metadata{"lastCommand": last}, executing); got != want {
			t.Errorf("execute after %q: %s, want %s", last, got, want)
		}
		if got := sessions.Next(sessions.Metadata{"lastCommand": last}, sessions.CommandMeta{}); got != sessions.Continue {
			t.Errorf("talk after %q: %s", last, got)
		}
	}
	quiet := sessions.Remember(sessions.MetaOf("plan-feature", sessions.Nothing, ""))
	if got := sessions.Next(quiet, executing); got != sessions.Continue {
		t.Errorf("execute after a plan-feature that says it makes no plan: %s", got)
	}
}

func TestMetaOf(t *testing.T) {
	t.Parallel()
	makes, takes, none := sessions.CommandMeta{Produces: sessions.Plan}, sessions.CommandMeta{Consumes: sessions.Plan}, sessions.CommandMeta{}
	said := func(m sessions.CommandMeta) sessions.CommandMeta { m.Declared = true; return m }
	tests := []struct {
		name               string
		produces, consumes sessions.Artifact
		want               sessions.CommandMeta
	}{
		{"plan-feature", "", "", makes},
		{"plan_feature", "", "", makes},
		{"PLAN", "", "", makes},
		{"plan-bugfix", "", "", makes},
		{"execute", "", "", takes},
		{"Execute", "", "", takes},
		{"implement", "", "", takes},
		{"implement-plan", "", "", takes},
		{"implement_it", "", "", takes},
		{"execute-tests", "", "", none},
		{"prime", "", "", none},
		{"explain", "", "", none},
		{"", "", "", none},
		{"design", sessions.Plan, "", said(makes)},
		{"build", "", sessions.Plan, said(takes)},
		{"plan-review", "", sessions.Plan, said(takes)},
		{"execute", sessions.Plan, "", said(makes)},
		{"plan-b", sessions.Nothing, "", said(none)},
		{"execute", "", sessions.Nothing, said(none)},
		{"refine", sessions.Plan, sessions.Plan, said(sessions.CommandMeta{Produces: sessions.Plan, Consumes: sessions.Plan})},
	}
	for _, tt := range tests {
		tt.want.Name = tt.name
		if got := sessions.MetaOf(tt.name, tt.produces, tt.consumes); got != tt.want {
			t.Errorf("MetaOf(%q, %q, %q) = %+v, want %+v", tt.name, tt.produces, tt.consumes, got, tt.want)
		}
	}
}
