//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

func (b bundle) agent(tb testing.TB, name string, change ...func(*profile.Profile)) profile.Profile {
	tb.Helper()
	p := profile.New(name)
	for _, f := range change {
		f(&p)
	}
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = tx.Profiles().Create(ctx, p)
		return err
	})
	return p
}

func inGroup(group string) func(*profile.Profile) {
	return func(p *profile.Profile) { p.Group = group }
}

func every(seconds int64) func(*profile.Profile) {
	return func(p *profile.Profile) { p.Interval, p.Objectives = seconds, profile.Texts{"look"} }
}

// uses has a conversation use a profile, with a session and a turn of it.
func (b bundle) uses(tb testing.TB, chat string, p profile.Profile) (sessions.Entry, sessions.Session) {
	tb.Helper()
	e := b.accept(tb, chat, chat+"-1")
	var s sessions.Session
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		if err := tx.Conversations().UpdateConversation(ctx, e.ConversationID, sessions.ConversationUpdate{AgentID: &p.ID}); err != nil {
			return err
		}
		s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: e.ConversationID, Assistant: "demo", AgentName: p.Title(), AgentID: p.ID})
		if err != nil {
			return err
		}
		if _, err := tx.Messages().AppendMessages(ctx, s.ID, e.ID, messages.NewText(messages.RoleUser, "hello")); err != nil {
			return err
		}
		return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{SessionID: &s.ID})
	})
	return e, s
}

func (b bundle) conversationOf(tb testing.TB, id string) (c sessions.Conversation) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		c, err = tx.Conversations().Conversation(ctx, id)
		return err
	})
	return c
}

func TestProfilesAreKeptAsTheyAre(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		want := profile.Profile{
			Name: "reviewer", Group: "team", Description: "reviews\nchanges", Lore: profile.Texts{"a", "b\u0000c"}, Objectives: profile.Texts{"o"},
			Knowledge: profile.Texts{"k"}, SystemPrompt: "Be 'strict'.", Interval: 3600, Plugins: profile.Texts{"read_file"},
			Memory: profile.Memory{ShortTerm: 3, Size: 4}, RAG: profile.RAG{Enabled: true, EmbeddingModel: "m"}, Mode: profile.Ask, MaxIterations: 7,
			MCPServers:  map[string]mcpserver.Server{"jira": {Command: "jira", Args: []string{"-x"}, Env: map[string]string{"A": "b"}}},
			AvatarImage: profile.Image{0x89, 0, 1}, AvatarType: "image/png", ModelTier: "smart", Version: 1,
		}
		got := b.agent(t, "", func(p *profile.Profile) { *p = want })
		want.Lore[1] = "b\ufffdc" // PostgreSQL has no zero bytes
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(profile.Profile{}, "ID", "CreatedAt", "UpdatedAt")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got.ID == "" || time.Since(got.CreatedAt) > time.Minute {
			t.Errorf("id %q, created %s", got.ID, got.CreatedAt)
		}
		plain := b.agent(t, "plain")
		if diff := cmp.Diff(profile.New("plain"), plain, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(profile.Profile{}, "ID", "CreatedAt", "UpdatedAt", "Version")); diff != "" {
			t.Errorf("defaults (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			all, err := tx.Profiles().List(ctx, "")
			if err != nil || len(all) != 2 || all[0].Name != "plain" || all[1].AvatarImage != nil || all[1].AvatarType != "image/png" {
				t.Errorf("list %+v, %v", all, err)
			}
			team, err := tx.Profiles().List(ctx, "team")
			if err != nil || len(team) != 1 || team[0].Name != "reviewer" {
				t.Errorf("the group's list %+v, %v", team, err)
			}
			return nil
		})
	})
}

// Whoever writes rows by hand, with the columns of the seed only, gets profiles
// that work.
func TestRowsOfTheSeedAreProfiles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `INSERT INTO agents (name, description, lore) VALUES ('seeded', 'd', '["one"]')`)
		})
		var p profile.Profile
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			p, err = tx.Profiles().Find(ctx, profile.Ref{Name: "seeded"})
			return err
		})
		want := profile.New("seeded")
		want.Description, want.Lore = "d", profile.Texts{"one"}
		if !p.Same(want) || p.Check(profile.Rules{}) != nil || len(p.ID) != 36 {
			t.Errorf("got %+v", p)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE agents SET lore = '{"no":"list"}'`)
		})
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Profiles().Agent(ctx, p.ID)
			return err
		})
		if !fault.Is(err, fault.Internal) || !strings.Contains(fault.Public(err), "seeded cannot be read: its lore") {
			t.Errorf("a column of another form: %v", err)
		}
	})
}

func TestNamesAreUniqueInTheirGroup(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		a := b.agent(t, "reviewer")
		team := b.agent(t, "reviewer", inGroup("team"))
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Profiles().Create(ctx, profile.New("reviewer"))
			return err
		}), fault.Conflict)
		team.Group = profile.DefaultGroup
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Profiles().Update(ctx, team)
			return err
		}), fault.Conflict)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for text, want := range map[string]string{"reviewer": a.ID, "team/reviewer": team.ID} {
				r, err := profile.ParseRef(text)
				if err != nil {
					return err
				}
				if p, err := tx.Profiles().Find(ctx, r); err != nil || p.ID != want {
					t.Errorf("%s: %q, %v", text, p.ID, err)
				}
			}
			_, err := tx.Profiles().Find(ctx, profile.Ref{Name: "reviwer"})
			if !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Public(err), "Did you mean reviewer?") {
				t.Errorf("a misspelled name: %v", err)
			}
			return nil
		})
	})
}

func TestOfTwoChangesAtOnceOneIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		p := b.agent(t, "reviewer")
		errs := together(8, func(i int) error {
			mine := p
			mine.Description = fmt.Sprint("by ", i)
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Profiles().Update(ctx, mine)
				return err
			})
		})
		if len(errs) != 7 {
			t.Fatalf("%d of 8 changes were refused: %v", len(errs), errs)
		}
		for _, err := range errs {
			wantKind(t, err, fault.Conflict)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Profiles().Agent(ctx, p.ID)
			if err != nil || got.Version != 2 || !strings.HasPrefix(got.Description, "by ") {
				t.Errorf("got %+v, %v", got, err)
			}
			got.ID = "00000000-0000-7000-8000-000000000000"
			_, err = tx.Profiles().Update(ctx, got)
			wantKind(t, err, fault.NotFound)
			_, err = tx.Profiles().Agent(ctx, "no id at all")
			wantKind(t, err, fault.NotFound)
			return nil
		})
	})
}

// What belongs to profiles goes with them and is counted; conversations and what
// people said stay.
func TestDeletingAGroupIsScopedAndCounted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		first, second, other := b.agent(t, "first", inGroup("team")), b.agent(t, "second", inGroup("team")), b.agent(t, "third")
		one, session := b.uses(t, "one", first)
		two, _ := b.uses(t, "two", second)
		three, _ := b.uses(t, "three", other)
		for i, learned := range []struct {
			run    string
			origin memory.Origin
		}{{one.ID, memory.ByAssistant}, {two.ID, memory.ByAssistant}, {two.ID, memory.ByPerson}, {three.ID, memory.ByAssistant}} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Memories().UpsertFact(ctx, memory.Fact{
					Scope: memory.Scope{Person: "test/42"}, RunID: learned.run, Origin: learned.origin, Key: fmt.Sprint(i), Now: time.Now(),
					Text: []string{"likes tea", "owns a dog called Rex", "prefers tabs over spaces", "works from Lisbon"}[i],
				})
				return err
			})
		}
		b.schedule(t, one, first)
		b.schedule(t, three, other)
		want := store.AgentsRemoved{Agents: 2, Conversations: 2, Schedules: 1, Memories: 2}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if got, err := tx.Profiles().MeasureAgents(ctx, "team"); err != nil || got != want {
				t.Errorf("would delete %+v, %v", got, err)
			}
			if got, err := tx.Profiles().MeasureAgent(ctx, other.ID); err != nil || got != (store.AgentsRemoved{Agents: 1, Conversations: 1, Schedules: 1, Memories: 1}) {
				t.Errorf("would delete %+v of one, %v", got, err)
			}
			return nil
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Profiles().DeleteAgents(ctx, "team")
			if got != want {
				t.Errorf("deleted %+v", got)
			}
			return err
		})
		if c := b.conversationOf(t, one.ConversationID); c.AgentID != "" {
			t.Errorf("the conversation still uses %s", c.AgentID)
		}
		if c := b.conversationOf(t, three.ConversationID); c.AgentID != other.ID {
			t.Errorf("a conversation of another group uses %q", c.AgentID)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			s, err := tx.Sessions().Session(ctx, session.ID)
			if err != nil || s.AgentID != "" || s.AgentName != "team/first" {
				t.Errorf("session %+v, %v", s, err)
			}
			if n, err := tx.Memories().Count(ctx, "test/42", time.Now()); err != nil || n != 2 {
				t.Errorf("%d memories are left, %v", n, err)
			}
			if all, err := tx.Profiles().List(ctx, ""); err != nil || len(all) != 1 {
				t.Errorf("left are %+v, %v", all, err)
			}
			if got, err := tx.Profiles().DeleteAgents(ctx, "team"); err != nil || got != (store.AgentsRemoved{}) {
				t.Errorf("a second time: %+v, %v", got, err)
			}
			_, err = tx.Profiles().Delete(ctx, first.ID)
			wantKind(t, err, fault.NotFound)
			got, err := tx.Profiles().Delete(ctx, other.ID)
			if got.Agents != 1 || got.Schedules != 1 {
				t.Errorf("deleted %+v", got)
			}
			return err
		})
	})
}

func (b bundle) schedule(tb testing.TB, e sessions.Entry, p profile.Profile) sessions.Schedule {
	tb.Helper()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := sessions.Schedule{AgentID: p.ID, ConversationID: e.ConversationID, CreatedBy: "test/42", Origin: e.In, CreatedAt: at, NextAt: at.Add(time.Hour)}
	b.do(tb, func(ctx context.Context, tx *store.Tx) error { return tx.Tasks().SaveSchedule(ctx, &s) })
	return s
}

// TestStandingTasksOfAPerson are found however many others come before them.
func TestStandingTasksOfAPerson(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		p := b.agent(t, "watcher", every(3600))
		save := func(chat, by string, next time.Duration) (s sessions.Schedule) {
			e, _ := b.uses(t, chat, p)
			s = sessions.Schedule{AgentID: p.ID, ConversationID: e.ConversationID, CreatedBy: by, Origin: e.In, CreatedAt: time.Now(), NextAt: time.Now().Add(next)}
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Tasks().SaveSchedule(ctx, &s) })
			return s
		}
		save("others", "test/7", time.Minute)
		here := save("here", "test/7", 2*time.Minute)
		own := save("elsewhere", "test/42", 3*time.Minute)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for limit, want := range map[int][]int64{1: {here.ID}, 10: {here.ID, own.ID}} {
				all, err := tx.Tasks().SchedulesOf(ctx, "test/42", here.ConversationID, limit)
				var got []int64
				for _, s := range all {
					got = append(got, s.ID)
				}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("the first %d are %v, want %v: %v", limit, got, want, err)
				}
			}
			return nil
		})
	})
}

func TestStandingTasks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		p := b.agent(t, "watcher", every(3600))
		e, _ := b.uses(t, "here", p)
		s := b.schedule(t, e, p)
		due := func(at time.Time) (all []sessions.Schedule) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				all, err = tx.Tasks().DueSchedules(ctx, at, 10)
				return err
			})
			return all
		}
		if early := due(s.NextAt.Add(-time.Millisecond)); len(early) != 0 {
			t.Errorf("due too early: %+v", early)
		}
		for ahead, want := range map[time.Duration]int{2*time.Hour + time.Second: 0, 3 * time.Hour: 1} { // of an hour's interval
			if late := due(s.NextAt.Add(-ahead)); len(late) != want {
				t.Errorf("%s before its time %d are due, want %d", ahead, len(late), want)
			}
		}
		now := s.NextAt.Add(10 * time.Minute)
		ready := due(now)
		if diff := cmp.Diff([]sessions.Schedule{s}, ready, cmpopts.IgnoreFields(messages.Inbound{}, "Raw")); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		var advanced atomic.Int64
		errs := together(4, func(int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				ok, err := tx.Tasks().AdvanceSchedule(ctx, ready[0], now, now.Add(time.Hour), e.ID)
				if ok {
					advanced.Add(1)
				}
				return err
			})
		})
		if len(errs) > 0 || advanced.Load() != 1 {
			t.Errorf("%d replicas ran it, %v", advanced.Load(), errs)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, ok, err := tx.Tasks().Schedule(ctx, e.ConversationID)
			if err != nil || !ok || got.Runs != 1 || !got.LastAt.Equal(now) || !got.NextAt.Equal(now.Add(time.Hour)) || got.EntryID != e.ID {
				t.Errorf("after a run %+v, %v", got, ok)
			}
			p.Interval = 600
			p, err = tx.Profiles().Update(ctx, p)
			return err
		})
		if soon := due(now.Add(10 * time.Minute)); len(soon) != 1 {
			t.Errorf("a shorter interval does not count from the last run: %+v", soon)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			p.Interval = 0
			p, err = tx.Profiles().Update(ctx, p)
			return err
		})
		if rests := due(now.Add(time.Hour)); len(rests) != 0 {
			t.Errorf("due without an interval: %+v", rests)
		}
		again := b.schedule(t, e, p) // switched on again: one for a conversation
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			all, err := tx.Tasks().Schedules(ctx, 10)
			if err != nil || len(all) != 1 || all[0].Runs != 0 || all[0].ID != again.ID {
				t.Errorf("all standing tasks: %+v, %v", all, err)
			}
			for _, want := range []bool{true, false} {
				if ok, err := tx.Tasks().EndSchedule(ctx, e.ConversationID); err != nil || ok != want {
					t.Errorf("ended %v, %v", ok, err)
				}
			}
			return nil
		})
		b.schedule(t, e, p)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Conversations().DeleteConversation(ctx, e.ConversationID)
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if all, err := tx.Tasks().Schedules(ctx, 10); err != nil || len(all) != 0 {
				t.Errorf("a deleted conversation has %+v, %v", all, err)
			}
			return nil
		})
	})
}

// The views have the names and columns of seed 004.
func TestViewsOfTheSeedShowProfiles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		p := b.agent(t, "reviewer")
		e, s := b.uses(t, "here", p)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			call := messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.ToolCall{ID: "c1", Name: "bash", Arguments: `{"command":"ls"}`}}}
			seqs, err := tx.Messages().AppendMessages(ctx, s.ID, e.ID, call)
			if err != nil {
				return err
			}
			if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Checkpoint: &sessions.Checkpoint{SessionID: s.ID, Seq: seqs[0] - 1}}); err != nil {
				return err
			}
			return tx.Spending().AddUsage(ctx, spend.Record{EntryID: e.ID, ConversationID: e.ConversationID, SessionID: s.ID, Actor: "test/42", Assistant: "demo",
				Usage: assistant.Usage{InputTokens: 5}, At: time.Now()})
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			rows, err := store.Rows(ctx, tx, `
				SELECT CAST(agent_id AS TEXT), event, run_id, thread_id, checkpoint_id, "from", content, COALESCE(CAST(tools AS TEXT), ''), COALESCE(CAST(plan AS TEXT), ''), COALESCE(CAST(metadata AS TEXT), '')
				FROM message WHERE "timestamp" IS NOT NULL ORDER BY id`, 10)
			if err != nil {
				return err
			}
			if len(rows) != 2 {
				t.Fatalf("rows %q", rows)
			}
			want := []string{p.ID, "user", e.ID, e.ConversationID, e.ID, "user", "hello", "", "", ""}
			if diff := cmp.Diff(want, rows[0]); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if !json.Valid([]byte(rows[1][7])) || rows[1][5] != "assistant" {
				t.Errorf("a call is %q", rows[1])
			}
			threads, err := store.Rows(ctx, tx, `SELECT CAST(agent_id AS TEXT), name, thread_id FROM thread_id`, 3)
			if err != nil {
				return err
			}
			if diff := cmp.Diff([][]string{{p.ID, "test/here", e.ConversationID}}, threads); diff != "" {
				t.Errorf("thread_id (-want +got):\n%s", diff)
			}
			cycles, err := store.Rows(ctx, tx, `SELECT CAST(data AS TEXT), CAST(created_at AS TEXT) FROM agent_iterations`, 2)
			if err != nil {
				return err
			}
			var data map[string]any
			if len(cycles) != 1 || json.Unmarshal([]byte(cycles[0][0]), &data) != nil || data["input_tokens"] != float64(5) || data["agent_id"] != p.ID {
				t.Errorf("agent_iterations %q", cycles)
			}
			return nil
		})
	})
}

// On PostgreSQL the function of the seed has the rules of DeleteAgents.
func TestDeleteAllAgentsOfTheSeed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		if b.Dialect() != "postgres" {
			return // SQLite has no functions
		}
		first := b.agent(t, "first")
		b.agent(t, "second")
		b.agent(t, "other", inGroup("team"))
		e, _ := b.uses(t, "one", first)
		for i, origin := range []memory.Origin{memory.ByAssistant, memory.ByPerson} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Memories().UpsertFact(ctx, memory.Fact{
					Scope: memory.Scope{Person: "test/42"}, RunID: e.ID, Origin: origin, Key: fmt.Sprint(i), Now: time.Now(), Text: []string{"likes tea", "owns a dog"}[i],
				})
				return err
			})
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			rows, err := store.Rows(ctx, tx, `SELECT CAST(deleted_count AS TEXT), message FROM delete_all_agents()`, 2)
			if err != nil || len(rows) != 1 || rows[0][0] != "2" || !strings.Contains(rows[0][1], "2 agents of the group default_group") {
				t.Errorf("%q, %v", rows, err)
			}
			if n, err := tx.Memories().Count(ctx, "test/42", time.Now()); err != nil || n != 1 {
				t.Errorf("%d memories are left, %v", n, err)
			}
			all, err := tx.Profiles().List(ctx, "")
			if err != nil || len(all) != 1 || all[0].Name != "other" {
				t.Errorf("left are %+v, %v", all, err)
			}
			return nil
		})
	})
}

// A conversation that takes the place of another one has its standing task: there are not
// two of them, which would both run. It is still the same task: what it has run is counted,
// and a run that is not over keeps the next one from beginning.
func TestAStandingTaskMovesWithItsPlace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		p := b.agent(t, "watcher", every(3600))
		e, _ := b.uses(t, "here", p)
		s := b.schedule(t, e, p)
		from, to := b.conversationOf(t, e.ConversationID), b.conversation(t, "there")
		var before, after []sessions.Schedule
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			ok, err := tx.Tasks().AdvanceSchedule(ctx, s, s.NextAt, s.NextAt.Add(time.Hour), e.ID)
			if err != nil || !ok {
				t.Fatalf("its run was not counted: %v", err)
			}
			before, err = tx.Tasks().Schedules(ctx, 9)
			return err
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Tasks().TakePlace(ctx, from, to) })
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			after, err = tx.Tasks().Schedules(ctx, 9)
			return err
		})
		if len(before) != 1 || before[0].EntryID != e.ID || before[0].Runs != 1 {
			t.Fatalf("standing tasks before: %+v", before)
		}
		before[0].ConversationID = to.ID
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("standing tasks (-want +got):\n%s", diff)
		}
		if got := b.conversationOf(t, to.ID).AgentID; got != p.ID {
			t.Errorf("its profile is %q", got)
		}
	})
}
