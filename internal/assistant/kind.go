package assistant

import (
	"log/slog"

	"remote-agent/internal/option"
)

// Kind is what the program knows of a model API before it asks it: its options, and how
// a Model is made of them. A new one is a folder with a Kind in it, and a line in
// package app. The key of the API called x is in the option X_API_KEY.
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
