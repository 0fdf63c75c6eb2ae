package turn

import (
	"context"
	"strings"
	"testing"

	"remote-agent/internal/command"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
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

// prompts are commands with a prompt, by name.
type prompts map[string]command.Prompt

func (p prompts) Find(name string) (command.Command, bool) {
	prompt, ok := p[name]
	return command.Command{Name: name, Prompt: &prompt}, ok
}

func (prompts) Unknown(context.Context, command.Request) (command.Reply, error) {
	return command.Reply{}, nil
}

func (prompts) RunNow(context.Context, sessions.Entry) error { return nil }

func (prompts) FollowUp(context.Context, port.Tx, command.Request, command.Reply) (bool, error) {
	return false, nil
}

// TestWhichCommandsCarryAPlanOut: those that say so, and those that say nothing of plans and
// are given one by its full name.
func TestWhichCommandsCarryAPlanOut(t *testing.T) {
	t.Parallel()
	builtin := prompts{
		"plan":    {Meta: sessions.CommandMeta{Name: "plan", Produces: sessions.Plan, Declared: true}},
		"execute": {Meta: sessions.CommandMeta{Name: "execute", Consumes: sessions.Plan, Declared: true}},
	}
	file := func(meta sessions.CommandMeta) *command.Prompt {
		meta.Name = "file"
		return &command.Prompt{Meta: meta}
	}
	plain, declared := file(sessions.CommandMeta{}), file(sessions.CommandMeta{Declared: true})
	writes, runs := file(sessions.CommandMeta{Produces: sessions.Plan}), file(sessions.CommandMeta{Consumes: sessions.Plan})
	for name, tt := range map[string]struct {
		say      string
		own      *command.Prompt // a command file of the repository
		prompt   string
		executes bool
	}{
		"Words":                     {"p-2 is good", nil, "", false},
		"Plan":                      {"/plan a trip", nil, "plan", false},
		"PlanThatIsNamed":           {"/plan p-2 again", nil, "plan", false},
		"Execute":                   {"/execute", nil, "execute", true},
		"ExecuteOne":                {"/execute p-2", nil, "execute", true},
		"File":                      {"/ship it", plain, "file", false},
		"FileWithAPlan":             {"/ship P-2", plain, "file", true},
		"FileWithANumber":           {"/ship 2", plain, "file", false},
		"FileWithAWord":             {"/ship p-two", plain, "file", false},
		"FileWithAPlanLater":        {"/ship it p-2", plain, "file", false},
		"FileThatSaysItNeedsNone":   {"/ship p-2", declared, "file", false},
		"FileThatPlans":             {"/ship p-2", writes, "file", false},
		"FileThatRunsPlans":         {"/ship", runs, "file", true},
		"ExecuteIsAFile":            {"/execute now", declared, "file", false},
		"ExecuteIsAFileButNamesOne": {"/execute p-2", declared, "execute", true},
		"PlanIsAFileAndNamesOne":    {"/plan p-2", declared, "file", false},
	} {
		b := begunTurn{work: Prepared{Prompt: tt.own}}
		b.call, _ = command.Parse(tt.say)
		(&Turns{config: Config{Commands: builtin}}).choosePrompt(&b)
		prompt := ""
		if b.prompt != nil {
			prompt = b.prompt.Meta.Name
		}
		if prompt != tt.prompt || b.executes != tt.executes {
			t.Errorf("%s: %q, carries a plan out: %v; want %q, %v", name, prompt, b.executes, tt.prompt, tt.executes)
		}
	}
}
