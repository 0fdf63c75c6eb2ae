package people_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/people"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// asks has a stranger ask to be let in.
func asks(t *testing.T, db *store.Store, id messages.UserID, code string, at time.Time) sessions.Pairing {
	t.Helper()
	p := sessions.Pairing{Platform: "test", UserID: id, Name: "Eve `#1`\n", Conversation: "dm-" + string(id), Code: code, AskedAt: at}
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		ok, err := tx.People().AskPairing(t.Context(), &p)
		if !ok {
			t.Error("the request is not taken")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func roleOf(t *testing.T, db *store.Store, id messages.UserID) (i sessions.Identity) {
	t.Helper()
	err := db.InRead(t.Context(), func(tx *store.Tx) (err error) {
		i, _, err = tx.People().Identity(t.Context(), "test", id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

var owners = orchestrator.AccessRule{Owners: map[messages.UserID]bool{"ann": true, "bob": true}}

func TestTheFirstOwnerDecides(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		t.Helper()
		db := open(t)
		s := service(db, owners, nil)
		p := asks(t, db, "eve", "BCD-FGH", time.Now())
		roles := map[messages.UserID]sessions.Role{"ann": sessions.User, "bob": sessions.Reader}
		errs := make(map[messages.UserID]error)
		var all sync.WaitGroup
		var mu sync.Mutex
		for owner, role := range roles {
			all.Go(func() {
				_, err := s.Answer(t.Context(), people.Owner(request(owner)), people.Request{Number: p.Number}, role)
				mu.Lock()
				defer mu.Unlock()
				errs[owner] = err
			})
		}
		all.Wait()
		first, second := messages.UserID("ann"), messages.UserID("bob")
		if errs[first] != nil {
			first, second = second, first
		}
		if errs[first] != nil || !fault.Is(errs[second], fault.Conflict) || !strings.Contains(fault.Public(errs[second]), "by test/"+string(first)) {
			t.Errorf("Ann: %v; Bob: %v", errs["ann"], errs["bob"])
		}
		if who := roleOf(t, db, "eve"); who.Role != roles[first] || who.Name == "" {
			t.Errorf("Eve is %+v, and the first said %s", who, roles[first])
		}
		again, err := s.Answer(t.Context(), people.Owner(request(first)), people.Request{Code: "bcdfgh"}, sessions.Stranger)
		if again != "" || !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), "Nothing else happened") {
			t.Errorf("the second press: %q, %v", again, err)
		}
	})
}

// TestWhoDecidesMeanwhile: another owner lets the stranger in while this one's answer reads how
// they stand.
func TestWhoDecidesMeanwhile(t *testing.T) {
	t.Parallel()
	db := storetest.Postgres(t)(t)
	s := service(db, owners, nil)
	p := asks(t, db, "eve", "BCD-FGH", time.Now())
	late := make(chan error, 1)
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		own := tx.Handle().(pgx.Tx) //nolint:errcheck,forcetypeassert // PostgreSQL's
		if _, err := own.Exec(t.Context(), `LOCK TABLE identities`); err != nil {
			return err
		}
		go func() {
			_, err := s.Answer(t.Context(), people.By{}, people.Request{Number: p.Number}, sessions.Stranger)
			late <- err
		}()
		for waits := false; !waits && len(late) == 0; runtime.Gosched() {
			err := own.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'identities'::regclass)`).Scan(&waits)
			if err != nil {
				return err
			}
		}
		eve := sessions.Identity{Platform: "test", UserID: "eve", Role: sessions.User}
		return errors.Join(tx.People().SettlePairing(t.Context(), p.Number, sessions.PairingAllowed, "test/ann"), tx.People().SetRole(t.Context(), eve, "test/ann", false))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-late; !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), "Allowed by test/ann") {
		t.Errorf("the later one heard %v", err)
	}
}

func TestWhoCannotBeAnswered(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	s := service(db, orchestrator.AccessRule{Owners: owners.Owners, IDs: map[messages.UserID]bool{"lou": true}}, nil)
	asks(t, db, "lou", "BCD-FGK", time.Now())
	gone := asks(t, db, "gone", "BCD-FGL", time.Now())
	old := asks(t, db, "old", "BCD-FGJ", time.Now().Add(-sessions.PairingTTL-time.Second))
	if said, err := s.Remove(t.Context(), people.By{}, people.Account{Platform: "test", ID: "gone"}); err != nil {
		t.Fatal(said, err)
	}
	if said, err := s.Remove(t.Context(), people.By{}, people.Account{Platform: "test", ID: "out"}); err != nil {
		t.Fatal(said, err)
	}
	out := asks(t, db, "out", "BCD-FGM", time.Now()) // as if they had asked in the same moment
	ann := people.Owner(request("ann"))
	for name, tt := range map[string]struct {
		by   people.By
		r    people.Request
		said string
		err  string
	}{
		"Expired":   {ann, people.Request{Number: old.Number}, "", "has expired"},
		"Unknown":   {ann, people.Request{Number: 999}, "", "That code has expired"},
		"NoCode":    {ann, people.Request{Code: "ZZZ-ZZZ"}, "", "That code has expired"},
		"LetIn":     {ann, people.Request{Code: "BCD-FGK"}, "can already use the bot. `/people` changes it.", ""},
		"Removed":   {ann, people.Request{Number: gone.Number}, "", "Already decided: ✖ Refused by cli"},
		"Out":       {ann, people.Request{Number: out.Number}, "was removed. `/people` changes it.", ""},
		"NotByUser": {people.Owner(request("lou")), people.Request{Code: "BCD-FGK"}, "", "Only an owner"},
	} {
		said, err := s.Answer(t.Context(), tt.by, tt.r, sessions.User)
		if !strings.Contains(said, tt.said) || !strings.Contains(fault.Public(err), tt.err) || (err == nil) != (tt.err == "") {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
	if said, err := s.Allow(t.Context(), ann, people.Account{Platform: "test", ID: "lou"}, sessions.Reader); !fault.Is(err, fault.Invalid) || strings.Contains(fault.Public(err), "user") {
		t.Errorf("the configuration lets them in as user: %q, %v", said, err)
	}
	if who := roleOf(t, db, "out"); who.Role == sessions.User || who.RemovedAt.IsZero() {
		t.Errorf("a request lets in whom an owner has shut out: %+v", who)
	}
	if who := roleOf(t, db, "old"); who.Role == sessions.User {
		t.Errorf("an expired request lets in: %+v", who)
	}
	if list, err := s.Waiting(t.Context()); err != nil || len(list) != 2 || !strings.Contains(people.WaitingLine(list[0]), "test/lou (`Eve '#1'`): waiting") {
		t.Errorf("waiting: %v, %v", list, err)
	}
}

// Somebody who was let in is told so in their own chat, and may be made a reader and a
// user again.
func TestRolesChange(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	var woken []string
	s := people.New(people.Config{Store: db, Assistant: "demo", Wake: func(id string) { woken = append(woken, id) }, Platforms: map[messages.Platform]people.Platform{
		"test": {Access: owners, CheckID: func(string) error { return nil }},
	}})
	asks(t, db, "eve", "BCD-FGH", time.Now())
	eve, ann := people.Account{Platform: "test", ID: "eve"}, people.Owner(request("ann"))
	for _, role := range []sessions.Role{sessions.Reader, sessions.User, sessions.Reader} {
		if said, err := s.Allow(t.Context(), ann, eve, role); err != nil || roleOf(t, db, "eve").Role != role {
			t.Errorf("as %s: %q, %v; they are %s", role, said, err, roleOf(t, db, "eve").Role)
		}
	}
	if len(woken) != 1 {
		t.Fatalf("woken were %v, want the stranger's chat once", woken)
	}
	var told []messages.Delivery
	err := db.InRead(t.Context(), func(tx *store.Tx) (err error) {
		told, err = tx.Deliveries().AllOpenDeliveries(t.Context(), woken[0])
		return err
	})
	if err != nil || len(told) != 1 || !strings.Contains(told[0].Text, "An owner has let you in with read-only access") {
		t.Errorf("they are told %+v, %v", told, err)
	}
	if len(told) == 1 && told[0].Placeholder != "An owner has let you in …" {
		t.Errorf("it begins with %q, which notifies nobody", told[0].Placeholder)
	}
}

func TestIsCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"BCD-FGH": true, "bcd-fgh": true, "bcdfgh": true, "b-c-d-f-g-h": true,
		"": false, "123456": false, "BCDFG": false, "BCDFGHJ": false, "ABCDFG": false, "U024BE7LH": false, "telegram/42": false, "BCD FGH": false,
	} {
		if got := people.IsCode(text); got != want {
			t.Errorf("IsCode(%q) = %t", text, got)
		}
	}
}
