package main

import (
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

// Run implements the command.
func (ownerListCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.ListPeople(p.ctx, cfg, env, true) })
}

type ownerAddCommand struct {
	Account string `arg:"" help:"Account, such as telegram/42."`
}

// Run implements the command.
func (c ownerAddCommand) Run(p *program) error { return p.changePerson(app.AddOwner, c.Account) }

type ownerRmCommand struct {
	Account string `arg:"" help:"Account, such as telegram/42."`
}

// Run implements the command.
func (c ownerRmCommand) Run(p *program) error { return p.changePerson(app.RemoveOwner, c.Account) }

type personListCommand struct{}

// Run implements the command.
func (personListCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.ListPeople(p.ctx, cfg, env, false) })
}

type personAllowCommand struct {
	Account  string `arg:""                                      help:"Account, such as telegram/42, or the code of a request."`
	ReadOnly bool   `help:"They can ask questions but not change anything."`
}

// Run implements the command.
func (c personAllowCommand) Run(p *program) error {
	if c.ReadOnly {
		return p.changePerson(app.AllowReader, c.Account)
	}
	return p.changePerson(app.AllowPerson, c.Account)
}

type personDenyCommand struct {
	Code string `arg:"" help:"The code of their request, such as WDJ-BMJ."`
}

// Run implements the command.
func (c personDenyCommand) Run(p *program) error { return p.changePerson(app.DenyPerson, c.Code) }

type personRemoveCommand struct {
	Account string `arg:"" help:"Account, such as telegram/42."`
}

// Run implements the command.
func (c personRemoveCommand) Run(p *program) error {
	return p.changePerson(app.RemovePerson, c.Account)
}

func (p *program) changePerson(do app.Change, account string) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.ChangePerson(p.ctx, cfg, env, do, account) })
}

// haltCommand stops everything.
type haltCommand struct {
	Reason string `help:"The reason, shown to people who write meanwhile." placeholder:"TEXT"`
}

// Run implements the command.
func (c haltCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.Halt(p.ctx, cfg, env, c.Reason) })
}

// resumeCommand ends a halt.
type resumeCommand struct{}

// Run implements the command.
func (resumeCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.Resume(p.ctx, cfg, env) })
}
