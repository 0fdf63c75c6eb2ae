package chat

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// asks has a question about a tool call wait in the room.
func (r *room) asks(call string) (a approval.Approval) {
	r.t.Helper()
	r.do(func(tx *store.Tx) error {
		a = approval.Approval{ConversationID: r.conv.ID, CallID: call, Tool: "run", Arguments: call, Kind: assistant.KindExecute, Title: call, Requester: "test/42"}
		return tx.Questions().InsertApproval(r.t.Context(), &a)
	})
	return a
}

// again runs a command once more for the same entry, as after a crash.
func (r *room) again(e sessions.Entry, text string) (command.Reply, error) {
	r.t.Helper()
	request := asked(text, sessions.User)
	request.Entry, request.Conv = e, r.conv
	c, _ := r.h.Find(request.Call.Name)
	return c.Run(r.t.Context(), request)
}

// TestDenyIsNo, whatever is said behind it.
func TestDenyIsNo(t *testing.T) {
	t.Parallel()
	r := newRoom(t, storetest.SQLite(t))
	if _, err := r.gives("/deny a-7 always", sessions.User); err != nil {
		t.Fatal(err)
	}
	if want := (orchestrator.Decision{Number: 7, Decision: approval.Deny, Note: "always"}); len(r.engine.decided) != 1 || r.engine.decided[0] != want {
		t.Errorf("decided %+v", r.engine.decided)
	}
}

// TestSeveralQuestions wait: "no" is said to all of them, and /deny asks which.
func TestSeveralQuestions(t *testing.T) {
	t.Parallel()
	r := newRoom(t, storetest.SQLite(t))
	r.asks("one")
	r.asks("two")
	reply, err := r.gives("/deny", sessions.User)
	if err != nil || !strings.Contains(reply.Text, "Which one?") || len(r.engine.decided) != 0 {
		t.Errorf("/deny answers %q, %v, and decides %+v", reply.Text, err, r.engine.decided)
	}
	request := asked("no", sessions.User)
	request.Conv, request.Entry.AcceptedAt = r.conv, time.Now()
	if _, err := r.h.Plain(t.Context(), request); err != nil || len(r.engine.decided) != 2 {
		t.Errorf("no decides %+v, %v", r.engine.decided, err)
	}
}

// TestWhatIsAskedLaterIsNotMeant by a word or a command that was sent before.
func TestWhatIsAskedLaterIsNotMeant(t *testing.T) {
	t.Parallel()
	r := newRoom(t, storetest.SQLite(t))
	r.asks("one")
	request := asked("/approve", sessions.User)
	request.Conv, request.Entry.AcceptedAt = r.conv, time.Now().Add(-time.Hour)
	c, _ := r.h.Find("approve")
	if _, err := c.Run(t.Context(), request); !fault.Is(err, fault.NotFound) || len(r.engine.decided) != 0 {
		t.Errorf("it decides %+v, %v", r.engine.decided, err)
	}
}

// TestNewAfterACrash: the second run says what the first one did.
func TestNewAfterACrash(t *testing.T) {
	t.Parallel()
	r := newRoom(t, storetest.SQLite(t))
	r.session()
	given := r.accepts(time.Now(), "")
	for run := range 2 {
		reply, err := r.again(given, "/new")
		if err != nil || !strings.HasPrefix(reply.Text, "Session ended") {
			t.Errorf("run %d says %q, %v", run+1, reply.Text, err)
		}
		if run == 0 {
			r.session() // the next message has begun one
		}
	}
	r.do(func(tx *store.Tx) error {
		_, active, err := tx.Sessions().ActiveSession(t.Context(), r.conv.ID)
		if !active {
			t.Error("the second run has ended the next session")
		}
		return err
	})
}

// TestForkAfterACrash forks once.
func TestForkAfterACrash(t *testing.T) {
	t.Parallel()
	r := newRoom(t, storetest.SQLite(t))
	s := r.session()
	e := r.accepts(time.Now(), s.ID)
	r.do(func(tx *store.Tx) error {
		_, err := tx.Messages().AppendMessages(t.Context(), s.ID, e.ID, messages.NewText(messages.RoleUser, "one"), messages.NewText(messages.RoleAssistant, "two"))
		return err
	})
	given := r.accepts(time.Now(), "")
	var said []string
	for range 2 {
		reply, err := r.again(given, "/fork")
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, reply.Text)
	}
	if !strings.Contains(said[1], "continues with 2 messages") {
		t.Errorf("it says %q", said)
	}
	r.do(func(tx *store.Tx) error {
		ids, err := tx.Lists().SessionIDs(t.Context(), []string{r.conv.ID})
		if len(ids) != 2 {
			t.Errorf("there are %d sessions, want 2", len(ids))
		}
		return err
	})
}

// TestAgentDoesNotEndALaterSession: one that began with a message behind the command.
func TestAgentDoesNotEndALaterSession(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]bool{"Before": false, "Behind": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, storetest.SQLite(t))
			s := r.session()
			var given sessions.Entry
			if behind {
				given = r.accepts(time.Now(), "")
				r.accepts(time.Now(), s.ID)
			} else {
				r.accepts(time.Now(), s.ID)
				given = r.accepts(time.Now(), "")
			}
			r.do(func(tx *store.Tx) error {
				p, err := tx.Profiles().Create(t.Context(), profile.Profile{Name: "scribe", Mode: profile.Edit, MaxIterations: 5})
				if err != nil {
					return err
				}
				was, err := switchProfile(t.Context(), tx, command.Request{Entry: given, Conv: r.conv}, p.ID, &p)
				if was.ended == behind {
					t.Errorf("it ended the session: %v", was.ended)
				}
				return err
			})
		})
	}
}

// TestRevokedRule is the one that was named, and one of another repository stays.
func TestRevokedRule(t *testing.T) {
	t.Parallel()
	r := newRoom(t, storetest.SQLite(t))
	var here, there sessions.Codebase
	rules := func(c sessions.Codebase) (names []string) {
		r.do(func(tx *store.Tx) error {
			all, err := tx.Questions().Rules(t.Context(), c.ID)
			names = nil
			for _, rule := range all {
				names = append(names, rule.Rule)
			}
			return err
		})
		return names
	}
	r.do(func(tx *store.Tx) error {
		var err error
		if here, err = tx.Registry().Create(t.Context(), sessions.Codebase{Name: "here", DefaultCwd: "/here"}); err != nil {
			return err
		}
		if there, err = tx.Registry().Create(t.Context(), sessions.Codebase{Name: "there", DefaultCwd: "/there"}); err != nil {
			return err
		}
		for _, rule := range []approval.Rule{{CodebaseID: here.ID, Rule: "make"}, {CodebaseID: here.ID, Rule: "test"}, {CodebaseID: there.ID, Rule: "make"}} {
			rule.Tool, rule.CreatedBy = "run", "test/42"
			if err := tx.Questions().SaveRule(t.Context(), rule); err != nil {
				return err
			}
		}
		return tx.Conversations().UpdateConversation(t.Context(), r.conv.ID, sessions.ConversationUpdate{CodebaseID: &here.ID})
	})
	for _, tt := range []struct{ say, want string }{
		{"/allow", "- 2: run `test`"}, {"/allow revoke 1", "Rule 1 is revoked."}, {"/allow revoke 3", "There is no rule 3 here."},
	} {
		reply, err := r.gives(tt.say, sessions.User)
		if got := reply.Text + fault.Public(err); !strings.Contains(got, tt.want) {
			t.Errorf("%s answers %q, want %q", tt.say, got, tt.want)
		}
	}
	if got := strings.Join(append(rules(here), rules(there)...), " "); got != "test make" {
		t.Errorf("the rules are %q", got)
	}
}
