package assistant

import (
	"cmp"
	"log/slog"
	"strings"

	"remote-agent/internal/option"
	"remote-agent/internal/setup"
)

// Kind is what the program knows of a model API before it asks it: its options, and how
// a Model is made of them. A new one is a folder with a Kind in it, and a line in
// package app.
type Kind interface {
	option.Answerer

	// Model returns the model that the options name.
	Model() string

	// Address returns where the API is, its provider's unless the options say another.
	Address() string

	// New makes the Model, which is told of a change of its options with SetModel if it
	// is a Switcher. It connects to nothing.
	New(log *slog.Logger) (Model, error)
}

// Switcher is a Model that can ask another model by default while it is used.
type Switcher interface {
	Model

	// SetModel names the model for requests that begin from now on.
	SetModel(name string)
}

// Guided is a Kind that people can set up step by step.
type Guided interface {
	Kind

	// Ways returns the ways of having it answer new conversations, the usual one first.
	Ways() []setup.Way
}

// API is what model APIs have in common, for a Kind to embed: a key, an address and a
// model, in options that begin with its name.
type API struct {
	Name     Name
	Official string // base URL of the provider's own API

	Key     option.Secret
	BaseURL string // empty means Official
	Asked   string // the model
}

// Options returns the options NAME_API_KEY, NAME_BASE_URL and NAME_MODEL, with what is
// said of the first two, an example of an address, and the usual model.
func (a *API) Options(key, address, example, model string) []option.Option {
	prefix := a.prefix()
	return []option.Option{
		{
			Name: prefix + "API_KEY", Empty: "no key", Secret: true, Group: option.GroupModel,
			Help:  key,
			Parse: option.Secrecy(&a.Key),
		},
		{
			Name: prefix + "BASE_URL", Empty: "the provider's API", Group: option.GroupModel,
			Help:    address,
			Example: example,
			Parse:   option.URL(&a.BaseURL),
		},
		{
			Name: prefix + "MODEL", Default: model, Group: option.GroupModel, Live: true,
			Help:  "Model to use.",
			Parse: option.Text(&a.Asked),
		},
	}
}

func (a *API) prefix() string { return strings.ToUpper(string(a.Name)) + "_" }

// Check implements option.Section.
func (a *API) Check(c *option.Check) {
	key, address := a.prefix()+"API_KEY", a.prefix()+"BASE_URL"
	if c.Assistant == a.Assistant() && !a.Configured() && c.Sound(key, address) {
		c.Problem("DEFAULT_AI_ASSISTANT is %s, but no model is configured: set %s, or %s for your own server", a.Name, key, address)
	}
}

// Assistant implements option.Answerer.
func (a *API) Assistant() string { return string(a.Name) }

// Configured implements option.Answerer.
func (a *API) Configured() bool { return a.Key.IsSet() || a.BaseURL != "" }

// Model implements Kind.
func (a *API) Model() string { return a.Asked }

// Address implements Kind.
func (a *API) Address() string { return cmp.Or(a.BaseURL, a.Official) }

// Way returns the way of setting the API up with a key of its provider.
func (a *API) Way(title string, guide ...string) setup.Way {
	key, address := a.prefix()+"API_KEY", a.prefix()+"BASE_URL"
	return setup.Way{
		Name: string(a.Name), Title: title, Guide: guide,
		Fields: []setup.Field{{Name: key, Label: "API key", Secret: true, For: address}},
		Set:    map[string]string{"DEFAULT_AI_ASSISTANT": string(a.Name), address: ""},
		Proof:  setup.Proof{Areas: []string{"models"}, Only: string(a.Name)},
		Opens:  "New conversations are answered by this model.",
	}
}
