package main

import (
	"fmt"

	"remote-agent/internal/platform/github"
)

// githubCommand is about the GitHub App.
type githubCommand struct {
	Manifest githubManifestCommand `cmd:"" help:"Print the manifest of the GitHub App: exactly the permissions and events that the bot uses."`
}

// githubManifestCommand prints what GitHub needs to know to make the app.
type githubManifestCommand struct {
	Name string `help:"Name of the app, at most 34 characters; it is what people mention." default:"remote-agent"`
}

// Run implements the command.
func (c githubManifestCommand) Run(p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	text, err := github.Manifest(cfg.PublicURL, c.Name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s\n", text)
	return err
}
