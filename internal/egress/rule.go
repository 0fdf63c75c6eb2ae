package egress

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

// Rule allows connections to a host.
type Rule struct {
	// Host is a name in lower case or an address; "*.example.com" stands for what
	// is below a name, and "*" for every host.
	Host string

	// Port is the only port; 0, for "*", means 80 and 443.
	Port uint16

	// Inside allows an address that is not public, because the operator named
	// exactly this host and port. Loopback and link-local addresses have to be
	// named themselves: a name leads to them only if it is localhost.
	Inside bool
}

const (
	portHTTP  = 80
	portHTTPS = 443
)

var hostForm = pattern.Lazy(`^(\*|(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*)$`)

// ParseRule reads what an operator writes: host, *.host, host:port or * for every
// public host. Without a port it is 443. The error is fault.Invalid and says what
// is wrong and how it is done right.
func ParseRule(text string) (Rule, error) {
	host, port := strings.ToLower(strings.TrimSpace(text)), ""
	if strings.Contains(host, "/") {
		return Rule{}, fault.Newf(fault.Invalid, "%q is not a host: leave out https:// and everything after the name, as in api.example.com or 127.0.0.1:8080", text)
	}
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
	}
	rule := Rule{Host: strings.TrimSuffix(host, "."), Port: portHTTPS}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return Rule{}, fault.Newf(fault.Invalid, "%q has no port from 1 to 65535, as in 127.0.0.1:8080", text)
		}
		rule.Port, rule.Inside = uint16(n), !strings.HasPrefix(rule.Host, "*")
	}
	if rule.Host == "*" && port == "" {
		rule.Port = 0
	}
	if a, err := netip.ParseAddr(strings.Trim(rule.Host, "[]")); err == nil {
		rule.Host = a.Unmap().String()
		if !Public(a) && port == "" {
			return Rule{}, fault.Newf(fault.Invalid, "%q is not a public address: allow it with its port, as in 127.0.0.1:8080", text)
		}
		return rule, nil
	}
	if len(rule.Host) > 253 || !hostForm.MatchString(rule.Host) {
		return Rule{}, fault.Newf(fault.Invalid, "%q is not a host: use api.example.com, *.example.com, 127.0.0.1:8080 or *", text)
	}
	return rule, nil
}

// String returns the rule as ParseRule reads it.
func (r Rule) String() string {
	if r.Port == 0 || r.Port == portHTTPS && !r.Inside {
		return r.Host
	}
	return net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port)))
}

func (r Rule) matches(host string, port uint16) bool {
	if r.Port != port && (r.Port != 0 || port != portHTTP && port != portHTTPS) {
		return false
	}
	if below, ok := strings.CutPrefix(r.Host, "*."); ok {
		return strings.HasSuffix(host, "."+below)
	}
	return r.Host == "*" || r.Host == host
}

// match returns the rule that allows a host the most.
func match(rules []Rule, host string, port uint16) (Rule, bool) {
	var found Rule
	ok := false
	for _, r := range rules {
		if r.matches(host, port) && (!ok || r.Inside) {
			found, ok = r, true
		}
	}
	return found, ok
}

// Local lists the ports of this machine's loopback interface that rules name.
func Local(rules []Rule) []uint16 {
	var ports []uint16
	for _, r := range rules {
		a, err := netip.ParseAddr(r.Host)
		if r.Inside && (r.Host == "localhost" || err == nil && a.IsLoopback()) && !slices.Contains(ports, r.Port) {
			ports = append(ports, r.Port)
		}
	}
	return ports
}
