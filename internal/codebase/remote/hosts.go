// Package remote decides which addresses of repositories may be cloned, and
// gives each one a single spelling and a single place on disk.
//
// It touches neither the network nor the file system: what a name resolves to is
// checked where the connection is made (package gitcmd).
package remote

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/pattern"
)

// GitHub is the host that is allowed if none is configured.
const GitHub = "github.com"

// Hosts are the hosts that may be cloned from. The zero value allows none. It is
// immutable.
type Hosts struct{ entries []host }

type host struct {
	name     string // as in a canonical address: lower case, with a port that is not the default
	loopback bool
}

var (
	hostName = pattern.Lazy(`^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$`)
	portText = pattern.Lazy(`^[1-9][0-9]{0,4}$`)
)

// ParseHosts reads GIT_ALLOWED_HOSTS: host names, each with a port if it is not
// 443. No entries mean GitHub alone. An entry that is a loopback address or
// "localhost" needs a port; such a service, and nothing else, may be reached
// without TLS and at an address that is not public. Any other IP address is
// refused: what is not public may not be reached, and what is public has a name.
// Errors are of kind Invalid.
func ParseHosts(entries []string) (Hosts, error) {
	if len(entries) == 0 {
		entries = []string{GitHub}
	}
	var hosts Hosts
	for _, entry := range entries {
		h, ok := parseHost(strings.ToLower(strings.TrimSpace(entry)))
		if !ok {
			return Hosts{}, fault.Newf(fault.Invalid, "GIT_ALLOWED_HOSTS: %q is not a host name like github.com or git.example.com:8443.", clip(entry))
		}
		if !slices.Contains(hosts.entries, h) {
			hosts.entries = append(hosts.entries, h)
		}
	}
	return hosts, nil
}

func parseHost(entry string) (host, bool) {
	name, port := splitPort(entry)
	if port != "" {
		if n, err := strconv.Atoi(port); err != nil || n > 65535 || !portText.MatchString(port) {
			return host{}, false
		}
	}
	if isLoopback(name) {
		return host{name: entry, loopback: true}, port != ""
	}
	if !hostName.MatchString(name) || len(name) > 253 {
		return host{}, false
	}
	if port == "" || port == "443" {
		return host{name: name}, true
	}
	return host{name: name + ":" + port}, true
}

// isLoopback reports whether name is the loopback interface in its usual
// spelling. Others, such as 127.1, 2130706433 or [::1], are not accepted at all.
func isLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Is4() && addr.IsLoopback()
}

// splitPort cuts a port off. Unlike net.SplitHostPort it takes a name without one.
func splitPort(s string) (name, port string) {
	name, port, _ = strings.Cut(s, ":")
	return name, port
}

// short returns the host that "owner/repo" means.
func (h Hosts) short() (host, bool) {
	for _, e := range h.entries {
		if e.name == GitHub {
			return e, true
		}
	}
	if len(h.entries) == 0 {
		return host{}, false
	}
	return h.entries[0], true
}

func (h Hosts) find(name string) (host, bool) {
	i := slices.IndexFunc(h.entries, func(e host) bool { return e.name == name })
	if i < 0 {
		return host{}, false
	}
	return h.entries[i], true
}

// String returns the hosts for a message to a person.
func (h Hosts) String() string {
	return strings.Join(lists.Map(h.entries, func(e host) string { return e.name }), ", ")
}

// clip shortens text from outside for use in a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}
