package config

import (
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/option"
)

// host is the section of a platform by its name.
type host struct {
	option.Section

	name string
}

func (h host) Accounts() string { return h.name }

func TestSignInOptions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		parse func(c *Config, text string) error
		good  map[string]string // what is kept, printed
		bad   map[string]string // a part of the error
	}{
		"SIGN_IN_PEOPLE": {
			(*Config).parseSignInPeople,
			map[string]string{
				"ann@example.com=telegram/42, bob=slack/T1:U2,": "map[ann@example.com:telegram/42 bob:slack/T1:U2]",
				"a=b=github/7": "map[a=b:github/7]", "me=console/local": "map[me:console/local]",
			},
			map[string]string{
				"ann@example.com": "write name=platform/id", "=telegram/42": "write name=platform/id", "ann=42": "write name=platform/id",
				"ann=telegram/1,ann=telegram/2": `names "ann" twice`, "ann=telegram/4 2": "write name=platform/id",
				"ann=telegram/1, bob=telegarm/2": `"bob=telegarm/2", and there is no platform "telegarm": use one of console, github, slack, telegram`,
				"ann=web/1":                      "there is no platform",
			},
		},
		"OIDC_ISSUER": {
			(*Config).parseIssuer,
			map[string]string{"https://id.example.com/": "https://id.example.com/", "http://127.0.0.1:9": "http://127.0.0.1:9"},
			map[string]string{"http://id.example.com": "use https://", "id.example.com": "", "https://": ""},
		},
		"TRUSTED_PROXIES": {
			(*Config).parseProxies,
			map[string]string{"10.0.0.5, 10.1.2.3/24,::1": "[10.0.0.5/32 10.1.2.0/24 ::1/128]"},
			map[string]string{"0.0.0.0/0": "everybody", "::/0": "everybody", "proxy.local": "write an address", "10.0.0.1/33": "write an address"},
		},
		"SIGN_IN_HEADER": {
			(*Config).parseHeaderName,
			map[string]string{"X-Forwarded-User": "X-Forwarded-User"},
			map[string]string{"X User": "write the name", "Cookie": "browsers send", "user-agent": "browsers send", "X-Üser": "write the name"},
		},
	} {
		kept := func(c Config) string {
			return map[string]string{
				"SIGN_IN_PEOPLE": fmt.Sprint(c.SignIn.People), "OIDC_ISSUER": c.SignIn.Issuer,
				"TRUSTED_PROXIES": fmt.Sprint(c.SignIn.Proxies), "SIGN_IN_HEADER": c.SignIn.Header,
			}[name]
		}
		for text, want := range tt.good {
			c := Config{Sections: []option.Section{host{name: "telegram"}, host{name: "slack"}, host{name: "github"}}}
			if err := tt.parse(&c, text); err != nil || kept(c) != want {
				t.Errorf("%s=%s: %s, %v; want %s", name, text, kept(c), err, want)
			}
		}
		for text, want := range tt.bad {
			c := Config{Sections: []option.Section{host{name: "telegram"}, host{name: "slack"}, host{name: "github"}}}
			if err := tt.parse(&c, text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s=%s: %v, want %q", name, text, err, want)
			}
			if got := fmt.Sprintf("%+v", c.SignIn); got != fmt.Sprintf("%+v", SignIn{}) {
				t.Errorf("%s=%s is kept: %s", name, text, got)
			}
		}
	}
}

// TestSignInOptionsGoTogether: none of them opens the pages by itself.
func TestSignInOptionsGoTogether(t *testing.T) {
	t.Parallel()
	whole := SignIn{Issuer: "https://id.example.com", ClientID: "bot", People: map[string]string{"a": "telegram/1"}}
	for name, tt := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"all of it":      {func(*Config) {}, ""},
		"no client":      {func(c *Config) { c.SignIn.ClientID = "" }, "OIDC_CLIENT_ID"},
		"no way back":    {func(c *Config) { c.PublicURL = "" }, "PUBLIC_URL"},
		"nobody":         {func(c *Config) { c.SignIn.People = nil }, "SIGN_IN_PEOPLE"},
		"header alone":   {func(c *Config) { c.SignIn.Header = "X-User" }, "TRUSTED_PROXIES"},
		"another's path": {func(c *Config) { c.PublicURL += "/bot" }, "has the path /bot"},
	} {
		c := Config{PublicURL: "https://bot.example.com", SignIn: whole}
		tt.change(&c)
		l := loader{config: c, failed: map[string]bool{}}
		l.checkSignIn()
		got := strings.Join(append(l.problems, l.config.Warnings...), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
