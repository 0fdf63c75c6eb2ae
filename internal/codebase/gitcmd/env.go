package gitcmd

import (
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"remote-agent/internal/egress"
	"remote-agent/internal/fault"
)

// Endpoint is the one service that a call may talk to.
type Endpoint struct {
	Scheme   string // https, or http for a service on the loopback interface
	Address  string // host:port as dialed
	Origin   string // scheme and host as in the address that git is given, with a slash
	Loopback bool   // an operator allowed this address although it is not public
	Token    string // sent to Origin only; may be empty
	MaxBytes int64  // received; zero: no limit
}

// fixed is the configuration of every call. It comes after that of the call, so
// that it wins.
func fixed() []Pair {
	return []Pair{
		// Nothing is executed.
		{"core.hooksPath", os.DevNull},
		{"core.fsmonitor", "false"},
		{"core.sshCommand", "false"},
		{"core.askPass", ""},
		{"core.pager", "cat"},
		{"credential.helper", ""}, // empties the list
		{"commit.gpgSign", "false"},
		{"tag.gpgSign", "false"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"submodule.recurse", "false"},
		{"fetch.recurseSubmodules", "false"},
		{"diff.ignoreSubmodules", "all"}, // else git runs in a nested repository, with its configuration
		{"log.showSignature", "false"},
		// Nothing outside is read, and links become plain files.
		{"core.symlinks", "false"},
		{"core.attributesFile", os.DevNull},
		{"core.excludesFile", os.DevNull},
		{"core.autocrlf", "false"},
		{"core.safecrlf", "false"},
		{"init.templateDir", ""},
		// Temporary indexes are copies, so they have to be whole.
		{"core.splitIndex", "false"},
		{"core.untrackedCache", "false"},
		{"core.quotePath", "false"},
		{"protocol.allow", "never"},
	}
}

func network(e Endpoint, proxy string) []Pair {
	pairs := []Pair{
		{"protocol." + e.Scheme + ".allow", "always"},
		{"http.followRedirects", "false"},
		{"http.proxy", proxy},
		{"http.proxyAuthMethod", "basic"},
		{"http.sslVerify", "true"},
		{"http.cookieFile", ""},
		{"http.saveCookies", "false"},
		{"http.lowSpeedLimit", "500"},
		{"http.lowSpeedTime", "30"},
	}
	if e.Token != "" {
		pairs = append(pairs, Pair{"http." + e.Origin + ".extraHeader", "Authorization: Basic " + basic(e.Token)})
	}
	return pairs
}

func basic(token string) string {
	return base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
}

// wayTo opens the way to one service for one call, until the grant is ended.
func (g *Git) wayTo(e Endpoint) (grant *egress.Grant, proxy string, err error) {
	host, port, err := net.SplitHostPort(e.Address)
	number, bad := strconv.ParseUint(port, 10, 16)
	if e.Scheme != "https" && (e.Scheme != "http" || !e.Loopback) || err != nil || bad != nil {
		return nil, "", &fault.Error{Kind: fault.Invalid, Public: "Git may not use " + e.Scheme + ".", Err: errors.Join(err, bad)}
	}
	grant, err = g.proxy.Grant(egress.Policy{
		Who: "git", Kind: "git", MaxBytes: e.MaxBytes,
		Rules: []egress.Rule{{Host: strings.ToLower(host), Port: uint16(number), Inside: e.Loopback}},
	})
	if err != nil {
		return nil, "", err
	}
	if proxy, err = grant.URL(); err != nil {
		grant.End()
		return nil, "", err
	}
	return grant, proxy, nil
}

// environment returns the whole environment of a call. The grant has to be ended
// when the call is over; it is nil without a network.
func (g *Git) environment(c *Call) ([]string, *egress.Grant, error) {
	author := Author{Name: "Remote Agent", Email: "remote-agent@localhost"}
	if c.Author != nil {
		author = *c.Author
	}
	committer := author
	if c.Committer != nil {
		committer = *c.Committer
	}
	env := []string{
		"PATH=" + filepath.Dir(g.path) + ":/usr/local/bin:/usr/bin:/bin",
		"HOME=/nonexistent", // curl would read a .netrc there
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_SYSTEM=" + os.DevNull,
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=", // set, so that core.askPass is not looked at
		"GIT_EDITOR=false",
		"GIT_PAGER=cat",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_AUTHOR_NAME=" + author.Name, "GIT_AUTHOR_EMAIL=" + author.Email,
		"GIT_COMMITTER_NAME=" + committer.Name, "GIT_COMMITTER_EMAIL=" + committer.Email,
	}
	for _, v := range [][2]string{{"GIT_DIR", c.GitDir}, {"GIT_WORK_TREE", c.WorkTree}, {"GIT_INDEX_FILE", c.Index}} {
		if v[1] != "" {
			env = append(env, v[0]+"="+v[1])
		}
	}
	pairs := append(append([]Pair(nil), c.Config...), fixed()...)
	var grant *egress.Grant
	protocol := "none"
	if c.Remote != nil {
		var proxy string
		var err error
		if grant, proxy, err = g.wayTo(*c.Remote); err != nil {
			return nil, nil, err
		}
		protocol = c.Remote.Scheme
		pairs = append(pairs, network(*c.Remote, proxy)...)
	}
	env = append(env, "GIT_ALLOW_PROTOCOL="+protocol, "GIT_CONFIG_COUNT="+strconv.Itoa(len(pairs)))
	for i, p := range pairs {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+p.Key, "GIT_CONFIG_VALUE_"+n+"="+p.Value)
	}
	return env, grant, nil
}
