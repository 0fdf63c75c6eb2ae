package people_test

import (
	"context"
	"errors"
	"os"
	"slices"
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
		"console": {},
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
		{"42", "console", "use platform/id"},
		{"console/42", "test", "belongs to whoever runs the program"},
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
	s = people.New(people.Config{Platforms: map[messages.Platform]people.Platform{"slack": {}, "github": {}}})
	if _, err := s.Parse("irc/42", ""); !strings.HasSuffix(fault.Public(err), "Platforms: github, slack.") {
		t.Errorf("the platforms that there are: %v", err)
	}
}

// TestAnOwnerIsOfTheirOwnPlatform gives commands in a chat of another platform, as in the
// browser: ids are the same on several platforms, and people are not.
func TestAnOwnerIsOfTheirOwnPlatform(t *testing.T) {
	t.Parallel()
	s := service(storetest.SQLite(t)(t), owners, nil)
	eve := people.Account{Platform: "test", ID: "eve"}
	from := func(home, chat messages.Platform, id messages.UserID) people.By {
		r := request(id)
		r.Entry.In.Sender.Platform, r.Entry.In.Conversation.Platform = home, chat
		return people.Owner(r)
	}
	for name, c := range map[string]struct {
		by   people.By
		want bool
	}{
		"of another platform, in a chat of this one": {from("other", "test", "ann"), false},
		"of this platform, in a chat of another one": {from("test", "other", "ann"), true},
		"of this platform, at home":                  {from("", "test", "ann"), true},
		"of another platform, at home":               {from("", "other", "ann"), false},
		"in the browser":                             {people.OwnerAt(people.Account{Platform: "test", ID: "bob"}), true},
		"in the browser, of another platform":        {people.OwnerAt(people.Account{Platform: "other", ID: "bob"}), false},
	} {
		_, err := s.Allow(t.Context(), c.by, eve, sessions.User)
		if (err == nil) != c.want || err != nil && !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheConfigurationNamesTheOwners, and a change by hand holds as far as that lets it.
func TestTheConfigurationNamesTheOwners(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	open := service(db, orchestrator.AccessRule{}, nil)
	only := service(db, orchestrator.AccessRule{Owners: map[messages.UserID]bool{"ann": true}}, nil)
	ann, eve := people.Account{Platform: "test", ID: "ann"}, people.Account{Platform: "test", ID: "eve"}
	is := func(s *people.Service, a people.Account, want sessions.Role) {
		t.Helper()
		err := db.InRead(t.Context(), func(tx *store.Tx) error {
			got, err := s.Role(t.Context(), tx, a)
			if got != want {
				t.Errorf("%s is %s, want %s", a, got, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if said, err := only.AddOwner(t.Context(), people.By{}, eve); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "TEST_OWNERS lists the owners") {
		t.Errorf("an owner beside the only one that is listed: %q, %v", said, err)
	}
	is(only, eve, sessions.Stranger)

	// One who became an owner before the list was made is none, and is taken from it.
	if _, err := open.AddOwner(t.Context(), people.By{}, eve); err != nil {
		t.Fatal(err)
	}
	is(open, eve, sessions.Owner)
	if said, err := only.RemoveOwner(t.Context(), people.By{}, eve); err != nil {
		t.Errorf("a former owner: %q, %v", said, err)
	}
	is(open, eve, sessions.Stranger)

	// One who is no owner any more is told apart from one who was shut out.
	dan := people.Account{Platform: "test", ID: "dan"}
	if _, err := open.AddOwner(t.Context(), people.By{}, dan); err != nil {
		t.Fatal(err)
	}
	stands := func() (p people.Person) {
		list, err := only.List(t.Context())
		if i := slices.IndexFunc(list, func(p people.Person) bool { return p.Account == dan }); err == nil && i >= 0 {
			p = list[i]
		}
		if overruled := slices.Contains(people.Overruled(list), p); overruled != p.Overruled || slices.Contains(people.Owners(list), p) != overruled {
			t.Errorf("the lists have another view of %+v", p)
		}
		return p
	}
	if p := stands(); !p.Overruled || p.Removed || p.Role != sessions.Stranger {
		t.Errorf("a former owner: %+v", p)
	}
	if _, err := only.Remove(t.Context(), people.By{}, dan); err != nil {
		t.Fatal(err)
	}
	if p := stands(); p.Overruled || !p.Removed || p.Role != sessions.Stranger {
		t.Errorf("a former owner who was shut out: %+v", p)
	}

	// One who is listed and was shut out is an owner again once somebody says so.
	if _, err := only.Remove(t.Context(), people.By{}, ann); err != nil {
		t.Fatal(err)
	}
	is(only, ann, sessions.Stranger)
	if said, err := only.AddOwner(t.Context(), people.By{}, ann); err != nil || !strings.Contains(said, "is an owner now") {
		t.Errorf("a listed owner who was removed: %q, %v", said, err)
	}
	is(only, ann, sessions.Owner)
	for what, change := range map[string]func() (string, error){
		"take the role of a listed one": func() (string, error) { return only.RemoveOwner(t.Context(), people.By{}, ann) },
		"change one's own role": func() (string, error) {
			return only.Allow(t.Context(), people.Owner(request("ann")), ann, sessions.Reader)
		},
	} {
		if said, err := change(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %q, %v", what, said, err)
		}
	}
}
