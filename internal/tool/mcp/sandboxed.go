package mcp

import (
	"context"
	"slices"

	"remote-agent/internal/fault"
	"remote-agent/internal/sandbox"
)

// Sandboxed returns an Options.Start that runs the programs of servers in a
// sandbox: with what spec grants, the variables of spec and of the server, and no
// time limit of their own. Of what a program writes to its standard error output the
// beginning and the end are kept.
func Sandboxed(runner *sandbox.Runner, spec sandbox.Spec) func(context.Context, Server) (*Process, error) {
	return func(ctx context.Context, s Server) (*Process, error) {
		spec := spec
		spec.Argv, spec.Env = s.Command, slices.Concat(spec.Env, s.Env)
		said := sandbox.NewCapture(4 << 10)
		spec.Stdin, spec.Stdout, spec.Stderr, spec.Timeout = nil, nil, said, 0
		// It lives until Stop, longer than the start that ctx is for.
		p, err := runner.Command(context.WithoutCancel(ctx), spec)
		if err != nil {
			return nil, err
		}
		stdin, err := p.StdinPipe()
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "start an MCP server")
		}
		stdout, err := p.StdoutPipe()
		if err != nil {
			_ = stdin.Close()
			return nil, fault.Wrap(err, fault.Internal, "start an MCP server")
		}
		if err := p.Start(); err != nil {
			_, _ = stdin.Close(), stdout.Close()
			return nil, err
		}
		return &Process{Stdin: stdin, Stdout: stdout, Said: said.String, Stop: func() error {
			p.Stop()
			_, err := p.Wait()
			return err
		}}, nil
	}
}
