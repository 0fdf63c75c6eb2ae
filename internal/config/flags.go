package config

import (
	"fmt"
	"reflect"
	"strings"

	"remote-agent/internal/option"
)

// Flags is the part of the command line that options can be set with, made from
// the table.
type Flags struct {
	options []Option
	fields  reflect.Value // pointer to a struct with one *string field an option
}

// NewFlags returns flags of which none is given.
func NewFlags(sections ...option.Section) *Flags {
	options := tableOf(sections)
	fields := make([]reflect.StructField, 0, len(options))
	for i, o := range options {
		help := o.Help
		placeholder := "VALUE"
		if o.Secret {
			help = fmt.Sprintf("File that holds %s. %s", o.Name, o.Help)
			placeholder = "FILE"
		} else if o.Default != "" {
			placeholder = o.Default
		}
		help = fmt.Sprintf("%s ($%s)", help, envName(o))
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("Option%d", i),
			Type: reflect.TypeFor[*string](),
			Tag: reflect.StructTag(fmt.Sprintf(`name:%q help:%q group:%q placeholder:%q hidden:""`,
				o.Flag(), kongText(help), o.Group, placeholder)),
		})
	}
	return &Flags{options: options, fields: reflect.New(reflect.StructOf(fields))}
}

// Struct returns a pointer to a struct with kong's tags, to be embedded in a
// command line.
func (f *Flags) Struct() any { return f.fields.Interface() }

// Given returns the flags that were given, by name, for Source.Flags.
func (f *Flags) Given() map[string]string {
	given := map[string]string{}
	for i, o := range f.options {
		if text, ok := reflect.TypeAssert[*string](f.fields.Elem().Field(i)); ok && text != nil {
			given[o.Flag()] = *text
		}
	}
	return given
}

func envName(o Option) string {
	if o.Secret {
		return o.Name + fileSuffix
	}
	return o.Name
}

func flagName(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}

// kongText escapes what kong would take for a variable.
func kongText(s string) string { return strings.ReplaceAll(s, "$", "$$") }
