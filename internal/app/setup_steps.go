package app

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/setup"
	"remote-agent/internal/store"
	"remote-agent/internal/transcript"
	"remote-agent/internal/wording"
)

// Names of steps that belong to no platform.
const (
	stepModel      = "model"
	stepRepository = "repository"
	stepAddress    = "address"
	stepPeople     = "people"
)

// Steps implements setup.Service.
func (s *Setup) Steps(context.Context) []setup.Step {
	c, _ := s.now()
	steps := []setup.Step{s.modelStep(c)}
	for _, k := range kindsOf(c) {
		if g, ok := k.(platform.Guided); ok {
			steps = append(steps, g.SetUp(c.PublicURL))
		}
	}
	steps = append(steps, s.repositoryStep(), addressStep(), s.peopleStep())
	for i := range steps { // what is off need not be turned off
		ways := steps[i].Ways
		steps[i].Ways = ways[:0]
		for _, w := range ways {
			if len(w.Fields) > 0 || len(w.Proof.Areas) > 0 || !s.stands(w) {
				steps[i].Ways = append(steps[i].Ways, w)
			}
		}
	}
	return steps
}

// stands reports whether a way would change nothing.
func (s *Setup) stands(w setup.Way) bool {
	for name, value := range w.Set {
		if s.Value(name).Set != (value != "") {
			return false
		}
	}
	return true
}

func (s *Setup) modelStep(c config.Config) setup.Step {
	logins := make(map[string]string)
	if agents, err := newPrograms(c, s.env).knownAgents(); err == nil { // what is wrong with them, the checks tell
		for _, a := range agents {
			logins[string(a.config.Name)] = cmp.Or(a.config.LoginCommand(a.home), a.config.LoginHint)
		}
	}
	agent := func(name, title string) setup.Way {
		return setup.Way{
			Name: name, Title: title,
			Guide: []string{
				"Install it with its adapter: docs/assistants.md has the commands.",
				"Log in once, as the user that the bot runs as: " + logins[name],
				"It runs here, with its own loop and tools.",
			},
			Set:   map[string]string{"DEFAULT_AI_ASSISTANT": name},
			Proof: setup.Proof{Areas: []string{"agents"}, Only: name},
			Opens: "New conversations are answered by this agent.",
		}
	}
	var ways []setup.Way
	for _, k := range modelsOf(c) {
		if g, ok := k.(assistant.Guided); ok {
			ways = append(ways, g.Ways()...)
		}
	}
	return setup.Step{Name: stepModel, Title: "Model: who answers", Ways: append(ways,
		agent(config.AssistantClaude, "Claude Code, installed on this machine"),
		agent(config.AssistantCodex, "Codex, installed on this machine"),
	)}
}

func addressStep() setup.Step {
	return setup.Step{Name: stepAddress, Title: "Public address: for webhooks, and for web pages from elsewhere", Ways: []setup.Way{{
		Name: "address", Title: "an address that the internet reaches",
		Guide: []string{
			"Point a host name at this machine, and open port 443.",
			"Run a TLS proxy that forwards everything to LISTEN_ADDR; docs/operations.md has an example.",
			"Enter the address as people would type it, such as https://bot.example.com.",
		},
		Fields: []setup.Field{{Name: "PUBLIC_URL", Label: "Address"}},
		Proof:  setup.Proof{Areas: []string{"web"}, After: true},
		Opens:  "Platforms can deliver by webhook now; repeat the steps github and slack to switch to it.",
	}, {
		Name: "none", Title: "no address: platforms are polled instead",
		Set:   map[string]string{"PUBLIC_URL": ""},
		Opens: "Platforms work without an address; the web pages are for this machine only.",
	}}}
}

func (s *Setup) repositoryStep() setup.Step {
	return setup.Step{Name: stepRepository, Title: "Repository: what conversations work on", Ways: []setup.Way{{
		Name: "add", Title: "clone one, or register a folder",
		Guide: []string{
			"Open the repository's page and copy its https:// address; owner/name will do for GitHub.",
			"A private one needs the step github first, or GITHUB_TOKEN.",
			"A folder on this machine can be given by its path, but only in a terminal there.",
		},
		Fields: []setup.Field{{Name: "repository", Label: "Address, owner/name or folder"}},
		Opens:  "Send /repo in a chat to choose it; /plan and questions use it from then on.",
		Act: func(ctx context.Context, values map[string]string) (string, error) {
			if where := values["repository"]; s.env.daemon != nil && (filepath.IsAbs(where) || strings.HasPrefix(where, ".") || strings.HasPrefix(where, "~")) {
				return "", fault.New(fault.Forbidden, "A folder of the server can be registered only there: bot repo add "+where)
			}
			return s.act(ctx, func(c config.Config, env Env) error {
				return Repo(ctx, c, env, RepoAdd, values["repository"])
			})
		},
	}}}
}

func (s *Setup) peopleStep() setup.Step {
	change := func(do Change) func(context.Context, map[string]string) (string, error) {
		return func(ctx context.Context, values map[string]string) (string, error) {
			return s.act(ctx, func(c config.Config, env Env) error { return ChangePerson(ctx, c, env, do, values["account"]) })
		}
	}
	guide := []string{
		"The bot prints a one-time link when it starts: whoever opens it becomes its owner, and no ID is needed.",
		"Or send /whoami to the bot, and enter here the account that it answers with.",
		"Everybody else just writes to the bot: owners get a card with the buttons Allow and No.",
	}
	fields := []setup.Field{{Name: "account", Label: "Account, such as telegram/42"}}
	return setup.Step{Name: stepPeople, Title: "People: who may use the bot", Ways: []setup.Way{
		{Name: "owner", Title: "name an owner", Guide: guide, Fields: fields, Act: change(AddOwner), Opens: "Owners let people in and get notices of problems."},
		{Name: "allow", Title: "let somebody in", Guide: guide, Fields: fields, Act: change(AllowPerson), Opens: "They can write to the bot now."},
		{Name: "remove", Title: "remove somebody", Guide: guide, Fields: fields, Act: change(RemovePerson), Opens: "It takes effect at once; what they had running ends."},
	}}
}

// act does a command as it is done from a shell, and returns what it prints.
func (s *Setup) act(ctx context.Context, do func(c config.Config, env Env) error) (string, error) {
	c, problems := s.now()
	if len(problems) > 0 {
		return "", fault.New(fault.Invalid, "Some options are wrong; fix them first: "+strings.Join(problems, "; "))
	}
	if path := c.Database.Path; c.Database.Driver == config.DriverSQLite {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			quiet := s.env
			quiet.Stdout = &bytes.Buffer{}
			if err := Migrate(ctx, c, quiet, true); err != nil {
				return "", err
			}
		}
	}
	var out bytes.Buffer
	env := s.env
	env.Stdout = transcript.Visible(&out)
	err := do(c, env)
	return out.String(), err
}

// State implements setup.Service.
func (s *Setup) State(ctx context.Context, step setup.Step) setup.State {
	c, _ := s.now()
	var state setup.State
	seen := make(map[string]bool)
	for _, w := range step.Ways {
		if w.Act != nil || w.Obtain != nil {
			continue
		}
		for _, f := range w.Fields {
			if !seen[f.Name] {
				state.Values = append(state.Values, s.Value(f.Name))
			}
			seen[f.Name] = true
		}
	}
	switch step.Name {
	case stepModel:
		state.On, state.Line = c.Assistant != config.AssistantDemo && c.Assistant != "", modelState(c)
	case stepAddress:
		state.On, state.Line = c.PublicURL != "", cmp.Or(c.PublicURL, "none; no webhooks, and web pages on this machine only")
	case stepRepository:
		state.On, state.Line = s.counted(ctx, "repository", "repositories", func(st *store.Store) (n int, err error) {
			err = st.InRead(ctx, func(tx *store.Tx) error {
				list, err := tx.Registry().List(ctx)
				n = len(list)
				return err
			})
			return n, err
		})
	case stepPeople:
		state.On, state.Line = s.owners(ctx, c)
	default:
		state.On, state.Line = platformState(c, step.Name)
	}
	return state
}

func modelState(c config.Config) string {
	if k, ok := modelOf(c); ok {
		return c.Assistant + ", " + k.Model()
	}
	if c.Assistant == config.AssistantDemo || c.Assistant == "" {
		return "demo: scripted replies, not an AI"
	}
	return c.Assistant
}

func platformState(c config.Config, name string) (on bool, line string) {
	for _, k := range kindsOf(c) {
		if string(k.Platform()) != name {
			continue
		}
		if !k.On() {
			return false, "off"
		}
		way := map[platform.Intake]string{platform.Polled: "by polling", platform.OverHTTP: "by webhook", platform.OverSocket: "by socket"}[k.Intake()]
		return true, "on, " + way
	}
	return false, "off"
}

// counted says how many there are of something in the database.
func (s *Setup) counted(ctx context.Context, one, many string, count func(st *store.Store) (int, error)) (on bool, line string) {
	c, _ := s.now()
	if _, err := os.Stat(c.Database.Path); c.Database.Driver == config.DriverSQLite && err != nil {
		return false, "none"
	}
	n := 0
	err := withStore(ctx, c, s.env, false, func(st *store.Store) (err error) {
		n, err = count(st)
		return err
	})
	switch {
	case err != nil:
		return false, "not known: " + fault.Public(err)
	case n == 0:
		return false, "none"
	}
	return true, wording.Count(n, one, many)
}

func (s *Setup) owners(ctx context.Context, c config.Config) (on bool, line string) {
	n := 0
	for _, k := range kindsOf(c) {
		if k.On() {
			n += len(k.People().Owners)
		}
	}
	if n == 0 {
		var err error
		if n, err = newExamination(c, s.env).countOwners(ctx); err != nil {
			return false, "not known: " + fault.Public(err)
		}
	}
	if n == 0 {
		return false, "no owner: nobody but the console gets an answer"
	}
	return true, fmt.Sprintf("%s; owners let others in", wording.Count(n, "owner", "owners"))
}
