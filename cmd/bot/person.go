package main

import (
	"context"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
)

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
