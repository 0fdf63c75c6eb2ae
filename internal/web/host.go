package web

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// mayAsk reports whether host, as in a Host header, is a name of this server
// (platform contracts S8).
func (s *Server) mayAsk(host string) bool {
	name := hostname(host)
	own, everywhere := false, false
	for _, addr := range append(s.addrs(), s.config.Addr) {
		host := hostname(addr)
		own = own || name == host && host != ""
		address, err := netip.ParseAddr(host)
		everywhere = everywhere || host == "" || err == nil && address.IsUnspecified()
	}
	if own || name == "localhost" || slices.ContainsFunc(s.config.Hosts, func(h string) bool { return h != "" && hostname(h) == name }) {
		return true
	}
	address, err := netip.ParseAddr(name)
	if err == nil {
		return everywhere || address.Unmap().IsLoopback()
	}
	// A name without a dot, such as that of a container, is given by the network
	// around the machine and by nobody else.
	return everywhere && name != "" && !strings.Contains(name, ".")
}

// mayBrowse reports whether host, as in a Host header, is a name by which people reach
// the pages: one that the operator gave, or one of the loopback interface.
func (s *Server) mayBrowse(host string) bool {
	name := hostname(host)
	given := append([]string{s.config.Addr, "localhost"}, s.config.Hosts...)
	if name != "" && slices.ContainsFunc(given, func(h string) bool { return hostname(h) == name }) {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}

// hostname returns the name of "name:port", "[::1]:port" or "name", in small
// letters.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
