package mcp

import (
	"context"
	"strings"

	"remote-agent/internal/tool"
)

// Probed is what a server showed of itself.
type Probed struct {
	Connected bool
	Name      string // as it calls itself, with its version; foreign text, in one short line
	Tools     int    // that can be used
}

// Probe connects to a server as a Link does, asks for its tools, and ends it again.
// troubles are for people.
func Probe(ctx context.Context, s Server, opts Options) (p Probed, troubles []error) {
	conn, offers, troubles := open(ctx, s, opts.withDefaults())
	if conn == nil {
		return p, troubles
	}
	if p.Tools = len(offers); p.Tools == 0 && len(troubles) == 0 {
		troubles = append(troubles, s.problem("offers no tools", nil))
	}
	p.Connected = true
	if hello := conn.session.InitializeResult(); hello != nil && hello.ServerInfo != nil {
		p.Name = tool.Line(strings.TrimSpace(hello.ServerInfo.Name+" "+hello.ServerInfo.Version), 80)
	}
	if err := conn.close(); err != nil {
		troubles = append(troubles, err)
	}
	return p, troubles
}
