package chat

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		case !strings.HasPrefix(c.Example, strings.Fields(c.Usage)[0]):
			t.Errorf("/%s has the example %q", c.Name, c.Example)
		case c.Menu && c.Hidden:
			t.Errorf("/%s is in the menu and hidden", c.Name)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	run := func(context.Context, command.Request) (command.Reply, error) { return command.Reply{}, nil }
	for name, list := range map[string][]*command.Command{
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

// What follows a command that takes less is not dropped: it may have been what the
// command was for.
func TestMoreThanACommandTakesIsRefused(t *testing.T) {
	t.Parallel()
	h := whole(t)
	for text, want := range map[string]string{
		"/undo 3":            `"3" was not understood, so nothing was done. Usage: ` + "`/undo`.",
		"/new fix the tests": `"fix the tests" was not understood, so nothing was done. Usage: ` + "`/new`.",
		"/reset fix it":      `"fix it" was not understood, so nothing was done. Usage: ` + "`/new`.",
		"/branch feature":    `"feature" was not understood, so nothing was done. Usage: ` + "`/branch`.",
		"/diff main":         `"main" was not understood, so nothing was done. Usage: ` + "`/diff`.",
		"/mode ask please":   `"please" was not understood, so nothing was done. Usage: ` + "`/mode [ask|edit|auto]`.",
		"/model gpt 5\n" + strings.Repeat("b", 99): `"5 ` + strings.Repeat("b", 37) + `…" was not understood, so nothing was done. Usage: ` +
			"`/model [name|fast|smart|cheap]`.",
	} {
		c, _ := h.Find(asked(text, sessions.User).Call.Name)
		if _, err := c.Run(t.Context(), asked(text, sessions.User)); !fault.Is(err, fault.Invalid) || fault.Public(err) != want {
			t.Errorf("%s is answered %q, want %q", text, fault.Public(err), want)
		}
	}
	c, _ := h.Find("undo")
	if _, err := c.Run(t.Context(), asked("/undo 3", sessions.Reader)); !fault.Is(err, fault.Forbidden) {
		t.Errorf("/undo 3 of a reader: %v", err)
	}
}

// Where a comment gives a command, what stands on the lines below it is said to the bot as well.
func TestWhatStandsBelowACommandIsTheNextMessage(t *testing.T) {
	t.Parallel()
	const down = "It is down."
	done := command.Reply{Text: "Done."}
	for text, want := range map[string]command.Reply{
		"/undo":         done,
		"/undo \r\n \n": done,
		"/undo\n\nThis broke the tests.\nKeep the API.": {Text: "Done.", Then: "This broke the tests.\nKeep the API."},
		"/undo 3\nThis broke the tests.":                {Text: `"3 This broke the tests." was not understood, so nothing was done. Usage: ` + "`/undo`."},
		"/undo\n/plan keep the API":                     {Text: `"/plan keep the API" was not understood, so nothing was done. Usage: ` + "`/undo`."},
		"/down\nThis broke the tests.":                  {Text: down},
	} {
		run := noMore(command.Command{Usage: "undo", Takes: command.NoWord, Run: func(_ context.Context, r command.Request) (command.Reply, error) {
			if len(r.Call.Args) != 0 || r.Call.Rest != "" {
				t.Errorf("%q: the command was given %+v", text, r.Call)
			}
			if r.Call.Name == "down" {
				return command.Reply{}, fault.New(fault.Unavailable, down)
			}
			return done, nil
		}})
		got, err := run(t.Context(), asked(text, sessions.User))
		if err != nil {
			got.Text = fault.Public(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// public is a platform whose messages stand in public.
type public struct{ platform.Adapter }

func (public) Platform() messages.Platform { return "test" }

func (public) Capabilities() platform.Capabilities {
	return platform.Capabilities{Comments: true, CommandPrefix: "/agent "}
}

// helped returns what a command of /help answers to somebody.
func helped(t *testing.T, h *Handler, text string, role sessions.Role) string {
	t.Helper()
	r, err := h.runHelp(t.Context(), asked(text, role))
	if err != nil {
		t.Fatal(err)
	}
	return r.Text
}

func TestWhereCommandsAreOffered(t *testing.T) {
	t.Parallel()
	private, comments := helped(t, whole(t), "/help all", sessions.User), helped(t, whole(t, public{}), "/help ALL", sessions.User)
	for _, tt := range []struct {
		text, part string
		want       bool
	}{
		{private, "- `/link [code]`", true}, {comments, "link [code]", false},
		{private, "(also `/reset`)", true}, {comments, "- `/agent status", true},
		{private, "`/start`", false}, {private, "command-invoke", false},
		{private, "`/people", false}, {helped(t, whole(t), "/help all", sessions.Owner), "`/people", true},
		{helped(t, whole(t), "/help all", sessions.Reader), "`/clone", false}, {helped(t, whole(t), "/help all", sessions.Reader), "`/plan", true},
		{private, "<details>", false}, {comments, "<details>\n<summary>All commands</summary>\n\n- `/agent new`", true}, {comments, "\n\n</details>", true},
	} {
		if strings.Contains(tt.text, tt.part) != tt.want {
			t.Errorf("%q is offered: %t, in:\n%s", tt.part, !tt.want, tt.text)
		}
	}
	for text, want := range map[string]string{
		"/help approve":          "approves that request",
		"/help RESET":            "`/new`: end this session",
		"/help /plan":            "`/plan <goal>`: write a plan",
		"/help command-invoke":   "by name",
		"/help nothing-like-it!": "There is no command",
		"/help staus":            "There is no command `/staus`. Did you mean `/status`?",
		"/help clone":            "\n- Example: `/clone https://github.com/acme/shop`\n- Who: everyone except people with read-only access\n- Where: anywhere",
		"/help halt":             "- Who: owners",
		"/help link":             "- Where: in private chats",
	} {
		if got := helped(t, whole(t), text, sessions.User); !strings.Contains(got, want) {
			t.Errorf("%s answers %q", text, got)
		}
	}
	for _, info := range whole(t).Menu(platform.Capabilities{}) {
		if info.Name == "start" || info.Description == "" {
			t.Errorf("in the menu: %+v", info)
		}
	}
}

// The short help has at most ten lines for everybody, everywhere, and the fold of
// comments around them.
func TestShortHelp(t *testing.T) {
	t.Parallel()
	bare, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]*Handler{"bare": bare, "whole": whole(t), "comments": whole(t, public{})} {
		for role, wants := range map[sessions.Role][]string{
			sessions.Owner:  {"people", "halt", "plan <goal>", "status", "stop"},
			sessions.User:   {"plan <goal>", "status", "stop", "new", "help all", "help <command>"},
			sessions.Reader: {"plan <goal>", "status", "stop", "new", "sessions"},
		} {
			text := helped(t, h, "/help", role)
			lines := strings.Split(text, "\n")
			prefix, most := h.prefix(messages.ConversationKey{Platform: "test"}), 9 // a platform may set the list apart with an empty line
			if name == "comments" {
				most += 5
			}
			if len(lines) > most {
				t.Errorf("%s, %s: %d lines:\n%s", name, role, len(lines), text)
			}
			for _, want := range wants {
				if !strings.Contains(text, "`"+prefix+want) {
					t.Errorf("%s, %s: no %q in:\n%s", name, role, want, text)
				}
			}
			for _, no := range []string{"people", "halt"} {
				if role != sessions.Owner && strings.Contains(text, prefix+no) {
					t.Errorf("%s, %s: offers %s:\n%s", name, role, no, text)
				}
			}
		}
	}
}

// TestWhoMayGiveACommand is the table of who may: everyone, people with read-only access
// in private chats only, everyone but them, or owners. A new command needs its line.
func TestWhoMayGiveACommand(t *testing.T) {
	t.Parallel()
	const everyone, aside, members, owners = "everyone", "read-only in private", "members", "owners"
	table := map[string]string{
		"help": everyone, "start": everyone, "whoami": everyone, "status": everyone, "stop": everyone, "full": everyone, "plan": everyone,
		"sessions": everyone, "cost": everyone, "diff": everyone, "branch": everyone, "getcwd": everyone, "repos": everyone, "commands": everyone,
		"approvals": everyone, command.Invoke: everyone, // what it names has its own line
		"new": aside, "memory": aside, "remember": aside, "forget": aside, "link": aside, "unlink": aside, "verbose": aside, "repo": aside, "setcwd": aside,
		"execute": members, "approve": members, "edit": members, "reject": members, "deny": members, "allow": members, "clone": members,
		"undo": members, "retry": members, "pull": members, "pr": members, "mode": members, "model": members, "agent": members, "schedule": members,
		"handoff": members, "fork": members, "command_set": members, "load_commands": members,
		"people": owners, "owner": owners, "doctor": owners, "halt": owners, "resume": owners,
	}
	h := whole(t)
	for _, c := range h.list {
		who, ok := table[c.Name]
		if !ok {
			t.Errorf("nobody has said who may give /%s: add it to this table", c.Name)
			continue
		}
		for _, tt := range []struct {
			role    sessions.Role
			private bool
			may     bool
		}{
			{sessions.Reader, false, who == everyone}, {sessions.Reader, true, who == everyone || who == aside},
			{sessions.User, false, who != owners}, {sessions.User, true, who != owners},
			{sessions.Owner, false, true}, {sessions.Owner, true, true},
		} {
			if may(c, tt.role, tt.private) != tt.may {
				t.Errorf("/%s is offered to %s (private: %t): %t", c.Name, tt.role, tt.private, !tt.may)
			}
			if tt.may || c.Run == nil { // that it runs is tested with each of them
				continue
			}
			r := asked("/"+c.Name, tt.role)
			r.Entry.In.Private = tt.private
			if _, err := c.Run(t.Context(), r); !fault.Is(err, fault.Forbidden) {
				t.Errorf("/%s of %s (private: %t): %v", c.Name, tt.role, tt.private, err)
			}
		}
	}
}

func BenchmarkShortHelp(b *testing.B) {
	h, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	r := asked("/help", sessions.Owner)
	for b.Loop() {
		if _, err := h.runHelp(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestUnknownCommandsAreExplained(t *testing.T) {
	t.Parallel()
	h := whole(t)
	for text, want := range map[string]string{
		"/stauts":                  "Did you mean `/status`?",
		"/xyzzy":                   "`/help` lists the commands.",
		"/command-invoke":          "Specify a command",
		"/command-invoke status":   "without `/command-invoke`",
		"/command-invoke executee": "Did you mean `/execute`?",
	} {
		got, err := h.Unknown(t.Context(), asked(text, sessions.User))
		if err != nil || !strings.Contains(got.Text, want) {
			t.Errorf("%s answers %q, %v", text, got.Text, err)
		}
	}
}
