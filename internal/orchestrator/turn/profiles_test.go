package turn

import (
	"context"
	"iter"
	"strings"
	"testing"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
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

// TestModeOfATurn: how much may happen without asking, and how assistants are told.
func TestModeOfATurn(t *testing.T) {
	t.Parallel()
	planning := &command.Prompt{Meta: sessions.CommandMeta{Produces: sessions.Plan}}
	carrying := &command.Prompt{Meta: sessions.CommandMeta{Consumes: sessions.Plan}}
	for name, tt := range map[string]struct {
		config  approval.Mode
		chosen  string // in the conversation
		role    sessions.Role
		prompt  *command.Prompt
		profile profile.Mode
		mode    approval.Mode
		name    string
	}{
		"Configured":        {approval.ModeEdit, "", sessions.User, nil, "", approval.ModeEdit, "edit"},
		"Chosen":            {approval.ModeEdit, "ask", sessions.Owner, nil, "", approval.ModeAsk, "ask"},
		"ChosenWrongly":     {approval.ModeEdit, "everything", sessions.Owner, nil, "", approval.ModeEdit, "edit"},
		"AutoOfAnOwner":     {approval.ModeAuto, "", sessions.Owner, nil, "", approval.ModeAuto, "auto"},
		"AutoOfAUser":       {approval.ModeAuto, "", sessions.User, nil, "", approval.ModeAuto, "edit"},
		"Reader":            {approval.ModeAuto, "auto", sessions.Reader, nil, "", approval.ModeAsk, "ask"},
		"Planning":          {approval.ModeAuto, "auto", sessions.Owner, planning, "", approval.ModeAsk, "plan"},
		"ReaderPlans":       {approval.ModeAuto, "", sessions.Reader, planning, "", approval.ModeAsk, "plan"},
		"CarryingOut":       {approval.ModeAuto, "", sessions.Owner, carrying, "", approval.ModeAuto, "auto"},
		"ProfileTakesAway":  {approval.ModeAuto, "auto", sessions.Owner, nil, profile.Edit, approval.ModeEdit, "edit"},
		"ProfileOnlyReads":  {approval.ModeAuto, "auto", sessions.Owner, carrying, profile.Ask, approval.ModeAsk, "ask"},
		"ProfileGivesNoOne": {approval.ModeAsk, "", sessions.Owner, nil, profile.Edit, approval.ModeAsk, "ask"},
	} {
		w := &worker{o: &Turns{config: Config{Mode: tt.config}}, conv: sessions.Conversation{Settings: sessions.Settings{Mode: tt.chosen}}}
		r := &run{w: w, d: decision{begun: begunTurn{role: tt.role, prompt: tt.prompt, profile: &profile.Profile{Mode: tt.profile}}}}
		if r.mode() != tt.mode || r.modeName() != tt.name {
			t.Errorf("%s: %s, told as %s; want %s, %s", name, r.mode(), r.modeName(), tt.mode, tt.name)
		}
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
	tiers := map[string]spend.Tier{"smart": {Provider: "openai", Model: "big"}, "empty": {Provider: "openai"}, "other": {Provider: "anthropic", Model: "large"}}
	o := &Turns{config: Config{
		Live:       func() Settings { return Settings{Tiers: tiers} },
		Assistants: map[assistant.Name]assistant.Assistant{"openai": named("small"), "anthropic": named("large"), "claude": external{named("")}, "demo": named("")},
	}}
	for _, c := range []struct {
		p       *profile.Profile
		of      string // assistant
		model   string
		problem string
	}{
		{nil, "openai", "", ""},
		{&profile.Profile{}, "openai", "", ""},
		{&profile.Profile{ModelTier: "smart"}, "openai", "big", ""},
		{&profile.Profile{ModelTier: "empty"}, "openai", "", "its model tier empty is not configured here"},
		{&profile.Profile{ModelTier: "wise"}, "openai", "", "its model tier wise is not configured here"},
		{&profile.Profile{ModelTier: "other"}, "openai", "", "its model large belongs to anthropic, but this conversation uses openai"},
		{&profile.Profile{Model: "m"}, "openai", "m", ""},
		{&profile.Profile{Model: "openai:m"}, "openai", "m", ""},
		{&profile.Profile{Model: "anthropic:m"}, "openai", "", "its model m belongs to anthropic"},
		{&profile.Profile{Model: "ft:m"}, "openai", "ft:m", ""}, // no assistant of ours
		{&profile.Profile{Model: "openai"}, "anthropic", "openai", ""},
		{&profile.Profile{Model: "m"}, "claude", "m", ""},
		{&profile.Profile{ModelTier: "smart"}, "claude", "", "its model big belongs to openai, but this conversation uses claude"},
		{&profile.Profile{Model: "m"}, "demo", "", "demo chooses its own model"},
		{&profile.Profile{Model: "m"}, "gone", "", "gone chooses its own model"},
	} {
		model, problem := o.profileModel(c.p, sessions.Conversation{Assistant: c.of})
		if model != c.model || !strings.Contains(problem, c.problem) || (c.problem == "") != (problem == "") {
			t.Errorf("%+v: %q, %q; want %q, %q", c.p, model, problem, c.model, c.problem)
		}
	}
}

// named is an assistant of which only its model is asked for.
type named string

func (named) Name() assistant.Name { return "" }
func (n named) Model() string      { return string(n) }
func (named) Run(context.Context, assistant.Turn) iter.Seq2[assistant.Event, error] {
	return nil
}

// external is named for an agent with a loop of its own.
type external struct{ named }

func (external) Release(string) {}
func (external) Close() error   { return nil }

// TestShortTermOfAProfile: who says nothing of it keeps the whole session.
func TestShortTermOfAProfile(t *testing.T) {
	t.Parallel()
	array := []messages.Message{
		messages.NewText(messages.RoleUser, "1"), messages.NewText(messages.RoleAssistant, "2"),
		messages.NewText(messages.RoleUser, "3"), messages.NewText(messages.RoleAssistant, "4"), messages.NewText(messages.RoleUser, "5"),
	}
	for most, want := range map[int]int{0: 5, 1: 1, 3: 3, 9: 5} {
		if got := len(shortTerm(array, &profile.Profile{Memory: profile.Memory{ShortTerm: most}})); got != want {
			t.Errorf("short_term %d: %d messages, want %d", most, got, want)
		}
	}
	if got := len(shortTerm(array, nil)); got != 5 {
		t.Errorf("without a profile %d messages", got)
	}
}
