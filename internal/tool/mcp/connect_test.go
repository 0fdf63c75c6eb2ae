package mcp

import (
	"context"
	"errors"
	"sync"

	"remote-agent/internal/fault"
	"remote-agent/internal/tool"
)

// Connect opens servers without the links that reopen them, all at the same time,
// and returns their tools in the order of the servers, then by name.
func Connect(ctx context.Context, servers []Server, opts Options) (tools []tool.Tool, closeAll func() error, problems []error) {
	opts = opts.withDefaults()
	type outcome struct {
		conn     *connection
		offers   []offer
		problems []error
	}
	outcomes := make([]outcome, len(servers))
	var wg sync.WaitGroup
	seen := make(map[string]bool)
	for i, s := range servers {
		if seen[s.Name] {
			problems = append(problems, fault.Newf(fault.Invalid, "Two MCP servers have the name %q; the second is left out.", s.Name))
			continue
		}
		seen[s.Name] = true
		wg.Go(func() {
			o := &outcomes[i]
			o.conn, o.offers, o.problems = open(ctx, s, opts)
		})
	}
	wg.Wait()
	var open []*connection
	taken := make(map[string]bool)
	for _, o := range outcomes {
		problems = append(problems, o.problems...)
		if o.conn == nil {
			continue
		}
		open = append(open, o.conn)
		for _, f := range o.offers {
			tools = append(tools, newTool(o.conn, f, taken))
		}
	}
	return tools, func() error { return closeConnections(open) }, problems
}

func closeConnections(open []*connection) error {
	errs := make([]error, len(open))
	var wg sync.WaitGroup
	for i, c := range open {
		wg.Go(func() { errs[i] = c.close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
