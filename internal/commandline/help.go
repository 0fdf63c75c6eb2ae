package commandline

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"remote-agent/internal/lists"
)

// Annotations of commands, and groupKey of flags.
const (
	argumentsKey = "arguments"
	groupKey     = "group"
	orderKey     = "order"
)

const columns = 80

// Commands returns the commands of a command that are not hidden, in the order of
// their fields.
func Commands(c *cobra.Command) []*cobra.Command {
	commands := slices.DeleteFunc(slices.Clone(c.Commands()), func(c *cobra.Command) bool { return c.Hidden })
	sort.Slice(commands, func(i, k int) bool { return order(commands[i]) < order(commands[k]) })
	return commands
}

func order(c *cobra.Command) int {
	n, _ := strconv.Atoi(c.Annotations[orderKey]) // 0 where there is none
	return n
}

// Group returns the group of a command.
func Group(c *cobra.Command) string { return c.Annotations[groupKey] }

// Help explains a command: what it is for, its arguments, commands and flags. Flags
// of groups are only listed with groups.
func Help(c *cobra.Command, groups bool) string {
	var b strings.Builder
	usage := c.UseLine()
	if c.HasSubCommands() {
		usage = c.CommandPath() + " <command> [flags]"
	}
	fmt.Fprintf(&b, "Usage: %s\n", usage)
	for _, text := range []string{c.Short, c.Long} {
		if text != "" {
			fmt.Fprintf(&b, "\n%s\n", wrap(text, 0))
		}
	}
	if arguments := c.Annotations[argumentsKey]; arguments != "" {
		fmt.Fprintf(&b, "\nArguments:\n%s", arguments)
	}
	if c.HasSubCommands() {
		b.WriteString("\nCommands:\n")
		var lines [][2]string
		for _, child := range Commands(c) {
			lines = append(lines, [2]string{strings.TrimPrefix(child.CommandPath(), c.Root().Name()+" "), child.Short})
		}
		b.WriteString(table(lines))
	}
	writeFlags(&b, c, groups)
	return b.String()
}

// writeFlags lists the flags, those without a group first.
func writeFlags(b *strings.Builder, c *cobra.Command, all bool) {
	group := func(title string) *pflag.FlagSet {
		flags := pflag.NewFlagSet(title, pflag.ContinueOnError)
		flags.SortFlags = false
		return flags
	}
	groups, titles := map[string]*pflag.FlagSet{"": group("")}, []string{""}
	add := func(f *pflag.Flag) {
		title := strings.Join(f.Annotations[groupKey], " ")
		if title != "" && !all {
			return
		}
		if groups[title] == nil {
			groups[title], titles = group(title), append(titles, title)
		}
		shown := *f
		shown.DefValue = "" // the placeholder shows it
		groups[title].AddFlag(&shown)
	}
	for _, set := range []*pflag.FlagSet{c.LocalNonPersistentFlags(), c.PersistentFlags(), c.InheritedFlags()} {
		set.SortFlags = false // each of them is made anew
		set.VisitAll(add)
	}
	for _, title := range titles {
		if usages := groups[title].FlagUsagesWrapped(columns); usages != "" {
			fmt.Fprintf(b, "\n%s:\n%s", cmp.Or(title, "Flags"), usages)
		}
	}
}

// describe lists arguments.
func describe(args []*argument) string {
	return table(lists.Map(args, func(a *argument) [2]string { return [2]string{a.String(), a.help} }))
}

// table writes two columns, the second one wrapped.
func table(lines [][2]string) string {
	width := 0
	for _, line := range lines {
		width = max(width, len(line[0]))
	}
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "  %-*s   %s\n", width, line[0], wrap(line[1], width+5))
	}
	return b.String()
}

// wrap breaks a text at spaces; all lines but the first are indented.
func wrap(text string, indent int) string {
	var b strings.Builder
	at := indent
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > columns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
