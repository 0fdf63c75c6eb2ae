package main

import (
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/app"
	"remote-agent/internal/fault"
)

// keyCommand is about the keys of programs that use the HTTP API.
type keyCommand struct {
	Create keyCreateCommand `cmd:"" help:"Create a key and print it once; the daemon can keep running."`
	List   keyListCommand   `cmd:"" help:"List the keys with their scopes, expiry and last use."`
	Revoke keyRevokeCommand `cmd:"" help:"Revoke a key immediately and permanently."`
}

type keyCreateCommand struct {
	Name    string   `help:"Its name in the audit log."                                                            placeholder:"NAME" required:""`
	Scope   []string `help:"Scopes, comma-separated: sessions:read, sessions:write, memories:read, memories:write, agents:read, agents:write, usage:read." placeholder:"SCOPE" required:""`
	Expires string   `help:"Lifetime, such as 90d or 12h, or never." default:"never"                 placeholder:"TIME"`
}

func (c keyCreateCommand) Run(p *program) error {
	life, err := parseLife(c.Expires)
	if err != nil {
		return err
	}
	return with(p, app.CreateKey, app.KeyRequest{Name: c.Name, Scopes: c.Scope, Life: life})
}

// parseLife reads a time such as 90d or 12h, which is zero for never. A text that is empty, as of
// a variable that is not set, is an error.
func parseLife(text string) (time.Duration, error) {
	if text == "never" {
		return 0, nil
	}
	life, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		life = time.Duration(min(n, 36_500)) * 24 * time.Hour
	}
	if err != nil || life <= 0 {
		return 0, fault.Newf(fault.Invalid, "--expires %q is not a duration; use one such as 90d or 12h, or never", text)
	}
	return life, nil
}

type keyListCommand struct{}

func (keyListCommand) Run(p *program) error { return p.care(app.ListKeys) }

type keyRevokeCommand struct {
	ID string `arg:"" help:"ID of the key, from list."`
}

func (c keyRevokeCommand) Run(p *program) error { return with(p, app.RevokeKey, c.ID) }
