package main

import (
	"fmt"

	"remote-agent/internal/platform/github"
)

// githubCommand is about the GitHub App.
type githubCommand struct {
	Manifest githubManifestCommand `cmd:"" help:"Print the GitHub App manifest: exactly the permissions and events the bot uses."`
}

// githubManifestCommand prints what GitHub needs to know to make the app.
type githubManifestCommand struct {
	Name string `help:"Name of the app, up to 34 characters; people mention it by this name." default:"remote-agent"`
}

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
