package main

import (
	"context"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
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
