package people_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/people"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestWhatIsSaidOfAChange, one after the other on one database: what was done, or that it was so
// already, and which option names them still.
func TestWhatIsSaidOfAChange(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	named := service(db, orchestrator.AccessRule{Owners: owners.Owners, IDs: map[messages.UserID]bool{"lou": true}}, nil)
	listed := service(db, orchestrator.AccessRule{IDs: map[messages.UserID]bool{"kim": true}}, nil)
	open := service(db, orchestrator.AccessRule{}, nil)
	ann := people.OwnerAt(people.Account{Platform: "test", ID: "ann"})
	if err := db.InTx(t.Context(), func(tx *store.Tx) error {
		return tx.People().SaveIdentity(t.Context(), sessions.Identity{Platform: "test", UserID: "ann", Name: "Ann"})
	}); err != nil {
		t.Fatal(err)
	}
	allow := func(s *people.Service, id messages.UserID, role sessions.Role) (string, error) {
		return s.Allow(t.Context(), people.By{}, people.Account{Platform: "test", ID: id}, role)
	}
	remove := func(s *people.Service, id messages.UserID) (string, error) {
		return s.Remove(t.Context(), people.By{}, people.Account{Platform: "test", ID: id})
	}
	add := func(s *people.Service, id messages.UserID) (string, error) {
		return s.AddOwner(t.Context(), people.By{}, people.Account{Platform: "test", ID: id})
	}
	take := func(s *people.Service, id messages.UserID) (string, error) {
		return s.RemoveOwner(t.Context(), people.By{}, people.Account{Platform: "test", ID: id})
	}
	for n, tt := range []struct {
		do   func() (string, error)
		want string
		not  string
	}{
		{func() (string, error) { return allow(named, "eve", sessions.User) }, "test/eve can use the bot now.", "read only"},
		{func() (string, error) { return allow(named, "eve", sessions.User) }, "test/eve can already use the bot.", ""},
		{func() (string, error) { return allow(named, "eve", sessions.Reader) }, "test/eve can use the bot now, read only", ""},
		{func() (string, error) { return allow(named, "eve", sessions.Reader) }, "test/eve can already use the bot, read only.", ""},
		{func() (string, error) { return allow(named, "ann", sessions.User) }, "test/ann is already an owner.", ""},
		{func() (string, error) { return remove(named, "eve") }, "test/eve can no longer use the bot.", "still listed"},
		{func() (string, error) { return remove(named, "eve") }, "test/eve was already removed on 20", ""},
		{func() (string, error) { return remove(named, "lou") }, "still listed in TEST_ALLOWED", "TEST_OWNERS"},
		{func() (string, error) { return remove(named, "bob") }, "still listed in TEST_OWNERS", "TEST_ALLOWED"},
		{func() (string, error) { return add(named, "bob") }, "test/bob is an owner now.", ""},
		{func() (string, error) { return add(named, "bob") }, "test/bob is already an owner.", ""},
		{func() (string, error) { return add(named, "ann") }, "test/ann is already an owner.", ""},
		{func() (string, error) { return add(open, "dan") }, "test/dan is an owner now.", ""},
		{func() (string, error) { return add(open, "dan") }, "test/dan is already an owner.", ""},
		{func() (string, error) { return take(open, "dan") }, "can no longer use the bot", "can still"},
		{func() (string, error) { return take(open, "dan") }, "test/dan is not an owner.", ""},
		{func() (string, error) { return add(listed, "kim") }, "test/kim is an owner now.", ""},
		{func() (string, error) { return take(listed, "kim") }, "can still use the bot because of TEST_ALLOWED", ""},
		{func() (string, error) { return open.Resume(t.Context(), people.By{}) }, "The bot is not halted.", ""},
		{func() (string, error) { return open.Halt(t.Context(), people.By{}, " a\n fire\x1b ") }, "Halted.", ""},
		{func() (string, error) { return open.Halt(t.Context(), people.By{}, "another") }, "The bot was already halted by cli at 20", ""},
		{func() (string, error) { return reason(t, db), nil }, "a fire", "fire "},
		{func() (string, error) { return open.Resume(t.Context(), people.By{}) }, "Resumed after a halt by cli since 20", "Z. "},
		{func() (string, error) { return reason(t, db), nil }, "", "fire"},
		{func() (string, error) { return named.Halt(t.Context(), ann, "") }, "Halted.", ""},
		{func() (string, error) { return open.Halt(t.Context(), people.By{}, "") }, "The bot was already halted by Ann at 20", ""},
		{func() (string, error) { return open.Resume(t.Context(), people.By{}) }, "Resumed after a halt by Ann since 20", ""},
	} {
		said, err := tt.do()
		if err != nil {
			said = fault.Public(err)
		}
		if !strings.Contains(said, tt.want) || tt.not != "" && strings.Contains(said, tt.not) {
			t.Errorf("step %d says %q, want %q and not %q", n, said, tt.want, tt.not)
		}
	}
}

// reason is why the service is halted.
func reason(t *testing.T, db *store.Store) string {
	t.Helper()
	var state sessions.ServiceState
	err := db.InRead(t.Context(), func(tx *store.Tx) (err error) {
		state, err = tx.People().ServiceState(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state.HaltReason
}

// TestWhoIsListed, and why: by platform and id, with those whom only the configuration names as
// owners, and each once.
func TestWhoIsListed(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	open, named := service(db, orchestrator.AccessRule{}, nil), service(db, owners, nil)
	listed := service(db, orchestrator.AccessRule{IDs: map[messages.UserID]bool{"lou": true}}, nil)
	for _, do := range []func() (string, error){
		func() (string, error) {
			return open.AddOwner(t.Context(), people.By{}, people.Account{Platform: "test", ID: "bob"})
		},
		func() (string, error) {
			return open.Remove(t.Context(), people.By{}, people.Account{Platform: "test", ID: "cat"})
		},
		func() (string, error) {
			return open.Allow(t.Context(), people.By{}, people.Account{Platform: "test", ID: "abe"}, sessions.Reader)
		},
	} {
		if said, err := do(); err != nil {
			t.Fatal(said, err)
		}
	}
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		claimed := sessions.Identity{Platform: "test", UserID: "dan", Name: "Dan `#1`", Role: sessions.Owner}
		return tx.People().SetRole(t.Context(), claimed, sessions.GrantedByCode, false)
	})
	if err != nil {
		t.Fatal(err)
	}
	on := " on " + time.Now().UTC().Format("2006-01-02")
	for name, tt := range map[string]struct {
		s    *people.Service
		want []string
	}{
		"nobody": {open, []string{
			"test/abe: reader, by cli" + on, "test/bob: owner, by cli" + on, "test/cat: removed, by cli" + on, "test/dan (`Dan '#1'`): owner, joined with a one-time code" + on,
		}},
		"owners": {named, []string{
			"test/abe: reader, by cli" + on, "test/ann: owner, by TEST_OWNERS", "test/bob: owner, by TEST_OWNERS", "test/cat: removed, by cli" + on,
			"test/dan (`Dan '#1'`): stranger, former owner, joined with a one-time code" + on,
		}},
		"people": {listed, []string{
			"test/abe: reader, by cli" + on, "test/bob: owner, by cli" + on, "test/cat: removed, by cli" + on,
			"test/dan (`Dan '#1'`): stranger, former owner, joined with a one-time code" + on,
		}},
	} {
		list, err := tt.s.List(t.Context())
		ok := err == nil && len(list) == len(tt.want)
		var lines []string
		for i, p := range list {
			lines = append(lines, p.Line())
			ok = ok && i < len(tt.want) && strings.HasPrefix(p.Line(), tt.want[i])
		}
		if !ok {
			t.Errorf("where the configuration names %s, there are (%v)\n%s\nwant\n%s", name, err, strings.Join(lines, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}
