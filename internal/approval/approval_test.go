package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

func TestParseMode(t *testing.T) {
	t.Parallel()
	for want, text := range map[approval.Mode]string{approval.ModeAsk: "ask", approval.ModeEdit: " Edit\n", approval.ModeAuto: "AUTO"} {
		if got, err := approval.ParseMode(text); err != nil || got != want {
			t.Errorf("ParseMode(%q) = %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "yolo", "edit auto", "read-only"} {
		got, err := approval.ParseMode(text)
		if got != "" || !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseMode(%q) = %q, %v, want fault.Invalid", text, got, err)
			continue
		}
		for _, mode := range []approval.Mode{approval.ModeAsk, approval.ModeEdit, approval.ModeAuto} {
			if !strings.Contains(fault.Public(err), string(mode)) {
				t.Errorf("%q does not name %s", fault.Public(err), mode)
			}
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"a-7": 7, "A-7": 7, "a-9223372036854775807": 1<<63 - 1} {
		got, ok := approval.ParseName(text)
		if !ok || got != want {
			t.Errorf("ParseName(%q) = %d, %v", text, got, ok)
		}
		if name := (approval.Approval{Number: got}).Name(); name != strings.ToLower(text) {
			t.Errorf("the name of %d is %q", got, name)
		}
	}
	for _, text := range []string{
		"", "a", "a-", "7", "p-7", "a-0", "a--7", "a-+7", "a-07", "a-7x", "a-7 ", " a-7", "a-7.", "a-1e3", "a-0x7", "a-9223372036854775808", "a7", "aa-7",
	} {
		if got, ok := approval.ParseName(text); ok {
			t.Errorf("ParseName(%q) = %d", text, got)
		}
	}
}

func TestSumTellsCallsApart(t *testing.T) {
	t.Parallel()
	calls := [][2]string{
		{"", ""},
		{"bash", ""},
		{"", "bash"},
		{"ba", "sh"},
		{"bash", "{}"},
		{"bash", "{ }"},
		{"bash{", "}"},
		{"bash", "{}\x00"},
		{"4:bash", ""},
		{"1", "4:bash"},
		{"1:", "4:bash"},
	}
	seen := make(map[string][2]string)
	for _, c := range calls {
		sum := approval.Sum(c[0], c[1])
		if len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
			t.Errorf("Sum(%q) = %q is not a SHA-256 in hex", c, sum)
		}
		if other, twice := seen[sum]; twice {
			t.Errorf("%q and %q have the same sum", c, other)
		}
		seen[sum] = c
	}
	// Stored sums have to stay what they are.
	const known = "951ec26169c8c281f0ede7accd86cceeca04257e6ffdd5b3615aab3ca298eb89" // of 4:bash{"command":"ls"}
	if got := approval.Sum("bash", `{"command":"ls"}`); got != known {
		t.Errorf("Sum is %s, and was %s", got, known)
	}
}

func TestSumIsInjective(t *testing.T) {
	t.Parallel()
	// Few characters, so that pairs which flow into each other are met.
	part := rapid.StringOfN(rapid.SampledFrom([]rune("1:a")), 0, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		tool, arguments := part.Draw(t, "tool"), part.Draw(t, "arguments")
		otherTool, otherArguments := part.Draw(t, "other tool"), part.Draw(t, "other arguments")
		same := tool == otherTool && arguments == otherArguments
		if (approval.Sum(tool, arguments) == approval.Sum(otherTool, otherArguments)) != same {
			t.Fatalf("(%q, %q) and (%q, %q): same is %v", tool, arguments, otherTool, otherArguments, same)
		}
		// Moving the border between the two is another call.
		joined := tool + arguments
		at := rapid.IntRange(0, len(joined)).Draw(t, "border")
		if at != len(tool) && approval.Sum(joined[:at], joined[at:]) == approval.Sum(tool, arguments) {
			t.Fatalf("the border in %q does not count: %d and %d", joined, at, len(tool))
		}
	})
}

// TestJudge has every combination of mode, effect, owner and rule.
func TestJudge(t *testing.T) {
	t.Parallel()
	const a, r, q = approval.Allow, approval.Refuse, approval.Ask
	// Columns: nobody special; with a rule; an owner; an owner with a rule.
	table := map[approval.Mode]map[assistant.PermissionKind][4]approval.Ruling{
		approval.ModeAsk: {
			assistant.KindRead:     {a, a, a, a},
			assistant.KindWrite:    {r, r, r, r},
			assistant.KindExecute:  {r, r, r, r},
			assistant.KindNetwork:  {r, r, r, r},
			assistant.KindOther:    {r, r, r, r},
			assistant.KindQuestion: {r, r, r, r},
			"":                     {r, r, r, r},
			"new kind":             {r, r, r, r},
		},
		approval.ModeEdit: {
			assistant.KindRead:     {a, a, a, a},
			assistant.KindWrite:    {a, a, a, a},
			assistant.KindExecute:  {q, a, q, a},
			assistant.KindNetwork:  {q, a, q, a},
			assistant.KindOther:    {q, a, q, a},
			assistant.KindQuestion: {q, q, q, q},
			"":                     {q, a, q, a},
			"new kind":             {q, a, q, a},
		},
		approval.ModeAuto: {
			assistant.KindRead:     {a, a, a, a},
			assistant.KindWrite:    {a, a, a, a},
			assistant.KindExecute:  {q, a, a, a},
			assistant.KindNetwork:  {q, a, a, a},
			assistant.KindOther:    {q, a, a, a},
			assistant.KindQuestion: {q, q, q, q},
			"":                     {q, a, a, a},
			"new kind":             {q, a, a, a},
		},
	}
	// A mode that nobody knows allows no more than edit.
	table["unknown"] = table[approval.ModeEdit]
	table[""] = table[approval.ModeEdit]
	for mode, kinds := range table {
		for kind, want := range kinds {
			for i, ruling := range want {
				ruled, owner := i&1 == 1, i&2 == 2
				got, reason := approval.Judge(mode, kind, owner, ruled)
				if got != ruling {
					t.Errorf("mode %q, kind %q, owner %v, rule %v: %v, want %v", mode, kind, owner, ruled, got, ruling)
				}
				if (reason != "") != (got == approval.Refuse) {
					t.Errorf("mode %q, kind %q: ruling %v with reason %q", mode, kind, got, reason)
				}
			}
		}
	}
}

// TestDecideWho has every combination of who decides what: the requester, an
// owner, somebody who takes part, with and without the rule of a second person.
func TestDecideWho(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	base := waiting(now)
	const yes, no = true, false
	type row struct {
		requester, owner, here bool
		allow, deny            bool // without the second person
		allow2, deny2          bool // with it
	}
	for _, r := range []row{
		{no, no, no, no, no, no, no},
		{no, no, yes, no, yes, yes, yes},
		{no, yes, no, yes, yes, yes, yes},
		{no, yes, yes, yes, yes, yes, yes},
		{yes, no, no, yes, yes, no, yes},
		{yes, no, yes, yes, yes, no, yes},
		{yes, yes, no, yes, yes, no, yes},
		{yes, yes, yes, yes, yes, no, yes},
	} {
		for _, second := range []bool{false, true} {
			by := approval.Decider{Actor: "telegram/77", Owner: r.owner, Here: r.here, Second: second}
			if r.requester {
				by.Actor = base.Requester
			}
			allow, deny := r.allow, r.deny
			if second {
				allow, deny = r.allow2, r.deny2
			}
			for d, may := range map[approval.Decision]bool{approval.Once: allow, approval.Always: allow, approval.Deny: deny} {
				want, kind := approval.Allowed, fault.Kind("")
				if d == approval.Deny {
					want = approval.Denied
				}
				if !may {
					want, kind = approval.Waiting, fault.Forbidden
				}
				check(t, fmt.Sprintf("%s by %+v", d, by), base, d, by, "", now, want, kind)
				check(t, fmt.Sprintf("%s of what was shown by %+v", d, by), base, d, by, base.SHA256, now, want, kind)
				linked := by
				linked.Linked = true // the requester, with another account
				if second && d != approval.Deny {
					want, kind = approval.Waiting, fault.Forbidden
				}
				check(t, fmt.Sprintf("%s by %+v", d, linked), base, d, linked, "", now, want, kind)
			}
		}
	}
}

// TestDecideWhat has every state, and what else stands in the way of a decision
// by somebody who may take it.
func TestDecideWhat(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	base := waiting(now)
	ann := approval.Decider{Actor: base.Requester}
	decisions := []approval.Decision{approval.Once, approval.Always, approval.Deny}
	for _, d := range decisions {
		for _, s := range []approval.State{approval.Allowed, approval.Denied, approval.Expired, approval.Canceled} {
			a := base
			a.State = s
			check(t, fmt.Sprintf("%s of one that is %s", d, s), a, d, ann, "", now, s, fault.Conflict)
			check(t, fmt.Sprintf("%s of one that was %s long ago", d, s), a, d, ann, "", now.Add(48*time.Hour), s, fault.Conflict)
		}
		check(t, fmt.Sprintf("%s of something else", d), base, d, ann, approval.Sum("bash", "else"), now, approval.Waiting, fault.Conflict)
		check(t, fmt.Sprintf("%s in the last moment", d), base, d, ann, "", base.ExpiresAt.Add(-1), stateOf(d), "")
		check(t, fmt.Sprintf("%s when it expires", d), base, d, ann, "", base.ExpiresAt, approval.Expired, fault.Conflict)
		check(t, fmt.Sprintf("%s much later", d), base, d, ann, base.SHA256, base.ExpiresAt.Add(time.Hour), approval.Expired, fault.Conflict)
		// Whoever may not decide learns nothing of its state and changes none.
		bob := approval.Decider{Actor: "telegram/77"}
		check(t, fmt.Sprintf("%s by a stranger, much later", d), base, d, bob, "", base.ExpiresAt.Add(time.Hour), approval.Waiting, fault.Forbidden)
	}
	once := base
	once.Rule = ""
	check(t, "once, where always is not offered", once, approval.Once, ann, "", now, approval.Allowed, "")
	check(t, "always, where it is not offered", once, approval.Always, ann, "", now, approval.Waiting, fault.Invalid)
	only := base
	only.Detail += approval.Permanent
	check(t, "once, where only always is of use", only, approval.Once, ann, "", now, approval.Waiting, fault.Invalid)
	check(t, "always, where only that is of use", only, approval.Always, ann, "", now, approval.Allowed, "")
	check(t, "no, where only always is of use", only, approval.Deny, ann, "", now, approval.Denied, "")
	check(t, "no decision", base, "", ann, "", now, approval.Waiting, fault.Invalid)
	check(t, "a decision on plans", base, "approve", ann, "", now, approval.Waiting, fault.Invalid)
}

func waiting(now time.Time) approval.Approval {
	return approval.Approval{
		Number: 7, Tool: "bash", Arguments: `{"command":"ls"}`, SHA256: approval.Sum("bash", `{"command":"ls"}`), Rule: "ls",
		Requester: "telegram/42", State: approval.Waiting, ExpiresAt: now.Add(time.Hour),
	}
}

func stateOf(d approval.Decision) approval.State {
	if d == approval.Deny {
		return approval.Denied
	}
	return approval.Allowed
}

func check(t *testing.T, what string, a approval.Approval, d approval.Decision, by approval.Decider, shown string, now time.Time, want approval.State, kind fault.Kind) {
	t.Helper()
	got, err := approval.Decide(a, d, by, shown, now)
	if got != want {
		t.Errorf("%s: %s, want %s (%v)", what, got, want, err)
	}
	if kind == "" {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	if !fault.Is(err, kind) {
		t.Errorf("%s: error %v, want kind %s", what, err, kind)
	} else if kind != fault.Invalid && !strings.Contains(fault.Public(err), "a-7") {
		t.Errorf("%s: %q does not name it", what, fault.Public(err))
	}
}

// Who was slower reads who was faster, and nobody reads it of themselves or of the system.
func TestALateDecisionSaysWhoTookItBefore(t *testing.T) {
	t.Parallel()
	a := approval.Approval{Number: 1, State: approval.Allowed, Requester: "telegram/42", DecidedBy: "slack/T1:U2", DecidedName: "Bo"}
	system := approval.Approval{Number: 1, State: approval.Canceled, Requester: "telegram/42", DecidedBy: "system"}
	nobody := approval.Approval{Number: 1, State: approval.Canceled, Requester: "telegram/42"}
	for _, tt := range []struct {
		a           approval.Approval
		actor, want string
	}{
		{a, "telegram/42", "a-1 is already allowed by Bo."},
		{a, "slack/T1:U2", "a-1 is already allowed."},
		{system, "telegram/42", "a-1 is already canceled."},
		{nobody, "telegram/42", "a-1 is already canceled."},
	} {
		_, err := approval.Decide(tt.a, approval.Deny, approval.Decider{Actor: tt.actor, Owner: true}, "", time.Now())
		if got := fault.Public(err); got != tt.want {
			t.Errorf("%s reads %q, want %q", tt.actor, got, tt.want)
		}
	}
}

func TestQuestionAndOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a    approval.Approval
		want string
	}{
		{approval.Approval{Tool: "bash", Kind: assistant.KindExecute, Title: "echo `date`"}, "run `echo 'date'`?"},
		{approval.Approval{Tool: "fetch", Kind: assistant.KindNetwork, Title: "get example.com"}, "get example.com?"},
		{approval.Approval{Tool: approval.ToolContinue, Kind: assistant.KindExecute, Title: "50 rounds. Go on?"}, "50 rounds. Go on?"},
		{approval.Approval{Tool: approval.ToolBudget, Kind: assistant.KindExecute, Title: "$1.00 spent. Go on?"}, "$1.00 spent. Go on?"},
	} {
		if got := tt.a.Question(); got != tt.want {
			t.Errorf("%s asks %q, want %q", tt.a.Tool, got, tt.want)
		}
	}
	for _, tt := range []struct {
		state    approval.State
		by, name string
		want     string
	}{
		{approval.Allowed, "slack/T1:U2", "Bo", "✔ Approved by Bo"},
		{approval.Allowed, "slack/T1:U2", "", "✔ Approved by slack/T1:U2"},
		{approval.Denied, "slack/T1:U2", "Bo", "✖ Denied by Bo"},
		{approval.Denied, "system", "", "✖ Denied"},
		{approval.Denied, "", "", "✖ Denied"},
		{approval.Expired, "system", "", "Expired; not run"},
		{approval.Canceled, "system", "", "The turn ended; not run"},
	} {
		if got := (approval.Approval{State: tt.state, DecidedBy: tt.by, DecidedName: tt.name}).Outcome(); got != tt.want {
			t.Errorf("%s by %q (%q) is %q, want %q", tt.state, tt.by, tt.name, got, tt.want)
		}
	}
	if got := (approval.Approval{State: approval.Canceled, Note: approval.Withdrawn}).Outcome(); got != approval.Withdrawn {
		t.Errorf("one that its agent takes back is %q", got)
	}
}
