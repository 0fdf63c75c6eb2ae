package main

import (
	"context"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
)

// ownerCommand is about who owns the bot.
type ownerCommand struct {
	List ownerListCommand `cmd:"" help:"List owners, and former owners that the configuration overrides."`
	Add  ownerAddCommand  `cmd:"" help:"Make someone an owner; takes effect immediately."`
	Rm   ownerRmCommand   `cmd:"" help:"Revoke an owner's role; takes effect immediately."`
}

type ownerListCommand struct{}

func (ownerListCommand) Run(p *program) error { return with(p, app.ListPeople, true) }

type ownerAddCommand struct {
	Account string `arg:"" help:"Account, such as telegram/42."`
}

func (c ownerAddCommand) Run(p *program) error { return p.changePerson(app.AddOwner, c.Account) }

type ownerRmCommand struct {
	Account string `arg:"" help:"Account, such as telegram/42."`
}

func (c ownerRmCommand) Run(p *program) error { return p.changePerson(app.RemoveOwner, c.Account) }

type personListCommand struct{}

func (personListCommand) Run(p *program) error { return with(p, app.ListPeople, false) }

type personAllowCommand struct {
	Account  string `arg:""                                      help:"Account, such as telegram/42, or the code of a request."`
	ReadOnly bool   `help:"They can ask questions but not change anything."`
}

func (c personAllowCommand) Run(p *program) error {
	if c.ReadOnly {
		return p.changePerson(app.AllowReader, c.Account)
	}
	return p.changePerson(app.AllowPerson, c.Account)
}

type personDenyCommand struct {
	Code string `arg:"" help:"The code of their request, such as WDJ-BMJ."`
}

func (c personDenyCommand) Run(p *program) error { return p.changePerson(app.DenyPerson, c.Code) }

type personRemoveCommand struct {
	Account string `arg:"" help:"Account, such as telegram/42."`
}

func (c personRemoveCommand) Run(p *program) error {
	return p.changePerson(app.RemovePerson, c.Account)
}

func (p *program) changePerson(do app.Change, account string) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.ChangePerson(ctx, cfg, env, do, account)
	})
}

// haltCommand stops everything.
type haltCommand struct {
	Reason string `help:"The reason, shown to people who write meanwhile." placeholder:"TEXT"`
}

func (c haltCommand) Run(p *program) error { return with(p, app.Halt, c.Reason) }

// resumeCommand ends a halt.
type resumeCommand struct{}

func (resumeCommand) Run(p *program) error { return p.care(app.Resume) }

// personCommand is about who may use the bot, and what is kept of one person.
type personCommand struct {
	List   personListCommand   `cmd:"" help:"List people who were allowed or removed, owners, and people waiting for an owner."`
	Allow  personAllowCommand  `cmd:"" help:"Allow someone to use the bot; takes effect immediately."`
	Deny   personDenyCommand   `cmd:"" help:"Refuse someone who is waiting for an owner; takes effect immediately."`
	Remove personRemoveCommand `cmd:"" help:"Remove someone, even if the configuration lists them; takes effect immediately."`
	Show   personShowCommand   `cmd:"" help:"Count what is remembered about a person, and list their linked accounts."`
	Forget personForgetCommand `cmd:"" help:"Delete what is remembered about a person; shows the counts and asks first."`
}

type personShowCommand struct {
	Account string `arg:"" help:"One of their accounts, such as telegram/42."`
}

func (c personShowCommand) Run(p *program) error { return with(p, app.ShowPerson, c.Account) }

type personForgetCommand struct {
	Account string `arg:"" help:"One of their accounts, such as telegram/42."`
	Yes     bool   `help:"Do not ask."                                      short:"y"`
}

// Run asks first.
func (c personForgetCommand) Run(p *program) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		if !c.Yes {
			if err := app.ShowPerson(ctx, cfg, env, c.Account); err != nil {
				return err
			}
			if !p.confirm("Permanently delete all of this for all of these accounts?") {
				return fault.New(fault.Invalid, "nothing was deleted; answer y, or use --yes")
			}
		}
		return app.ForgetPerson(ctx, cfg, env, c.Account)
	})
}

// ownerLinkCommand lets whoever is at the machine into the pages.
type ownerLinkCommand struct{}

func (ownerLinkCommand) Run(p *program) error { return p.care(app.OwnerLink) }
