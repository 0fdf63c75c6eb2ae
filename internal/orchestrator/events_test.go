package orchestrator_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// writes counts the transactions that write.
type writes struct {
	orchestrator.Storage

	n *atomic.Int64
}

func (s writes) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	s.n.Add(1)
	return s.Storage.InTx(ctx, fn)
}

// TestEventsThatComeAgain are answered once: the same event, which a process that has
// stored it knows without the database, and another one of the same gesture.
func TestEventsThatComeAgain(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var n atomic.Int64
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Storage = writes{c.Storage, &n} }
		w.Start()
		said := w.Chat.Say("hello")
		w.Chat.Again(said)
		w.Pass(2 * time.Second)
		before := n.Load()
		w.Chat.Again(said)
		if asked := n.Load() - before; asked != 0 {
			t.Errorf("an event that was stored comes again in %d transactions", asked)
		}
		w.Restart()
		w.Chat.Again(said)
		alias := ot.With(func(in *messages.Inbound) { in.Aliases = []messages.EventID{"the gesture"} })
		mention := w.Chat.Say("twice told", alias)
		w.Chat.Say("twice told", alias)
		w.Chat.Again(mention)
		w.Pass(2 * time.Second)
		w.Chat.Want("re: hello", "re: twice told")
	})
}

// TestOpeningIsSaidOnce: a place that came into being for a message tells what it began with,
// also where the platform delivers the message again, and not for what a command answers.
func TestOpeningIsSaidOnce(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		opening := ot.With(func(in *messages.Inbound) { in.Opening = "ANN asks:" })
		w.Start()
		said := w.Chat.Say("hello", ot.In("thread"), opening)
		w.Chat.Say("/whoami", ot.In("other"), opening)
		w.Pass(2 * time.Second)
		w.Restart()
		w.Chat.Again(said)
		w.Chat.Say("well?", ot.In("thread"))
		w.Pass(2 * time.Second)
		w.Chat.WantIn("thread", "ANN asks:", "re: Ann: hello", "re: Ann: well?")
		w.Chat.WantIn("other", "You are")
	})
}

// TestWhatIsSetStandsInAPlace: a command that sets something opens the place that this holds
// for, where people go on; who only asks what is set is answered alone.
func TestWhatIsSetStandsInAPlace(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.OnlyFor = true
		aside := ot.With(func(in *messages.Inbound) { in.Opening, in.Whispered, in.Private = "ANN asks:", true, false })
		w.Start()
		w.Chat.Say("/mode ask", ot.In("thread"), aside)
		w.Chat.Say("/mode", ot.In("other"), aside)
		w.Pass(2 * time.Second)
		w.Chat.Say("/mode", ot.In("thread"))
		w.Pass(2 * time.Second)
		w.Chat.WantIn("thread", "ANN asks:", "Mode is now **ask**", "Mode **ask**")
		w.Chat.WantIn("other", "Mode **edit**")
		for _, p := range append(w.Chat.Posts("thread"), w.Chat.Posts("other")...) {
			if aside := p.Room == "other"; aside != (p.OnlyFor != "") {
				t.Errorf("in %s, %q is only for %q", p.Room, p.Text, p.OnlyFor)
			}
		}
		if n := len(w.Model.Requests()); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
	})
}

// TestCommandsAboutWhatCameBeforeBeginNothing: where a command would open a place, one about a
// conversation that is there already opens none, and its sender alone reads where to give it.
func TestCommandsAboutWhatCameBeforeBeginNothing(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.OnlyFor = true
		aside := ot.With(func(in *messages.Inbound) { in.Opening, in.Whispered, in.Private = "ANN asks:", true, false })
		w.Start()
		for _, name := range []string{"stop", "retry", "new", "full", "fork"} {
			w.Chat.Say("/"+name, ot.In(name), aside)
			w.Pass(2 * time.Second)
			w.Chat.WantIn(name, "Nothing was done: a slash command begins a conversation of its own here. "+
				"For an earlier one, mention the bot in its thread and write `"+name+"` behind it.")
			for _, p := range w.Chat.Posts(name) {
				if p.OnlyFor != ot.Ann {
					t.Errorf("%q is for %q", p.Text, p.OnlyFor)
				}
			}
		}
		w.Chat.Say("/retry with a note", ot.In("noted"), aside)
		w.Chat.Say("/fork 4", ot.In("forked"), aside)
		w.Chat.Say("/stop", ot.In("private"), ot.With(func(in *messages.Inbound) { in.Whispered = true }))
		w.Pass(2 * time.Second)
		w.Chat.WantIn("noted", "Nothing was done")
		w.Chat.WantIn("forked", "Nothing was done")
		w.Chat.WantIn("private", "Nothing is running here.")
	})
}

// TestNothingIsBegunWhereNothingCanBeSaid: where the platform refuses the message that opens a
// place, no model is asked for an answer that nobody would see.
func TestNothingIsBegunWhereNothingCanBeSaid(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.Room == "thread" {
				return ot.Reaction{Err: fault.New(fault.Forbidden, "Invite the bot.")}
			}
			return ot.Reaction{}
		}
		w.Start()
		w.Chat.Say("hello", ot.In("thread"), ot.With(func(in *messages.Inbound) { in.Opening = "ANN asks:" }))
		w.Pass(2 * time.Second)
		w.Chat.WantIn("thread")
		if n := len(w.Model.Requests()); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		if open := w.Open(); len(open) > 0 {
			t.Errorf("still open: %q", open)
		}
	})
}

// TestAssistantOfARepository: a conversation about one begins with its assistant, if that is here
// and no stand-in.
func TestAssistantOfARepository(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		registered string
		standIn    bool
		want       string
	}{
		"Here":    {string(ot.AgentName), false, "agent: hello"},
		"Unknown": {"gone", false, "re: hello"},
		"StandIn": {string(ot.AgentName), true, "re: hello"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) {
					c.Placeholder = map[assistant.Name]bool{ot.AgentName: tt.standIn}
				}
				w.Start()
				inTx(w, func(ctx context.Context, tx *store.Tx) error {
					return tx.Portable().ImportCodebase(ctx, sessions.Codebase{
						ID: "0199a7c3-0000-7000-8000-000000000001", Name: "demo", RepositoryURL: "https://git.example/demo", Assistant: tt.registered,
					}, nil)
				})
				w.Chat.Say("hello", about)
				w.Pass(2 * time.Second)
				w.Chat.Want(tt.want)
			})
		})
	}
}

// slowWrites makes each transaction that writes take a second, so that events come meanwhile.
type slowWrites struct{ writes }

func (s slowWrites) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	time.Sleep(time.Second)
	return s.writes.InTx(ctx, fn)
}

// TestEventsThatComeTwiceAtOnce are stored once: the second is known when the first is
// stored, and asks nothing of the database.
func TestEventsThatComeTwiceAtOnce(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var n atomic.Int64
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Storage = slowWrites{writes{c.Storage, &n}} }
		w.Start()
		said := messages.Inbound{
			Account: "bot", Event: "both", Kind: messages.KindEdit, Private: true, Message: "m0", Sender: messages.Sender{ID: ot.Ann, Name: "Ann"},
			Conversation: messages.ConversationKey{Platform: ot.PlatformName, ID: ot.Room},
		}
		before := n.Load()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { w.Chat.Again(said) })
		}
		both.Wait()
		if asked := n.Load() - before; asked != 1 {
			t.Errorf("an event that comes twice at once is stored in %d transactions", asked)
		}
	})
}

// TestEditThatCalls: who forgot to mention the bot in a group adds it. The first edit that does so
// is the message, also after a restart; later ones change it while it waits.
func TestEditThatCalls(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		edit := func(text, room string) {
			w.Chat.Do(ot.In(room), ot.With(func(in *messages.Inbound) {
				in.Kind, in.Message, in.Text, in.Calls = messages.KindEdit, "7", text, true
			}))
			w.Pass(2 * time.Second)
		}
		first := w.Start()
		edit("hello", "group")
		first.Kill()
		w.Start()
		edit("hello again", "group")
		w.Chat.WantIn("group", "re: Ann: hello")
		edit("hello you", "other group")
		w.Chat.WantIn("other group", "re: Ann: hello you")
		said := w.Chat.Say("and now?", ot.In("group"))
		w.Pass(2 * time.Second)
		w.Chat.Do(ot.With(func(in *messages.Inbound) {
			event := in.Event
			*in = said
			in.Event, in.Kind, in.Calls, in.Text = event, messages.KindEdit, true, "and then?"
		}))
		w.Pass(2 * time.Second)
		if got := w.Model.Asked(); !slices.Equal(got, []string{"Ann: hello", "Ann: hello you", "Ann: and now?"}) {
			t.Errorf("the model was asked %q", got)
		}
	})
}

func TestConversationThatMoves(t *testing.T) {
	t.Parallel()
	t.Run("AsThePlatformTells", func(t *testing.T) {
		t.Parallel()
		ot.Run(t, func(w *ot.World) {
			w.Start()
			w.Chat.Say("hello", ot.In("group"))
			w.Pass(2 * time.Second)
			inTx(w, func(ctx context.Context, tx *store.Tx) error {
				fork, _, err := tx.Conversations().GetOrCreateConversation(ctx, messages.ConversationKey{Platform: "chat", ID: "fork"}, "")
				if err != nil {
					return err
				}
				return tx.Conversations().UpdateConversation(ctx, fork.ID, sessions.ConversationUpdate{Settings: &sessions.Settings{Home: messages.ConversationKey{Platform: "chat", ID: "group"}.String()}})
			})
			w.Chat.Do(ot.In("group"), ot.With(func(in *messages.Inbound) { in.Kind, in.MigratedTo = messages.KindMigrated, "supergroup" }))
			w.Chat.Say("still there?", ot.In("supergroup"))
			w.Pass(2 * time.Second)
			w.Chat.WantIn("supergroup", "re: Ann: still there?")
			if got := w.Rows(`SELECT settings ->> 'home' FROM remote_agent_conversations WHERE platform_conversation_id = 'fork'`); !slices.Equal(got, []string{messages.ConversationKey{Platform: "chat", ID: "supergroup"}.String()}) {
				t.Errorf("what was forked from it has its home at %q", got)
			}
			if n := len(w.Model.Requests()[1].Array); n != 3 {
				t.Errorf("the second request has %d messages: it is not the same conversation", n)
			}
		})
	})
	t.Run("WhereOneIsAlready", func(t *testing.T) {
		t.Parallel()
		ot.Run(t, func(w *ot.World) {
			w.Start()
			w.Chat.Say("hello", ot.In("group"))
			w.Chat.Say("hello there", ot.In("supergroup"))
			w.Pass(2 * time.Second)
			w.Chat.Do(ot.In("group"), ot.With(func(in *messages.Inbound) { in.Kind, in.MigratedTo = messages.KindMigrated, "supergroup" }))
			w.Chat.Say("still there?", ot.In("supergroup"))
			w.Pass(2 * time.Second)
			w.Chat.WantIn("supergroup", "re: Ann: hello there", "re: Ann: still there?")
			if n := w.Chat.Unacknowledged(); n != 0 {
				t.Errorf("%d events were not taken", n)
			}
		})
	})
	t.Run("AsASendFindsOut", func(t *testing.T) {
		t.Parallel()
		ot.Run(t, func(w *ot.World) {
			w.Chat.React = func(a ot.Asked) ot.Reaction {
				if a.Room == "group" {
					return ot.Reaction{Err: &fault.Error{Kind: fault.Conflict, Err: &platform.MovedError{To: "supergroup"}}}
				}
				return ot.Reaction{}
			}
			w.Start()
			w.Chat.Say("hello", ot.In("group"))
			w.Pass(20 * time.Second)
			w.Chat.WantIn("supergroup", "re: Ann: hello")
			w.Chat.WantIn("group")
			if got := w.Rows(`SELECT platform_conversation_id FROM remote_agent_conversations`); !slices.Equal(got, []string{"supergroup"}) {
				t.Errorf("the conversations are %q", got)
			}
		})
	})
}

// TestWhatIsClosedEndsItsSession and leaves what is said later to another one.
func TestWhatIsClosedEndsItsSession(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		kind := func(k messages.InboundKind) ot.Option {
			return ot.With(func(in *messages.Inbound) { in.Kind = k })
		}
		w.Chat.Do(kind(messages.KindClosed)) // of what nobody talked about
		w.Chat.Say("hello")
		w.Pass(2 * time.Second)
		w.Chat.Do(kind(messages.KindGone))
		w.Chat.Do(kind(messages.KindClosed))
		again := w.Chat.Do(kind(messages.KindClosed))
		w.Pass(2 * time.Second)
		w.Chat.Say("hello again")
		w.Pass(2 * time.Second)
		w.Restart()
		w.Chat.Again(again) // it is about the first session
		w.Settle()
		w.Chat.Want("re: hello", "re: hello again")
		if got := w.Rows(`SELECT active, json_extract(metadata, '$.endReason') FROM remote_agent_sessions ORDER BY id`); !slices.Equal(got, []string{"0|closed", "1|-"}) {
			t.Errorf("the sessions are %q", got)
		}
	})
}

// TestAClosingBehindWhatCannotBeRead ends the session nevertheless: a platform that tells things
// in their order would tell nothing behind it.
func TestAClosingBehindWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Storage = illegible{c.Storage} }
		w.Start()
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		w.Chat.Do(ot.With(func(in *messages.Inbound) { in.Kind = messages.KindClosed }))
		w.Pass(5 * time.Second)
		if n, active := w.Chat.Unacknowledged(), w.Value(`SELECT count(*) FROM remote_agent_sessions WHERE active`); n > 0 || active != "0" {
			t.Errorf("%d events are not acknowledged, and %s sessions go on", n, active)
		}
	})
}

// TestALateClosingEndsNothingThatIsNewer: a platform tells of a closing again after its delivery
// failed, when what was closed has been opened again and talked about.
func TestALateClosingEndsNothingThatIsNewer(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		w.Pass(time.Minute)
		closed := func(at time.Time) ot.Option {
			return ot.With(func(in *messages.Inbound) { in.Kind, in.SentAt = messages.KindClosed, at })
		}
		begun := time.Now()
		w.Chat.Say("hello")
		w.Pass(time.Minute)
		w.Chat.Do(closed(begun.Add(-time.Second)))
		w.Pass(time.Second)
		w.Chat.Say("go on")
		w.Pass(time.Second)
		ended := `SELECT active, json_extract(metadata, '$.endReason') FROM remote_agent_sessions`
		if got := w.Rows(ended); !slices.Equal(got, []string{"1|-"}) {
			t.Errorf("after a closing that came late the sessions are %q", got)
		}
		w.Chat.Do(closed(time.Now()))
		w.Settle()
		if got := w.Rows(ended); !slices.Equal(got, []string{"0|closed"}) {
			t.Errorf("after a closing the sessions are %q", got)
		}
	})
}

// TestDeletionIsNoRepetition: of a deletion that concerns nothing that waits nothing is kept, and
// the figures do not take it for an event that came twice.
func TestDeletionIsNoRepetition(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		m := metrics.New("test")
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Metrics = m }
		w.Start()
		said := w.Chat.Say("hello")
		w.Pass(time.Second)
		w.Chat.Delete(said)
		w.Chat.Again(said)
		w.Pass(time.Second)
		served := httptest.NewRecorder()
		m.Handler().ServeHTTP(served, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, want := range []string{`bot_messages_received_total{kind="deleted",platform="chat"} 1`, `bot_messages_deduplicated_total{kind="message",platform="chat"} 1`} {
			if !strings.Contains(served.Body.String(), want) {
				t.Errorf("there is no %s", want)
			}
		}
		if strings.Contains(served.Body.String(), `bot_messages_deduplicated_total{kind="deleted"`) {
			t.Error("the deletion counts as one that came twice")
		}
	})
}

// TestRemovedBotStops stops what runs and waits in a chat that removed the bot, and nothing
// that is said there later.
func TestRemovedBotStops(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("dogs", ot.Hold("", ot.Say("Dogs bark.")))
		w.Start()
		gone := ot.With(func(in *messages.Inbound) { in.Kind = messages.KindGone })
		w.Chat.Do(gone) // where nobody talked
		w.Chat.Say("what about dogs?")
		w.Chat.Say("and cats?")
		w.Chat.Say("elsewhere", ot.In("team"))
		w.Settle()
		event := w.Chat.Do(gone)
		w.Pass(5 * time.Second)
		if n := w.Model.Held(); n != 0 {
			t.Fatalf("%d requests go on for a chat that removed the bot", n)
		}
		w.Chat.Again(event)
		w.Chat.Say("I am back")
		w.Pass(5 * time.Second)
		if got := w.Model.Asked(); strings.Contains(strings.Join(got, "\n"), "cats") || !strings.HasSuffix(got[len(got)-1], "I am back") {
			t.Errorf("the model was asked %q", got)
		}
		w.Chat.WantIn("team", "re: Ann: elsewhere")
		if got := w.Rows(`SELECT action FROM audit_log WHERE action LIKE 'schedule%'`); len(got) > 0 {
			t.Errorf("on record is %q of a chat without a standing task", got)
		}
	})
}

// TestRemovedBotStopsInTopics: platforms tell of the chat only. What is said there later, and
// what other chats say whose ids begin alike, is answered.
func TestRemovedBotStopsInTopics(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		for _, about := range []string{"dogs", "cats", "owls"} {
			w.Model.On(about, ot.Hold("", ot.Say("On "+about)))
		}
		w.Start()
		w.Chat.Say("what about dogs?", ot.In("team:1"))
		w.Chat.Say("and rats?", ot.In("team:1"))
		w.Chat.Say("what about cats?", ot.In("team:2"))
		w.Chat.Say("what about owls?", ot.In("team2:1"))
		w.Settle()
		gone := w.Chat.Do(ot.In("team"), ot.With(func(in *messages.Inbound) { in.Kind, in.Below = messages.KindGone, "team:" }))
		w.Pass(5 * time.Second)
		if n := w.Model.Held(); n != 1 {
			t.Fatalf("%d requests go on, want the one of the other chat", n)
		}
		w.Chat.Say("I am back", ot.In("team:1"))
		w.Pass(5 * time.Second)
		w.Chat.Again(gone)
		w.Pass(5 * time.Second)
		asked := strings.Join(w.Model.Asked(), "\n")
		if strings.Contains(asked, "rats") || !strings.Contains(asked, "I am back") {
			t.Errorf("the model was asked %q", asked)
		}
	})
}

// TestTurnOfAChatThatIsGoneStops, whether that shows with the first message or with an edit; a
// message that somebody deleted changes nothing.
func TestTurnOfAChatThatIsGoneStops(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		what string
		err  error
		held int
	}{
		"FirstMessage": {"send", fault.New(fault.Gone, "Blocked."), 0},
		"NotAllowed":   {"send", fault.New(fault.Forbidden, "Restricted."), 0},
		"Edit":         {"edit", fault.New(fault.Gone, "Blocked."), 0},
		"Deleted":      {"edit", fault.New(fault.NotFound, "Deleted."), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.React = func(a ot.Asked) ot.Reaction {
					if a.Room == ot.Room && a.What == tt.what {
						return ot.Reaction{Err: tt.err}
					}
					return ot.Reaction{}
				}
				w.Model.On("dogs", ot.Hold("Dogs", ot.Say("Dogs bark.")))
				w.Start()
				w.Chat.Say("what about dogs?")
				w.Pass(20 * time.Second)
				if n := w.Model.Held(); n != tt.held {
					t.Errorf("%d requests run, want %d", n, tt.held)
				}
				if tt.held == 0 {
					if got := w.Value(`SELECT state FROM inbound_events`); got != "stopped" {
						t.Errorf("the message is %s", got)
					}
				}
				w.Model.ReleaseAll()
				w.Pass(5 * time.Second)
			})
		})
	}
}

func TestEventOfAnUnknownKindIsRefused(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		p := w.Start()
		in := messages.Inbound{Event: "x", Kind: "telepathy", Conversation: room(ot.Room), Sender: messages.Sender{ID: ot.Ann}}
		if err := p.Engine.Accept(w.T.Context(), in); !fault.Is(err, fault.Invalid) {
			t.Errorf("accepting it: %v", err)
		}
		if err := p.Engine.Accept(w.T.Context()); err != nil {
			t.Errorf("accepting nothing: %v", err)
		}
		raw := messages.RawEvent{Platform: ot.PlatformName, Account: "bot", Event: "y", Raw: []byte(`{"odd":1}`), Reason: "no idea"}
		for range 2 {
			if err := p.Engine.Keep(w.T.Context(), raw); err != nil {
				t.Errorf("keeping what was not understood: %v", err)
			}
		}
		if n := w.Value(`SELECT count(*) FROM inbound_events WHERE state = 'raw'`); n != "1" {
			t.Errorf("%s raw events, want 1", n)
		}
	})
}

// TestManyEventsAtOnce come in one webhook or poll: each is answered, in its order.
func TestManyEventsAtOnce(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		p := w.Start()
		var all []messages.Inbound
		for i := range 12 {
			all = append(all, messages.Inbound{
				Event: messages.EventID(fmt.Sprint("b", i)), Kind: messages.KindMessage, Message: messages.MessageID(fmt.Sprint("n", i)), Private: true,
				Conversation: room(fmt.Sprint("r", 2-i%3)), Sender: messages.Sender{ID: ot.Ann}, Text: fmt.Sprint("say ", i),
			})
		}
		if err := p.Engine.Accept(w.T.Context(), all...); err != nil {
			t.Fatal(err)
		}
		w.Pass(20 * time.Second)
		w.Chat.WantIn("r0", "re: say 2", "re: say 5", "re: say 8", "re: say 11")
		w.Chat.WantIn("r1", "re: say 1", "re: say 4", "re: say 7", "re: say 10")
		w.Chat.WantIn("r2", "re: say 0", "re: say 3", "re: say 6", "re: say 9")
	})
}

// rung notes the jobs that somebody is woken up with.
type rung struct {
	queue.Queue
	jobs []queue.Job
}

func (r *rung) Enqueue(ctx context.Context, tx queue.Tx, jobs ...queue.Job) error {
	r.jobs = append(r.jobs, jobs...)
	return r.Queue.Enqueue(ctx, tx, jobs...)
}

// TestWhoWasThereBeforeACrowdGoesFirst: only those whom it brings are behind others.
func TestWhoWasThereBeforeACrowdGoesFirst(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		r := &rung{}
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { r.Queue, c.Queue = c.Queue, r }
		p := w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		r.jobs = nil
		var crowd []messages.Inbound
		for i := range 40 {
			crowd = append(crowd, messages.Inbound{
				Event: messages.EventID(fmt.Sprint("b", i)), Kind: messages.KindMessage, Message: messages.MessageID(fmt.Sprint("n", i)),
				Conversation: room(fmt.Sprint("new", i)), Sender: messages.Sender{ID: ot.Bob}, Text: fmt.Sprint("say ", i),
			})
		}
		crowd[20].Conversation = room(ot.Room)
		if err := p.Engine.Accept(w.T.Context(), crowd...); err != nil {
			t.Fatal(err)
		}
		here := w.Value(`SELECT id FROM remote_agent_conversations WHERE platform_conversation_id = $1`, ot.Room)
		for _, job := range r.jobs {
			if job.Behind != (job.Key != here) {
				t.Errorf("of a crowd %+v is enqueued; the conversation that was there is %s", job, here)
			}
		}
		if len(r.jobs) != 40 {
			t.Errorf("%d jobs, want 40", len(r.jobs))
		}
		w.Pass(20 * time.Second)
		w.Chat.Want("re: hello", "re: say 20")
		w.Chat.WantIn("new39", "re: say 39")
	})
}

// TestACrowdIsAcceptedBeforeItIsAnswered: of many messages that come at once none is begun
// until all have come, also in a second batch; then each is answered, and only those
// whose turn does not begin at once are marked as waiting.
func TestACrowdIsAcceptedBeforeItIsAnswered(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 50 }
		w.Chat.SlowToShow = platform.MarkQueued
		p := w.Start()
		crowd := func(from int) (all []messages.Inbound) {
			for i := from; i < from+40; i++ {
				all = append(all, messages.Inbound{
					Event: messages.EventID(fmt.Sprint("b", i)), Kind: messages.KindMessage, Message: messages.MessageID(fmt.Sprint("n", i)),
					Conversation: room(fmt.Sprint("r", i)), Sender: messages.Sender{ID: ot.Ann}, Text: fmt.Sprint("say ", i),
				})
			}
			return all
		}
		for from := 0; from < 80; from += 40 {
			if err := p.Engine.Accept(w.T.Context(), crowd(from)...); err != nil {
				t.Fatal(err)
			}
			w.Pass(50 * time.Millisecond)
			if asked := w.Model.Asked(); len(asked) > 0 {
				t.Fatalf("%q was begun while the crowd came", asked[0])
			}
		}
		w.Pass(20 * time.Second)
		marked := 0
		for i, in := range crowd(0) {
			w.Chat.WantIn(fmt.Sprint("r", i), fmt.Sprint("re: say ", i))
			if marks := w.Chat.Marks(in); len(marks) > 0 {
				marked++
				if len(marks)%2 != 0 || marks[len(marks)-1] != platform.MarkNone {
					t.Errorf("message %d had the marks %q", i, marks)
				}
			}
		}
		if marked == 40 {
			t.Error("all of the crowd were told that they wait, also those whose turn began")
		}
	})
}

// TestMarks: what waits has a sign until its turn begins; where the platform shows
// outcomes, each message ends with one.
func TestMarks(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
		w.Start()
		first := w.Chat.Say("first")
		second := w.Chat.Say("second")
		third := w.Chat.Say("third")
		w.Pass(2 * time.Second)
		w.Model.Release()
		w.Pass(10 * time.Second)
		for _, m := range []struct {
			of   messages.Inbound
			want []platform.Mark
		}{{first, nil}, {second, []platform.Mark{platform.MarkQueued, platform.MarkNone}}, {third, nil}} {
			if got := w.Chat.Marks(m.of); !slices.Equal(got, m.want) {
				t.Errorf("%q had the marks %q, want %q", m.of.Text, got, m.want)
			}
		}
	})
	t.Run("OfOutcomes", func(t *testing.T) {
		t.Parallel()
		ot.Run(t, func(w *ot.World) {
			w.Chat.Caps.OutcomeMarks = true
			w.Chat.SlowToShow = platform.MarkSeen // and is not shown behind the end of a quick turn
			w.Model.On("bad", ot.Fail("", fault.New(fault.Invalid, "")))
			w.Start()
			good, bad, told := w.Chat.Say("good"), w.Chat.Say("bad"), w.Chat.Say("/whoami")
			w.Pass(10 * time.Second)
			for _, m := range []struct {
				of   messages.Inbound
				want platform.Mark
			}{{good, platform.MarkDone}, {bad, platform.MarkFailed}, {told, platform.MarkDone}} {
				if got := w.Chat.Marks(m.of); len(got) == 0 || got[len(got)-1] != m.want {
					t.Errorf("%q had the marks %q, want %q in the end", m.of.Text, got, m.want)
				}
			}
		})
	})
}

// TestWhatWasSaidBefore reaches the first turn of a conversation, and its failure keeps
// nobody from an answer.
func TestWhatWasSaidBefore(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"Read": nil, "Forbidden": fault.New(fault.Forbidden, "May not."), "Away": errUnavailable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Earlier = func(messages.Inbound) ([]messages.Quote, error) {
					return []messages.Quote{{Relation: "thread", Author: "Bob", Text: "The build is red."}}, err
				}
				w.Start()
				w.Chat.Say("why?")
				w.Pass(time.Minute)
				w.Chat.Say("really?")
				w.Pass(5 * time.Second)
				requests := w.Model.Requests()
				if len(requests) != 2 {
					t.Fatalf("the model was asked %d times: %q", len(requests), w.Chat.Texts(ot.Room))
				}
				if got := strings.Contains(requests[0].Array[0].PlainText(), "> The build is red."); got != (err == nil) {
					t.Errorf("the first request begins with %q", requests[0].Array[0].PlainText())
				}
				if got := requests[1].Array[2].PlainText(); got != "really?" {
					t.Errorf("the second one ends with %q", got)
				}
			})
		})
	}
}

// TestLongAnswers are cut where the platform's messages end, in order.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.MaxText = 200
		long := strings.Repeat("This is a sentence of the answer. ", 20)
		w.Model.On("hello", ot.Say(long))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(10 * time.Second)
		posts := w.Chat.Texts(ot.Room)
		if len(posts) < 4 {
			t.Fatalf("%d posts", len(posts))
		}
		joined := strings.Join(posts, " ")
		if got, want := strings.Count(joined, "This is a sentence of the answer."), 20; got != want {
			t.Errorf("%d sentences arrived, want %d", got, want)
		}
		for _, p := range posts {
			if len(p) > 200 {
				t.Errorf("a post has %d bytes", len(p))
			}
		}
	})
}

// TestPlainPlatform can neither edit nor look up: it gets the answer only.
func TestPlainPlatform(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Plain = true
		w.Model.On("slow", ot.Later(time.Minute, ot.Say("At last.")))
		w.Start()
		w.Chat.Say("slow")
		w.Chat.Say("quick")
		w.Pass(2 * time.Minute)
		var texts []string
		for _, p := range w.Chat.Posts(ot.Room) {
			texts = append(texts, p.Text)
		}
		if len(texts) != 3 || texts[1] != "At last." || texts[2] != "re: quick" || !strings.Contains(texts[0], "Queued") {
			t.Errorf("posted: %q", texts)
		}
	})
}

// TestProgress shows a turn while it runs: first that it began, then what it says, then how
// long it takes, with a button; and the answer in a message of its own where the turn took so long
// that people have gone away.
func TestProgress(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Hold("I begin with ", ot.Say("I begin with the end.")))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(30 * time.Millisecond)
		if n := w.Chat.Strays(ot.Room); n != 1 {
			t.Errorf("%d placeholders after 30 ms", n)
		}
		w.Pass(2 * time.Second)
		if p := w.Chat.Find("I begin with"); len(p.Buttons) != 0 {
			t.Error("there is a button already")
		}
		if n := w.Chat.Typed(); n == 0 {
			t.Error("nothing shows that an answer is coming")
		}
		w.Pass(48 * time.Second)
		if p := w.Chat.Find("I begin with"); len(p.Buttons) != 1 {
			t.Error("there is no button")
		}
		w.Model.Release()
		w.Pass(10 * time.Second)
		w.Chat.Want("✔ Worked for 50 s", "I begin with the end.")
	})
}

// TestStandInIsOutgrown: a chat that began with the stand-in continues with the assistant
// that was configured since, in a conversation of its own.
func TestStandInIsOutgrown(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Default = ot.AgentName }
		w.Start()
		w.Chat.Say("hello")
		w.Pass(2 * time.Second)
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Placeholder = map[assistant.Name]bool{ot.AgentName: true}
		}
		w.Restart()
		w.Chat.Say("hello again")
		w.Pass(2 * time.Second)
		w.Chat.Want("agent: hello", "This chat started with the assistant agent. scripted answers from now on", "re: hello again")
		w.Chat.Say("once more")
		w.Pass(2 * time.Second)
		if r := w.Model.Requests(); len(r) != 2 || len(r[0].Array) != 1 || len(r[1].Array) != 3 {
			t.Errorf("the new one is not begun once: %q", w.Model.Asked())
		}
	})
}

// TestStandInKeepsWhatIsLeftToIt: a conversation with the stand-in in which something waits is not
// put aside, nor is one of which an event comes again, nor any while there is nobody else.
func TestStandInKeepsWhatIsLeftToIt(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"Waits": true, "Again": false, "Alone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Default = ot.AgentName }
				w.Start()
				if name == "Waits" {
					halt(w)
				}
				said := w.Chat.Say("hello")
				w.Pass(2 * time.Second)
				w.Configure = func(c *orchestrator.Config, _ *store.Store) {
					c.Placeholder = map[assistant.Name]bool{ot.AgentName: true}
					if name == "Alone" {
						c.Default = ot.AgentName
					}
				}
				w.Restart()
				if waits {
					w.Chat.Say("hello again")
					resume(w)
				} else {
					w.Chat.Again(said)
				}
				w.Pass(10 * time.Second)
				if n := w.Value(`SELECT count(*) FROM remote_agent_conversations`); n != "1" {
					t.Errorf("there are %s conversations: %q", n, w.Chat.Texts(ot.Room))
				}
			})
		})
	}
}

// TestLoopIsMarkedAndNotAnswered: who answers every answer at once is not answered, and
// can see why.
func TestLoopIsMarkedAndNotAnswered(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.OutcomeMarks = true
		w.Start()
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		one := w.Chat.Say("and again", ot.With(func(in *messages.Inbound) { in.Unanswered = true }))
		w.Settle()
		w.Chat.Again(one)
		w.Pass(5 * time.Second)
		w.Chat.Want("re: hello")
		if marks := w.Chat.Marks(one); !slices.Equal(marks, []platform.Mark{platform.MarkFailed}) {
			t.Errorf("it has the marks %q", marks)
		}
		if n := len(w.Model.Requests()); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
		if kept := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%and again%'`); kept != "0" {
			t.Error("the text of what is not answered is kept")
		}
		w.Restart()
		w.Chat.Say("/status")
		w.Pass(5 * time.Second)
		if text := w.Chat.Find("**Idle**").Text; !strings.Contains(text, "1 message was not answered, because each came right after an answer") {
			t.Errorf("/status says %q", text)
		}
		w.Away(25 * time.Hour)
		w.Chat.Say("/status")
		w.Pass(5 * time.Second)
		if posts := w.Chat.Posts(ot.Room); strings.Contains(posts[len(posts)-1].Text, "not answered") {
			t.Errorf("a day later /status says %q", posts[len(posts)-1].Text)
		}
	})
}

// TestMarksOfWhatNeverBegan: a message whose turn could not begin, and one that was
// dropped, have the mark of a failure, as the answers say.
func TestMarksOfWhatNeverBegan(t *testing.T) {
	t.Parallel()
	last := func(w *ot.World, in messages.Inbound) platform.Mark {
		marks := w.Chat.Marks(in)
		if len(marks) == 0 {
			return platform.MarkNone
		}
		return marks[len(marks)-1]
	}
	t.Run("NotPrepared", func(t *testing.T) {
		t.Parallel()
		ot.Run(t, func(w *ot.World) {
			w.Chat.Caps.OutcomeMarks = true
			h := newHub(w)
			h.errs = []error{fault.New(fault.NotFound, "There is no such repository.")}
			w.Start()
			said := h.says("why?")
			w.Pass(5 * time.Second)
			w.Chat.WantIn("issue", "✖ There is no such repository.")
			if got := last(w, said); got != platform.MarkFailed {
				t.Errorf("its last mark is %q", got)
			}
		})
	})
	t.Run("Dropped", func(t *testing.T) {
		t.Parallel()
		ot.Run(t, func(w *ot.World) {
			w.Chat.Caps.OutcomeMarks = true
			w.Model.On("slow", ot.Hold("I am ", ot.Say("I am slow.")))
			w.Start()
			first := w.Chat.Say("slow")
			w.Pass(time.Second)
			second := w.Chat.Say("behind it")
			w.Pass(time.Second)
			w.Chat.Say("/stop")
			w.Pass(5 * time.Second)
			for _, said := range []messages.Inbound{first, second} {
				if got := last(w, said); got != platform.MarkFailed {
					t.Errorf("the last mark of %q is %q", said.Text, got)
				}
			}
		})
	})
}

// TestWhatAnOverflowThrewAway is not shown with the second attempt.
func TestWhatAnOverflowThrewAway(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello",
			func(r *ot.Requested) (messages.Message, error) {
				r.Write("I look first. ")
				m, err := ot.Call(ot.ReadTool, "it")(r)
				m.Blocks = append([]messages.Block{messages.Text{Text: "I look first."}}, m.Blocks...)
				return m, err
			},
			ot.Fail("What I begin with ", overflow()), ot.Hold("What I say instead ", ot.Say("What I say instead is this.")))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(4 * time.Second)
		if text := w.Chat.Find("What I say instead").Text; strings.Contains(text, "begin") || strings.Contains(text, "first") {
			t.Errorf("they read %q", text)
		}
		w.Model.Release()
		w.Pass(5 * time.Second)
		w.Chat.Find("What I say instead is this.")
	})
}

// TestProgressThatThePlatformShed is shown a little later, also where nothing is new by then.
func TestProgressThatThePlatformShed(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var edits atomic.Int32
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.Progress && edits.Add(1) == 1 {
				return ot.Reaction{Err: fault.New(fault.RateLimited, "")}
			}
			return ot.Reaction{}
		}
		w.Model.On("hello", ot.Given(func() {}, ot.Hold("I begin", ot.Say("I begin and end."))))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(2500 * time.Millisecond)
		w.Chat.Find("I begin")
		w.Model.Release()
		w.Pass(5 * time.Second)
		w.Chat.Want("I begin and end.")
	})
}

// TestCardOfATurnThatWorked says what its calls came to while it works, and at the end what
// all of its requests used and cost.
func TestCardOfATurnThatWorked(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("do it", ot.Call(ot.WriteTool, "a file"), ot.Hold("", ot.Say("It is done.")))
		w.Start()
		w.Chat.Say("do it")
		w.Pass(10 * time.Second)
		w.Chat.Find("✔ ✎ a file ok")
		w.Model.Release()
		w.Pass(5 * time.Second)
		w.Chat.Want("✔ Worked for 10 s · 1 edit · 30 tokens", "It is done.")
	})
}

// TestCardOfAnAgentThatCosts says what the agent says of that.
func TestCardOfAnAgentThatCosts(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("build", func(r *ot.Errands) (string, error) {
			r.Used = assistant.Usage{InputTokens: 1000, OutputTokens: 500, CostUSD: 1.5}
			r.Tell(assistant.ToolStarted{ID: "c1", Name: "bash", Summary: "make", Kind: assistant.KindExecute})
			time.Sleep(10 * time.Second)
			r.Tell(assistant.ToolFinished{ID: "c1", OK: true})
			return "It is built.", nil
		})
		w.Start()
		w.Chat.Say("build it")
		w.Pass(20 * time.Second)
		w.Chat.Want("✔ Worked for 10 s · 1 command · 2k tokens · $1.50", "It is built.")
	})
}
