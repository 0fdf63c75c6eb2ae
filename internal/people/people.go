// Package people is who may use the bot: owners and people who are let in or
// removed, and the halt that stops everything. Operators use it from the command
// line and owners from a chat; both do the same, and all of it is in the audit log.
//
// Every change is one transaction, and holds with its commit on every replica:
// roles are read in the transaction that lets somebody in, and no process keeps
// them. See orchestrator.AccessRule.Role for how the configuration goes along.
package people

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// Platform is what the configuration says of people on a platform.
type Platform struct {
	Access orchestrator.AccessRule
	Owners string // name of the option that lists owners; empty: there is none
	Allow  string // name of the option that lists people; empty: there is none

	// CheckID returns an error that is for a person if an id cannot be one there.
	// Nil refuses every id: nobody can be let in or removed.
	CheckID func(id string) error
}

// Config configures a Service.
type Config struct {
	Store     *store.Store
	Platforms map[messages.Platform]Platform

	Assistant string // of conversations with people who were let in

	// Wake has somebody look for work in a conversation; nil for a process that runs
	// none, where the sweep of another one finds it.
	Wake func(conversationID string)

	// Changed is called after every change, so that running turns are judged at
	// once; nil for a process that runs none.
	Changed func()
}

// Service changes who may use the bot. It is safe for concurrent use.
type Service struct {
	config    Config
	platforms atomic.Pointer[map[messages.Platform]Platform]
}

// New returns a Service.
func New(config Config) *Service {
	if config.Wake == nil {
		config.Wake = func(string) {}
	}
	if config.Changed == nil {
		config.Changed = func() {}
	}
	s := &Service{config: config}
	s.Reload(config.Platforms)
	return s
}

// Reload takes other rules of the configuration for Config.Platforms.
func (s *Service) Reload(platforms map[messages.Platform]Platform) { s.platforms.Store(&platforms) }

// By is who asks for a change: the zero value is an operator on the command line.
type By struct{ request *command.Request }

// Owner returns who gave a command in a chat. They have to be an owner in the very
// transaction that does what they ask for.
func Owner(r command.Request) By { return By{request: &r} }

// OwnerAt returns an owner who asks elsewhere than in a chat, as in the browser. What
// holds for Owner holds for them.
func OwnerAt(a Account) By {
	var r command.Request
	r.Entry.In.Conversation.Platform, r.Entry.In.Sender.ID = a.Platform, a.ID
	return By{request: &r}
}

func (b By) actor() string {
	if b.request == nil {
		return sessions.GrantedByCLI
	}
	return b.request.Actor()
}

// is reports whether an account is that of who asks.
func (b By) is(account string) bool { return b.request != nil && b.request.Actor() == account }

// pressedIn reports whether who asks pressed a button in a conversation.
func (b By) pressedIn(conversation string) bool {
	return b.request != nil && b.request.Entry.In.Kind == messages.KindAction && b.request.Conv.ID == conversation
}

// Account is a person on a platform.
type Account struct {
	Platform messages.Platform
	ID       messages.UserID
}

// String names the account as the audit log does.
func (a Account) String() string { return string(a.Platform) + "/" + string(a.ID) }

// Parse reads the name of an account, such as "telegram/42", or its id alone if a
// platform is given. What cannot be one is fault.Invalid.
func (s *Service) Parse(named string, here messages.Platform) (Account, error) {
	platform, id, full := strings.Cut(named, "/")
	if !full {
		platform, id = string(here), named
	}
	p, known := (*s.platforms.Load())[messages.Platform(platform)]
	switch {
	case id == "" || !full && known && p.CheckID == nil || platform == "" || len(named) > 300 || strings.ContainsFunc(named, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return Account{}, fault.Newf(fault.Invalid, "%q is not an account ID: use platform/id, such as telegram/42; /whoami shows it.", named)
	case !known:
		names := strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Sorted(maps.Keys(*s.platforms.Load()))), " ", ", "), "[]")
		return Account{}, fault.Newf(fault.Invalid, "Unknown platform %q; use an account such as telegram/42. Platforms: %s.", platform, names)
	case p.CheckID == nil:
		return Account{}, fault.Newf(fault.Invalid, "The %s belongs to whoever runs the program: nobody can be allowed or removed there.", platform)
	}
	if err := p.CheckID(id); err != nil {
		return Account{}, err
	}
	return Account{Platform: messages.Platform(platform), ID: messages.UserID(id)}, nil
}

// standing is what is known of an account, and what it may do by it.
type standing struct {
	sessions.Access

	role sessions.Role
}

func (s *Service) standing(ctx context.Context, tx *transaction, a Account) (standing, error) {
	access, err := tx.People().Access(ctx, a.Platform, a.ID)
	return standing{access, s.role(access.Identity, a)}, err
}

func (s *Service) role(who sessions.Identity, a Account) sessions.Role {
	return (*s.platforms.Load())[a.Platform].Access.Role(who, messages.Sender{ID: a.ID}, false)
}

// transaction is one that changes something, with the conversations in which there is
// something to be sent when it is committed.
type transaction struct {
	*store.Tx

	wake []string
}

// change runs fn in a transaction in which by still may.
func (s *Service) change(ctx context.Context, by By, fn func(tx *transaction) error) error {
	var done *transaction
	err := s.config.Store.InTx(ctx, func(plain *store.Tx) error {
		tx := &transaction{Tx: plain}
		done = tx
		if by.request != nil {
			in := by.request.Entry.In
			who, err := s.standing(ctx, tx, Account{in.Home(), in.Sender.ID})
			if err != nil {
				return err
			}
			if who.role != sessions.Owner {
				return fault.New(fault.Forbidden, "Only an owner of the bot can do that.")
			}
		}
		return fn(tx)
	})
	if err != nil {
		return err
	}
	s.config.Changed()
	for _, id := range done.wake {
		s.config.Wake(id)
	}
	return nil
}

// Role returns what an account may do at this moment.
func (s *Service) Role(ctx context.Context, tx *store.Tx, a Account) (sessions.Role, error) {
	found, err := s.standing(ctx, &transaction{Tx: tx}, a)
	return found.role, err
}

// set gives an account a role, and writes it down. Where owners were asked about it,
// that is decided by it.
func (s *Service) set(ctx context.Context, tx *transaction, by By, action string, a Account, was standing, role sessions.Role, removed bool) error {
	p, waits, err := tx.People().Pairing(ctx, a.Platform, a.ID)
	if err != nil {
		return err
	}
	if waits = waits && p.Waits(time.Now()); waits {
		err = tx.People().SettlePairing(ctx, p.Number, stateOf(role), by.actor())
		if waits = err == nil; err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	if err := give(ctx, tx, by, action, sessions.Identity{Platform: a.Platform, UserID: a.ID, Name: p.Name, Role: role}, was, removed); err != nil || !waits {
		return err
	}
	return s.tell(ctx, tx, by, p.Number, role)
}

// give gives somebody a role, and writes it down.
func give(ctx context.Context, tx *transaction, by By, action string, who sessions.Identity, was standing, removed bool) error {
	if err := tx.People().SetRole(ctx, who, by.actor(), removed); err != nil {
		return err
	}
	return audit(ctx, tx, by, action, Account{who.Platform, who.UserID}.String(), map[string]any{"was": was.role, "role": who.Role})
}

func audit(ctx context.Context, tx *transaction, by By, action, target string, detail map[string]any) error {
	encoded, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("encode the audit entry: %w", err)
	}
	e := sessions.AuditEntry{Actor: by.actor(), Action: action, Target: target, Detail: string(encoded)}
	if by.request != nil {
		e.ConversationID = by.request.Conv.ID
	}
	return tx.Audit(ctx, e)
}

// Allow lets somebody in, also somebody who was removed, as sessions.User or
// sessions.Reader, or gives one of these roles to somebody who has the other. It
// returns what to say.
func (s *Service) Allow(ctx context.Context, by By, a Account, role sessions.Role) (said string, err error) {
	if by.is(a.String()) {
		return "", fault.New(fault.Invalid, "You cannot change your own role; another owner can, or `bot person allow` on the machine.")
	}
	err = s.change(ctx, by, func(tx *transaction) error {
		was, err := s.standing(ctx, tx, a)
		if err != nil {
			return err
		}
		p := (*s.platforms.Load())[a.Platform]
		switch {
		case was.role == role, was.role == sessions.Owner:
			said = already(a, was.role)
			return nil
		case role == sessions.Reader && p.Access.Role(sessions.Identity{Role: sessions.Reader}, messages.Sender{ID: a.ID}, false) != sessions.Reader:
			return fault.Newf(fault.Invalid, "The configuration lets %s do more than ask and takes precedence: remove the ID from %s and restart the bot.", a, p.Allow)
		}
		said = allowed(a, role)
		return s.set(ctx, tx, by, "person.allow", a, was, role, false)
	})
	return said, err
}

// Remove shuts somebody out at once, whatever the configuration says of them: new
// messages are refused, what waits is not begun, what runs is stopped.
func (s *Service) Remove(ctx context.Context, by By, a Account) (said string, err error) {
	if by.is(a.String()) {
		return "", fault.New(fault.Invalid, "You cannot remove yourself. Another owner can, or use `bot person remove` on the machine.")
	}
	err = s.change(ctx, by, func(tx *transaction) error {
		was, err := s.standing(ctx, tx, a)
		if err != nil {
			return err
		}
		if !was.RemovedAt.IsZero() {
			said = fmt.Sprintf("%s was already removed on %s.", a, wording.Moment(was.RemovedAt))
			return nil
		}
		said = fmt.Sprintf("%s can no longer use the bot. Their running work is stopped, and queued messages are dropped.", a)
		p := (*s.platforms.Load())[a.Platform]
		switch {
		case p.Access.Owners[a.ID]:
			said += fmt.Sprintf(" They are still listed in %s, which has no effect until they are allowed again.", p.Owners)
		case p.Access.IDs[a.ID]:
			said += fmt.Sprintf(" They are still listed in %s, which has no effect until they are allowed again.", p.Allow)
		}
		return s.set(ctx, tx, by, "person.remove", a, was, sessions.Stranger, true)
	})
	return said, err
}

// AddOwner makes somebody an owner. Where the configuration lists the owners, it is
// fault.Invalid.
func (s *Service) AddOwner(ctx context.Context, by By, a Account) (said string, err error) {
	err = s.change(ctx, by, func(tx *transaction) error {
		was, err := s.standing(ctx, tx, a)
		if err != nil {
			return err
		}
		p := (*s.platforms.Load())[a.Platform]
		switch {
		case was.role == sessions.Owner && !was.Claimed(), p.Access.Owners[a.ID] && was.RemovedAt.IsZero():
			said = fmt.Sprintf("%s is already an owner.", a)
			return nil
		case len(p.Access.Owners) > 0 && !p.Access.Owners[a.ID]:
			return fault.Newf(fault.Invalid, "%s lists the owners on %s and takes precedence: add the ID there and restart the bot.", p.Owners, a.Platform)
		}
		said = fmt.Sprintf("%s is an owner now.", a)
		return s.set(ctx, tx, by, "owner.add", a, was, sessions.Owner, false)
	})
	return said, err
}

// RemoveOwner takes the role of an owner away. Who is named in the configuration
// otherwise stays let in; nobody else does. An owner whom the configuration lists
// is fault.Invalid.
func (s *Service) RemoveOwner(ctx context.Context, by By, a Account) (said string, err error) {
	if by.is(a.String()) {
		return "", fault.New(fault.Invalid, "You cannot give up the role yourself, because the bot needs an owner. Another owner can take it from you, or use `bot owner rm` on the machine.")
	}
	err = s.change(ctx, by, func(tx *transaction) error {
		was, err := s.standing(ctx, tx, a)
		if err != nil {
			return err
		}
		p := (*s.platforms.Load())[a.Platform]
		switch {
		case p.Access.Owners[a.ID]:
			return fault.Newf(fault.Invalid, "%s lists %s as an owner and takes precedence: remove the ID there and restart the bot. To remove them immediately, use `bot person remove %s`.", p.Owners, a, a)
		case was.Role != sessions.Owner:
			return fault.Newf(fault.NotFound, "%s is not an owner. `bot owner list`, or `/owner` in a chat, lists the owners.", a)
		}
		said = fmt.Sprintf("%s is no longer an owner and can no longer use the bot.", a)
		if s.role(sessions.Identity{}, a) != sessions.Stranger {
			said = fmt.Sprintf("%s is no longer an owner, but can still use the bot because of %s. To remove them, use `bot person remove %s`.", a, p.Allow, a)
		}
		return s.set(ctx, tx, by, "owner.remove", a, was, sessions.Stranger, false)
	})
	return said, err
}

// Halt has nothing start on any replica until Resume; running turns are stopped.
// Doing it again changes nothing.
func (s *Service) Halt(ctx context.Context, by By, reason string) (said string, err error) {
	reason = oneLine(reason)
	err = s.change(ctx, by, func(tx *transaction) error {
		done, err := tx.People().Halt(ctx, by.actor(), reason)
		if err != nil {
			return err
		}
		if !done {
			state, err := tx.People().ServiceState(ctx)
			if err != nil {
				return err
			}
			who, err := sessions.NameOf(ctx, tx.People(), state.HaltedBy)
			said = fmt.Sprintf("The bot was already halted by %s at %s.", who, wording.Moment(state.HaltedAt))
			return err
		}
		said = "Halted. Running work is being stopped, and nothing starts on any replica, even after a restart. New messages are saved and answered after the halt."
		return audit(ctx, tx, by, "service.halt", "", map[string]any{})
	})
	return said, err
}

// Resume ends a halt. What waited is answered, in its order.
func (s *Service) Resume(ctx context.Context, by By) (said string, err error) {
	err = s.change(ctx, by, func(tx *transaction) error {
		state, err := tx.People().ServiceState(ctx)
		if err != nil {
			return err
		}
		done, err := tx.People().Resume(ctx)
		if err != nil {
			return err
		}
		if !done {
			said = "The bot is not halted."
			return nil
		}
		who, err := sessions.NameOf(ctx, tx.People(), state.HaltedBy)
		if err != nil {
			return err
		}
		said = fmt.Sprintf("Resumed after a halt by %s since %s. Queued messages are being answered.", who, wording.Moment(state.HaltedAt))
		return audit(ctx, tx, by, "service.resume", "", map[string]any{"halted_by": state.HaltedBy})
	})
	return said, err
}

// maxReason is the longest reason of a halt, in letters.
const maxReason = 200

func oneLine(text string) string {
	runes := []rune(strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)), " "))
	return string(runes[:min(len(runes), maxReason)])
}
