package app

import (
	"context"
	"fmt"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/people"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/web"
)

// accessRules says what the configuration says of who may talk to the bot. Whoever
// has the console has the process.
func accessRules(cfg config.Config) map[messages.Platform]orchestrator.AccessRule {
	rules := map[messages.Platform]orchestrator.AccessRule{
		console.Name: {Owners: map[messages.UserID]bool{console.Sender: true}},
	}
	for _, k := range kindsOf(cfg) {
		p := k.People()
		rules[k.Platform()] = orchestrator.AccessRule{Everyone: p.Everyone, IDs: userIDs(p.IDs), Owners: userIDs(p.Owners)}
	}
	return rules
}

func userIDs(list []string) map[messages.UserID]bool {
	ids := make(map[messages.UserID]bool, len(list))
	for _, id := range list {
		ids[messages.UserID(id)] = true
	}
	return ids
}

// newPeople returns who changes access. changed and wake may be nil.
func newPeople(cfg config.Config, s *store.Store, changed func(), wake func(conversationID string)) *people.Service {
	return people.New(people.Config{Store: s, Platforms: peoplePlatforms(cfg), Assistant: cfg.Assistant, Changed: changed, Wake: wake})
}

// peoplePlatforms says where people can be let in, and what the configuration says of
// them.
func peoplePlatforms(cfg config.Config) map[messages.Platform]people.Platform {
	rules := accessRules(cfg)
	platforms := map[messages.Platform]people.Platform{console.Name: {Access: rules[console.Name]}}
	for _, k := range kindsOf(cfg) {
		name, p := k.Platform(), k.People()
		platforms[name] = people.Platform{
			Access: rules[name], Owners: p.OwnerOption, Allow: p.AllowOption,
			CheckID: func(id string) error {
				if p.Form.MatchString(id) {
					return nil
				}
				return fault.Newf(fault.Invalid, "%q is not a %s ID: use %s; /whoami shows it. Names can change hands.", id, name, p.FormText)
			},
		}
	}
	return platforms
}

// sayAccess tells whoever starts the program of a halt, and of owners whose claim
// does not count any more. The start does not depend on it.
func (d *daemon) sayAccess(ctx context.Context) {
	state, err := serviceState(ctx, d.store)
	if err == nil && state.Halted() {
		d.notices.say("  HALTED    by %s since %s: messages are saved and nothing starts; run `bot resume`\n\n", state.HaltedBy, state.HaltedAt.Format("2006-01-02 15:04Z"))
	}
	list, err := d.people.List(ctx)
	if err != nil {
		d.log.WarnContext(ctx, "could not read who may use the bot", "err", err)
	}
	for _, p := range people.Overruled(list) {
		d.log.WarnContext(ctx, "a former owner is no longer one: the configuration lists others", "account", p.Account.String(), "reason", p.Why)
		d.notices.say("  owner     %s is no longer an owner: %s. Run `bot owner add %s` to restore the role, or `bot owner rm` to clear it.\n", p.Account, p.Why, p.Account)
	}
}

func serviceState(ctx context.Context, s *store.Store) (sessions.ServiceState, error) {
	return store.Within(ctx, s.InRead, func(tx *store.Tx) (sessions.ServiceState, error) { return tx.People().ServiceState(ctx) })
}

// haltCheck tells /readyz of a halt. It does not make the service unready: messages
// are taken and kept.
func haltCheck(ctx context.Context, s *store.Store) web.Check {
	check := web.Check{Name: "halt", Info: "not halted"}
	state, err := serviceState(ctx, s)
	switch {
	case err != nil:
		check.Info = "not known" // the database's own check says why
	case state.Halted():
		check.Info = fmt.Sprintf("halted since %s: messages are saved and nothing starts", state.HaltedAt.Format("2006-01-02T15:04:05Z"))
	}
	return check
}

// changeAccess runs one change of who may use the bot, or of a halt, and prints what
// came of it. The daemon may run, and sees it within a second.
func changeAccess(ctx context.Context, cfg config.Config, env Env, do func(ctx context.Context, s *people.Service) (string, error)) error {
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		said, err := do(ctx, newPeople(cfg, s, nil, nil))
		if err == nil {
			say(env.Stdout, "%s\n", said)
		}
		return err
	})
}

// Change names a change of an account.
type Change string

// The changes of an account.
const (
	AllowPerson  Change = "allow"
	AllowReader  Change = "allow --read-only"
	DenyPerson   Change = "deny"
	RemovePerson Change = "remove"
	AddOwner     Change = "owner add"
	RemoveOwner  Change = "owner rm"
)

// ChangePerson makes a change of the account that is named, or decides on the request
// to be let in whose code is given.
func ChangePerson(ctx context.Context, cfg config.Config, env Env, do Change, named string) error {
	return changeAccess(ctx, cfg, env, func(ctx context.Context, s *people.Service) (string, error) {
		if role, ok := map[Change]sessions.Role{AllowPerson: sessions.User, AllowReader: sessions.Reader, DenyPerson: sessions.Stranger}[do]; ok && people.IsCode(named) {
			return s.Answer(ctx, people.By{}, people.Request{Code: named}, role)
		}
		if do == DenyPerson {
			return "", fault.Newf(fault.Invalid, "%q is not the code of a request; `bot person list` shows them, and `bot person remove` blocks someone permanently.", named)
		}
		a, err := s.Parse(named, "")
		if err != nil {
			return "", err
		}
		switch do {
		case AllowPerson:
			return s.Allow(ctx, people.By{}, a, sessions.User)
		case AllowReader:
			return s.Allow(ctx, people.By{}, a, sessions.Reader)
		case RemovePerson:
			return s.Remove(ctx, people.By{}, a)
		case AddOwner:
			return s.AddOwner(ctx, people.By{}, a)
		default:
			return s.RemoveOwner(ctx, people.By{}, a)
		}
	})
}

// Halt has nothing start on any replica until Resume.
func Halt(ctx context.Context, cfg config.Config, env Env, reason string) error {
	return changeAccess(ctx, cfg, env, func(ctx context.Context, s *people.Service) (string, error) {
		return s.Halt(ctx, people.By{}, reason)
	})
}

// Resume ends a halt.
func Resume(ctx context.Context, cfg config.Config, env Env) error {
	return changeAccess(ctx, cfg, env, func(ctx context.Context, s *people.Service) (string, error) {
		return s.Resume(ctx, people.By{})
	})
}

// ListPeople prints who was given a role or removed, or owners only.
func ListPeople(ctx context.Context, cfg config.Config, env Env, owners bool) error {
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		service := newPeople(cfg, s, nil, nil)
		list, err := service.List(ctx)
		if err != nil {
			return err
		}
		if owners {
			list = people.Owners(list)
		}
		for _, p := range list {
			say(env.Stdout, "%s\n", p.Line())
		}
		if owners {
			return nil
		}
		waiting, err := service.Waiting(ctx)
		for _, p := range waiting {
			say(env.Stdout, "%s\n", people.WaitingLine(p))
		}
		return err
	})
}
