package chat

import (
	"context"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/recollect"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/work"
)

// whole is a Handler with all commands.
func whole(t *testing.T, adapters ...platform.Adapter) *Handler {
	t.Helper()
	h, err := New(Config{
		Storage: storetest.SQLite(t)(t), Work: new(work.Service), Memory: new(recollect.Service), Adapters: adapters, Log: storetest.Log(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// asked is a command of somebody in a private chat.
func asked(text string, role sessions.Role) command.Request {
	call, _ := command.Parse(text)
	in := messages.Inbound{Conversation: messages.ConversationKey{Platform: "test", ID: "c"}, Sender: messages.Sender{ID: "42"}, Text: text, Private: true}
	return command.Request{Entry: sessions.Entry{In: in}, Conv: sessions.Conversation{Key: in.Conversation}, Call: call, Role: role}
}

// Every command says what it is and can be run.
func TestEveryCommandIsWhole(t *testing.T) {
	t.Parallel()
	for _, c := range (&Handler{}).commands() {
		turn := c.Lane == command.Turn
		switch {
		case c.Name == "" || c.Usage == "" || c.Summary == "" || strings.HasSuffix(c.Summary, "."):
			t.Errorf("%q says too little: %+v", c.Name, c)
		case c.Name == command.Invoke: // means another one
		case turn != (c.Prompt != nil) || turn == (c.Run != nil):
			t.Errorf("/%s has run %t and prompt %t in lane %d", c.Name, c.Run != nil, c.Prompt != nil, c.Lane)
		case strings.ReplaceAll(strings.Fields(c.Usage)[0], "-", "_") != c.Name:
			t.Errorf("/%s is used as %q", c.Name, c.Usage)
		case c.Menu && c.Hidden:
			t.Errorf("/%s is in the menu and hidden", c.Name)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	run := func(context.Context, command.Request) (command.Reply, error) { return command.Reply{}, nil }
	for name, list := range map[string][]command.Command{
		"Twice":        {{Name: "a", Run: run}, {Name: "a", Run: run}},
		"AliasOfOther": {{Name: "a", Run: run}, {Name: "b", Aliases: []string{"a"}, Run: run}},
		"NotCanonical": {{Name: "A-b", Run: run}},
		"NotAName":     {{Name: "a b", Run: run}},
	} {
		if err := (&Handler{byName: make(map[string]command.Command)}).register(list); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// What an installation lacks takes its commands away.
func TestNeeds(t *testing.T) {
	t.Parallel()
	bare, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	all := whole(t)
	for name, want := range map[string]bool{"clone": false, "undo": false, "memory": false, "link": false, "approve": true, "plan": true, "stop": true} {
		if _, ok := bare.Find(name); ok != want {
			t.Errorf("/%s without repositories and memory: %t", name, ok)
		}
		if _, ok := all.Find(name); !ok {
			t.Errorf("there is no /%s", name)
		}
	}
	if reset, ok := all.Find("reset"); !ok || reset.Name != "new" {
		t.Errorf("/reset is %+v", reset)
	}
	if names := all.Names(); !slices.IsSorted(names) || !slices.Contains(names, "reset") || !slices.Contains(names, command.Invoke) {
		t.Errorf("names are %v", names)
	}
}

func TestOnlyOwnersMay(t *testing.T) {
	t.Parallel()
	h := whole(t)
	for _, text := range []string{"/people", "/owner add 7", "/halt", "/resume"} {
		c, _ := h.Find(asked(text, sessions.User).Call.Name)
		if _, err := c.Run(t.Context(), asked(text, sessions.User)); !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s of a user: %v", text, err)
		}
	}
}

// public is a platform whose messages stand in public.
type public struct{ platform.Adapter }

func (public) Platform() messages.Platform { return "test" }

func (public) Capabilities() platform.Capabilities {
	return platform.Capabilities{Comments: true, CommandPrefix: "/agent "}
}

func TestWhereCommandsAreOffered(t *testing.T) {
	t.Parallel()
	help := func(h *Handler, text string) string {
		t.Helper()
		r, err := h.runHelp(t.Context(), asked(text, sessions.User))
		if err != nil {
			t.Fatal(err)
		}
		return r.Text
	}
	private, comments := help(whole(t), "/help"), help(whole(t, public{}), "/help")
	for _, tt := range []struct {
		text, part string
		want       bool
	}{
		{private, "- `/link [code]`", true}, {comments, "link [code]", false},
		{private, "(also `/reset`)", true}, {comments, "- `/agent status", true},
		{private, "`/start`", false}, {private, "command-invoke", false},
	} {
		if strings.Contains(tt.text, tt.part) != tt.want {
			t.Errorf("%q is offered: %t, in:\n%s", tt.part, !tt.want, tt.text)
		}
	}
	for text, want := range map[string]string{
		"/help approve":          "allows what was asked under that name",
		"/help RESET":            "`/new`: end this session",
		"/help /plan":            "`/plan <goal>`: write a plan",
		"/help command-invoke":   "by its name",
		"/help nothing-like-it!": "There is no command",
	} {
		if got := help(whole(t), text); !strings.Contains(got, want) {
			t.Errorf("%s answers %q", text, got)
		}
	}
	for _, info := range whole(t).Menu(platform.Capabilities{}) {
		if info.Name == "start" || info.Description == "" {
			t.Errorf("in the menu: %+v", info)
		}
	}
}

func TestUnknownCommandsAreExplained(t *testing.T) {
	t.Parallel()
	h := whole(t)
	for text, want := range map[string]string{
		"/stauts":                  "Did you mean `/status`?",
		"/xyzzy":                   "`/help` lists what there is.",
		"/command-invoke":          "Name a command",
		"/command-invoke status":   "is sent as it is",
		"/command-invoke executee": "Did you mean `/execute`?",
	} {
		got, err := h.Unknown(t.Context(), asked(text, sessions.User))
		if err != nil || !strings.Contains(got.Text, want) {
			t.Errorf("%s answers %q, %v", text, got.Text, err)
		}
	}
}
