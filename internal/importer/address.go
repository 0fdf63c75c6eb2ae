package importer

import (
	"net/url"
	"strings"

	"remote-agent/internal/pattern"
)

var (
	scpForm = pattern.Lazy(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+\.[A-Za-z0-9.-]+):([^/].*)$`)
	sshPort = pattern.Lazy(`^([^:/]+):[0-9]+$`)
)

// canonical writes the address of a repository as this program stores it, over
// https and without a user name, and reports whether it held one with a secret.
// The error says why it cannot be cloned from; the address is then written as
// well as it can be.
func (o Options) canonical(address string) (canonical string, secret bool, err error) {
	address = strings.TrimSpace(address)
	if m := scpForm.FindStringSubmatch(address); m != nil && !strings.Contains(address, "://") {
		address = "https://" + m[1] + "/" + m[2]
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		switch u.Scheme {
		case "ssh", "git+ssh", "git":
			u.Scheme, u.User = "https", nil // the user of ssh is no secret
			if m := sshPort.FindStringSubmatch(u.Host); m != nil {
				u.Host = m[1] // the port was that of ssh
			}
		}
		secret = u.User != nil
		u.User = nil
		address = u.String()
	}
	r, err := o.Hosts.Parse(address)
	if err != nil {
		return address, secret, err
	}
	return r.URL(), secret, nil
}
