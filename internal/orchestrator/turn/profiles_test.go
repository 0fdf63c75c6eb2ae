package turn

import (
	"strings"
	"testing"

	"remote-agent/internal/approval"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
)

// However a profile is written, it lets nothing happen that the conversation's
// mode does not.
func TestAProfileOnlyTakesAwayFromTheMode(t *testing.T) {
	t.Parallel()
	const ask, edit, auto = approval.ModeAsk, approval.ModeEdit, approval.ModeAuto
	for _, c := range []struct {
		of              profile.Mode
		ask, edit, auto approval.Mode // what becomes of these modes
	}{
		{profile.Interactive, ask, edit, auto},
		{profile.Edit, ask, edit, edit},
		{profile.Ask, ask, ask, ask},
		{"written by hand", ask, edit, auto},
	} {
		for mode, want := range map[approval.Mode]approval.Mode{ask: c.ask, edit: c.edit, auto: c.auto} {
			if got := capped(mode, &profile.Profile{Mode: c.of}); got != want {
				t.Errorf("%s under a profile with mode %s is %s, want %s", mode, c.of, got, want)
			}
		}
	}
	if got := capped(auto, nil); got != auto {
		t.Errorf("without a profile %s", got)
	}
}

func TestRoundsOfAProfile(t *testing.T) {
	t.Parallel()
	w := &worker{o: &Turns{config: Config{Live: func() Settings { return Settings{MaxRounds: 50} }}}}
	for iterations, want := range map[int]int64{15: 15, 50: 50, 1000: 50, 0: 50} {
		d := decision{begun: begunTurn{profile: &profile.Profile{MaxIterations: iterations}}}
		if got := (&run{w: w, d: d}).maxRounds(); got != want {
			t.Errorf("max_iterations %d: %d rounds, want %d", iterations, got, want)
		}
	}
	if got := (&run{w: w}).maxRounds(); got != 50 {
		t.Errorf("without a profile %d rounds", got)
	}
}

func TestModelOfAProfile(t *testing.T) {
	t.Parallel()
	o := &Turns{config: Config{Live: func() Settings { return Settings{} }}}
	conv := sessions.Conversation{Assistant: "openai"}
	for _, c := range []struct {
		p    *profile.Profile
		want string // of the problem
	}{
		{nil, ""},
		{&profile.Profile{}, ""},
		{&profile.Profile{ModelTier: "smart"}, "its model tier smart is not configured here"},
		{&profile.Profile{Model: "m"}, "chooses its own model"},
	} {
		model, problem := o.profileModel(c.p, conv)
		if model != "" || !strings.Contains(problem, c.want) || (c.want == "") != (problem == "") {
			t.Errorf("%+v: %q, %q; want %q", c.p, model, problem, c.want)
		}
	}
}
