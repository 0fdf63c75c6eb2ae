package people

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/messages"
	"remote-agent/internal/order"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// Person is somebody who was given a role, was removed, or is an owner by the
// configuration.
type Person struct {
	Account Account
	Name    string        // as last seen; may be empty
	Role    sessions.Role // what holds now
	Why     string        // who gave it and when

	Removed   bool // shut out, whatever the configuration says
	Overruled bool // was an owner until the configuration named others
}

// List returns them by platform and id. People whom only the configuration lets in
// are not among them: it says so itself.
func (s *Service) List(ctx context.Context) ([]Person, error) {
	stored, err := store.Within(ctx, s.config.Store.InRead, func(tx *store.Tx) ([]sessions.Identity, error) { return tx.People().Roles(ctx) })
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	var list []Person
	for _, i := range stored {
		a := Account{i.Platform, i.UserID}
		known[a.String()] = true
		p := Person{Account: a, Name: i.Name, Role: s.role(i, a), Removed: !i.RemovedAt.IsZero()}
		p.Overruled = i.Role == sessions.Owner && p.Role != sessions.Owner && !p.Removed
		p.Why = s.why(i, p)
		list = append(list, p)
	}
	for name, p := range *s.platforms.Load() {
		for id := range p.Access.Owners {
			a := Account{name, id}
			if !known[a.String()] {
				list = append(list, Person{Account: a, Role: sessions.Owner, Why: configured(name, p)})
			}
		}
	}
	order.By(list, func(a, b Person) int { return strings.Compare(a.Account.String(), b.Account.String()) })
	return list, nil
}

func configured(name messages.Platform, p Platform) string {
	if p.Owners == "" {
		return fmt.Sprintf("the person at the %s", name)
	}
	return "by " + p.Owners
}

func (s *Service) why(i sessions.Identity, who Person) string {
	p := (*s.platforms.Load())[i.Platform]
	by := "by " + i.GrantedBy
	if i.Claimed() {
		by = "joined with a one-time code"
	}
	if !i.GrantedAt.IsZero() {
		by += " on " + wording.Moment(i.GrantedAt)
	}
	switch {
	case who.Removed:
		return by
	case p.Access.Owners[i.UserID]:
		return configured(i.Platform, p)
	case !who.Overruled:
		return by
	case len(p.Access.Owners) > 0:
		return fmt.Sprintf("former owner, %s; %s lists others", by, p.Owners)
	}
	return fmt.Sprintf("former owner, %s; not listed in %s", by, p.Allow)
}

// Owners returns those of list who are owners, or were until the configuration
// named others.
func Owners(list []Person) (owners []Person) {
	for _, p := range list {
		if p.Role == sessions.Owner || p.Overruled {
			owners = append(owners, p)
		}
	}
	return owners
}

// Overruled returns those whose claim does not count any more because the
// configuration names others.
func Overruled(list []Person) (people []Person) {
	for _, p := range list {
		if p.Overruled {
			people = append(people, p)
		}
	}
	return people
}

// Line is a person in a list.
func (p Person) Line() string {
	name := ""
	if p.Name != "" {
		name = " (" + wording.Name(p.Name) + ")"
	}
	role := string(p.Role)
	if p.Removed {
		role = "removed"
	}
	return fmt.Sprintf("%s%s: %s, %s", p.Account, name, role, p.Why)
}
