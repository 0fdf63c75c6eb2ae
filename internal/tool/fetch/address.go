package fetch

import "net/netip"

// reserved are the ranges that are not for hosts of the public Internet and that
// netip does not name (IANA special-purpose address registries), and those that
// carry an IPv4 address inside, behind which anything can be.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared by the customers of a carrier
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), // with Teredo
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("3fff::/20"),
}

// unicast6 is the only part of IPv6 that is handed out for public hosts: NAT64
// (64:ff9b::/96), addresses with IPv4 inside and all the rest are outside of it.
var unicast6 = netip.MustParsePrefix("2000::/3")

// public reports whether an address is one of the public Internet.
func public(a netip.Addr) bool {
	if a.Is4In6() {
		return false // written in a way that hides what it is
	}
	if !a.IsValid() || a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	if a.Is6() && !unicast6.Contains(a) {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
