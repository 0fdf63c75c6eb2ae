package main

import (
	"remote-agent/internal/app"
)

// ownerLinkCommand lets whoever is at the machine into the pages.
type ownerLinkCommand struct{}

func (ownerLinkCommand) Run(p *program) error { return p.care(app.OwnerLink) }
