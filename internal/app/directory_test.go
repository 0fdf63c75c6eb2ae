package app

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/pages"
	"remote-agent/internal/people"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// Owners in the browser change who may use the bot as with the chat commands: what they
// do holds at once and is in the audit log, and who is no owner any more changes nothing.
func TestDirectoryIsThatOfTheChatCommands(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	changed := 0
	d := directory{people.New(people.Config{Store: s, Assistant: "demo", Changed: func() { changed++ }, Platforms: map[messages.Platform]people.Platform{
		console.Name: {Access: orchestrator.AccessRule{Owners: map[messages.UserID]bool{console.Sender: true}}},
		"telegram":   {CheckID: func(string) error { return nil }},
	}})}
	owner, bob := operator(), signin.Account{Platform: "telegram", ID: "42"}
	ctx := t.Context()
	role := func(a signin.Account) (role sessions.Role) {
		err := s.InRead(ctx, func(tx *store.Tx) (err error) {
			role, err = d.people.Role(ctx, tx, people.Account{Platform: a.Platform, ID: a.ID})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return role
	}
	p := sessions.Pairing{Platform: bob.Platform, UserID: bob.ID, Name: "Bob", Conversation: "42", Code: "WDJ-BMJ", AskedAt: time.Now()}
	if err := s.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.People().AskPairing(ctx, &p)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if waiting, err := d.Waiting(ctx); err != nil || len(waiting) != 1 {
		t.Fatalf("waiting: %v, %v", waiting, err)
	}
	for _, step := range []struct {
		name string
		do   func() (string, error)
		says string // or the kind of the error
		role sessions.Role
	}{
		{"no owner answers", func() (string, error) { return d.Answer(ctx, bob, p.Number, sessions.User) }, string(fault.Forbidden), sessions.Stranger},
		{"a viewer", func() (string, error) { return d.Answer(ctx, owner, p.Number, sessions.Reader) }, "read only", sessions.Reader},
		{"the same again", func() (string, error) { return d.Answer(ctx, owner, p.Number, sessions.Stranger) }, string(fault.Conflict), sessions.Reader},
		{"a member", func() (string, error) { return d.Change(ctx, owner, "telegram/42", pages.AsMember) }, "can use the bot now", sessions.User},
		{"an owner", func() (string, error) { return d.Change(ctx, owner, "telegram/42", pages.AsOwner) }, "is an owner now", sessions.Owner},
		{"oneself", func() (string, error) { return d.Change(ctx, bob, "telegram/42", pages.NoOwner) }, string(fault.Invalid), sessions.Owner},
		{"the console", func() (string, error) { return d.Change(ctx, bob, "console/local", pages.Out) }, string(fault.Invalid), sessions.Owner},
		{"no owner any more", func() (string, error) { return d.Change(ctx, owner, "telegram/42", pages.NoOwner) }, "no longer an owner", sessions.Stranger},
		{"removed", func() (string, error) { return d.Change(ctx, owner, "telegram/42", pages.Out) }, "can no longer use the bot", sessions.Stranger},
		{"an unknown standing", func() (string, error) { return d.Change(ctx, owner, "telegram/42", "king") }, string(fault.Invalid), sessions.Stranger},
		{"who was removed", func() (string, error) { return d.Change(ctx, bob, "telegram/43", pages.AsMember) }, string(fault.Forbidden), sessions.Stranger},
	} {
		said, err := step.do()
		if err != nil {
			said = string(fault.KindOf(err))
		}
		if got := role(bob); !strings.Contains(said, step.says) || got != step.role {
			t.Errorf("%s: %q, %v; the role is %s", step.name, said, err, got)
		}
	}
	if changed != 5 {
		t.Errorf("running turns are judged %d times", changed)
	}
	list, err := d.List(ctx)
	if err != nil || len(list) != 2 || list[1].Account != bob || !list[1].Removed || list[1].Name != "Bob" {
		t.Errorf("the list: %+v, %v", list, err)
	}
	err = s.InRead(ctx, func(tx *store.Tx) error {
		rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Actor: owner.String(), Limit: 100})
		actions := make([]string, len(rows))
		for i, r := range rows {
			actions[i] = r.Action
		}
		if got := strings.Join(actions, " "); got != "person.allow person.allow owner.add owner.remove person.remove" {
			t.Errorf("the audit log: %s", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
