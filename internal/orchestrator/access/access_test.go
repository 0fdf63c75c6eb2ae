package access

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// TestFinding2TheConfigurationWinsOverWhatWasClaimed has a row for each way in
// which what is stored of somebody and what the configuration says can meet.
func TestFinding2TheConfigurationWinsOverWhatWasClaimed(t *testing.T) {
	t.Parallel()
	ids := func(list ...messages.UserID) map[messages.UserID]bool {
		m := make(map[messages.UserID]bool)
		for _, id := range list {
			m[id] = true
		}
		return m
	}
	none := sessions.Identity{}
	claimed := sessions.Identity{Role: sessions.Owner, GrantedBy: sessions.GrantedByCode}
	old := sessions.Identity{Role: sessions.Owner} // claimed before it was kept by whom
	given := sessions.Identity{Role: sessions.Owner, GrantedBy: sessions.GrantedByCLI}
	let := sessions.Identity{Role: sessions.User, GrantedBy: "telegram/1"}
	refused := sessions.Identity{Role: sessions.Stranger}
	reads := sessions.Identity{Role: sessions.Reader, GrantedBy: "telegram/1"}
	gone := sessions.Identity{Role: sessions.Stranger, GrantedBy: "cli", RemovedAt: time.Now()}
	for _, c := range []struct {
		name  string
		rule  Rule
		who   sessions.Identity
		gated bool
		want  sessions.Role
	}{
		{"nobody knows them", Rule{}, none, false, sessions.Stranger},
		{"a claim holds where nothing is configured", Rule{}, claimed, false, sessions.Owner},
		{"an old claim too", Rule{}, old, false, sessions.Owner},
		{"a claim holds where everyone may", Rule{Everyone: true}, claimed, false, sessions.Owner},
		{"a claim holds on the list", Rule{IDs: ids("42")}, claimed, false, sessions.Owner},
		{"a list without them ends a claim", Rule{IDs: ids("77")}, claimed, false, sessions.Stranger},
		{"and an old claim", Rule{IDs: ids("77")}, old, false, sessions.Stranger},
		{"a list does not end what an operator gave", Rule{IDs: ids("77")}, given, false, sessions.Owner},
		{"configured owners end a claim", Rule{Owners: ids("77")}, claimed, false, sessions.Stranger},
		{"and what an operator gave", Rule{Owners: ids("77")}, given, false, sessions.Stranger},
		{"a former owner on the list is a user", Rule{Owners: ids("77"), IDs: ids("42")}, claimed, false, sessions.User},
		{"a configured owner", Rule{Owners: ids("42")}, none, false, sessions.Owner},
		{"a configured owner who was refused once", Rule{Owners: ids("42")}, refused, false, sessions.Owner},
		{"let in by an owner, with another list", Rule{IDs: ids("77")}, let, false, sessions.User},
		{"let in to read", Rule{}, reads, false, sessions.Reader},
		{"let in to read, with another list", Rule{IDs: ids("77")}, reads, false, sessions.Reader},
		{"let in to read, on the list", Rule{IDs: ids("42")}, reads, false, sessions.User},
		{"let in to read, everyone may", Rule{Everyone: true}, reads, false, sessions.User},
		{"let in to read, behind a gate", Rule{}, reads, true, sessions.Reader},
		{"on the list", Rule{IDs: ids("42")}, refused, false, sessions.User},
		{"everyone", Rule{Everyone: true}, none, false, sessions.User},
		{"behind a gate", Rule{}, none, true, sessions.User},
		{"removed, on the list", Rule{IDs: ids("42")}, gone, false, sessions.Stranger},
		{"removed, everyone may", Rule{Everyone: true}, gone, false, sessions.Stranger},
		{"removed, a configured owner", Rule{Owners: ids("42")}, gone, false, sessions.Stranger},
		{"removed, behind a gate", Rule{}, gone, true, sessions.Stranger},
	} {
		if got := c.rule.Role(c.who, messages.Sender{ID: "42"}, c.gated); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	foreign := messages.Sender{ID: "42", External: true}
	if got := (Rule{Everyone: true}).Role(none, foreign, false); got != sessions.Stranger {
		t.Errorf("everybody of the workspace includes others: %s", got)
	}
}

// gated is a platform that says who may, as a test wants.
type gated struct {
	platform.Adapter
	admits func(ctx context.Context) (bool, error)
}

// Admits implements platform.Gatekeeper.
func (g gated) Admits(ctx context.Context, _ messages.Inbound) (bool, error) { return g.admits(ctx) }

// TestNoAnswerOfAPlatformIsNo: what it says besides an error does not count, and one that
// never answers is waited for a few seconds only.
func TestNoAnswerOfAPlatformIsNo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		admits func(ctx context.Context) (bool, error)
		want   bool
	}{
		"Yes":         {func(context.Context) (bool, error) { return true, nil }, true},
		"No":          {func(context.Context) (bool, error) { return false, nil }, false},
		"YesAndError": {func(context.Context) (bool, error) { return true, errors.New("half an answer") }, false},
		"Silence":     {func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, ctx.Err() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &Access{Adapters: map[messages.Platform]platform.Adapter{"p": gated{admits: tt.admits}}, Log: slog.New(slog.DiscardHandler)}
				begin := time.Now()
				got, err := a.Admitted(t.Context(), messages.Inbound{Conversation: messages.ConversationKey{Platform: "p"}})
				if got != tt.want || (err != nil) != (name == "YesAndError" || name == "Silence") {
					t.Errorf("admitted: %v, %v", got, err)
				}
				if took := time.Since(begin); took > 15*time.Second {
					t.Errorf("it was waited for %v", took)
				}
			})
		})
	}
}
