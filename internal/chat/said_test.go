package chat_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/chat"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/people"
	"remote-agent/internal/platform"
	"remote-agent/internal/profile"
	"remote-agent/internal/recollect"
	"remote-agent/internal/signin"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// line is what somebody says in a chat, and a part of what stands there because of it.
type line struct {
	who  messages.UserID // empty: Ann
	in   string          // empty: a private chat
	say  string
	want string
}

// talk has the lines said one after the other, each when the one before it is answered.
func talk(w *ot.World, lines ...line) {
	w.T.Helper()
	for _, l := range lines {
		if l.who == "" {
			l.who = ot.Ann
		}
		if l.in == "" {
			l.in = ot.Room
		}
		before := len(w.Chat.Posts(l.in))
		w.Chat.Say(l.say, ot.In(l.in), ot.From(l.who))
		w.Pass(4 * time.Second)
		var texts []string
		for _, p := range w.Chat.Posts(l.in)[before:] {
			texts = append(texts, p.Text)
		}
		if got := strings.Join(texts, "\n---\n"); !strings.Contains(got, l.want) || l.want == "" && got != "" {
			w.T.Errorf("%s says %q and reads %q, want %q in it", l.who, l.say, got, l.want)
		}
	}
}

// everything has the commands of people and memory in the world, too.
func everything(w *ot.World) {
	w.Commands = func(c *chat.Config, p *ot.Process) {
		c.People = people.New(people.Config{
			Store: p.Store, Changed: func() { p.Engine.AccessChanged() },
			Platforms: map[messages.Platform]people.Platform{ot.PlatformName: {
				Access: orchestrator.AccessRule{IDs: map[messages.UserID]bool{ot.Ann: true, ot.Bob: true}, Owners: map[messages.UserID]bool{ot.Olga: true}},
				Owners: "CHAT_OWNERS", Allow: "CHAT_ALLOW",
				CheckID: func(id string) error {
					if strings.Contains(id, "!") {
						return fault.New(fault.Invalid, "That is no id.")
					}
					return nil
				},
			}},
		})
		c.Link = func(_ context.Context, a signin.Account) (string, bool, error) {
			return "https://bot.example/in/" + string(a.Platform) + "/" + string(a.ID), true, nil
		}
		memory := recollect.New(recollect.Config{Storage: memories(p.Store), Log: c.Log})
		w.T.Cleanup(memory.Close)
		c.Memory = memory
	}
}

func TestConversations(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]line{
		"Help": {
			{say: "/help", want: "`/help all` every command"},
			{say: "/help mode", want: "show or change the permission mode"},
			{say: "/help /plan", want: "/plan"},
			{say: "/help nonsense", want: "There is no command"},
			{say: "/start", want: "Just write: every message is answered by **scripted**."},
			{who: ot.Olga, say: "/start", want: "You are the owner of this bot."},
		},
		"Unknown": {
			{say: "/stauts", want: "Did you mean `/status`?"},
			{say: "/xyzzyplugh", want: "`/help` lists the commands."},
			{say: "/command-invoke", want: "Specify a command"},
			{say: "/command-invoke status", want: "without `/command-invoke`"},
			{say: "/command-invoke plan-feature a bridge", want: "📋 **Plan p-1, version 1.**"},
		},
		"Whoami": {
			{say: "/whoami", want: "ann"},
			{who: ot.Olga, say: "/whoami", want: "owner"},
		},
		"Sessions": {
			{say: "/sessions", want: "There are no sessions here yet"},
			{say: "/fork", want: "There is no session here to fork"},
			{say: "/new", want: "Your next message starts a new session."},
			{say: "/new\nthe first apple", want: "re: the first apple"},
			{say: "a second pear", want: "re: "},
			{say: "look at it", want: "I saw it."},
			{say: "/sessions show 1", want: "look"},
			{say: "/new", want: "Session ended; nothing is deleted."},
			{say: "a third plum", want: "re: a third plum"},
			{say: "/sessions", want: "**2 sessions here**, newest first"},
			{say: "/sessions show 1", want: "the first apple"},
			{say: "/sessions show 1 before 3", want: "the first apple"},
			{say: "/sessions show 1 before x", want: "Specify a message number"},
			{say: "/sessions show", want: "Specify a"},
			{say: "/sessions show 9", want: "There is no session \"9\" here."},
			{say: "/sessions before 1", want: "No earlier entries."},
			{say: "/sessions before 2", want: "the first apple"},
			{say: "/sessions pear", want: "second pear"},
			{say: "/sessions zebra", want: "No messages here contain all of these words."},
			{say: "/sessions 1", want: "the first apple"},
		},
		"Fork": {
			{say: "one", want: "re: one"},
			{say: "two", want: "re: "},
			{say: "/fork x", want: "Specify how many messages to keep"},
			{say: "/fork 2", want: "🍴 A new session continues with 2 messages of 4."},
			{say: "/fork 99", want: "✖"},
			{say: "/fork here", want: "continues with 2 messages"},
			{say: "/fork thread", want: "✖"},
		},
		"Fork of one message": {
			{say: "one", want: "re: one"},
			{say: "/fork 1", want: "🍴"},
			{say: "/retry", want: "no turn since the fork. The first message belongs to the previous session"},
		},
		"Mode": {
			{say: "/mode", want: "Mode **edit**: files in the worktree can be changed"},
			{say: "/mode ask", want: "Mode is now **ask**: read-only"},
			{say: "/mode", want: "Mode **ask**"},
			{say: "/mode auto", want: "Only an owner of the bot can switch to auto."},
			{who: ot.Olga, say: "/mode auto", want: "Mode is now **auto**"},
			{say: "/mode wild", want: "✖"},
			{say: "/mode ask please", want: "✖ \"please\" was not understood, so nothing was done. Usage: `/mode [ask|edit|auto]`."},
			{say: "/mode", want: "Mode **auto**"},
		},
		"Model": {
			{say: "/model", want: "Assistant **scripted**, model **script-1**."},
			{say: "/model", want: "`fast`: script-fast"},
			{say: "/model fast", want: "**script-fast** answers from the next message on."},
			{say: "/model", want: "model **script-fast**"},
			{say: "/model smart", want: "An operator can set `MODEL_SMART`"},
			{say: "/model cheap", want: "is a model of agent, but this conversation uses scripted. To switch: `/handoff agent`."},
			{say: "/model scripted:script-9", want: "**script-9** answers from"},
			{say: "/model gpt 5", want: "✖ \"5\" was not understood, so nothing was done."},
			{say: "/model", want: "model **script-9**"},
			{say: "/model \x01", want: "✖"},
			{say: "/model default", want: "**script-1** answers from"},
		},
		"Verbose": {
			{say: "/verbose", want: "Use `/verbose 0` (result only)"},
			{say: "/verbose 3", want: "Use `/verbose 0`"},
			{say: "/verbose 2", want: "Verbosity is 2 from the next turn on."},
		},
		"Cost": {
			{say: "/cost week", want: "No usage by you, since "},
			{say: "hello", want: "re: hello"},
			{say: "/cost", want: "- here, total: 1 turn"},
			{say: "/cost", want: "Limits: 1k tokens per turn (no price data)."},
			{who: ot.Olga, say: "/cost", want: "- everyone, today: 1 turn"},
			{say: "/cost week by model", want: "Used by you, since "},
			{say: "/cost by conversation", want: "Total: 1 turn"},
			{who: ot.Olga, say: "/cost by person", want: "chat/ann"},
			{who: ot.Olga, in: "team", say: "/cost by person", want: "private chat"},
			{say: "/cost by nonsense", want: "✖"},
			{say: "/cost all", want: "since the beginning"},
			{say: "/cost 24h", want: "UTC"},
			{who: ot.Olga, say: "/cost by codebase", want: "(none or deleted)"},
			{say: "/cost week month", want: "Use one period and one grouping"},
			{say: "/cost nonsense", want: "✖"},
		},
		"Agent": {
			{say: "/schedule on", want: "No profile selected"},
			{say: "/schedule off", want: "o standing task is on here."},
			{say: "/agent idle", want: "**idle** is in use here now"},
			{say: "/schedule on", want: "has no objectives, so there is nothing to run"},
			{say: "/agent default", want: "**default** is in use here now"},
			{say: "/agent ???", want: "✖"},
			{say: "/agent", want: "- **default**, in use here"},
			{say: "/agent", want: "- **scribe**: writes things down"},
			{say: "hello", want: "re: hello"},
			{say: "/agent scribe", want: "**scribe** is in use here now, in a new session. The previous session ended"},
			{say: "/agent scribe", want: "**scribe** is already in use here."},
			{say: "/schedule on", want: "The profile scribe has no standing task"},
			{say: "/agent a b", want: "Specify one profile"},
			{say: "/agent nobody", want: "✖"},
			{say: "/agent watch", want: "**watch** is in use here now"},
			{say: "/schedule", want: "No standing task is on here."},
			{say: "/schedule on", want: "⏰ **watch** runs its standing task here"},
			{say: "/schedule on", want: "is already on, started by ANN"},
			{say: "/schedule show", want: "watch"},
			{say: "/schedule list", want: "watch"},
			{who: ot.Olga, in: "team", say: "/schedule list", want: "watch"},
			{who: ot.Bob, in: "team", say: "/schedule off", want: "No standing task is on here."},
			{who: ot.Olga, say: "/schedule list", want: "watch"},
			{say: "/schedule sometimes", want: "`/schedule on` or `off` switches it"},
			{say: "/agent default", want: "The previous profile's standing task is off."},
			{say: "/schedule off", want: "o standing task is on here."},
			{say: "/schedule list", want: "standing task"},
		},
		"Status": {
			{say: "/status", want: "- session: none; your next message starts one"},
			{say: "hello", want: "re: hello"},
			{say: "/status", want: "**Idle**\n"},
			{say: "/status", want: "- tokens: 10 in, 5 out"},
			{say: "/status", want: "scripted tools"},
			{say: "/status", want: "service: version 1.2.3"},
			{say: "/status verbose", want: "**System prompt** of the session"},
			{say: "/new", want: "Session ended"},
			{say: "/status verbose", want: "**System prompt** of the next session"},
		},
		"Plans": {
			{say: "/approve", want: "There is no plan here yet."},
			{say: "/execute", want: "✖ There is no plan to run here. `/plan <task>` writes one."},
			{say: "/plan a bridge", want: "📋 **Plan p-1, version 1.**"},
			{say: "/edit p-1 1. Swim.", want: "**Plan p-1, version 2.**"},
			{say: "/edit", want: "✖"},
			{say: "/approve p-7", want: "There is no plan p-7 here."},
			{say: "/approve p-1 carefully", want: "✔ Approved plan p-1, version 2."},
			{say: "/approve", want: "✖ Plan p-1 (version 2) is already approved."},
			{say: "/execute p-1", want: "re: Carry out this plan"},
			{say: "/reject", want: "✖ Plan p-1 (version 2) is already done."},
			{say: "/plan another", want: "**Plan p-2, version 1.**"},
			{say: "/reject p-2 no", want: "✖ Rejected plan p-2; nothing was run."},
		},
		"Questions": {
			{say: "/approvals", want: "No pending approvals."},
			{say: "/deny", want: "No pending approvals here."},
			{say: "/deny what", want: "No pending approvals here."},
			{say: "/deny a-what", want: "is not an approval like a-7"},
			{say: "no", want: "re: no"},
			{say: "stop", want: "Nothing is running here."},
			{say: "Stop!", want: "Nothing is running here."},
			{say: "stop it", want: "re: stop it"},
			{say: "/deny a-5", want: "✖"},
			{say: "/reject a-5", want: "✖"},
			{say: "/allow", want: "There is no repository here"},
			{say: "run it", want: "a-1: run `it`?"},
			{say: "/approvals", want: "- **a-1** run `it`? (for ANN)"},
			{who: ot.Olga, in: "team", say: "/approvals", want: "No pending approvals. A private chat shows those of other conversations."},
			{who: ot.Bob, in: "team", say: "/approvals", want: "No pending approvals."},
			{say: "/approve a-1 always", want: "✖"},
			{say: "/approve a-1", want: "a-1: ✔ Approved by ANN."},
			{say: "/approve a-1", want: "✖"},
		},
		"People": {
			{say: "/people", want: "Only an owner of the bot can do that."},
			{who: ot.Olga, say: "/people", want: "chat/olga: owner, by CHAT_OWNERS"},
			{who: ot.Olga, say: "/people allow", want: "`/people allow <id|code>`"},
			{who: ot.Olga, say: "/people allow chat/!", want: "✖"},
			{who: ot.Olga, say: "/people allow chat/stan", want: "stan"},
			{who: ot.Stranger, say: "hello", want: "re: hello"},
			{who: ot.Olga, say: "/people", want: "chat/stan"},
			{who: ot.Olga, in: "team", say: "/people", want: "Others can read this chat"},
			{who: ot.Olga, say: "/people remove chat/stan", want: "stan"},
			{who: ot.Stranger, say: "hello again", want: "This is a private bot."},
			{who: ot.Olga, say: "/people allow chat/stan read only", want: "stan"},
			{who: ot.Stranger, say: "/mode ask", want: "✖ You have read-only access"},
			{who: ot.Stranger, say: "/stop", want: "Nothing is running here."},
			{who: ot.Stranger, say: "hello at last", want: "re: hello at last"},
			{who: ot.Olga, say: "/people allow chat/stan sometimes", want: "`/people allow <id|code> read-only`"},
			{who: ot.Olga, say: "/people deny chat/stan", want: "Specify the code of a request"},
			{who: ot.Olga, say: "/people deny WDJ-BMJ", want: "✖"},
			{who: ot.Olga, say: "/people allow WDJ-BMJ", want: "✖"},
			{who: ot.Olga, say: "/owner", want: "olga"},
			{who: ot.Olga, say: "/owner add chat/bob", want: "✖"},
		},
		"Web": {
			{say: "/web", want: "It works once, for 5 minutes."},
			{say: "/web", want: "https://bot.example/in/chat/ann"},
			{say: "/web", want: "PUBLIC_URL is not set"},
			{in: "team", say: "/web", want: "✖ The link is private."},
		},
		"Full": {
			{say: "/full", want: "There is no answer in this session yet."},
			{say: "the first apple", want: "re: the first apple"},
			{say: "/full", want: "re: the first apple"},
			{say: "/full of apples", want: "This command takes no arguments"},
			{say: "/full 999", want: "That answer is no longer kept."},
			{say: "/new", want: "Session ended"},
			{say: "/full", want: "There is no answer in this session yet."},
			{say: "/full 2", want: "re: the first apple"},
		},
		"Retry": {
			{say: "/retry", want: "There is nothing to retry here."},
			{say: "break", want: "It broke."},
			{say: "/retry gently", want: "↻ Retrying from the start of the last turn."},
			{say: "/retry", want: "gently"},
		},
		"Halt": {
			{say: "/halt", want: "Only an owner of the bot can do that."},
			{who: ot.Olga, say: "/halt a fire", want: "New messages are saved and answered after the halt. `/resume` ends the halt."},
			{say: "hello", want: "⏸ The bot is halted: a fire."},
			{say: "/status", want: "**halted** by chat/olga"},
			{who: ot.Olga, say: "/halt", want: " UTC. `/resume` ends the halt."},
			{who: ot.Olga, say: "/resume", want: "▶ "},
			{who: ot.Olga, say: "/resume", want: "▶ "},
			{say: "and now?", want: "re: "},
		},
		"Memory": {
			{say: "/memory", want: "No memories about you yet (memory is on)."},
			{say: "/remember", want: "Add the text"},
			{say: "/remember I like green tea", want: "Saved as memory 1."},
			{say: "/remember I like green tea", want: "memory 1"},
			{say: "/memory", want: "Memories about you: 1 (memory is on)"},
			{say: "/memory tea", want: "green tea"},
			{in: "team", say: "/memory", want: "private chat"},
			{in: "team", say: "/memory here", want: "green tea"},
			{say: "/memory edit 1 I like black tea", want: "Updated memory 1."},
			{say: "/memory edit 9 nothing", want: "✖"},
			{say: "/memory zebra", want: "No matching memories."},
			{say: "/remember The staging server is called titan", want: "Saved as memory"},
			{say: "/memory 2", want: "Memories"},
			{say: "/memory off", want: "Memory is off for you"},
			{say: "/memory", want: "off: none of this is used"},
			{say: "/memory on", want: "Memory is on for you."},
			{say: "/forget 2", want: "Deleted memory 2."},
			{say: "/memory edit x", want: "Specify the number and the new text"},
			{say: "/memory off", want: "Memory is off for you"},
			{say: "/memory on", want: "Memory is on for you."},
			{say: "/forget", want: "Specify a memory by number"},
			{say: "/forget 9", want: "✖"},
			{say: "/forget all", want: "`/forget all yes`"},
			{say: "/forget 1", want: "Deleted memory 1."},
			{say: "/forget all yes", want: "No memories about you."},
			{say: "/link a b", want: "`/link` shows a code"},
			{in: "team", say: "/link", want: "Codes are private"},
			{say: "/link", want: "It works once."},
			{say: "/link AAAA-BBBB-CCCC", want: "That code is wrong, expired"},
			{say: "/unlink", want: "✖"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				everything(w)
				w.Configure = func(c *orchestrator.Config, _ *store.Store) {
					c.Tiers = map[string]spend.Tier{"fast": {Model: "script-fast"}, "cheap": {Provider: string(ot.AgentName), Model: "tiny"}}
					c.Budget = spend.Budget{TurnTokens: 1000}
				}
				w.Model.On("break", ot.Fail("", fault.New(fault.Internal, "It broke.")), ot.Say("It works gently."))
				w.Model.On("look at it", ot.Call(ot.ReadTool, "the thing"), ot.Say("I saw it."))
				w.Model.On("run it", ot.Call(ot.ExecuteTool, "it"), ot.Say("It ran."))
				w.Start()
				create(w, profile.Profile{Name: "scribe", Description: "writes things down", Mode: profile.Mode("edit"), MaxIterations: 5})
				create(w, profile.Profile{Name: "idle", Interval: 3600, Mode: profile.Mode("edit"), MaxIterations: 5})
				create(w, profile.Profile{Name: "watch", Interval: 3600, Objectives: profile.Texts{"Look."}, Mode: profile.Mode("edit"), MaxIterations: 5})
				talk(w, lines...)
				if open := w.Open(); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
			})
		})
	}
}

func create(w *ot.World, p profile.Profile) {
	w.T.Helper()
	ctx := w.T.Context()
	err := w.Process().Store.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Profiles().Create(ctx, p)
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// TestLinkOfOnePlatform shows the code to one account, whose memory no other account of
// the same platform can have by it. The code works once and is stored nowhere.
func TestLinkOfOnePlatform(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		everything(w)
		w.Start()
		talk(w,
			line{say: "/remember I like green tea", want: "Saved as memory 1"},
			line{say: "/link", want: "It works once."})
		posts := w.Chat.Texts(ot.Room)
		code := strings.Trim(posts[len(posts)-1], "`")
		if !strings.HasPrefix(code, "/link ") {
			t.Fatalf("the code is %q", code)
		}
		if n := w.Value(`SELECT count(*) FROM deliveries WHERE body LIKE '%' || $1 || '%'`, strings.TrimPrefix(code, "/link ")); n != "0" {
			t.Error("the code is stored")
		}
		talk(w,
			line{say: code, want: "That code belongs to this account."},
			line{who: ot.Bob, say: code, want: "You can link one account per platform"},
			line{who: ot.Bob, say: "/memory", want: "No memories about you"},
			line{who: ot.Bob, say: code, want: "That code is wrong, expired"},
			line{say: "/link", want: "No other account is linked with this one."})
		posts = w.Chat.Texts(ot.Room)
		talk(w,
			line{who: ot.Bob, in: "team", say: strings.Trim(posts[len(posts)-1], "`"), want: "the code is no longer valid"},
			line{who: ot.Bob, say: strings.Trim(posts[len(posts)-1], "`"), want: "That code is wrong, expired"},
			line{say: "/unlink chat/bob", want: "No other account is linked with this one."})
	})
}

// TestHandoffNames is what handing over needs of the installation.
func TestHandoffNames(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Commands = func(c *chat.Config, _ *ot.Process) {
			c.Missing = map[assistant.Name]string{"codex": "Install codex first."}
			c.Placeholder = map[assistant.Name]bool{"demo": true}
		}
		w.Start()
		talk(w,
			line{say: "/handoff codex", want: "Install codex first."},
			line{say: "/handoff demo", want: "only a scripted stand-in"},
			line{say: "/handoff", want: "Specify an assistant: `/handoff agent`."},
			line{say: "remember the cat", want: "re: remember the cat"},
			line{say: "/handoff agent", want: "It has the history: 2 messages."},
			line{say: "hello", want: "agent: hello"},
			line{say: "/model", want: "Assistant **agent**, model **its own choice**.\n\n`/handoff scripted` continues"},
			line{say: "/model fast", want: "✖"},
			line{say: "/status", want: "- assistant: agent"})
	})
}

// TestModelOfAnAgent: an agent that names its models has one chosen for it, and asks its own again.
func TestModelOfAnAgent(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		talk(w,
			line{say: "/handoff agent", want: "now answers here"},
			line{say: "/model Big-4", want: "✖ The assistant agent chooses its model itself. If it offers others, `/model` lists them"})
		w.Agent.Offer("big-4", "small-4", "small-3", "not a `name`")
		talk(w,
			line{say: "/model", want: "Assistant **agent**, model **its own choice**.\n\nIt offers `big-4`, `small-4`, `small-3`. `/model <name>` changes it here"},
			line{say: "/model medium", want: "✖ agent does not offer the model medium. It offers `big-4`, `small-4`, `small-3`."},
			line{say: "/model SMALL", want: "✖ agent does not offer the model SMALL. It offers `small-4`, `small-3`."},
			line{say: "/model Small-4", want: "Model **small-4** from the next message on."},
			line{say: "/model", want: "Assistant **agent**, model **small-4**"},
			line{say: "/status", want: "- assistant: agent (small-4)"},
			line{say: "first", want: "agent: first"})
		w.Agent.Offer() // it has said nothing since a restart
		talk(w,
			line{say: "/model default", want: "Model **its own choice** from the next message on."},
			line{say: "second", want: "agent: second"})
		turns := w.Agent.Turns()
		if turns[0].Model != "small-4" || turns[1].Model != "" {
			t.Errorf("the agent was asked for %q and %q", turns[0].Model, turns[1].Model)
		}
		w.Agent.Offer(slices.Repeat([]string{"much"}, 24)...)
		talk(w, line{say: "/model", want: "`much` and 4 more. "})
	})
}

// TestStatusWhileATurnWaits for its next try, which is not queued.
func TestStatusWhileATurnWaits(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Fail("", &fault.Error{Kind: fault.Unavailable, RetryAfter: 90 * time.Second}), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		talk(w, line{say: "/status", want: "**Trying again in 1:29**"})
		w.Chat.Say("behind it")
		w.Pass(time.Second)
		talk(w, line{say: "/status", want: "**Trying again in 1:24; 1 queued**"})
		w.Pass(2 * time.Minute)
		talk(w, line{say: "/status", want: "**Idle**"})
	})
}

// TestStatusAndStopWhileATurnRuns are the commands that people give then.
func TestStatusAndStopWhileATurnRuns(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("slow", ot.Hold("I am ", ot.Say("I am slow.")))
		w.Start()
		w.Chat.Say("slow")
		w.Chat.Say("behind it")
		w.Pass(time.Second)
		talk(w,
			line{say: "/status", want: "**Running for 1 s; 1 queued**"},
			line{say: "/agent default", want: "is already in use here"},
			line{say: "/fork", want: "Something is still running or queued here. Send `/stop`, or wait for it, and then fork."},
			line{say: "/new", want: "The running turn finishes in the old one; 1 waiting message starts the new one."},
			line{say: "/stop", want: "⏹ Stopped. What was said so far is kept. 1 queued message was dropped"},
			line{say: "/stop", want: "Nothing is running here."},
			line{say: "slow", want: "I am"},
			line{say: "stop", want: "⏹ Stopped. What was said so far is kept."})
	})
}

// TestMenusAndNames are what platforms and docs show of the commands.
func TestMenusAndNames(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		everything(w)
		w.Start()
		h := w.Process().Commands
		names := h.Names()
		for _, want := range []string{"help", "reset", "plan_feature", "command_invoke", "memory"} {
			if !slices.Contains(names, want) {
				t.Errorf("%q is not among %q", want, names)
			}
		}
		for _, c := range h.Menu(w.Chat.Caps) {
			if c.Description == "" || !slices.Contains(names, c.Name) {
				t.Errorf("the menu has %+v", c)
			}
		}
		if len(h.Menu(w.Chat.Caps)) < 5 {
			t.Error("the menu is empty")
		}
	})
}

// TestForkIntoAThread opens a place of its own for a fork, and says why where that does not
// work.
func TestForkIntoAThread(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		text string
	}{
		"Away":        {fault.New(fault.Unavailable, "The platform is away."), "✖ The platform is away."},
		"Opened":      {nil, "🍴 [A new thread](https://chat.example/topic) continues with 2 messages"},
		"Forbidden":   {fault.New(fault.Forbidden, "The bot cannot open topics here."), "✖ The bot cannot open topics here."},
		"Unsupported": {fault.New(fault.Unsupported, "There are no topics here."), "✖ There are no topics here."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Opens = func(platform.Opening) (string, error) { return "topic", tt.err }
				w.Start()
				talk(w,
					line{say: "/fork thread", want: "There is no session here to fork"},
					line{say: "remember the cat", want: "re: remember the cat"},
					line{say: "/fork thread", want: tt.text},
					line{say: "/fork 1 2 thread", want: "Specify how many messages to keep"})
				conversations := map[bool]string{true: "2", false: "1"}[tt.err == nil]
				if n := w.Value(`SELECT count(*) FROM remote_agent_conversations`); n != conversations {
					t.Errorf("%s conversations, want %s", n, conversations)
				}
			})
		})
	}
}

// TestButtonsOfAPlan decides by buttons, and says what is typed where there is no dialog.
func TestButtonsOfAPlan(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("Write a plan", ot.Say("1. Pack."))
		w.Start()
		talk(w, line{say: "/plan a trip", want: "📋 **Plan p-1, version 1.**"})
		shown := w.Chat.Find("Plan p-1, version 1.")
		w.Chat.Press(shown, "Edit")
		w.Pass(2 * time.Second)
		w.Chat.Find("Send `/edit p-1` and the new text after it.")
		talk(w, line{say: "/edit p-1 1. Pack less.", want: "**Plan p-1, version 2.**"})
		w.Chat.Press(shown, "Approve") // of the version before
		w.Pass(2 * time.Second)
		if notes := strings.Join(w.Chat.Notes(), "\n"); !strings.Contains(notes, "Plan p-1 has changed") {
			t.Errorf("who pressed an old button was told %q", notes)
		}
		w.Chat.Press(w.Chat.Find("Plan p-1, version 2."), "Approve")
		w.Pass(2 * time.Second)
		w.Chat.Find("✔ Approved by Ann")
		w.Chat.Do(ot.With(func(in *messages.Inbound) { in.Kind, in.Action = messages.KindAction, "nonsense" }))
		w.Chat.Do(ot.With(func(in *messages.Inbound) { in.Kind, in.Action = messages.KindAction, "stop-nonsense" }))
		w.Pass(2 * time.Second)
		if notes := strings.Join(w.Chat.Notes(), "\n"); !strings.Contains(notes, "This button has expired; nothing was done.") {
			t.Errorf("who pressed a button of nobody was told %q", notes)
		}
		if got := w.Value(`SELECT state FROM plans WHERE version = 2`); got != "approved" {
			t.Errorf("the plan is %s", got)
		}
	})
}

// TestPlanThatExpired is told so, and runs nothing.
func TestPlanThatExpired(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("Write a plan", ot.Say("1. Pack."))
		w.Start()
		talk(w, line{say: "/plan a trip", want: "📋 **Plan p-1, version 1.**"})
		w.Process().Stop()
		w.Pass(25 * time.Hour)
		w.Start()
		talk(w,
			line{say: "/approve p-1", want: "Plan p-1 has expired and was not run."},
			line{say: "/execute p-1", want: "Plan p-1 (version 1) is already expired."})
	})
}

// TestDialogOfAPlan edits a plan in a dialog, where the platform has one.
func TestDialogOfAPlan(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"Opened": false, "CannotBeOpened": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.React = func(a ot.Asked) ot.Reaction {
					if fails && a.What == "dialog" {
						return ot.Reaction{Err: fault.New(fault.Unavailable, "")}
					}
					return ot.Reaction{}
				}
				w.Model.On("Write a plan", ot.Say("1. Pack."))
				w.Start()
				talk(w, line{say: "/plan a trip", want: "📋 **Plan p-1, version 1.**"})
				w.Chat.Press(w.Chat.Find("Plan p-1, version 1."), "Edit", ot.With(func(in *messages.Inbound) { in.Trigger = "t" }))
				w.Pass(2 * time.Second)
				if fails {
					w.Chat.Find("Send `/edit p-1` and the new text after it.")
					return
				}
				dialogs := w.Chat.Dialogs()
				if len(dialogs) != 1 || dialogs[0].Text != "1. Pack." || dialogs[0].Trigger != "t" {
					t.Fatalf("the dialogs are %+v", dialogs)
				}
				w.Chat.Do(ot.With(func(in *messages.Inbound) {
					in.Kind, in.Action, in.Text = messages.KindAction, dialogs[0].ID, "1. Pack less."
				}))
				w.Pass(2 * time.Second)
				if got := w.Value(`SELECT body FROM plans WHERE version = 2`); got != "1. Pack less." {
					t.Errorf("the plan is %q", got)
				}
			})
		})
	}
}

// asks has a tool asked for that a person has to allow, for what Ann says.
func asks(w *ot.World, said, what string) {
	w.Model.On(said, ot.Call(ot.ExecuteTool, what), ot.Say("It is over."))
}

// TestApproveTakesWhatWaits is what /approve and /deny do without a name.
func TestApproveTakesWhatWaits(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]line{
		"TheQuestionAndNotTheOldPlan": {
			{say: "/plan a bridge", want: "**Plan p-1, version 1.**"},
			{say: "/approve", want: "✔ Approved plan p-1, version 1."},
			{say: "do it", want: "a-1: run `make it so`?"},
			{say: "/status", want: "**Waiting for your approval (a-1)**"},
			{say: "/approve", want: "a-1: ✔ Approved by ANN."},
		},
		"WhichOfThem": {
			{say: "/plan a bridge", want: "**Plan p-1, version 1.**"},
			{say: "do it", want: "a-1: run `make it so`?"},
			{say: "/approve", want: "Which one? These are waiting for a decision:\n\n- **a-1** run `make it so`?\n- **p-1** the plan\n\nName it: `/approve a-1`."},
			{say: "/approve a-1", want: "a-1: ✔ Approved by ANN."},
			{say: "/approve", want: "✔ Approved plan p-1, version 1."},
		},
		"WithANote": {
			{say: "do it", want: "a-1: run `make it so`?"},
			{say: "/deny use the staging database", want: "a-1: ✖ Denied by ANN."},
		},
		"RejectMeansItToo": {
			{say: "do it", want: "a-1: run `make it so`?"},
			{say: "/reject", want: "a-1: ✖ Denied by ANN."},
		},
		"NotWhatIsNotNamed": {
			{say: "/plan a bridge", want: "**Plan p-1, version 1.**"},
			{say: "/plan a tunnel", want: "**Plan p-2, version 1.**"},
			{say: "/approve p-1, please", want: "✖ \"p-1,\" is not a plan like p-3."},
			{say: "/edit p-1: 1. Swim.", want: "✖ \"p-1:\" is not a plan like p-3."},
			{say: "/reject P-1/2", want: "✖ \"P-1/2\" is not a plan like p-3."},
			{say: "/execute p-0", want: "✖ \"p-0\" is not a plan like p-3."},
			{say: "do it", want: "a-1: run `make it so`?"},
			{say: "/approve a-9.", want: "✖ \"a-9.\" is not an approval like a-7."},
			{say: "/reject A-0", want: "✖ \"A-0\" is not an approval like a-7."},
			{say: "/approve a-1", want: "a-1: ✔ Approved by ANN."},
			{say: "/approve p-levels first", want: "✔ Approved plan p-2, version 1."},
		},
		"NotWhatWaitsElsewhere": {
			{say: "do it", want: "a-1: run `make it so`?"},
			{who: ot.Olga, in: "team", say: "/approve", want: "There is no plan here yet."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				asks(w, "do it", "make it so")
				w.Start()
				talk(w, lines...)
			})
		})
	}
}

// TestPlainWordsAtAnOpenQuestion are answered, and a yes decides nothing.
func TestPlainWordsAtAnOpenQuestion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lines []line
		did   int
		state string // of the question
	}{
		"No":         {[]line{{say: "no", want: "a-1: ✖ Denied by ANN."}}, 0, "denied"},
		"NoBecause":  {[]line{{say: "No, use the staging database", want: "a-1: ✖ Denied by ANN."}}, 0, "denied"},
		"Yes":        {[]line{{say: "yes", want: "To allow a-1 (run `make it so`), use its button, or send `/approve a-1`."}}, 0, "waiting"},
		"Stop":       {[]line{{say: "stop!", want: "⏹ Stop"}, {say: "/status", want: "**Idle**"}}, 0, "canceled"},
		"Why":        {[]line{{say: "why do you need that?", want: "**a-1** is waiting for a decision: run `make it so`?\n\n- It is for this message: \"do it\""}}, 0, "waiting"},
		"OtherWords": {[]line{{say: "and be quick", want: ""}, {say: "/status", want: "**Waiting for your approval (a-1); 1 queued**"}}, 0, "waiting"},
		"Then": {
			[]line{{say: "why?", want: "`/approve a-1` runs it once, `/deny a-1` refuses it"}, {say: "/approve", want: "a-1: ✔ Approved by ANN."}, {say: "no", want: "re: no"}}, 1, "allowed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				asks(w, "do it", "make it so")
				w.Start()
				talk(w, append([]line{{say: "do it", want: "a-1: run `make it so`?"}}, tt.lines...)...)
				if got := len(w.Tools.Did()); got != tt.did {
					t.Errorf("the tool ran %d times", got)
				}
				if got := w.Value(`SELECT state FROM approvals WHERE number = 1`); got != tt.state {
					t.Errorf("the question is %s, want %s", got, tt.state)
				}
			})
		})
	}
}

// TestApproveAfterACrash: the second run of a command that decided says the same.
func TestApproveAfterACrash(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		asks(w, "do it", "make it so")
		w.Start()
		talk(w, line{say: "do it", want: "a-1: run `make it so`?"})
		var died atomic.Bool
		w.Process().After(func() {
			if !died.Load() && w.Value(`SELECT state FROM approvals WHERE number = 1`) == "allowed" && died.CompareAndSwap(false, true) {
				w.Process().Die()
			}
		})
		w.Chat.Say("/approve")
		w.Settle()
		if !died.Load() {
			t.Fatal("the process did not die")
		}
		w.Start()
		w.Pass(10 * time.Second)
		w.Chat.Find("a-1: ✔ Approved by Ann.")
		if got := w.Tools.Did(); len(got) != 1 {
			t.Errorf("the tool ran: %q", got)
		}
	})
}

// TestCommandWaitsForTheEndOfATurn: people see the whole answer a moment before the turn
// is over, and what they say then is done.
func TestCommandWaitsForTheEndOfATurn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("slow", ot.Hold("I am slow.", ot.Say("I am slow.")))
		w.Start()
		w.Chat.Say("slow")
		w.Pass(2 * time.Second)
		w.Chat.Find("I am slow.")
		w.Chat.Say("/fork")
		w.Pass(time.Second)
		w.Model.Release()
		w.Pass(4 * time.Second)
		w.Chat.Find("🍴 A new session continues with 2 messages")
	})
}

// TestReadersStopTheirOwn has somebody with read-only access stop what others asked for,
// and what they asked for themselves.
func TestReadersStopTheirOwn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		everything(w)
		w.Model.On("slow", ot.Hold("I am ", ot.Say("I am slow.")))
		w.Start()
		talk(w, line{who: ot.Olga, say: "/people allow chat/stan read-only", want: "stan"})
		w.Chat.Say("slow one", ot.In("team"))
		w.Pass(time.Minute)
		running := w.Chat.Posts("team")[0]
		talk(w, line{who: ot.Stranger, in: "team", say: "/stop", want: "you cannot stop what other people asked for"})
		w.Chat.Press(running, "Stop", ot.From(ot.Stranger))
		w.Pass(2 * time.Second)
		if notes := strings.Join(w.Chat.Notes(), "\n"); !strings.Contains(notes, "you cannot stop what other people asked for") {
			t.Errorf("who pressed was told %q", notes)
		}
		if n := w.Model.Held(); n != 1 {
			t.Fatalf("%d turns run, want the one", n)
		}
		w.Chat.Press(running, "Stop")
		w.Pass(2 * time.Second)
		w.Chat.Say("slow two", ot.In("team"), ot.From(ot.Stranger))
		w.Pass(time.Second)
		talk(w, line{who: ot.Stranger, in: "team", say: "/stop", want: "⏹ Stopped."})
	})
}

// TestOwnersAnswerAStranger has owners decide on those who ask to be let in: by the card,
// which only an owner may, and by the code.
func TestOwnersAnswerAStranger(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		everything(w)
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Pairing = true }
		w.Start()
		talk(w, line{who: ot.Olga, say: "hello", want: "re: hello"})
		code := func(who messages.UserID) string {
			t.Helper()
			own := "chat-" + string(who)
			w.Chat.Say("let me in", ot.In(own), ot.From(who), ot.With(func(in *messages.Inbound) { in.Private = true }))
			w.Pass(time.Minute)
			posts := w.Chat.Posts(own)
			code := regexp.MustCompile(`[B-Z]{3}-[B-Z]{3}`).FindString(posts[len(posts)-1].Text)
			if code == "" {
				t.Fatalf("there is no code in %q", posts[len(posts)-1].Text)
			}
			return code
		}
		stan := code(ot.Stranger)
		talk(w, line{who: ot.Olga, say: "/people", want: "decide with `/people allow <code>`"})
		card := w.Chat.Find("asks")
		w.Chat.Press(card, "Allow, read only")
		w.Pass(2 * time.Second)
		if notes := strings.Join(w.Chat.Notes(), "\n"); !strings.Contains(notes, "Only an owner of the bot can do that.") {
			t.Errorf("a user who pressed was told %q", notes)
		}
		w.Chat.Press(card, "Allow, read only", ot.From(ot.Olga))
		w.Pass(2 * time.Second)
		talk(w,
			line{who: ot.Stranger, say: "/mode ask", want: "✖ You have read-only access"},
			line{who: ot.Olga, say: "/people deny " + stan, want: "Already decided: ✔ Allowed, read only, by chat/olga."},
			line{who: ot.Stranger, say: "still here?", want: "re: still here?"},
			line{who: ot.Olga, say: "/people deny " + code("sven"), want: "sven"},
			line{who: "sven", say: "now?", want: ""},
			line{who: ot.Olga, say: "/people allow " + code("sue"), want: "sue"},
			line{who: "sue", say: "/mode ask", want: "Mode is now **ask**"})
	})
}

// TestButtonsOfATurn are those under one that waits for its next try, and under one that
// failed.
func TestButtonsOfATurn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		away := &fault.Error{Kind: fault.Unavailable, Public: "The model is away.", RetryAfter: time.Hour}
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Tiers = map[string]spend.Tier{"fast": {Provider: string(ot.ModelName), Model: "script-fast"}}
		}
		w.Model.On("hello", ot.Fail("", away), ot.Fail("", fault.New(fault.Internal, "It broke.")), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(2 * time.Second)
		waits := w.Chat.Posts(ot.Room)[0]
		w.Chat.Press(waits, "Other model")
		w.Pass(2 * time.Second)
		w.Chat.Find("Then `/retry` retries with it immediately.")
		w.Chat.Press(waits, "Retry now", ot.In("team"))
		w.Pass(2 * time.Second)
		if notes := strings.Join(w.Chat.Notes(), "\n"); !strings.Contains(notes, "This button no longer works.") {
			t.Errorf("who pressed in another conversation was told %q", notes)
		}
		w.Chat.Press(waits, "Retry now")
		w.Pass(2 * time.Second)
		failed := w.Chat.Find("It broke.")
		w.Chat.Press(waits, "Retry now")
		w.Pass(2 * time.Second)
		if notes := strings.Join(w.Chat.Notes(), "\n"); !strings.Contains(notes, "No turn is waiting to retry here.") {
			t.Errorf("who pressed again was told %q", notes)
		}
		w.Chat.Press(failed, "Retry")
		w.Pass(2 * time.Second)
		w.Chat.Find("At last.")
		w.Chat.Press(failed, "Retry")
		w.Pass(2 * time.Second)
		if n := len(w.Model.Requests()); n != 3 {
			t.Errorf("the model was asked %d times, want 3", n)
		}
	})
}
