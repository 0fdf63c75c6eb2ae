package access

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
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
		{"a claim holds where everyone may, besides a list of others", Rule{Everyone: true, IDs: ids("77")}, claimed, false, sessions.Owner},
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

// kept is what a database knows of people.
type kept struct {
	port.Tx
	sessions.PeopleStore
	roles []sessions.Identity
}

func (k kept) People() sessions.PeopleStore                       { return k }
func (k kept) Roles(context.Context) ([]sessions.Identity, error) { return k.roles, nil }

func (kept) PrivateConversation(_ context.Context, p messages.Platform, id messages.UserID, _ time.Time) (sessions.Conversation, error) {
	if id == "silent" {
		return sessions.Conversation{}, fault.New(fault.NotFound, "They have not written.")
	}
	return sessions.Conversation{ID: string(p) + "/" + string(id)}, nil
}

// served is a platform that this process serves.
type served struct {
	platform.Adapter
	buttons bool
}

func (s served) Capabilities() platform.Capabilities {
	return platform.Capabilities{Buttons: s.buttons}
}

// TestWhichChatsAreThoseOfOwners has what is stored of somebody mean something on their own
// platform only, by the rule of that.
func TestWhichChatsAreThoseOfOwners(t *testing.T) {
	t.Parallel()
	owner := func(p messages.Platform, id messages.UserID) sessions.Identity {
		return sessions.Identity{Platform: p, UserID: id, Role: sessions.Owner, GrantedBy: sessions.GrantedByCLI}
	}
	gone := sessions.Identity{Platform: "chat", UserID: "ann", Role: sessions.Stranger, RemovedAt: time.Now()}
	names := func(id messages.UserID) Rule { return Rule{Owners: map[messages.UserID]bool{id: true}} }
	for name, tt := range map[string]struct {
		stored []sessions.Identity
		chat   Rule
		want   []string
	}{
		"Nobody":               {},
		"Stored":               {stored: []sessions.Identity{owner("chat", "ann"), owner("chat", "bob")}, want: []string{"chat/ann", "chat/bob"}},
		"Configured":           {chat: names("ann"), want: []string{"chat/ann"}},
		"Both":                 {stored: []sessions.Identity{owner("chat", "ann")}, chat: names("ann"), want: []string{"chat/ann"}},
		"AUser":                {stored: []sessions.Identity{{Platform: "chat", UserID: "ann", Role: sessions.User}}},
		"Replaced":             {stored: []sessions.Identity{owner("chat", "ann")}, chat: names("bob"), want: []string{"chat/bob"}},
		"ConfiguredAndRemoved": {stored: []sessions.Identity{gone}, chat: names("ann")},
		"NotServed":            {stored: []sessions.Identity{owner("elsewhere", "ann")}},
		"ButtonsFirst":         {stored: []sessions.Identity{owner("chat", "ann"), owner("desk", "bob")}, want: []string{"chat/ann"}},
		"WithoutButtons":       {stored: []sessions.Identity{owner("chat", "silent"), owner("desk", "bob")}, want: []string{"desk/bob"}},
	} {
		rules := map[messages.Platform]Rule{"chat": tt.chat} // "desk" names nobody
		a := &Access{
			Rules:    func(p messages.Platform) Rule { return rules[p] },
			Adapters: map[messages.Platform]platform.Adapter{"chat": served{buttons: true}, "desk": served{}},
		}
		chats, err := a.OwnerChats(t.Context(), kept{roles: tt.stored})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range chats {
			got = append(got, c.ID)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
