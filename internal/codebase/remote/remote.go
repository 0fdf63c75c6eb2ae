package remote

import (
	"net/url"
	"path"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

// maxLength is the longest address that is looked at.
const maxLength = 500

// Remote is a repository at an allowed host. Two addresses of one repository
// give equal values.
type Remote struct {
	Scheme   string // https, or http for a loopback entry
	Host     string // lower case, with a port that is not the default of https
	Owner    string
	Name     string // without .git
	Loopback bool   // an operator allowed this very address on the loopback interface
}

var (
	// gitHubOwner has no dot, so that no owner looks like the directory of
	// another host. The underscore is in the names of managed users.
	gitHubOwner = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	otherOwner  = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,98}$`)
	repoName    = pattern.Lazy(`^[A-Za-z0-9._][A-Za-z0-9._-]{0,99}$`)
	scpForm     = pattern.Lazy(`^[A-Za-z0-9._-]+@[A-Za-z0-9._-]+:`)
	schemeForm  = pattern.Lazy(`^[A-Za-z][A-Za-z0-9+.-]*:`)
)

// Parse reads what a person typed: the https address of a repository, or
// owner/repo, which means GitHub if that is allowed and else the first allowed
// host. Everything else is refused with a text that says why: another scheme, an
// address with a user name, a query, a fragment, an escape or a control
// character, a host that is not allowed. Errors are of kind Invalid, or Forbidden
// for a host; they never repeat a user name or password.
func (h Hosts) Parse(input string) (Remote, error) {
	input = strings.Trim(input, " \t")
	if err := checkText(input); err != nil {
		return Remote{}, err
	}
	if !schemeForm.MatchString(input) {
		return h.parseShort(input)
	}
	u, err := url.Parse(input)
	switch {
	case err != nil: // its text repeats the input, which may hold a password
		return Remote{}, refuse("That is not a repository address. Use https://github.com/owner/repo or owner/repo.")
	case u.Scheme != "https" && u.Scheme != "http":
		return Remote{}, refuse("Only https addresses can be cloned. Use https://github.com/owner/repo or owner/repo.")
	case u.Opaque != "" || u.Host == "" || strings.HasSuffix(u.Host, ":"):
		return Remote{}, refuse("The address has no host. Use https://github.com/owner/repo.")
	case u.User != nil:
		return Remote{}, refuse("The address contains a user name or a token. Leave it out. If it was a real token, revoke it: it is visible in this chat.")
	case u.RawQuery != "" || u.ForceQuery:
		return Remote{}, refuse("The address has a query (“?…”). Use https://github.com/owner/repo.")
	case strings.Contains(input, "#"):
		return Remote{}, refuse("The address has a fragment (“#…”). Use https://github.com/owner/repo.")
	}
	at, err := h.hostOf(u)
	if err != nil {
		return Remote{}, err
	}
	return build(u.Scheme, at, u.Path)
}

// checkText refuses what is not plain text before anything interprets it.
func checkText(input string) error {
	switch {
	case input == "":
		return refuse("Which repository? Use https://github.com/owner/repo or owner/repo.")
	case len(input) > maxLength:
		return refuse("That address is too long.")
	case strings.HasPrefix(input, "-"):
		return refuse("An address cannot begin with a dash.")
	case strings.ContainsFunc(input, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return refuse("The address contains a space or a control character.")
	case strings.ContainsFunc(input, func(r rune) bool { return r > 0x7f }):
		return refuse("The address contains characters outside ASCII, which can make one host look like another.")
	case strings.ContainsAny(input, `%\`):
		return refuse("The address contains “%” or “\\”, which repository addresses do not need.")
	case scpForm.MatchString(input):
		return refuse("Only https addresses can be cloned, not ssh. Use https://github.com/owner/repo or owner/repo.")
	case strings.Contains(input, "::"):
		return refuse("Only https addresses can be cloned, without transport helpers (“x::”). Use https://github.com/owner/repo.")
	}
	return nil
}

func (h Hosts) parseShort(input string) (Remote, error) {
	at, ok := h.short()
	if !ok {
		return Remote{}, fault.New(fault.Forbidden, "Cloning is off: no hosts are allowed (GIT_ALLOWED_HOSTS).")
	}
	if strings.HasPrefix(input, "/") || strings.HasPrefix(input, "./") || strings.HasPrefix(input, "../") || strings.HasPrefix(input, "~") {
		return Remote{}, refuse("That is a path on this machine. An operator can add a folder with `bot repo add PATH`.")
	}
	if strings.Count(strings.Trim(input, "/"), "/") != 1 {
		return Remote{}, refuse("That is not a repository address. Use https://github.com/owner/repo or owner/repo.")
	}
	scheme := "https"
	if at.loopback {
		scheme = "http"
	}
	return build(scheme, at, input)
}

func (h Hosts) hostOf(u *url.URL) (host, error) {
	name, port := splitPort(strings.ToLower(u.Host))
	full := name
	if port != "" && (u.Scheme != "https" || port != "443" || isLoopback(name)) {
		full += ":" + port
	}
	at, ok := h.find(full)
	if !ok {
		return host{}, fault.Newf(fault.Forbidden, "Cloning from %s is not allowed. Allowed: %s (GIT_ALLOWED_HOSTS).", clip(u.Host), h)
	}
	if u.Scheme == "http" && !at.loopback {
		return host{}, refuse("Only https addresses can be cloned, not http.")
	}
	return at, nil
}

func build(scheme string, at host, p string) (Remote, error) {
	owner, name, ok := strings.Cut(strings.Trim(p, "/"), "/")
	if !ok || owner == "" || name == "" {
		return Remote{}, refuse("The address names no repository. Use https://github.com/owner/repo.")
	}
	if strings.Contains(name, "/") {
		return Remote{}, refuse("That is the address of a page inside a repository. Use https://github.com/owner/repo.")
	}
	if cut, ok := cutSuffixFold(name, ".git"); ok {
		name = cut
	}
	owners := otherOwner
	if at.name == GitHub {
		// GitHub does not tell apart upper and lower case.
		owners, owner, name = gitHubOwner, strings.ToLower(owner), strings.ToLower(name)
	}
	if !owners.MatchString(owner) || strings.HasSuffix(owner, ".") {
		return Remote{}, refuse("The owner’s name contains invalid characters.")
	}
	if !repoName.MatchString(name) || name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.HasSuffix(name, ".") {
		return Remote{}, refuse("The repository’s name contains invalid characters.")
	}
	return Remote{Scheme: scheme, Host: at.name, Owner: owner, Name: name, Loopback: at.loopback}, nil
}

// URL returns the one spelling of the address, for storage and comparison.
func (r Remote) URL() string {
	return r.Scheme + "://" + r.Host + "/" + r.Owner + "/" + r.Name
}

// CloneURL returns the address for git. It ends in .git: some services answer the
// bare form with a redirect, and redirects are not followed.
func (r Remote) CloneURL() string { return r.URL() + ".git" }

// FullName returns owner/repo, with the host in front unless that is GitHub. It
// is unique among the repositories of one Hosts.
func (r Remote) FullName() string {
	if r.Host == GitHub {
		return r.Owner + "/" + r.Name
	}
	return r.Host + "/" + r.Owner + "/" + r.Name
}

// Dir returns the place of the clone below the workspace, with slashes:
// owner/repo for GitHub, and host/owner/repo for others, where a port follows
// a plus sign. No owner at GitHub contains a dot or a plus sign and every other
// host does, so that no two repositories share a place. No element is "." or
// "..", and the first never begins with a dot.
func (r Remote) Dir() string {
	if r.Host == GitHub {
		return path.Join(r.Owner, r.Name)
	}
	return path.Join(strings.ReplaceAll(r.Host, ":", "+"), r.Owner, r.Name)
}

// Origin returns scheme and host, the scope for which git gets a credential.
func (r Remote) Origin() string { return r.Scheme + "://" + r.Host + "/" }

// Address returns host:port as it is dialed.
func (r Remote) Address() string {
	if _, port := splitPort(r.Host); port != "" {
		return r.Host
	}
	if r.Scheme == "http" {
		return r.Host + ":80"
	}
	return r.Host + ":443"
}

func refuse(text string) error { return fault.New(fault.Invalid, text) }

func cutSuffixFold(s, suffix string) (string, bool) {
	if len(s) < len(suffix) || !strings.EqualFold(s[len(s)-len(suffix):], suffix) {
		return s, false
	}
	return s[:len(s)-len(suffix)], true
}
