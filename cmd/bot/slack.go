package main

import (
	"fmt"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform/slack"
)

// slackCommand is about the Slack app.
type slackCommand struct {
	Manifest slackManifestCommand `cmd:"" help:"Print the Slack app manifest, and a link that creates the app."`
}

// slackManifestCommand prints what Slack needs to know to make the app.
type slackManifestCommand struct {
	HTTP bool   `help:"Use events over HTTP at PUBLIC_URL instead of Socket Mode."`
	Form string `default:"yaml" enum:"yaml,json,url" help:"yaml, json, or url for the one-click link alone."`
}

func (c slackManifestCommand) Run(p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	if c.HTTP && cfg.PublicURL == "" {
		return fault.New(fault.Invalid, "PUBLIC_URL is not set; events over HTTP need this server's public address")
	}
	m := slack.Manifest(cfg.PublicURL, !c.HTTP)
	switch c.Form {
	case "json":
		_, err = fmt.Fprintln(p.stdout, m.JSON())
	case "url":
		_, err = fmt.Fprintln(p.stdout, m.URL())
	default:
		_, err = fmt.Fprintf(p.stdout, "%s\n# One click: %s\n", m.YAML(), m.URL())
	}
	return err
}
