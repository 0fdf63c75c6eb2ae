// Package commandline makes a command line of a struct: each command is a struct
// with a method Run, its flags and arguments are fields with tags.
//
// Cobra does the work. It is chosen, and not a library that calls methods by name,
// because the linker then keeps every exported method of every type of the program:
// 7 MB.
package commandline

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Runner is a command that can be run with what the program gives to commands.
type Runner[P any] interface{ Run(p P) error }

// Explained is a command with more to say than its line in the list.
type Explained interface{ Help() string }

// New makes the commands of root, a pointer to a struct, and gives p to the one that
// is run. These tags make a field of it, or of a command in it, into
//
//	cmd    a command: a struct, with group and hidden, if they are there
//	arg    an argument, required but for optional or a default; a slice takes all that are left, with
//	       their commas
//	help   a flag, if there is neither cmd nor arg: with short, required, and global
//	       if it is one of all commands below, too
//
// name is called name, if it is not to be made of the field's. default is a flag's
// or an argument's value, and one of enum, with commas. placeholder stands for it in
// the help. sep:"none" keeps the commas of a []string. Fields are strings, bools,
// ints, float64s, durations, and slices of them.
//
// What is wrong with a command line is a UsageError of one line.
func New[P any](name string, root any, p P) *cobra.Command {
	b := builder[P]{p: p}
	c := b.command(name, reflect.ValueOf(root).Elem())
	c.SilenceErrors, c.SilenceUsage = true, true
	c.CompletionOptions.DisableDefaultCmd = true
	c.PersistentFlags().BoolP("help", "h", false, "Explain the command.")
	c.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	for _, child := range c.Commands() {
		if child.Name() == "help" { // completion offers what was set, though it is hidden
			c.SetHelpCommand(child)
		}
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UsageError{err} })
	c.SetHelpFunc(func(c *cobra.Command, _ []string) { c.Print(Help(c, false)) })
	return c
}

// UsageError is an error of the command line itself.
type UsageError struct{ error }

// Unwrap returns what the library said.
func (e UsageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// builder makes commands that run with p.
type builder[P any] struct{ p P }

// command makes a command of a struct and of the structs in it.
func (b builder[P]) command(name string, target reflect.Value) *cobra.Command {
	c := &cobra.Command{Use: name}
	c.Flags().SortFlags, c.PersistentFlags().SortFlags = false, false
	if e, ok := reflect.TypeAssert[Explained](target.Addr()); ok {
		c.Long = e.Help()
	}
	var args []*argument
	var required []string
	for i := range target.NumField() {
		field, value := target.Type().Field(i), target.Field(i)
		switch {
		case has(field, "cmd"):
			c.AddCommand(b.child(field, value))
		case has(field, "arg"):
			args = append(args, newArgument(field, value))
			c.Use += " " + args[len(args)-1].String()
			c.ValidArgs = args[0].completions()
		case has(field, "help"):
			if name := addFlag(c, field, value); has(field, "required") {
				required = append(required, name)
			}
		}
	}
	c.Annotations = map[string]string{argumentsKey: describe(args)}
	c.Args = func(c *cobra.Command, given []string) error { return cmp.Or(take(c, args, given), demand(c, required)) }
	if r, ok := reflect.TypeAssert[Runner[P]](target.Addr()); ok {
		c.RunE = func(*cobra.Command, []string) error { return r.Run(b.p) }
	} else {
		c.RunE = func(c *cobra.Command, _ []string) error {
			return usagef("%s needs one of %s", c.CommandPath(), strings.Join(names(c), ", "))
		}
	}
	return c
}

func (b builder[P]) child(field reflect.StructField, value reflect.Value) *cobra.Command {
	c := b.command(nameOf(field), value)
	c.Short, c.Hidden = field.Tag.Get("help"), has(field, "hidden")
	c.Annotations[groupKey], c.Annotations[orderKey] = field.Tag.Get("group"), strconv.Itoa(field.Index[0])
	return c
}

func names(c *cobra.Command) (names []string) {
	for _, child := range Commands(c) {
		names = append(names, child.Name())
	}
	return names
}

// demand checks that the flags were given which have to be.
func demand(c *cobra.Command, required []string) error {
	missing := slices.DeleteFunc(slices.Clone(required), c.Flags().Changed)
	if len(missing) == 0 {
		return nil
	}
	return usagef("%s needs --%s", c.CommandPath(), strings.Join(missing, " and --"))
}

// addFlag returns the name of the flag.
func addFlag(c *cobra.Command, field reflect.StructField, target reflect.Value) string {
	v := newValue(field, target)
	flag := &pflag.Flag{
		Name: nameOf(field), Shorthand: field.Tag.Get("short"), Usage: field.Tag.Get("help"), Value: v, DefValue: v.String(),
		Hidden: has(field, "hidden"),
	}
	if target.Kind() == reflect.Bool {
		flag.NoOptDefVal = "true"
	}
	set := c.Flags()
	if has(field, "global") {
		set = c.PersistentFlags()
	}
	set.AddFlag(flag)
	if values := v.completions(); values != nil {
		if err := c.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // it was added a line above
		}
	}
	return flag.Name
}

// argument is one argument of a command.
type argument struct {
	*value
	name     string
	help     string
	optional bool
}

func newArgument(field reflect.StructField, target reflect.Value) *argument {
	return &argument{
		value: newValue(field, target), name: nameOf(field), help: field.Tag.Get("help"),
		optional: has(field, "optional") || has(field, "default"),
	}
}

func (a *argument) all() bool { return a.target.Kind() == reflect.Slice }

// String returns the argument as the usage line shows it.
func (a *argument) String() string {
	s := "<" + a.name + ">"
	if a.all() {
		s += " ..."
	}
	if a.optional {
		s = "[" + s + "]"
	}
	return s
}

// take puts what was given into the arguments.
func take(c *cobra.Command, args []*argument, given []string) error {
	for _, a := range args {
		n := min(1, len(given))
		if a.all() {
			n = len(given)
		}
		if n == 0 && !a.optional {
			return usagef("%s needs %s", c.CommandPath(), a)
		}
		for _, text := range given[:n] {
			if err := a.Set(text); err != nil {
				return usagef("%s %w, not %q", a, err, text)
			}
		}
		given = given[n:]
	}
	if len(given) == 0 {
		return nil
	}
	return Unexpected(c, given[0])
}

// Unexpected returns the UsageError of a word behind a command that has no use for it.
func Unexpected(c *cobra.Command, word string) error {
	if c.HasSubCommands() {
		return usagef("%[2]s has no command %[1]q%[3]s", word, c.CommandPath(), nearest(c, word))
	}
	return usagef("%s takes no argument %q", c.CommandPath(), word)
}

// nearest names the command that was probably meant.
func nearest(c *cobra.Command, typed string) string {
	c.SuggestionsMinimumDistance = 2
	if found := c.SuggestionsFor(typed); len(found) > 0 {
		return "; did you mean " + strings.Join(found, " or ") + "?"
	}
	return ""
}

func has(field reflect.StructField, tag string) bool {
	_, ok := field.Tag.Lookup(tag)
	return ok
}

// nameOf makes "dry-run" of DryRun, if no name is given.
func nameOf(field reflect.StructField) string {
	if name := field.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	previous := false // the letter before is a capital
	for i, r := range field.Name {
		capital := r >= 'A' && r <= 'Z'
		if capital && !previous && i > 0 {
			b.WriteByte('-')
		}
		previous = capital
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// AddOption gives a command and those below it a flag, which Help lists in a group
// where it is asked for groups. set is called with each value that is given.
func AddOption(c *cobra.Command, name, help, group, placeholder string, set func(string) error) {
	c.PersistentFlags().AddFlag(&pflag.Flag{
		Name: name, Usage: strings.ReplaceAll(help, "`", ""), // which would be the value's name
		Value: option{placeholder, set}, Annotations: map[string][]string{groupKey: {group}},
	})
}

// option implements pflag.Value.
type option struct {
	placeholder string
	set         func(string) error
}

func (o option) Set(text string) error { return o.set(text) }
func (o option) Type() string          { return o.placeholder }
func (option) String() string          { return "" }
