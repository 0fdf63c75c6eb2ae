package app

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"remote-agent/internal/profile"
	"remote-agent/internal/tool"
)

// idleServers is how long the MCP servers of a profile run without a turn that uses
// them.
const idleServers = 10 * time.Minute

// profileServers are the MCP servers that profiles bring along. Those of a profile
// are started by its first turn, shared by its conversations, and ended when the
// profile has changed or nobody has used it for a while. It is safe for concurrent
// use.
type profileServers struct {
	startIn serverStart
	home    string
	log     *slog.Logger
	learn   func(secrets ...string) // what is not to be shown

	mu     sync.Mutex // guards all below
	closed bool
	open   map[string]*servedProfile // by the profile's id
	ending sync.WaitGroup            // of servers that are being ended; Go is called with mu held
}

// servedProfile is the servers of one version of a profile.
type servedProfile struct {
	version int64
	servers *mcpServers
	users   int
	stale   bool // the profile has changed: the last user ends it
	idle    *time.Timer
}

// offer returns the tools of the servers of a profile, and what gives them back
// when the turn is over. A server that does not answer has no tools; the turn runs
// without.
func (s *profileServers) offer(ctx context.Context, p profile.Profile) (tools []tool.Tool, leave func() error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, func() error { return nil }
	}
	served := s.open[p.ID]
	if served != nil && served.version != p.Version {
		s.retire(p.ID, served)
		served = nil
	}
	if served == nil {
		s.learn(serverSecrets(p.MCPServers)...)
		served = &servedProfile{version: p.Version, servers: newMCPServers( //nolint:contextcheck // connections to servers outlive the turn
			s.startIn, filepath.Join(s.home, p.ID), p.MCPServers, profilePatience, s.log.With("profile", p.Title()))}
		s.open[p.ID] = served
	}
	if served.idle != nil {
		served.idle.Stop()
		served.idle = nil
	}
	served.users++
	s.mu.Unlock()
	return served.servers.offer(ctx), func() error { return s.leave(p.ID, served) }
}

// retire takes servers of an older version out of use. mu is held.
func (s *profileServers) retire(id string, served *servedProfile) {
	served.stale = true
	delete(s.open, id)
	if served.idle != nil {
		served.idle.Stop()
	}
	if served.users == 0 {
		s.end(served)
	}
}

// end ends servers in the background: it takes a second or two, and no turn has to
// wait for it. close does.
func (s *profileServers) end(served *servedProfile) {
	s.ending.Go(func() {
		if err := served.servers.close(); err != nil {
			s.log.Warn("could not end the MCP servers of a profile", "err", err)
		}
	})
}

func (s *profileServers) leave(id string, served *servedProfile) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if served.users--; served.users > 0 {
		return nil
	}
	if served.stale || s.closed {
		s.end(served)
		return nil
	}
	served.idle = time.AfterFunc(idleServers, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if served.users == 0 && s.open[id] == served {
			delete(s.open, id)
			s.end(served)
		}
	})
	return nil
}

// names are the names of the tools that the servers of a profile have.
func (s *profileServers) names(id string) []string {
	s.mu.Lock()
	served := s.open[id]
	s.mu.Unlock()
	if served == nil {
		return nil
	}
	return served.servers.names()
}

// status is what /status says of servers that do not answer.
func (s *profileServers) status() (lines []string) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	for _, served := range all {
		lines = append(lines, served.servers.status()...)
	}
	return lines
}

// close ends all servers. The turns that used them are over.
func (s *profileServers) close() {
	s.mu.Lock()
	s.closed = true
	for id, served := range s.open {
		if served.idle != nil {
			served.idle.Stop()
		}
		delete(s.open, id)
		s.end(served)
	}
	s.mu.Unlock()
	s.ending.Wait()
}
