package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"remote-agent/internal/option"
	"remote-agent/internal/pattern"
)

const groupPages = "Web pages"

// SignIn is how people get into the web pages, besides links.
type SignIn struct {
	// People are who may: the account, such as telegram/42, by the name that the issuer
	// or the proxy gives.
	People map[string]string

	Issuer       string // of OpenID Connect; empty if there is none
	ClientID     string
	ClientSecret Secret
	Claim        string // which names people

	Proxies []netip.Prefix // that stand in front of this server
	Header  string         // in which a proxy names people; empty if none does
}

func (c *Config) signInOptions() []option.Option {
	return []option.Option{
		{
			Name: "SIGN_IN_PEOPLE", Empty: "only links sign in", Group: groupPages,
			Help: "Who signs in to the web pages through OIDC_ISSUER or SIGN_IN_HEADER, as name=account, comma-separated; " +
				"each has the rights of that account.",
			Example: "ann@example.com=telegram/42",
			Parse:   c.parseSignInPeople,
		},
		{
			Name: "OIDC_ISSUER", Empty: "no OpenID Connect", Group: groupPages,
			Help:    "Address of an OpenID Connect issuer that the people of SIGN_IN_PEOPLE can sign in with; it sends them back to PUBLIC_URL/sign-in/oidc/back.",
			Example: "https://accounts.google.com",
			Parse:   c.parseIssuer,
		},
		{
			Name: "OIDC_CLIENT_ID", Empty: "no OpenID Connect", Group: groupPages,
			Help:    "Client ID at the issuer.",
			Example: "remote-agent",
			Parse:   option.Text(&c.SignIn.ClientID),
		},
		{
			Name: "OIDC_CLIENT_SECRET", Empty: "a public client", Secret: true, Group: groupPages,
			Help:  "Client secret at the issuer.",
			Parse: option.Secrecy(&c.SignIn.ClientSecret),
		},
		{
			Name: "OIDC_CLAIM", Default: "email", Group: groupPages,
			Help:  "Claim of the ID token that holds the names of SIGN_IN_PEOPLE; email counts only if the issuer verified it.",
			Parse: option.Text(&c.SignIn.Claim),
		},
		{
			Name: "TRUSTED_PROXIES", Empty: "none", Group: groupPages,
			Help:    "Networks of the reverse proxies in front of this server, comma-separated; X-Forwarded-For and SIGN_IN_HEADER are read from them only.",
			Example: "10.0.0.5/32",
			Parse:   c.parseProxies,
		},
		{
			Name: "SIGN_IN_HEADER", Empty: "none", Group: groupPages,
			Help:    "Header in which a trusted proxy names who it has signed in; the proxy must remove it from what browsers send.",
			Example: "X-Forwarded-User",
			Parse:   c.parseHeaderName,
		},
	}
}

func (c *Config) parseIssuer(text string) error {
	if option.PlainHTTPAbroad(text) {
		return fmt.Errorf("is %q: use https://", text)
	}
	// As it is: the issuer has to give the same text, with or without a slash at the end.
	var checked string
	if err := option.URL(&checked)(text); err != nil {
		return err //nolint:wrapcheck // it says what is wrong with the option
	}
	c.SignIn.Issuer = text
	return nil
}

// account is the form of an account as the audit log writes it.
var account = pattern.Lazy(`^[a-z]+/\S+$`)

// consoleAccounts is where the account of the console is, which belongs to no section.
const consoleAccounts = "console"

// accountPlatforms returns where there are accounts.
func accountPlatforms(sections []option.Section) []string {
	names := []string{consoleAccounts}
	for _, s := range sections {
		if h, ok := s.(option.Host); ok {
			names = append(names, h.Accounts())
		}
	}
	slices.Sort(names)
	return names
}

func (c *Config) parseSignInPeople(text string) error {
	people := map[string]string{}
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		at := strings.LastIndex(entry, "=")
		if at < 1 || !account.MatchString(entry[at+1:]) {
			return fmt.Errorf("has %q: write name=platform/id, such as ann@example.com=telegram/42", entry)
		}
		platform, _, _ := strings.Cut(entry[at+1:], "/")
		if there := accountPlatforms(c.Sections); !slices.Contains(there, platform) {
			return fmt.Errorf("has %q, and there is no platform %q: use one of %s", entry, platform, strings.Join(there, ", "))
		}
		name := strings.TrimSpace(entry[:at])
		if _, twice := people[name]; twice {
			return fmt.Errorf("names %q twice", name)
		}
		people[name] = entry[at+1:]
	}
	c.SignIn.People = people
	return nil
}

func (c *Config) parseProxies(text string) error {
	var list []netip.Prefix
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		network, err := netip.ParsePrefix(entry)
		if one, bad := netip.ParseAddr(entry); err != nil && bad == nil {
			network, err = one.Prefix(one.BitLen())
		}
		switch {
		case err != nil:
			return fmt.Errorf("has %q: write an address or a network, such as 10.0.0.5 or 10.0.0.0/24", entry)
		case network.Bits() == 0:
			return fmt.Errorf("has %q, which is everybody: name the proxies", entry)
		}
		list = append(list, network.Masked())
	}
	c.SignIn.Proxies = list
	return nil
}

var headerName = pattern.Lazy(`^[A-Za-z0-9-]{1,64}$`)

func (c *Config) parseHeaderName(text string) error {
	if !headerName.MatchString(text) {
		return fmt.Errorf("is %q: write the name of a header, such as X-Forwarded-User", text)
	}
	switch strings.ToLower(text) {
	case "host", "cookie", "authorization", "x-forwarded-for", "user-agent", "origin", "referer":
		return fmt.Errorf("is %q, which browsers send themselves: use one that only the proxy sets, such as X-Forwarded-User", text)
	}
	c.SignIn.Header = text
	return nil
}

// checkSignIn looks for what is missing between the options.
func (l *loader) checkSignIn() {
	s := &l.config.SignIn
	if u, err := url.Parse(l.config.PublicURL); err == nil && strings.Trim(u.Path, "/") != "" {
		l.warn("PUBLIC_URL has the path %s, where the web pages do not work: give the bot a host name of its own to use them", u.Path)
	}
	if s.Issuer != "" && s.ClientID == "" && l.sound("OIDC_CLIENT_ID") {
		l.problem("OIDC_ISSUER is set without OIDC_CLIENT_ID: set the client ID that the issuer gave you")
	}
	if s.Issuer != "" && l.config.PublicURL == "" && l.sound("PUBLIC_URL") {
		l.problem("OIDC_ISSUER needs PUBLIC_URL, where the issuer sends people back to")
	}
	if s.Header != "" && len(s.Proxies) == 0 && l.sound("TRUSTED_PROXIES") {
		l.problem("SIGN_IN_HEADER is set without TRUSTED_PROXIES: name the proxies that may set it, or anybody could")
	}
	if (s.Issuer != "" || s.Header != "") && len(s.People) == 0 && l.sound("SIGN_IN_PEOPLE") {
		l.problem("SIGN_IN_PEOPLE is empty, so nobody could sign in through OIDC_ISSUER or SIGN_IN_HEADER: list who may, such as ann@example.com=telegram/42")
	}
}
