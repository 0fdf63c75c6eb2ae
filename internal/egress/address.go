package egress

import (
	"net/netip"
	"slices"
)

// special are the ranges that netip does not name and that are not for hosts of
// the public Internet (IANA special-purpose address registries), and those that
// carry an IPv4 address inside, behind which anything can be.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
}

var globalUnicast6 = netip.MustParsePrefix("2000::/3")

// Public reports whether an address is one of the public Internet: not of this
// machine, a private network, a link (where cloud services keep credentials), or
// a reserved range.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !globalUnicast6.Contains(a) { // a prefix contains no address with a zone
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}
