package github

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
)

// permission is one that an App is given.
type permission struct{ name, level string }

// needed is what the calls that are made need, and git to clone and push. A test
// holds it against them.
var needed = []permission{{"metadata", "read"}, {"issues", "write"}, {"pull_requests", "write"}, {"contents", "write"}}

var levels = []string{"", "read", "write", "admin"}

func levelOf(level string) int { return max(0, slices.Index(levels, level)) }

// Permissions returns the permissions that an App needs, by name with their
// level: those of the calls that are made, of the events that are read, and of
// git.
func Permissions() map[string]string {
	all := make(map[string]string)
	add := func(p permission) {
		if levelOf(p.level) > levelOf(all[p.name]) {
			all[p.name] = p.level
		}
	}
	for _, p := range needed {
		add(p)
	}
	for _, p := range handled {
		add(p)
	}
	return all
}

// Events returns the events that the App subscribes to, sorted.
func Events() []string { return slices.Sorted(maps.Keys(handled)) }

type manifest struct {
	Name        string            `json:"name"`
	URL         string            `json:"url"`
	Description string            `json:"description"`
	Public      bool              `json:"public"`
	Hook        *manifestHook     `json:"hook_attributes,omitempty"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events,omitempty"`
	Redirect    string            `json:"redirect_url,omitempty"`
}

type manifestHook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// Manifest returns the manifest of a GitHub App, as JSON, with the permissions
// and events that the bot uses and no others. GitHub delivers to publicURL, the
// address under which it reaches this program; without one the App has no
// webhook, and the bot polls.
func Manifest(publicURL, name string) ([]byte, error) { return manifestFor(publicURL, name, "") }

// manifestFor has GitHub send the browser to back, if it is not empty, when the App is
// made.
func manifestFor(publicURL, name, back string) ([]byte, error) {
	name = cmp.Or(strings.Join(strings.Fields(name), " "), defaultMention)
	if len([]rune(name)) > 34 {
		return nil, fault.New(fault.Invalid, "The name of a GitHub App has at most 34 characters.")
	}
	m := manifest{Name: name, URL: "https://github.com", Description: "Self-hosted AI coding agent", Permissions: Permissions(), Redirect: back}
	if publicURL != "" {
		u, err := url.Parse(publicURL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" {
			return nil, fault.Newf(fault.Invalid, "PUBLIC_URL %q is not an http or https URL.", platform.Cut(publicURL, 200))
		}
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
			return nil, fault.Newf(fault.Invalid, "PUBLIC_URL %q is this machine, which GitHub cannot reach; leave it empty to poll.", platform.Cut(publicURL, 200))
		}
		m.URL = strings.TrimRight(publicURL, "/")
		m.Hook = &manifestHook{URL: m.URL + webhookPath, Active: true}
		m.Events = Events()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "writing the manifest")
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
