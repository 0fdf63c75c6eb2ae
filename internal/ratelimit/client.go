package ratelimit

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of the reverse proxies in front of a server.
type Proxies []netip.Prefix

// Sent reports whether a request comes from one of them.
func (p Proxies) Sent(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && p.trusts(from.Addr())
}

// Client is the name of whom a request came from: an IPv4 address, or the /64 of an IPv6
// one, which is what one client has. Behind a proxy it is the nearest address that is
// none itself. What others say in X-Forwarded-For is not believed: anybody can write such
// a header.
func (p Proxies) Client(r *http.Request) string {
	if p.Sent(r) {
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for _, hop := range slices.Backward(hops) {
			a, ok := addressOf(strings.TrimSpace(hop))
			if !ok {
				break
			}
			if !p.trusts(a) {
				return name(a)
			}
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return name(a)
	}
	return host
}

func (p Proxies) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(a.Unmap()) })
}

// addressOf reads an address of X-Forwarded-For, which some gateways write with the port of
// the client: 203.0.113.7:4711, [2001:db8::1]:443.
func addressOf(hop string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(hop); err == nil {
		return a, true
	}
	a, err := netip.ParseAddrPort(hop)
	return a.Addr(), err == nil
}

func name(a netip.Addr) string {
	if a = a.Unmap().WithZone(""); a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
