package remote_test

import (
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/fault"
)

func hosts(tb testing.TB, entries ...string) remote.Hosts {
	tb.Helper()
	h, err := remote.ParseHosts(entries)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

func TestParseAcceptsAndCanonicalizes(t *testing.T) {
	t.Parallel()
	allowed := []string{"GitHub.com", "git.example.com:8443", "gitlab.example.com", "127.0.0.1:3000", "localhost:3001"}
	cases := map[string]struct{ url, dir, address string }{
		"https://github.com/acme/web": {"https://github.com/acme/web", "acme/web", "github.com:443"},
		//nolint:gocritic // the space around the address is what is tested
		"  https://GITHUB.com/Acme/Web.git/ ":           {"https://github.com/acme/web", "acme/web", "github.com:443"},
		"HTTPS://github.com:443/acme/web":               {"https://github.com/acme/web", "acme/web", "github.com:443"},
		"Acme/web.js":                                   {"https://github.com/acme/web.js", "acme/web.js", "github.com:443"},
		"acme/.github":                                  {"https://github.com/acme/.github", "acme/.github", "github.com:443"},
		"https://git.example.com:8443/Acme.Inc/Web.GIT": {"https://git.example.com:8443/Acme.Inc/Web", "git.example.com+8443/Acme.Inc/Web", "git.example.com:8443"},
		"https://gitlab.example.com/a/b":                {"https://gitlab.example.com/a/b", "gitlab.example.com/a/b", "gitlab.example.com:443"},
		"http://127.0.0.1:3000/a/b":                     {"http://127.0.0.1:3000/a/b", "127.0.0.1+3000/a/b", "127.0.0.1:3000"},
		"http://localhost:3001/a/b":                     {"http://localhost:3001/a/b", "localhost+3001/a/b", "localhost:3001"},
	}
	for input, want := range cases {
		r, err := hosts(t, allowed...).Parse(input)
		if err != nil || r.URL() != want.url || r.Dir() != want.dir || r.Address() != want.address {
			t.Errorf("Parse(%q) = %s, %s, %s, %v", input, r.URL(), r.Dir(), r.Address(), err)
		}
		if again, err := hosts(t, allowed...).Parse(r.CloneURL()); err != nil || again != r {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", r.CloneURL(), again, err, r)
		}
	}
}

// corpus is S21 and its neighbors.
var corpus = []string{
	"", "-", "--upload-pack=touch /tmp/x", "-u./x", "acme", "acme/", "/acme/web", "acme/web/tree/main", "./acme/web", "../web", "~/web",
	"acme/..", "../..", "acme/.", "acme/.git", "acme/.GIT", "./.", "acme/-x", "-x/acme", "acme.inc/web", ".x/web", "acme/web;id", "acme/$(id)", "acme/web|x", "a b/c",
	"ext::sh -c id", "ext::sh", "ext::https://github.com/o/r", "file:///etc/passwd", "file://github.com/o/r", "ftp://github.com/o/r", "git://github.com/o/r", "javascript:x",
	"ssh://git@github.com/o/r", "ssh://-oProxyCommand=id/x/y", "git@github.com:o/r.git", "github.com:o/r", "https:github.com/o/r", "https:/github.com/o/r", "https://", "https:///o/r",
	"http://github.com/o/r", "http://169.254.169.254/latest/meta-data", "https://169.254.169.254/o/r", "http://127.0.0.1/o/r", "https://127.0.0.1/o/r", "https://127.1/o/r",
	"https://[::1]/o/r", "https://[::ffff:127.0.0.1]/o/r", "https://2130706433/o/r", "https://0x7f000001/o/r", "https://0177.0.0.1/o/r", "https://localhost/o/r", "https://metadata.google.internal/o/r",
	"https://user@github.com/o/r", "https://ghp_secret:x-oauth-basic@github.com/o/r", "https://github.com@evil.example/o/r", "https://evil.example/o/r", "https://github.com.evil.example/o/r",
	"https://evil-github.com/o/r", "https://github.com./o/r", "https://github.com:22/o/r", "https://github.com:0443/o/r", "https://github.com:/o/r", "https://api.github.com/o/r", "https://gıthub.com/o/r", "https://github.com%2eevil.example/o/r",
	"https://github.com/o/r?x=1", "https://github.com/o/r?", "https://github.com/o/r#x", "https://github.com/o/r#", "https://github.com/o", "https://github.com/", "https://github.com/o/r/tree/main", "https://github.com/../r", "https://github.com/o/..",
	"https://github.com/o/%2e%2e", "https://github.com/o/r%0a", "https://github.com/o/r\n--upload-pack=x", "https://github.com/o/r\x00", "https://github.com/o/r\x7f", "https://github.com\\@evil.example/o/r", "https://github.com/o\\r/x",
	"https://github.com//r", "https://github.com/o//r", "https://github.com/-o/r", "https://github.com/o/-r", "https://github.com/.o/r", "https://github.com/o/" + strings.Repeat("r", 200), "https://github.com/o/" + strings.Repeat("r", 600),
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	h := hosts(t)
	for _, input := range corpus {
		r, err := h.Parse(input)
		if k := fault.KindOf(err); k != fault.Invalid && k != fault.Forbidden {
			t.Errorf("Parse(%q) = %+v, %v", input, r, err)
			continue
		}
		text := fault.Public(err)
		if len(text) < 20 || strings.Contains(text, "secret") || strings.ContainsAny(text, "\n\x00") {
			t.Errorf("Parse(%q) says %q", input, text)
		}
	}
}

func TestParseHosts(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", " ", "github", "*.github.com", "https://github.com", "github.com/x", "10.0.0.1", "192.168.1.1:3000", "8.8.8.8", "127.0.0.1", "localhost", "[::1]:3000", "169.254.169.254:80", "github.com:0", "github.com:70000", "github.com:x", "user@github.com", "127.0.0.1:99999", "-x.example.com", "a..b"} {
		if h, err := remote.ParseHosts([]string{entry}); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseHosts(%q) = %v, %v", entry, h, err)
		}
	}
	if got := hosts(t).String(); got != "github.com" {
		t.Errorf("default = %q", got)
	}
	if r, err := hosts(t, "127.0.0.1:3000").Parse("a/b"); err != nil || r.URL() != "http://127.0.0.1:3000/a/b" {
		t.Errorf("short form = %+v, %v", r, err)
	}
}

// FuzzParse checks what a caller relies on: what is accepted is at an allowed
// host, has one spelling, and has a place that is below the workspace and no one
// else's.
func FuzzParse(f *testing.F) {
	for _, input := range corpus {
		f.Add(input)
	}
	f.Add("acme/web")
	f.Add("https://git.example.com:8443/a.b/c.git")
	h := hosts(f, "github.com", "git.example.com:8443", "127.0.0.1:3000")
	f.Fuzz(func(t *testing.T, input string) {
		r, err := h.Parse(input)
		if err != nil {
			return
		}
		parts := strings.Split(r.Dir(), "/")
		want := 3
		if r.Host == remote.GitHub {
			want = 2
		}
		if !filepath.IsLocal(r.Dir()) || len(parts) != want || strings.ContainsAny(parts[0], ".+") != (want == 3) || parts[0][0] == '.' || parts[0][0] == '-' {
			t.Errorf("Parse(%q).Dir() = %q", input, r.Dir())
		}
		for _, part := range parts {
			if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
				t.Errorf("Parse(%q).Dir() = %q", input, r.Dir())
			}
		}
		if r.Scheme != "https" && !r.Loopback {
			t.Errorf("Parse(%q) = %+v", input, r)
		}
		if again, err := h.Parse(r.URL()); err != nil || again != r {
			t.Errorf("Parse(%q) = %+v, and again %+v, %v", input, r, again, err)
		}
	})
}
