package main

import (
	"fmt"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/setup/dialog"
	"remote-agent/internal/terminal"
)

// setupCommand sets the program up in a conversation.
type setupCommand struct {
	Step  string `arg:"" optional:"" help:"Do this step only: model, repository, address, people, or a platform such as telegram."`
	Check bool   `help:"Only show the state of each step, and check it."`
}

// Help implements commandline.Explained.
func (setupCommand) Help() string {
	return "Each step says where to click, checks what you enter, saves it in the .env file and applies it to a running bot. " +
		"You can repeat it at any time. Without a terminal, answers are read one per line. With --check, exit code 5 if something fails."
}

func (c setupCommand) Run(p *program) error {
	cfg, _ := config.Inspect(p.source, app.Sections()...) // what is wrong is for the steps to mend
	p.secrets = secrets(cfg, p.environ)
	log, closeLog, err := p.newLogger(cfg, false)
	if err != nil {
		return err
	}
	defer closeLog()
	service, err := app.NewSetup(p.source, p.env(log, false))
	if err != nil {
		return err
	}
	for _, problem := range service.Problems() {
		_, _ = fmt.Fprintf(p.stdout, "✖ %s\n", problem) // a closed terminal
	}
	asker := terminal.NewAsker(p.stdin, p.stdout)
	asker.Interrupt = p.interrupt
	d := dialog.Dialog{Service: service, Screen: asker}
	if c.Check {
		sound, err := d.Check(p.ctx, c.Step)
		if err == nil && (!sound || len(service.Problems()) > 0) {
			return errUnwell
		}
		return err
	}
	asker.Print("Values are kept in " + service.File() + "; Ctrl-C ends at any time, and what was saved stays.\n")
	return d.Run(p.ctx, c.Step)
}
