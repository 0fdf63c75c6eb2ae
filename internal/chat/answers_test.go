package chat

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/demo"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/plan"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// engine is an Engine that does what a test says.
type engine struct {
	Engine
	stopped orchestrator.Stopped
	upTo    int64
	live    orchestrator.Live
	decided []orchestrator.Decision
}

func (e *engine) Stop(_ context.Context, _ sessions.Conversation, upTo int64, _ string) (orchestrator.Stopped, error) {
	e.upTo = upTo
	return e.stopped, nil
}

func (*engine) Running(string) (time.Time, bool) { return time.Time{}, false }

func (*engine) RunningTurns() int { return 3 }

func (e *engine) Live() *orchestrator.Live { return &e.live }

func (*engine) SystemPrompt(sessions.Conversation, messages.Inbound, *profile.Profile) string {
	return "You are a bot."
}

func (e *engine) Decide(_ context.Context, r command.Request, v orchestrator.Decision) (approval.Approval, error) {
	e.decided = append(e.decided, v)
	return approval.Approval{Number: v.Number, ConversationID: r.Conv.ID, State: approval.Allowed, DecidedBy: r.Actor()}, nil
}

// room is a private chat in a database.
type room struct {
	t      *testing.T
	db     *store.Store
	h      *Handler
	engine *engine
	conv   sessions.Conversation
}

func newRoom(t *testing.T, open func(testing.TB) *store.Store) *room {
	t.Helper()
	scripted := demo.New(demo.Config{})
	r := &room{t: t, db: open(t), engine: new(engine)}
	var err error
	r.h, err = New(Config{
		Storage: r.db, Version: "1.2.3", Log: storetest.Log(t), Missing: map[assistant.Name]string{"codex": "Install codex."},
		Placeholder: map[assistant.Name]bool{scripted.Name(): true},
		Assistants:  map[assistant.Name]assistant.Assistant{scripted.Name(): scripted},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.h.Bind(r.engine)
	r.do(func(tx *store.Tx) error {
		var err error
		r.conv, _, err = tx.Conversations().GetOrCreateConversation(t.Context(), messages.ConversationKey{Platform: "test", ID: "c"}, string(scripted.Name()))
		return err
	})
	return r
}

func (r *room) do(fn func(tx *store.Tx) error) {
	r.t.Helper()
	if err := r.db.InTx(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

// gives runs a command of the person 42, as the conversation is now.
func (r *room) gives(text string, role sessions.Role) (command.Reply, error) {
	r.t.Helper()
	request := asked(text, role)
	r.do(func(tx *store.Tx) error {
		var err error
		if r.conv, err = tx.Conversations().Conversation(r.t.Context(), r.conv.ID); err != nil {
			return err
		}
		request.Entry.ID, request.Entry.ConversationID = uuid.Must(uuid.NewV7()).String(), r.conv.ID
		request.Entry.In.Event, request.Entry.AcceptedAt = messages.EventID(request.Entry.ID), time.Now()
		_, err = tx.Inbox().InsertEntry(r.t.Context(), &request.Entry)
		return err
	})
	request.Conv = r.conv
	c, ok := r.h.Find(request.Call.Name)
	if !ok {
		r.t.Fatalf("there is no %s", text)
	}
	return c.Run(r.t.Context(), request)
}

// Where people reach the pages, the status leads to the one of the session.
func TestStatusLeadsToTheSession(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) { //nolint:thelper // a test
		r := newRoom(t, open)
		said := func() string {
			reply, err := r.gives("/status", sessions.User)
			if err != nil {
				t.Fatal(err)
			}
			return reply.Text
		}
		r.h.overview.pages = "https://bot.example.com"
		if text := said(); strings.Contains(text, "Open") {
			t.Errorf("without a session:\n%s", text)
		}
		var s sessions.Session
		r.do(func(tx *store.Tx) (err error) {
			s, err = tx.Sessions().CreateSession(t.Context(), sessions.NewSession{ConversationID: r.conv.ID, Assistant: r.conv.Assistant})
			return err
		})
		if text := said(); !strings.Contains(text, " old, [Open](https://bot.example.com/sessions/"+s.ID+")\n") {
			t.Errorf("with a session:\n%s", text)
		}
		r.h.overview.pages = ""
		if text := said(); !strings.Contains(text, " old\n") || strings.Contains(text, "Open") {
			t.Errorf("without pages:\n%s", text)
		}
	})
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) { //nolint:thelper // a test
		r := newRoom(t, open)
		r.engine.stopped = orchestrator.Stopped{State: orchestrator.StopDone, Dropped: 2}
		r.engine.live = orchestrator.Live{Budget: spend.Budget{DayMicros: 5_000_000}}
		for _, tt := range []struct {
			text string
			role sessions.Role
			want string
		}{
			{"/whoami", sessions.User, "role **user**"},
			{"/start", sessions.Owner, "You are the owner"},
			{"/stop", sessions.User, "Stopped. What was said so far is kept. 2 queued messages were dropped"},
			{"/status", sessions.User, "session: none"},
			{"/status verbose", sessions.User, "You are a bot."},
			{"/mode", sessions.User, "Mode **edit**"},
			{"/mode ask", sessions.User, "Mode is now **ask**"},
			{"/mode", sessions.User, "Mode **ask**"},
			{"/mode auto", sessions.User, "Only an owner of the bot can switch to auto."},
			{"/mode auto", sessions.Owner, "Mode is now **auto**"},
			{"/mode loud", sessions.User, "The modes are"},
			{"/verbose 2", sessions.User, "Verbosity is 2 from the next turn on."},
			{"/verbose 3", sessions.User, "Use `/verbose 0`"},
			{"/model", sessions.User, "Assistant **demo**"},
			{"/model gpt-5", sessions.User, "This is the demo, which has no model."},
			{"/agent", sessions.User, "There are no profiles yet"},
			{"/agent nobody", sessions.User, "nobody"},
			{"/agent default", sessions.User, "is already in use here"},
			{"/schedule", sessions.User, "No standing task is on here"},
			{"/schedule on", sessions.User, "No profile selected"},
			{"/schedule off", sessions.User, "No standing task is on here."},
			{"/schedule list", sessions.User, "No standing task is on."},
			{"/schedule often", sessions.User, "shows the standing task"},
			{"/allow", sessions.User, "There is no repository here"},
			{"/approvals", sessions.User, "No pending approvals."},
			{"/approve a-7 always", sessions.User, "a-7: ✔ Approved by test/42."},
			{"/deny a-7 no need", sessions.User, "a-7: ✔ Approved by test/42."},
			{"/deny a-seven", sessions.User, "is not an approval like a-7"},
			{"/deny", sessions.User, "No pending approvals here."},
			{"/approve", sessions.User, "There is no plan here yet."},
			{"/approve p-9", sessions.User, "There is no plan p-9 here."},
			{"/edit p-9", sessions.User, "Write the new text of the plan"},
			{"/cost", sessions.User, "Limits: "},
			{"/cost week by model", sessions.User, "No usage by you"},
			{"/cost by mood", sessions.User, "mood"},
			{"/cost week month", sessions.User, "Use one period and one grouping"},
			{"/sessions", sessions.User, "There are no sessions here yet"},
			{"/sessions show", sessions.User, "Specify a"},
			{"/sessions show 9", sessions.User, "There is no session \"9\" here."},
			{"/sessions show 00000000", sessions.User, "There is no session \"00000000\" here."},
			{"/sessions before 9", sessions.User, "There is no session \"9\" here."},
			{"/sessions nothing like it", sessions.User, "No messages here contain all of these words."},
			{"/fork", sessions.User, "There is no session here to fork"},
			{"/fork four", sessions.User, "Specify how many messages to keep"},
			{"/fork thread", sessions.User, "Cannot open a thread or topic"},
			{"/handoff", sessions.User, "No other assistant is configured"},
			{"/handoff codex", sessions.User, "Install codex."},
			{"/handoff nobody", sessions.User, "There is no assistant \"nobody\" here."},
			{"/handoff demo", sessions.User, "demo is already in use here."},
			{"/new", sessions.User, "Your next message starts a new session."},
		} {
			reply, err := r.gives(tt.text, tt.role)
			if got := reply.Text + fault.Public(err); !strings.Contains(got, tt.want) {
				t.Errorf("%s of %s answers %q, want %q in it", tt.text, tt.role, got, tt.want)
			}
		}
		want := []orchestrator.Decision{{Number: 7, Decision: approval.Always}, {Number: 7, Decision: approval.Deny, Note: "no need"}}
		if len(r.engine.decided) != 2 || r.engine.decided[0] != want[0] || r.engine.decided[1] != want[1] {
			t.Errorf("decided %+v", r.engine.decided)
		}
	})
}

// A plan is decided on once, by who asked for it, also when the command runs again.
func TestPlansAreDecidedOnce(t *testing.T) {
	t.Parallel()
	r := newRoom(t, storetest.SQLite(t))
	propose := func() (p plan.Plan) {
		r.do(func(tx *store.Tx) error {
			p = plan.Plan{ConversationID: r.conv.ID, Text: "1. Do it.", Author: "assistant", Requester: "test/42", State: plan.Proposed}
			return tx.Proposals().InsertPlan(t.Context(), &p)
		})
		return p
	}
	says := func(text, want string) command.Reply {
		t.Helper()
		reply, err := r.gives(text, sessions.User)
		if got := reply.Text + fault.Public(err); !strings.Contains(got, want) {
			t.Errorf("%s answers %q, want %q in it", text, got, want)
		}
		return reply
	}
	p := propose()
	says("/approve "+p.Name(), "Approved plan")
	says("/approve "+p.Name(), "is already approved")
	says("/reject", "Rejected plan")
	p = propose()
	if next := says("/edit "+p.Name()+" 1. Do more.", "version 2"); next.Plan == nil || next.Plan.Version != 2 || next.Plan.Author != "test/42" {
		t.Errorf("the new version is %+v", next.Plan)
	}
	says("/reject 1", "is already rejected")
}
