package signin_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"remote-agent/internal/signin"
)

var (
	ann = signin.Account{Platform: "telegram", ID: "42"}
	now = time.Date(2026, 11, 21, 12, 34, 56, 789_999_999, time.UTC)
)

func TestASessionEnds(t *testing.T) {
	t.Parallel()
	s, _ := signin.NewSession(ann, "Firefox", now, signin.SessionLife)
	used := func(at time.Time) signin.Session {
		u := s
		u.LastUsedAt = at
		return u
	}
	revoked := s
	revoked.RevokedAt = s.CreatedAt
	for name, c := range map[string]struct {
		s    signin.Session
		at   time.Time
		want bool
	}{
		"new":                    {s, now, true},
		"not used for long":      {s, s.LastUsedAt.Add(7*24*time.Hour - time.Millisecond), true},
		"not used for too long":  {s, s.LastUsedAt.Add(7 * 24 * time.Hour), false},
		"used all the time":      {used(s.ExpiresAt.Add(-time.Minute)), s.CreatedAt.Add(30*24*time.Hour - time.Millisecond), true},
		"used all the time, old": {used(s.ExpiresAt.Add(-time.Minute)), s.CreatedAt.Add(30 * 24 * time.Hour), false},
		"revoked":                {revoked, now, false},
		"none":                   {signin.Session{}, now, false},
	} {
		if got := c.s.Live(c.at); got != c.want {
			t.Errorf("%s: live is %v", name, got)
		}
	}
	short, _ := signin.NewSession(ann, "", now, time.Hour)
	if at := short.CreatedAt.Add(time.Hour); short.Live(at) || !short.Live(at.Add(-time.Millisecond)) {
		t.Error("a session of an hour does not end after an hour")
	}
}

func TestALinkIsGoodForFiveMinutes(t *testing.T) {
	t.Parallel()
	l, token := signin.NewLink(ann, now)
	if left := l.ExpiresAt.Sub(now.Truncate(time.Millisecond)); left != 5*time.Minute || l.Account != ann || l.Hash != signin.Hash(token) {
		t.Errorf("a link of %s for %s, hash %s", l, left, l.Hash)
	}
}

// The rows have no token: whoever reads them signs in with none of it.
func TestTokensAreRandomAndNotStored(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 50 {
		l, link := signin.NewLink(ann, now)
		s, cookie := signin.NewSession(ann, "", now, time.Hour)
		if s.Hash != signin.Hash(cookie) || len(link) < 26 || len(cookie) < 52 || strings.Contains(cookie, strings.ToUpper(s.ID)) {
			t.Fatalf("link %q, cookie %q of the session %s", link, cookie, s.ID)
		}
		for _, text := range []string{l.Hash, link, s.Hash, cookie, s.ID} {
			if seen[text] {
				t.Fatalf("%q is there twice", text)
			}
			seen[text] = true
		}
	}
	// Stored hashes have to stay what they are.
	const known = "01e8bf744c4b0453f6544322d9f6d0efb71c17288157850774a5593a67dcd56d"
	if got := signin.Hash("token"); got != known {
		t.Errorf("Hash is %s, and was %s", got, known)
	}
}

func TestOfABrowsersNameTheBeginningIsKept(t *testing.T) {
	t.Parallel()
	for client, want := range map[string]string{
		"Firefox\xff":                      "Firefox",
		strings.Repeat("x", 300):           strings.Repeat("x", 200),
		strings.Repeat("x", 199) + "é and": strings.Repeat("x", 199),
	} {
		if s, _ := signin.NewSession(ann, client, now, time.Hour); s.Client != want || !utf8.ValidString(s.Client) {
			t.Errorf("%.20q… is kept as %q", client, s.Client)
		}
	}
}
