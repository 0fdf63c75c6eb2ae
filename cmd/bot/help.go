package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	mangokong "github.com/alecthomas/mango-kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/muesli/roff"
	"github.com/posener/complete"
)

// helpCommand is listed for who looks for it; asksForHelp answers it.
type helpCommand struct {
	Command []string `arg:"" help:"The command to explain." optional:""`
}

// asksForHelp turns "help repo add" into "repo add --help".
func asksForHelp(args []string) []string {
	if len(args) == 0 || args[0] != "help" {
		return args
	}
	return append(append([]string{}, args[1:]...), "--help")
}

// printHelp prints what can be said to a command. The options of the daemon work
// as flags of every command, and are listed where they are at home: with serve.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	selected := ctx.Selected()
	if selected == nil {
		return printCommands(ctx)
	}
	if selected.Name == "serve" {
		listOptions(ctx.Model)
	}
	for n := selected; n != nil; n = n.Parent {
		n.Group = nil // it is for the list of all commands
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

// printCommands prints one line for each command, by groups.
func printCommands(ctx *kong.Context) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: bot [command] [flags]\n\n", ctx.Model.Help)
	group := ""
	for _, c := range ctx.Model.Children {
		if c.Hidden {
			continue
		}
		title := c.Group.Title
		if title == group {
			title = ""
		} else {
			group = title
		}
		fmt.Fprintf(&b, "%-8s %-11s %s\n", title, c.Name, c.Help)
	}
	b.WriteString(`
"bot help <command>" explains a command, "bot serve --help" lists all options:
each is a flag of every command, a variable, and a line of .env or --env-file.
`)
	_, err := ctx.Stdout.Write([]byte(b.String()))
	return err
}

// listOptions lets help and completion list the flags that options are made of.
func listOptions(app *kong.Application) {
	for _, flag := range app.Flags {
		flag.Hidden = flag.Hidden && flag.Group == nil
	}
}

// completes reports whether a shell asked what could come next, and answers it.
func completes(parser *kong.Kong) bool {
	if os.Getenv("COMP_LINE") == "" { // where the library looks for it
		return false
	}
	listOptions(parser.Model)
	kongcompletion.Register(parser,
		kongcompletion.WithPredictor("file", complete.PredictFiles("*")),
		kongcompletion.WithExitFunc(func(int) {}))
	return true
}

// completionCommand prints the lines that let a shell ask this program.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help implements kong's HelpProvider.
func (completionCommand) Help() string {
	return "For bash: bot completion bash > ~/.local/share/bash-completion/completions/bot. " +
		"For fish: bot completion fish > ~/.config/fish/completions/bot.fish. For zsh: put source <(bot completion zsh) into ~/.zshrc."
}

// Run implements the command.
func (c completionCommand) Run(p *program) error {
	_, err := fmt.Fprint(p.stdout, map[string]string{
		"bash": "complete -o default -o bashdefault -C bot bot\n",
		"zsh":  "#compdef bot\nautoload -U +X bashcompinit && bashcompinit\ncomplete -o default -o bashdefault -C bot bot\n",
		"fish": `function __complete_bot
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    bot
end
complete -f -c bot -a "(__complete_bot)"
`,
	}[c.Shell])
	return err
}

// manCommand prints the manual page, in the form that man(1) reads.
type manCommand struct{}

// Run implements the command.
func (manCommand) Run(p *program, parser *kong.Kong) error {
	listOptions(parser.Model)
	_, err := fmt.Fprint(p.stdout, mangokong.NewManPage(1, parser.Model).Build(roff.NewDocument()))
	return err
}
