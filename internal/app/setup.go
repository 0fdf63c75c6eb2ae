package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/chat"
	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/setup"
)

// Setup changes the configuration step by step. It implements setup.Service and is safe
// for concurrent use.
type Setup struct {
	source config.Source
	env    Env // its daemon is the one that runs the pages; nil in a terminal

	mu       sync.Mutex // guards what follows
	file     config.EnvText
	config   config.Config
	problems config.Problems // of config
}

// NewSetup reads what there is. A file that cannot be changed safely is a fault.Invalid;
// options that are wrong are not: they can be mended.
func NewSetup(src config.Source, env Env) (*Setup, error) {
	s := &Setup{source: src, env: env}
	return s, s.read()
}

// read takes over what the file holds now. Somebody may have changed it by hand.
func (s *Setup) read() error {
	file, err := config.ReadEnv(s.source)
	if err != nil {
		return fault.New(fault.Invalid, err.Error())
	}
	s.file = file
	s.config, s.problems = s.with(file.Text)
	return nil
}

// with returns the configuration as it is with another text of the file.
func (s *Setup) with(text []byte) (config.Config, config.Problems) {
	src := s.source
	src.EnvText = &text
	return config.Inspect(src, Sections()...)
}

func (s *Setup) now() (config.Config, config.Problems) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config, s.problems
}

// File is where values are kept.
func (s *Setup) File() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Path
}

// Problems returns what is wrong with the configuration as it is, one line each.
func (s *Setup) Problems() []string {
	_, problems := s.now()
	return slices.Clone([]string(problems))
}

// Value implements setup.Service.
func (s *Setup) Value(name string) setup.Value {
	c, _ := s.now()
	text, set := c.Shown(name)
	return setup.Value{Name: name, Text: text, Origin: c.Origin(name), Set: set, Pinned: c.Pinned(name)}
}

// Blocked implements setup.Service.
func (s *Setup) Blocked(w setup.Way) string {
	c, _ := s.now()
	for _, name := range slices.Sorted(maps.Keys(w.Set)) {
		if text, _ := c.Text(name); c.Pinned(name) && text != w.Set[name] {
			return fmt.Sprintf("%s is set by the %s and would have to change: remove it there first.", name, c.Origin(name))
		}
	}
	return ""
}

// CheckValue implements setup.Service.
func (s *Setup) CheckValue(name, value string) string {
	_, _, problems := s.candidate(map[string]string{name: value})
	for _, p := range problems {
		if strings.HasPrefix(p, name+" (") || !strings.Contains(p, " (") && strings.HasPrefix(p, name+" ") {
			return p
		}
	}
	return ""
}

// candidate returns the text of the file with other values, and what is wrong with them
// or with the configuration then that is not wrong now.
func (s *Setup) candidate(values map[string]string) (text []byte, c config.Config, fresh config.Problems) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := maps.Clone(values)
	maps.DeleteFunc(set, func(name, value string) bool { return s.config.Pinned(name) })
	text, err := config.Edit(s.file.Text, set, Sections()...)
	if err != nil {
		return nil, c, config.Problems{err.Error()}
	}
	c, problems := s.with(text)
	for _, p := range problems {
		name, _, _ := strings.Cut(p, " ")
		if _, changed := set[name]; changed || !slices.Contains(s.problems, p) {
			fresh = append(fresh, p)
		}
	}
	return text, c, fresh
}

// wanted is all that a way changes.
func wanted(w setup.Way, values map[string]string) map[string]string {
	all := make(map[string]string)
	maps.Copy(all, w.Set)
	maps.Copy(all, values)
	return all
}

// Try implements setup.Service.
func (s *Setup) Try(ctx context.Context, _ setup.Step, w setup.Way, values map[string]string) setup.Outcome {
	if why := s.Blocked(w); why != "" {
		return setup.Outcome{Verdict: setup.Bad, Problems: []string{why}}
	}
	_, c, fresh := s.candidate(wanted(w, values))
	if len(fresh) > 0 {
		return setup.Outcome{Verdict: setup.Bad, Problems: fresh}
	}
	var out setup.Outcome
	if !w.Proof.After {
		out = s.examine(ctx, c, w.Proof)
	}
	before, _ := s.now()
	for _, warning := range c.Warnings {
		if !slices.Contains(before.Warnings, warning) {
			out.Warnings = append(out.Warnings, warning)
		}
	}
	return out
}

// Prove implements setup.Service.
func (s *Setup) Prove(ctx context.Context, w setup.Way) setup.Outcome {
	c, _ := s.now()
	return s.examine(ctx, c, w.Proof)
}

// examine runs the checks of a proof.
func (s *Setup) examine(ctx context.Context, c config.Config, p setup.Proof) setup.Outcome {
	if len(p.Areas) == 0 {
		return setup.Outcome{}
	}
	var out setup.Outcome
	proven := false
	for _, f := range examine(ctx, c, s.env, p.Areas...).Findings {
		if !strings.HasPrefix(f.Check, p.Only) {
			continue
		}
		out.Findings = append(out.Findings, f)
		proven = proven || f.Status != doctor.Skip
		later := slices.Contains(p.Later, f.Check)
		switch {
		case f.Status == doctor.Fail && later:
			out.Later = true
		case f.Status == doctor.Fail && refuses(f, p) && !f.Passes:
			out.Verdict = setup.Bad
		case f.Status == doctor.Fail, f.Status == doctor.Warn && f.Check == "account":
			out.Verdict = max(out.Verdict, setup.Doubtful)
		}
	}
	if !proven { // nothing was tried
		out.Verdict = max(out.Verdict, setup.Doubtful)
	}
	return out
}

// refuses reports whether a failure shows that the values themselves are wrong.
func refuses(f doctor.Finding, p setup.Proof) bool {
	return f.Check == "account" || f.Check == "options" || p.Only != "" && f.Check == p.Only
}

// Keep implements setup.Service.
func (s *Setup) Keep(ctx context.Context, step setup.Step, w setup.Way, values map[string]string) ([]string, error) {
	all := wanted(w, values)
	text, c, fresh := s.candidate(all)
	if len(fresh) > 0 {
		return nil, fault.New(fault.Invalid, strings.Join(fresh, "; "))
	}
	s.mu.Lock()
	earlier := s.file
	s.mu.Unlock()
	if err := s.replace(text); err != nil {
		return nil, err
	}
	told, err := s.tell(ctx, c, all)
	if err != nil {
		// What is in the file now would not let the bot start again.
		if back := s.replace(earlier.Text); back != nil {
			return nil, errors.Join(err, back)
		}
		return nil, err
	}
	said := []string{"Saved in " + s.File() + "."}
	if s.introduces(step) {
		said = append(said, s.introduce(ctx, c, messages.Platform(step.Name))...)
	}
	return append(said, told...), nil
}

// PutAside implements setup.Service.
func (s *Setup) PutAside(w setup.Way, values map[string]string) (path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := wanted(w, values)
	maps.DeleteFunc(set, func(name, _ string) bool { return s.config.Pinned(name) })
	text, err := config.Edit(s.file.Text, set, Sections()...)
	if err == nil {
		path, err = s.file.PutAside(text)
	}
	if err != nil {
		return "", fault.New(fault.Invalid, err.Error())
	}
	return path, nil
}

// replace writes another text into the file.
func (s *Setup) replace(text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	file, err := s.file.Replace(text)
	if err != nil {
		return fault.New(fault.Invalid, err.Error())
	}
	s.file = file
	s.config, s.problems = s.with(text)
	return nil
}

// introduces reports whether a step is that of a platform.
func (s *Setup) introduces(step setup.Step) bool {
	c, _ := s.now()
	return slices.ContainsFunc(kindsOf(c), func(k platform.Kind) bool { return string(k.Platform()) == step.Name && k.On() })
}

// introduce tells a platform what the bot is, and its commands.
func (s *Setup) introduce(ctx context.Context, c config.Config, name messages.Platform) []string {
	ctx, cancel := context.WithTimeout(ctx, doctor.Patience)
	defer cancel()
	e := newExamination(c, s.env)
	for _, k := range kindsOf(c) {
		if k.Platform() != name {
			continue
		}
		a, err := e.adapterFor(k)
		if err != nil {
			return nil // the checks have told
		}
		if idle, ok := a.(interface{ CloseIdle() }); ok {
			defer idle.CloseIdle()
		}
		var said []string
		if menu, ok := a.(platform.Menu); ok {
			commands, err := chat.New(chat.Config{})
			if err == nil {
				err = menu.SetMenu(ctx, commands.Menu(menu.Capabilities()))
			}
			if err != nil {
				return []string{"The command menu could not be set: " + fault.Public(err)}
			}
			said = append(said, "The command menu is set.")
		}
		if i, ok := a.(platform.Introducer); ok {
			did, err := i.Introduce(ctx)
			if did != "" {
				said = append(said, "The profile that people see is set: "+did+".")
			}
			if err != nil {
				said = append(said, "Not all of its description could be set: "+fault.Public(err))
			}
		}
		return said
	}
	return nil
}

// tellWithin bounds how long a running bot may take to read its configuration.
const tellWithin = 30 * time.Second

// tell has the bot that runs here take what was changed, and says what came of it. It is
// a fault.Invalid if the bot refuses that.
func (s *Setup) tell(ctx context.Context, c config.Config, values map[string]string) ([]string, error) {
	asking, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	t, running, err := s.retake(asking, c, newChange(s.File(), values))
	const restart = "Restart it: systemctl restart bot, or docker compose restart, or end it and start it."
	switch {
	case ctx.Err() != nil:
		return []string{"Stopped before a running bot could be told; it uses this from its next start."}, nil
	case !running:
		return []string{"It takes effect when the bot starts: bot serve"}, nil
	case fault.Is(err, fault.Invalid):
		return nil, err
	case err != nil:
		return []string{"A bot is running here, but it cannot be told: " + fault.Public(err), restart}, nil
	case !sameFile(t.EnvFile, s.File()):
		return []string{"The bot running here reads " + t.EnvFile + " and not this file: run bot setup with --env-file " + t.EnvFile}, nil
	}
	var said []string
	if len(t.Elsewhere) > 0 {
		said = append(said, "The running bot takes "+strings.Join(t.Elsewhere, ", ")+" from its own flags or environment, which take precedence: change them there.")
	}
	switch {
	case len(t.Restart) == 0 && len(said) > 0:
	case len(t.Restart) == 0:
		said = append(said, "The running bot uses it now.")
	case !t.Restarting:
		said = append(said, "The running bot needs a restart for "+strings.Join(t.Restart, ", ")+".", restart)
	case s.env.daemon != nil:
		said = append(said, "The bot restarts with it now and is back in a few seconds; answers in progress continue.")
	case awaitRestart(ctx, c, t.Life):
		said = append(said, "The bot has restarted with it; answers in progress continue.")
	default:
		said = append(said, "The bot was told to restart with it, but does not answer yet: check its log.")
	}
	return said, nil
}

// retake has the bot that runs here take a change: this process, where it is that bot.
func (s *Setup) retake(ctx context.Context, c config.Config, made change) (t taken, running bool, err error) {
	if s.env.daemon == nil {
		return tellDaemon(ctx, c, made)
	}
	err = fault.New(fault.Unavailable, "It is stopping.")
	s.env.daemon.retakes.ask(ctx, made, func(done taken, failed error) { t, err = done, failed })
	return t, true, err
}
