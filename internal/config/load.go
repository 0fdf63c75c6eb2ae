package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"remote-agent/internal/option"
)

// Source is where options are read from.
type Source struct {
	// Flags holds the flags that were given, by name without dashes.
	Flags map[string]string

	// Environ is the environment as os.Environ returns it.
	Environ []string

	// EnvFile is the file to read; empty means .env, which may be missing.
	EnvFile string

	// EnvText, if not nil, is read in the place of what the file holds.
	EnvText *[]byte
}

// Problems lists everything that is wrong with a configuration. Each is one
// line that names the option, what is wrong and what to do. None holds a
// secret.
type Problems []string

// Error returns all problems, one a line.
func (p Problems) Error() string { return strings.Join(p, "\n") }

// value is what an option was set to.
type value struct {
	text   string // empty means the default's meaning
	origin string
	pinned bool // by a flag or the environment, which win over the file
}

// layer is one place that options come from.
type layer struct {
	name   string
	values map[string]string
}

// environment is the name of the layer that other programs have variables in, too.
const environment = "environment"

// loader collects what is found on the way.
type loader struct {
	config   Config
	layers   []layer // environment, then file
	flags    map[string]string
	problems Problems
	failed   map[string]bool // options that have a problem of their own
}

// Load reads, parses and checks all options. The error is Problems, with every
// problem at once. It changes neither the environment nor any file.
//
// An option that is set to nothing in one place is not looked for in the places
// below: that is how to get a default back.
//
// The sections are filled; each belongs to this one reading.
func Load(src Source, sections ...option.Section) (Config, error) {
	c, problems := Inspect(src, sections...)
	if len(problems) > 0 {
		return Config{}, problems
	}
	return c, nil
}

// Inspect does so as well, and returns what could be read beside the problems, for
// showing it and for mending them.
func Inspect(src Source, sections ...option.Section) (Config, Problems) {
	l := &loader{flags: src.Flags, failed: map[string]bool{}}
	l.config.values, l.config.Sections = map[string]value{}, sections
	l.config.table = l.config.options()

	path := cmp.Or(src.EnvFile, EnvFile)
	text, err := src.text(path)
	var file map[string]string
	if err == nil {
		file, err = parseEnvFile(path, text)
	}
	if err != nil {
		l.problems = append(l.problems, err.Error())
	}
	environ := map[string]string{}
	for _, entry := range src.Environ {
		if name, text, ok := strings.Cut(entry, "="); ok {
			environ[name] = text
		}
	}
	l.layers = []layer{{environment, environ}, {filepath.Base(path), file}}

	for _, o := range l.config.table {
		l.option(o)
	}
	for _, place := range l.layers {
		l.config.Warnings = append(l.config.Warnings, unknownKeys(place, l.config.table)...)
	}
	if err == nil {
		l.config.Warnings = append(l.config.Warnings, repeated(filepath.Base(path), text)...)
		l.derive()
		l.checkSignIn()
		l.checkUnused()
		l.checkSections()
	}
	return l.config, l.problems
}

// text returns what the file holds.
func (src Source) text(path string) ([]byte, error) {
	if src.EnvText != nil {
		return *src.EnvText, nil
	}
	return readEnvFile(path, src.EnvFile != "")
}

// option finds, parses and stores one option.
func (l *loader) option(o option.Option) {
	v, label, err := l.find(o)
	if err != nil {
		l.fail(o.Name, label, err)
		return
	}
	l.config.values[o.Name] = v
	if v.text == "" {
		return
	}
	if err := o.Parse(v.text); err != nil {
		l.fail(o.Name, label, err)
	}
}

// find returns the value of an option and what to call its source in a problem.
func (l *loader) find(o option.Option) (v value, label string, err error) {
	if text, ok := l.flags[o.Flag()]; ok {
		label = "--" + o.Flag()
		if o.Secret {
			v, err = l.secretFile(o.Name, text)
		} else {
			v = orDefault(o, text, "flag "+label)
		}
		v.pinned = true
		return v, label, err
	}
	if err := l.bothSet(o); err != nil {
		return value{}, o.Name, err
	}
	for i, place := range l.layers {
		v, label, ok, err := l.inLayer(o, place)
		if ok || err != nil {
			v.pinned = i == 0
			return v, label, err
		}
	}
	return value{text: o.Default, origin: "default"}, o.Name, nil
}

// bothSet refuses a secret that is set itself and by file: one of them is a
// leftover, and guessing which would use the wrong credential.
func (l *loader) bothSet(o option.Option) error {
	if !o.Secret {
		return nil
	}
	var text, file string
	for _, place := range l.layers {
		if text == "" && place.values[o.Name] != "" {
			text = place.name
		}
		if file == "" && place.values[o.Name+option.FileSuffix] != "" {
			file = place.name
		}
	}
	if text == "" || file == "" {
		return nil
	}
	return fmt.Errorf("is set (%s) and so is %s%s (%s): remove one of them", text, o.Name, option.FileSuffix, file)
}

// inLayer looks an option up in one place, under all its names.
func (l *loader) inLayer(o option.Option, place layer) (v value, label string, ok bool, err error) {
	label = fmt.Sprintf("%s (%s)", o.Name, place.name)
	if path := place.values[o.Name+option.FileSuffix]; o.Secret && path != "" {
		label = fmt.Sprintf("%s%s (%s)", o.Name, option.FileSuffix, place.name)
		v, err := l.secretFile(o.Name, path)
		return v, label, true, err
	}
	text, set := place.values[o.Name]
	if strings.TrimSpace(text) != "" {
		return orDefault(o, text, place.name), label, true, nil
	}
	for _, alias := range o.Aliases {
		other := strings.TrimSpace(place.values[alias.Name])
		if other == "" {
			continue
		}
		label := fmt.Sprintf("%s (%s)", alias.Name, place.name)
		if alias.Convert != nil {
			if other, err = alias.Convert(other); err != nil {
				return value{}, label, true, err
			}
		}
		if alias.Renamed {
			l.warn("%s is the old name; use %s", label, o.Name)
		}
		return value{text: other, origin: fmt.Sprintf("%s, %s", place.name, alias.Name)}, label, true, nil
	}
	if set {
		return orDefault(o, "", place.name), label, true, nil
	}
	return value{}, "", false, nil
}

func orDefault(o option.Option, text, origin string) value {
	text = strings.TrimSpace(text)
	if text == "" {
		return value{text: o.Default, origin: "default, empty in " + origin}
	}
	return value{text: text, origin: origin}
}

// derive fills what follows from other options.
func (l *loader) derive() {
	c := &l.config
	if c.Database.Driver == "" {
		c.Database = Database{Driver: DriverSQLite, Path: filepath.Join(c.DataDir, "bot.db")}
	}
	if file, err := os.Readlink(c.Database.Path); err == nil { // a link: SQLite keeps its log beside the file
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(c.Database.Path), file)
		}
		if real, err := filepath.EvalSymlinks(c.Database.Path); err == nil {
			file = real // it is there
		}
		c.Database.Path = file
	}
	c.WorkspacePath = cmp.Or(c.WorkspacePath, filepath.Join(c.DataDir, "workspace"))
	c.BackupDir = cmp.Or(c.BackupDir, filepath.Join(c.DataDir, "backups"))
	if c.Assistant == "" && !l.failed["DEFAULT_AI_ASSISTANT"] {
		c.Assistant = AssistantDemo
		list := answerers(c.Sections)
		if i := slices.IndexFunc(list, option.Answerer.Configured); i >= 0 {
			c.Assistant = list[i].Assistant()
		}
	}
	c.Agents.Home = cmp.Or(c.Agents.Home, filepath.Join(c.DataDir, "agents"))
}

// answerers returns the sections of assistants.
func answerers(sections []option.Section) (list []option.Answerer) {
	for _, s := range sections {
		if a, ok := s.(option.Answerer); ok {
			list = append(list, a)
		}
	}
	return list
}

// modelNames returns the names of those assistants.
func modelNames(sections []option.Section) (names []string) {
	for _, a := range answerers(sections) {
		names = append(names, a.Assistant())
	}
	return names
}

// checkSections has each section check its part. A rule is skipped if one of its options
// has a problem already.
func (l *loader) checkSections() {
	isSet := func(name string) bool {
		_, set := l.config.Text(name)
		return set
	}
	for _, section := range l.config.Sections {
		c := option.Check{PublicURL: l.config.PublicURL, Assistant: l.config.Assistant, IsSet: isSet, Sound: l.sound}
		section.Check(&c)
		l.problems = append(l.problems, c.Problems...)
		l.config.Warnings = append(l.config.Warnings, c.Warnings...)
	}
}

// checkUnused warns of options that are set, and do nothing as long as another one is not.
func (l *loader) checkUnused() {
	c := &l.config
	_, decided := c.Text("TOOL_NETWORK") // who writes that it is off knows
	for _, u := range []struct {
		idle        bool
		name, needs string
	}{
		{!c.Tools.Network && !decided, "TOOL_HOSTS", "TOOL_NETWORK=on"},
		{c.SignIn.Issuer == "", "OIDC_CLIENT_ID", "OIDC_ISSUER"},
		{c.SignIn.Issuer == "", "OIDC_CLIENT_SECRET", "OIDC_ISSUER"},
		{c.SignIn.Issuer == "" && c.SignIn.Header == "", "SIGN_IN_PEOPLE", "OIDC_ISSUER or SIGN_IN_HEADER"},
	} {
		if _, set := c.Text(u.name); set && u.idle && l.sound("TOOL_NETWORK", "OIDC_ISSUER", "SIGN_IN_HEADER") {
			l.warn("%s has no effect without %s: set that as well, or remove %s", u.name, u.needs, u.name)
		}
	}
}

// sound reports whether none of the options has a problem of its own.
func (l *loader) sound(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return l.failed[n] })
}

func (l *loader) fail(name, label string, err error) {
	l.failed[name] = true
	l.problem("%s %s", label, err.Error())
}

func (l *loader) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

func (l *loader) warn(format string, args ...any) {
	l.config.Warnings = append(l.config.Warnings, fmt.Sprintf(format, args...))
}

// AsProblems returns the problems in the chain of err, if there are any.
func AsProblems(err error) (Problems, bool) { return errors.AsType[Problems](err) }

// sortedKeys returns the keys of m in order.
func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
