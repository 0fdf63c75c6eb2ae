// Package mcp offers the tools of MCP servers (Model Context Protocol) as tools
// of ours.
//
// A server is foreign: what it says about itself and what its tools return is
// untrusted text, its output is bounded, and whatever it does wrong is a problem
// with its name, never a turn that hangs. Nothing is offered to it: no roots, no
// sampling, no questions to the user.
package mcp

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/order"
	"remote-agent/internal/tool"
)

const (
	defaultConnect = 8 * time.Second
	defaultCall    = 60 * time.Second
	longestCall    = 10          // times its timeout, if the server reports progress
	patience       = time.Second // for what should end at once

	maxTools = 128 // of one server
	maxPages = 50
)

// Server is one MCP server: a program that is talked to over its standard input
// and output, or an address for streamable HTTP.
type Server struct {
	Name    string   // lower case letters, digits and dashes; a part of the tools' names
	Command []string // the program and its arguments
	Env     []string // "NAME=value", for the program
	Hosts   []string // what the program may reach, for Options.Start

	URL     string      // https, or http to a loopback address if Options allow it
	Headers http.Header // for each request, such as Authorization

	// Allow names the tools that may be used, as patterns of path.Match. Empty
	// means all.
	Allow []string
}

// Process is a program that a Server runs as.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	// Stop ends the program and all that it started, and waits for that, at most
	// about 2 s. It may be called again, and at the same time as the pipes are used.
	Stop func() error

	// Said returns what the program wrote to its standard error output, shortened, for the
	// log. It may be nil.
	Said func() string
}

// Options says how servers are reached.
type Options struct {
	// Start starts the program of a server. It may live until Stop, also after the
	// end of ctx, which bounds only the start. Without it, servers with a Command
	// are a problem.
	Start func(ctx context.Context, s Server) (*Process, error)

	AllowLoopback bool           // http://127.0.0.1 and the like
	RootCAs       *x509.CertPool // nil means those of the system

	ConnectTimeout time.Duration // for start, handshake and list of one server; zero means 8 s
	CallTimeout    time.Duration // for one call of a tool, and again after each report of progress; zero means 60 s

	Log *slog.Logger // nil means no log
}

func (o Options) withDefaults() Options {
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, defaultConnect)
	o.CallTimeout = cmp.Or(o.CallTimeout, defaultCall)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// connection is a server that answered.
type connection struct {
	server  Server
	session *sdk.ClientSession
	line    line
	timeout time.Duration // of a call, from when the server said last that it works on it
	calls   sync.Map      // of those that run, by progress token: the *time.Timer that ends it

	gone    chan struct{} // closed when nothing can be asked any more
	once    sync.Once     // closes gone
	changed chan struct{} // capacity 1: the server says that it has other tools now
}

// change notes that the tools are to be asked for again.
func (c *connection) change() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// mute reports whether the server's tools may change without a word of that: over HTTP, it can
// say so only while it answers.
func (c *connection) mute() bool {
	r := c.session.InitializeResult()
	return c.server.URL != "" && r != nil && r.Capabilities != nil && r.Capabilities.Tools != nil && r.Capabilities.Tools.ListChanged
}

// progress gives a call more time of which the server says that it works on it.
func (c *connection) progress(p *sdk.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	of, _ := c.calls.Load(token)
	if quiet, ok := of.(*time.Timer); ok {
		quiet.Reset(c.timeout)
	}
}

// lose says that nothing can be asked any more.
func (c *connection) lose() { c.once.Do(func() { close(c.gone) }) }

// line is what carries the messages.
type line interface {
	transport() sdk.Transport
	begin()          // an exchange begins: the server may send as much again
	end()            // and ends; without one, the server may send little
	stop() error     // ends it; whoever waits for something on it is freed
	refusal() string // what the other end said instead of an answer, for people; empty if it is not known
	wrote() string   // what a program wrote to its standard error output, for the log
}

func (s Server) check(opts Options) error {
	if err := mcpserver.CheckPatterns(s.Name, s.Allow); err != nil {
		return err
	}
	if err := mcpserver.CheckName(s.Name); err != nil {
		return err
	}
	if err := mcpserver.CheckKind(s.Name, len(s.Command) > 0, s.URL != ""); err != nil {
		return err
	}
	if s.URL != "" {
		return mcpserver.CheckURL(s.Name, s.URL, opts.AllowLoopback)
	}
	if opts.Start == nil {
		return fault.Newf(fault.Unsupported, "The MCP server %q is a program, and programs cannot be started here.", s.Name)
	}
	return nil
}

// handshake is the last version of the protocol that begins with a handshake.
const handshake = "2025-11-25"

// open connects to one server. It returns in time whatever the server does.
//
// Many programs that know the handshake only end, or fall silent, when they are asked
// anything before it, as a later protocol does. So they are asked for the handshake first,
// and those that refuse it are started anew. An address is asked as the later protocol
// does; if nothing comes of that in half of the time, for the handshake, on a line of its own.
func open(ctx context.Context, s Server, opts Options) (c *connection, offers []offer, problems []error) {
	if err := s.check(opts); err != nil {
		return nil, nil, []error{err}
	}
	ctx, cancel := context.WithTimeout(ctx, opts.ConnectTimeout)
	defer cancel()
	if s.URL != "" {
		first, cancel := context.WithTimeout(ctx, opts.ConnectTimeout/2)
		defer cancel()
		if c, offers, problems = try(first, s, opts, ""); c != nil || ctx.Err() != nil {
			return c, offers, problems
		}
		return try(ctx, s, opts, handshake)
	}
	c, offers, problems = try(ctx, s, opts, handshake)
	if _, refused := errors.AsType[*jsonrpc.Error](errors.Join(problems...)); c != nil || !refused {
		return c, offers, problems
	}
	return try(ctx, s, opts, "")
}

// try connects in a version of the protocol; empty means the latest, or what else the server
// knows.
func try(ctx context.Context, s Server, opts Options, version string) (*connection, []offer, []error) {
	var l line
	if s.URL != "" {
		l = newHTTP(s, opts)
	} else {
		p, err := opts.Start(ctx, s)
		if err != nil {
			return nil, nil, []error{s.problem(s.unstartable(err), err)}
		}
		l = newStdio(p, opts.Log.With("server", s.Name))
	}
	c := &connection{server: s, line: l, timeout: opts.CallTimeout, gone: make(chan struct{}), changed: make(chan struct{}, 1)}
	type result struct {
		offers   []offer
		problems []error
		err      error
	}
	done := make(chan result, 1)
	l.begin()
	defer l.end()
	go func() {
		var r result
		defer func() { done <- r }()
		defer caught(&r.err)
		r.offers, r.problems, r.err = c.greet(ctx, version)
	}()
	var err error
	select {
	case r := <-done:
		if r.err == nil {
			return c, r.offers, r.problems
		}
		err = errors.Join(r.err, l.stop())
	case <-ctx.Done():
		err = errors.Join(ctx.Err(), l.stop())
		select {
		case <-done: // it was stuck, and is free now
		case <-time.After(patience):
		}
	}
	if said := l.wrote(); said != "" {
		err = fmt.Errorf("%w; it wrote: %s", err, said)
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, nil, []error{s.problem(fmt.Sprintf("did not answer within %s", opts.ConnectTimeout), err)}
	case ctx.Err() != nil:
		return nil, nil, []error{s.problem("was not connected to: stopped", err)}
	}
	what := "does not speak the protocol, or ended"
	if said := l.refusal(); said != "" {
		what += " (" + said + ")"
	}
	return nil, nil, []error{s.problem(what, err)}
}

// unstartable says why a program does not start.
func (s Server) unstartable(err error) string {
	if fault.Is(err, fault.NotFound) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("is not installed here (there is no program %q)", tool.Line(s.Command[0], 80))
	}
	return "does not start"
}

func (s Server) problem(what string, err error) error {
	kind := fault.Unavailable
	if k := fault.KindOf(err); k == fault.NotFound || k == fault.Forbidden || k == fault.Unsupported {
		kind = k
	}
	return &fault.Error{Kind: kind, Public: fmt.Sprintf("The MCP server %q %s; its tools are unavailable.", s.Name, what), Err: err}
}

// greet makes the session and asks for the tools.
func (c *connection) greet(ctx context.Context, version string) ([]offer, []error, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "remote-agent", Version: "1"}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progress(r.Params) },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.change() },
	})
	session, err := client.Connect(ctx, c.line.transport(), &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, nil, err
	}
	c.session = session
	go func() {
		_ = session.Wait() // how it ended is told to whoever asks
		c.lose()
	}()
	return c.offers(ctx)
}

// offers asks for the tools.
func (c *connection) offers(ctx context.Context) ([]offer, []error, error) {
	found, complete, err := c.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	offers, problems := c.server.choose(found)
	if !complete || len(offers) > maxTools {
		offers = offers[:min(len(offers), maxTools)]
		problems = append(problems, fault.Newf(fault.Exhausted, "The MCP server %q has too many tools; only %d are used. List the ones you want.", c.server.Name, len(offers)))
	}
	return offers, problems, nil
}

// list asks for all tools, page by page, with an end.
func (c *connection) list(ctx context.Context) (found []*sdk.Tool, complete bool, err error) {
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := c.session.ListTools(ctx, params)
		if err != nil {
			return nil, false, err
		}
		found = append(found, page.Tools...)
		if page.NextCursor == "" {
			return found, true, nil
		}
		if len(found) > 10*maxTools {
			break
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return found, false, nil
}

// choose takes the tools that are allowed and usable, by name. Of too many it
// takes one more than maxTools.
func (s Server) choose(found []*sdk.Tool) (offers []offer, problems []error) {
	order.By(found, func(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) })
	wanted := make(map[string]bool) // exact names of Allow that were found
	for i, t := range found {
		if !s.allows(t.Name, wanted) {
			continue
		}
		f, err := newOffer(t)
		if i > 0 && found[i-1].Name == t.Name {
			err = errors.New("it appears twice")
		}
		if err != nil {
			if len(problems) < 10 {
				problems = append(problems, fault.Newf(fault.Unsupported, "The tool %q of the MCP server %q is left out: %v.", tool.Line(t.Name, 80), s.Name, err))
			}
			continue
		}
		if offers = append(offers, f); len(offers) > maxTools {
			return offers, problems
		}
	}
	for _, name := range s.Allow {
		if !strings.ContainsAny(name, `*?[\`) && !wanted[name] {
			problems = append(problems, fault.Newf(fault.NotFound, "The MCP server %q has no tool %q.", s.Name, tool.Line(name, 80)))
		}
	}
	return offers, problems
}

func (s Server) allows(name string, wanted map[string]bool) bool {
	allowed := len(s.Allow) == 0
	for _, pattern := range s.Allow {
		if ok, _ := path.Match(pattern, name); ok { // patterns were checked
			wanted[pattern], allowed = true, true
		}
	}
	return allowed
}

// close ends a server. A session over HTTP is told; a program is ended.
func (c *connection) close() error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.session.Close() // the answer of a server that goes is of no interest
	}()
	select {
	case <-done:
	case <-time.After(patience):
	}
	err := c.line.stop()
	select {
	case <-done:
	case <-time.After(patience):
	}
	return fault.Wrap(err, fault.Internal, "end the MCP server "+c.server.Name)
}
