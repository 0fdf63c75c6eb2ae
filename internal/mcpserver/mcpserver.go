// Package mcpserver is how MCP servers are written down, in the file that
// MCP_CONFIG names and in agent profiles, and what makes one unusable. It starts
// nothing; package tool/mcp does.
package mcpserver

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

// Limits of one server, and of how many there may be in one place.
const (
	MaxServers = 32
	maxParts   = 100       // arguments, variables, headers or patterns
	maxText    = 16 << 10  // of one of them, in bytes
	maxAll     = 256 << 10 // of all that a server says
)

// Server is one MCP server in the form that other programs use for the same
// thing: a program with its arguments, or an address for streamable HTTP.
type Server struct {
	Command string            `json:"command,omitempty" yaml:"command,omitempty"`
	Args    []string          `json:"args,omitempty"    yaml:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"     yaml:"env,omitempty"`
	URL     string            `json:"url,omitempty"     yaml:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty" yaml:"headers,omitempty"`

	// Hosts are those that the program may reach: host, *.host or host:port.
	Hosts []string `json:"hosts,omitempty" yaml:"hosts,omitempty"`

	// Allow names the tools that may be used, as patterns of path.Match. Empty
	// means all.
	Allow []string `json:"allow,omitempty" yaml:"allow,omitempty"`
}

// File is the file of MCP_CONFIG.
type File struct {
	Servers map[string]Server `json:"mcpServers"`
}

var (
	serverName   = pattern.Lazy(`^[a-z0-9][a-z0-9-]{0,31}$`)
	variableName = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName   = pattern.Lazy("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// CheckName checks what a server is called: its name is a part of the names of
// its tools. The error is a fault.Invalid.
func CheckName(name string) error {
	if !serverName.MatchString(name) {
		return fault.Newf(fault.Invalid, "The name %q of an MCP server is not valid; use at most 32 lower case letters, digits and dashes.", short(name))
	}
	return nil
}

// CheckPatterns checks the patterns of Allow.
func CheckPatterns(server string, patterns []string) error {
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil {
			return fault.Newf(fault.Invalid, "The pattern %q of the MCP server %q is not valid.", short(pattern), server)
		}
	}
	return nil
}

// CheckURL checks the address of a server: https, or with loopback also http to
// this machine.
func CheckURL(server, address string, loopback bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return fault.Newf(fault.Invalid, "The address of the MCP server %q is not valid; use one like https://example.com/mcp, without a user name.", server)
	}
	if u.Hostname() == "" { // a port alone
		return fault.Newf(fault.Invalid, "The address of the MCP server %q has no host; use one like https://example.com/mcp.", server)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback || !isLoopback(u.Hostname())) {
		return fault.Newf(fault.Invalid, "The address of the MCP server %q must begin with https://.", server)
	}
	return nil
}

// CheckKind checks that a server is either a program or an address.
func CheckKind(server string, program, address bool) error {
	if program == address {
		return fault.Newf(fault.Invalid, "The MCP server %q needs either a command or a URL.", server)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// Check says what is wrong with a server, as a fault.Invalid that names it. It
// looks at the text only: whether the server answers shows when it is started.
// self is the path of the running program, or empty: a server that is this very
// program would start itself again and again.
func (s Server) Check(name, self string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := CheckKind(name, s.Command != "", s.URL != ""); err != nil {
		return err
	}
	if err := CheckPatterns(name, s.Allow); err != nil {
		return err
	}
	if why := s.sizes(); why != "" {
		return fault.Newf(fault.Invalid, "The MCP server %q has %s.", name, why)
	}
	if s.URL != "" {
		return s.checkAddress(name)
	}
	return s.checkProgram(name, self)
}

// sizes says what is too long, or no text.
func (s Server) sizes() string {
	all := 0
	parts := slices.Concat([]string{s.Command, s.URL}, s.Args, s.Allow, s.Hosts, pairs(s.Env), pairs(s.Headers))
	for _, count := range []int{len(s.Args), len(s.Allow), len(s.Hosts), len(s.Env), len(s.Headers)} {
		if count > maxParts {
			return fmt.Sprintf("a list of %d entries; the limit is %d", count, maxParts)
		}
	}
	for _, p := range parts {
		all += len(p)
		switch {
		case len(p) > maxText:
			return fmt.Sprintf("a text of %d bytes; the limit is %d", len(p), maxText)
		case !utf8.ValidString(p) || strings.ContainsRune(p, 0):
			return "a text with bytes that are not UTF-8, or with a zero byte"
		}
	}
	if all > maxAll {
		return fmt.Sprintf("%d bytes of text; the limit is %d", all, maxAll)
	}
	return ""
}

func pairs(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+m[name])
	}
	return list
}

func (s Server) checkAddress(name string) error {
	if err := CheckURL(name, s.URL, true); err != nil {
		return err
	}
	for header, value := range s.Headers {
		if !headerName.MatchString(header) || strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
			return fault.Newf(fault.Invalid, "The header %q of the MCP server %q cannot be sent; use a plain name and a value of one line.", short(header), name)
		}
	}
	if len(s.Args)+len(s.Env) > 0 {
		return fault.Newf(fault.Invalid, "The MCP server %q has a URL; args and env require a command.", name)
	}
	return nil
}

func (s Server) checkProgram(name, self string) error {
	if strings.ContainsFunc(s.Command, unicode.IsControl) || strings.HasPrefix(s.Command, "-") || strings.TrimSpace(s.Command) != s.Command {
		return fault.Newf(fault.Invalid, "The command of the MCP server %q is not a valid program name.", name)
	}
	if self != "" && (s.Command == self || s.Command == path.Base(self)) {
		return fault.Newf(fault.Invalid, "The MCP server %q would start this program again and again; set command to the server's own program.", name)
	}
	for variable := range s.Env {
		if !variableName.MatchString(variable) {
			return fault.Newf(fault.Invalid, "The MCP server %q has %q in env, which is not a valid variable name.", name, short(variable))
		}
	}
	if len(s.Headers) > 0 {
		return fault.Newf(fault.Invalid, "The MCP server %q has a command; headers require a url.", name)
	}
	return nil
}

// Environ returns Env as "NAME=value", in order.
func (s Server) Environ() []string { return pairs(s.Env) }

// short keeps a foreign text on one line of an error.
func short(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if runes := []rune(s); len(runes) > 50 {
		return string(runes[:49]) + "…"
	}
	return s
}
