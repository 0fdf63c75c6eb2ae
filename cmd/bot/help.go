package main

import (
	"fmt"
	"strings"

	mangocobra "github.com/muesli/mango-cobra"
	"github.com/muesli/roff"
	"github.com/spf13/cobra"

	"remote-agent/internal/commandline"
)

// helpCommand is listed for who looks for it; asksForHelp answers it.
type helpCommand struct {
	Command []string `arg:"" help:"The command to explain." optional:""`
}

func (c helpCommand) Run(p *program) error {
	found, rest, err := p.root.Find(c.Command)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return commandline.Unexpected(found, rest[0])
	}
	return found.Help()
}

// printHelp prints what can be said to a command. The options of the daemon work
// as flags of every command, and are listed where they are at home: with serve.
func printHelp(c *cobra.Command) error {
	switch word := c.Flags().Arg(0); {
	case c.HasSubCommands() && word != "":
		return commandline.Unexpected(c, word)
	case c.HasParent():
		c.Print(commandline.Help(c, c.Name() == "serve"))
	default:
		printCommands(c)
	}
	return nil
}

// printCommands prints one line for each command, by groups.
func printCommands(root *cobra.Command) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: bot [command] [flags]\n\n", root.Short)
	group := ""
	for _, c := range commandline.Commands(root) {
		title := commandline.Group(c)
		if title == group {
			title = ""
		} else {
			group = title
		}
		fmt.Fprintf(&b, "%-8s %-11s %s\n", title, c.Name(), c.Short)
	}
	b.WriteString(`
"bot help <command>" explains a command; "bot serve --help" lists all options.
Every option can be a flag, an environment variable, or a line in the .env file.
`)
	root.Print(b.String())
}

// completionCommand prints the lines that let a shell ask this program.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help implements commandline.Explained.
func (completionCommand) Help() string {
	return "For bash, write the output into ~/.local/share/bash-completion/completions/bot, with bot completion bash > FILE; " +
		"for fish, into ~/.config/fish/completions/bot.fish. For zsh, put source <(bot completion zsh) into ~/.zshrc."
}

func (c completionCommand) Run(p *program) error {
	switch c.Shell {
	case "bash":
		return p.root.GenBashCompletionV2(p.stdout, true)
	case "zsh":
		return p.root.GenZshCompletion(p.stdout)
	default:
		return p.root.GenFishCompletion(p.stdout, true)
	}
}

// manCommand prints the manual page, in the form that man(1) reads.
type manCommand struct{}

func (manCommand) Run(p *program) error {
	page, err := mangocobra.NewManPage(1, p.root)
	if err == nil {
		_, err = fmt.Fprint(p.stdout, page.Build(roff.NewDocument()))
	}
	return err
}
