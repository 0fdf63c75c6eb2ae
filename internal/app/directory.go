package app

import (
	"context"

	"remote-agent/internal/fault"
	"remote-agent/internal/pages"
	"remote-agent/internal/people"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
)

// directory is who may use the bot, as the web pages ask.
type directory struct{ people *people.Service }

var _ pages.Directory = directory{}

// List implements pages.Directory.
func (d directory) List(ctx context.Context) ([]pages.Person, error) {
	list, err := d.people.List(ctx)
	found := make([]pages.Person, len(list))
	for i, p := range list {
		found[i] = pages.Person{
			Account: signin.Account{Platform: p.Account.Platform, ID: p.Account.ID}, Name: p.Name, Role: p.Role, Why: p.Why, Removed: p.Removed,
		}
	}
	return found, err
}

// Waiting implements pages.Directory.
func (d directory) Waiting(ctx context.Context) ([]sessions.Pairing, error) {
	return d.people.Waiting(ctx)
}

// Answer implements pages.Directory.
func (d directory) Answer(ctx context.Context, by signin.Account, number int64, role sessions.Role) (string, error) {
	return d.people.Answer(ctx, ownerAt(by), people.Request{Number: number}, role)
}

// Change implements pages.Directory.
func (d directory) Change(ctx context.Context, by signin.Account, account string, to pages.Standing) (string, error) {
	a, err := d.people.Parse(account, by.Platform)
	if err != nil {
		return "", err
	}
	switch to {
	case pages.AsMember:
		return d.people.Allow(ctx, ownerAt(by), a, sessions.User)
	case pages.AsViewer:
		return d.people.Allow(ctx, ownerAt(by), a, sessions.Reader)
	case pages.AsOwner:
		return d.people.AddOwner(ctx, ownerAt(by), a)
	case pages.NoOwner:
		return d.people.RemoveOwner(ctx, ownerAt(by), a)
	case pages.Out:
		return d.people.Remove(ctx, ownerAt(by), a)
	}
	return "", fault.New(fault.Invalid, "There is no such role.")
}

func ownerAt(a signin.Account) people.By {
	return people.OwnerAt(people.Account{Platform: a.Platform, ID: a.ID})
}
