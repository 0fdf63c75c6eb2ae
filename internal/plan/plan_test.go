package plan_test

import (
	"context"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/plan"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	base := plan.Plan{
		Number: 9, Version: 2, Text: "1. Do it.", SHA256: plan.Sum("1. Do it."), Requester: "telegram/42",
		State: plan.Proposed, ExpiresAt: now.Add(time.Hour),
	}
	ann, owner, bob := plan.Decider{Actor: "telegram/42"}, plan.Decider{Actor: "telegram/1", Owner: true}, plan.Decider{Actor: "telegram/77"}
	with := func(change func(*plan.Plan)) plan.Plan {
		p := base
		change(&p)
		return p
	}
	state := func(s plan.State) plan.Plan { return with(func(p *plan.Plan) { p.State = s }) }
	tests := map[string]struct {
		p     plan.Plan
		d     plan.Decision
		by    plan.Decider
		shown string
		want  plan.State
		kind  fault.Kind
	}{
		"Approve":              {p: base, d: plan.Approve, by: ann, want: plan.Approved},
		"OwnerApproves":        {p: base, d: plan.Approve, by: owner, want: plan.Approved},
		"ApproveWhatWasShown":  {p: base, d: plan.Approve, by: ann, shown: plan.Sum("1. Do it."), want: plan.Approved},
		"ApproveWhatChanged":   {p: base, d: plan.Approve, by: ann, shown: plan.Sum("1. Do else."), want: plan.Proposed, kind: fault.Conflict},
		"SomebodyElse":         {p: base, d: plan.Approve, by: bob, want: plan.Proposed, kind: fault.Forbidden},
		"Reject":               {p: base, d: plan.Reject, by: ann, want: plan.Rejected},
		"RejectApproved":       {p: state(plan.Approved), d: plan.Reject, by: ann, want: plan.Rejected},
		"ExecuteApproved":      {p: state(plan.Approved), d: plan.Execute, by: ann, want: plan.Executing},
		"ExecuteProposed":      {p: base, d: plan.Execute, by: ann, want: plan.Executing},
		"EditProposed":         {p: base, d: plan.Edit, by: ann, want: plan.Superseded},
		"EditApproved":         {p: state(plan.Approved), d: plan.Edit, by: ann, want: plan.Superseded},
		"ApproveTwice":         {p: state(plan.Approved), d: plan.Approve, by: ann, want: plan.Approved, kind: fault.Conflict},
		"ExecuteTwice":         {p: state(plan.Executing), d: plan.Execute, by: ann, want: plan.Executing, kind: fault.Conflict},
		"ApproveRejected":      {p: state(plan.Rejected), d: plan.Approve, by: ann, want: plan.Rejected, kind: fault.Conflict},
		"ApproveSuperseded":    {p: state(plan.Superseded), d: plan.Approve, by: ann, want: plan.Superseded, kind: fault.Conflict},
		"ExecuteDone":          {p: state(plan.Done), d: plan.Execute, by: ann, want: plan.Done, kind: fault.Conflict},
		"ExpiredIsNoYes":       {p: with(func(p *plan.Plan) { p.ExpiresAt = now }), d: plan.Approve, by: ann, want: plan.Expired, kind: fault.Conflict},
		"ApprovedExpiresToo":   {p: with(func(p *plan.Plan) { p.State, p.ExpiresAt = plan.Approved, now.Add(-time.Second) }), d: plan.Execute, by: ann, want: plan.Expired, kind: fault.Conflict},
		"ForbiddenBeatsExpiry": {p: with(func(p *plan.Plan) { p.ExpiresAt = now }), d: plan.Approve, by: bob, want: plan.Proposed, kind: fault.Forbidden},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := plan.Decide(tt.p, tt.d, tt.by, tt.shown, now)
			if got != tt.want || fault.KindOf(err) != tt.kind {
				t.Errorf("Decide = %s, %v; want %s, %q", got, err, tt.want, tt.kind)
			}
		})
	}
}

func TestParseName(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]int64{"p-9": 9, "P-9": 9, "9": 9} {
		if got, ok := plan.ParseName(arg); !ok || got != want {
			t.Errorf("ParseName(%q) = %d, %v", arg, got, ok)
		}
	}
	for _, arg := range []string{"", "p-", "p-0", "-1", "2fa", "09", "p-9x", "1.", "quickly"} {
		if got, ok := plan.ParseName(arg); ok {
			t.Errorf("ParseName(%q) = %d", arg, got)
		}
	}
}

// Who was slower reads who was faster, and nobody reads it of themselves or of the system.
func TestALateDecisionSaysWhoTookItBefore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ actor, before, name, want string }{
		{"telegram/42", "slack/T1:U2", "Bo", "Plan p-1 (version 1) is already rejected by Bo."},
		{"telegram/42", "slack/T1:U2", "", "Plan p-1 (version 1) is already rejected by slack/T1:U2."},
		{"slack/T1:U2", "slack/T1:U2", "", "Plan p-1 (version 1) is already rejected."},
		{"telegram/42", "system", "", "Plan p-1 (version 1) is already rejected."},
		{"telegram/42", "", "", "Plan p-1 (version 1) is already rejected."},
	} {
		p := plan.Plan{Number: 1, Version: 1, State: plan.Rejected, Requester: "telegram/42", DecidedBy: tt.before, DecidedName: tt.name}
		_, err := plan.Decide(p, plan.Approve, plan.Decider{Actor: tt.actor, Owner: true}, "", time.Now())
		if got := fault.Public(err); got != tt.want {
			t.Errorf("%s reads %q, want %q", tt.actor, got, tt.want)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, s := range []plan.State{plan.Proposed, plan.Approved, plan.Executing, plan.Done, plan.Rejected, plan.Superseded, plan.Expired} {
		want := s == plan.Proposed || s == plan.Approved
		if got := (plan.Plan{State: s, ExpiresAt: now.Add(time.Second)}).Open(now); got != want {
			t.Errorf("a plan that is %s is open: %v", s, got)
		}
		if (plan.Plan{State: s, ExpiresAt: now}).Open(now) {
			t.Errorf("a plan that is %s is open when it expires", s)
		}
	}
}

// plans are the plans of a database, the newest of them last.
type plans []plan.Plan

func (all plans) Plan(_ context.Context, number int64) (plan.Plan, error) {
	for _, p := range all {
		if p.Number == number {
			return p, nil
		}
	}
	return plan.Plan{}, fault.New(fault.NotFound, "no such row")
}

func (all plans) LatestPlan(_ context.Context, conversationID string) (p plan.Plan, ok bool, err error) {
	for _, one := range all {
		if one.ConversationID == conversationID {
			p, ok = one, true
		}
	}
	return p, ok, nil
}

func TestFind(t *testing.T) {
	t.Parallel()
	all := plans{{Number: 1, ConversationID: "here"}, {Number: 2, ConversationID: "here"}, {Number: 3, ConversationID: "there"}}
	for _, tt := range []struct {
		where string
		args  []string
		want  int64
		named bool
		says  string
	}{
		{"here", nil, 2, false, ""},
		{"here", []string{"p-1", "3"}, 1, true, ""},
		{"here", []string{"2"}, 2, true, ""},
		{"here", []string{"quickly", "p-1"}, 2, false, ""},
		{"here", []string{"p-3"}, 0, true, "There is no plan p-3 here."},
		{"here", []string{"p-4"}, 0, true, "There is no plan p-4 here."},
		{"here", []string{"p-2x"}, 0, true, `"p-2x" is not a plan like p-3.`},
		{"here", []string{"A-7", "p-1"}, 0, true, `"A-7" is not a plan like p-3.`},
		{"here", []string{"a-team"}, 2, false, ""},
		{"nowhere", nil, 0, false, "There is no plan here yet."},
	} {
		p, named, err := plan.Find(t.Context(), all, tt.where, tt.args)
		if tt.says != "" {
			if !fault.Is(err, fault.NotFound) || fault.Public(err) != tt.says {
				t.Errorf("%q %s: %v, want %q", tt.args, tt.where, err, tt.says)
			}
		} else if err != nil || p.Number != tt.want || named != tt.named {
			t.Errorf("%q %s: plan %d, named %v, %v; want %d, %v", tt.args, tt.where, p.Number, named, err, tt.want, tt.named)
		}
	}
}
