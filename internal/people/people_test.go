package people_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/people"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// request is a command that somebody gave who was an owner when it was let in.
func request(id messages.UserID) command.Request {
	in := messages.Inbound{Conversation: messages.ConversationKey{Platform: "test", ID: "c"}, Sender: messages.Sender{ID: id}, Private: true}
	return command.Request{Entry: sessions.Entry{In: in}, Conv: sessions.Conversation{ID: "c", Key: in.Conversation}, Role: sessions.Owner}
}

func service(s *store.Store, rule orchestrator.AccessRule, changed func()) *people.Service {
	return people.New(people.Config{Store: s, Changed: changed, Platforms: map[messages.Platform]people.Platform{
		"test": {Access: rule, Owners: "TEST_OWNERS", Allow: "TEST_ALLOWED", CheckID: func(id string) error {
			if strings.ContainsAny(id, "@") {
				return fault.New(fault.Invalid, "no id")
			}
			return nil
		}},
	}})
}

// TestFinding2WhoIsNoOwnerAnyMoreChangesNothing gives commands of people who were
// removed between being let in and being obeyed.
func TestFinding2WhoIsNoOwnerAnyMoreChangesNothing(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		t.Helper()
		db, told := open(t), 0
		s := service(db, orchestrator.AccessRule{}, func() { told++ })
		ann, bob := people.Account{Platform: "test", ID: "ann"}, people.Account{Platform: "test", ID: "bob"}
		for _, a := range []people.Account{ann, bob} {
			if _, err := s.AddOwner(t.Context(), people.By{}, a); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.RemoveOwner(t.Context(), people.Owner(request("bob")), ann); err != nil {
			t.Fatal(err)
		}
		late := people.Owner(request("ann"))
		for name, do := range map[string]func() (string, error){
			"allow": func() (string, error) {
				return s.Allow(t.Context(), late, people.Account{Platform: "test", ID: "eve"}, sessions.User)
			},
			"remove": func() (string, error) { return s.Remove(t.Context(), late, bob) },
			"add": func() (string, error) {
				return s.AddOwner(t.Context(), late, people.Account{Platform: "test", ID: "eve"})
			},
			"rm":     func() (string, error) { return s.RemoveOwner(t.Context(), late, bob) },
			"halt":   func() (string, error) { return s.Halt(t.Context(), late, "") },
			"resume": func() (string, error) { return s.Resume(t.Context(), late) },
		} {
			if _, err := do(); !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s by a former owner: %v", name, err)
			}
		}
		if told != 3 {
			t.Errorf("running turns were judged %d times, want once for each of 3 changes", told)
		}
		var rows int
		err := db.InRead(t.Context(), func(tx *store.Tx) error {
			head, err := tx.AuditLog().Head(t.Context())
			rows = int(head.Seq)
			state, err2 := tx.People().ServiceState(t.Context())
			if state.Halted() {
				t.Error("a former owner halted the bot")
			}
			return errors.Join(err, err2)
		})
		if err != nil || rows != 3 {
			t.Errorf("%d rows of the audit log, want 3 (%v)", rows, err)
		}
	})
}

func TestNobodyShutsThemselvesOut(t *testing.T) {
	t.Parallel()
	s := service(storetest.SQLite(t)(t), orchestrator.AccessRule{Owners: map[messages.UserID]bool{"ann": true}}, nil)
	me, ann := people.Owner(request("ann")), people.Account{Platform: "test", ID: "ann"}
	for name, do := range map[string]func(context.Context, people.By, people.Account) (string, error){"remove": s.Remove, "rm": s.RemoveOwner} {
		if _, err := do(t.Context(), me, ann); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "yourself") {
			t.Errorf("%s of oneself: %v", name, err)
		}
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := service(storetest.SQLite(t)(t), orchestrator.AccessRule{}, nil)
	for _, c := range []struct {
		named string
		here  messages.Platform
		want  string // of the account, or the error
	}{
		{"42", "test", "test/42"},
		{"test/42", "", "test/42"},
		{"test/a/b", "", "test/a/b"},
		{"42", "", "use platform/id"},
		{"", "test", "use platform/id"},
		{"test/", "", "use platform/id"},
		{"test/4 2", "", "use platform/id"},
		{"test/4\x1b[2J", "", "use platform/id"},
		{"irc/42", "test", "Unknown platform"},
		{"test/@ann", "", "no id"},
		{"test/" + strings.Repeat("x", 300), "", "use platform/id"},
	} {
		a, err := s.Parse(c.named, c.here)
		switch {
		case err == nil && a.String() != c.want, err != nil && !fault.Is(err, fault.Invalid), err != nil && !strings.Contains(fault.Public(err), c.want):
			t.Errorf("%.20q: %v, %v; want %s", c.named, a, err, c.want)
		}
	}
}
