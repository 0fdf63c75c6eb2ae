package main

import (
	"bufio"
	"fmt"
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
)

// personCommand is about who may use the bot, and what is kept of one person.
type personCommand struct {
	List   personListCommand   `cmd:"" help:"List people who were let in or removed, and owners."`
	Allow  personAllowCommand  `cmd:"" help:"Let somebody in, at once; the daemon may run."`
	Remove personRemoveCommand `cmd:"" help:"Shut somebody out, at once, whatever the configuration says; the daemon may run."`
	Show   personShowCommand   `cmd:"" help:"Count what is remembered of a person, and list their linked accounts."`
	Forget personForgetCommand `cmd:"" help:"Count what is remembered of a person, ask, and delete it."`
}

type personShowCommand struct {
	Account string `arg:"" help:"One of their accounts, such as telegram/42."`
}

// Run implements the command.
func (c personShowCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.ShowPerson(p.ctx, cfg, env, c.Account) })
}

type personForgetCommand struct {
	Account string `arg:"" help:"One of their accounts, such as telegram/42."`
	Yes     bool   `help:"Do not ask."                                      short:"y"`
}

// Run implements the command. It asks first.
func (c personForgetCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error {
		if !c.Yes {
			if err := app.ShowPerson(p.ctx, cfg, env, c.Account); err != nil {
				return err
			}
			_, _ = fmt.Fprint(p.stdout, "Delete all of this, for all of these accounts, for good? [y/N] ") // the question may go unseen
			line, _ := bufio.NewReader(p.stdin).ReadString('\n')                                           // no answer is a no
			if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
				return fault.New(fault.Invalid, "nothing was deleted; answer y, or use --yes")
			}
		}
		return app.ForgetPerson(p.ctx, cfg, env, c.Account)
	})
}
