package apikey_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/apikey"
	"remote-agent/internal/fault"
	"remote-agent/internal/redact"
)

var now = time.Date(2026, 11, 21, 12, 34, 56, 789_000_000, time.UTC)

func TestATokenMatchesItsKeyOnly(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 50 {
		k, token, err := apikey.New("ci", []apikey.Scope{apikey.SessionsRead}, 0, now)
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := apikey.ID(token); !ok || id != k.ID {
			t.Fatalf("ID(%q) = %q, %v; want %q", token, id, ok, k.ID)
		}
		if !k.Matches(token) || k.Matches(token[:len(token)-1]) || k.Matches(token+"a") || k.Matches("") || k.Matches(k.Hash) {
			t.Fatalf("%q does not match as it should", token)
		}
		last := "a"
		if token[len(token)-1] == 'a' {
			last = "b"
		}
		if k.Matches(token[:len(token)-1] + last) {
			t.Fatal("a token with another last letter matches")
		}
		if strings.Contains(k.Hash, token[15:]) || len(k.Hash) != 64 {
			t.Fatalf("the hash is %q", k.Hash)
		}
		if seen[token] || seen[k.ID] {
			t.Fatal("a key came twice")
		}
		seen[token], seen[k.ID] = true, true
		if clean := redact.New().String("with " + token + " in it"); clean != "with "+redact.Mask+" in it" {
			t.Fatalf("the redactor leaves %q", clean)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	read := []apikey.Scope{apikey.SessionsRead}
	for name, c := range map[string]struct {
		name   string
		scopes []apikey.Scope
		life   time.Duration
		want   string
	}{
		"empty name":    {"", read, 0, "not a valid key name"},
		"blank":         {"a b", read, 0, "not a valid key name"},
		"line break":    {"a\n", read, 0, "not a valid key name"},
		"slash":         {"a/b", read, 0, "not a valid key name"},
		"long":          {strings.Repeat("a", 65), read, 0, "not a valid key name"},
		"no scope":      {"ci", nil, 0, "at least one scope"},
		"past":          {"ci", read, -time.Hour, "from a minute"},
		"short":         {"ci", read, time.Second, "from a minute"},
		"for ever long": {"ci", read, apikey.MaxLife + 1, "to ten years"},
	} {
		_, token, err := apikey.New(c.name, c.scopes, c.life, now)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), c.want) || token != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseScopes(t *testing.T) {
	t.Parallel()
	got, err := apikey.ParseScopes([]string{"sessions:read", " Memories:READ ", "sessions:read"})
	if diff := cmp.Diff([]apikey.Scope{apikey.SessionsRead, apikey.MemoriesRead}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, names := range [][]string{nil, {""}, {"read"}, {"sessions:read", "*"}} {
		if _, err := apikey.ParseScopes(names); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "sessions:read, sessions:write") {
			t.Errorf("ParseScopes(%q): %v", names, err)
		}
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	k, _, err := apikey.New("ci", []apikey.Scope{apikey.SessionsRead}, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.State(now.Add(time.Hour - time.Millisecond)); got != apikey.Live {
		t.Errorf("before its end it is %s", got)
	}
	if got := k.State(now.Add(time.Hour)); got != apikey.Expired {
		t.Errorf("at its end it is %s", got)
	}
	k.RevokedAt = now
	for _, at := range []time.Time{now, now.Add(2 * time.Hour)} {
		if got := k.State(at); got != apikey.Revoked {
			t.Errorf("revoked it is %s", got)
		}
	}
	forever, _, err := apikey.New("ci", []apikey.Scope{apikey.SessionsRead}, 0, now)
	if err != nil || forever.State(now.AddDate(100, 0, 0)) != apikey.Live {
		t.Errorf("without an end: %v", err)
	}
	if k.Allows(apikey.SessionsWrite) || !k.Allows(apikey.SessionsRead) || !k.Allows("") {
		t.Error("it allows what it should not")
	}
}

// No scope includes another, and each key may ask what it is.
func TestAKeyAllowsItsScopesOnly(t *testing.T) {
	t.Parallel()
	for _, has := range apikey.Scopes() {
		k, _, err := apikey.New("ci", []apikey.Scope{has}, 0, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, asked := range append(apikey.Scopes(), "sessions", "admin", "*") {
			if k.Allows(asked) != (asked == has) {
				t.Errorf("a key for %s and %s: %v", has, asked, k.Allows(asked))
			}
		}
		if !k.Allows("") {
			t.Errorf("a key for %s may not ask what it is", has)
		}
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	k, token, err := apikey.New("ci", []apikey.Scope{apikey.SessionsRead}, 0, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{k.ID, token} {
		if id, err := apikey.ParseID(text); err != nil || id != k.ID {
			t.Errorf("ParseID(%q) = %q, %v", text, id, err)
		}
	}
	for _, text := range []string{"", "ci", token + "x", token[1:], strings.ToUpper(k.ID)} {
		if _, err := apikey.ParseID(text); !fault.Is(err, fault.Invalid) || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("ParseID(%q): %v", text, err)
		}
	}
}

func FuzzID(f *testing.F) {
	f.Add("rak_abcdefghij_" + strings.Repeat("a", 52))
	f.Add("rak_")
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := apikey.ID(text)
		if ok != (id != "") || ok && !strings.HasPrefix(text, "rak_"+id+"_") {
			t.Errorf("ID(%q) = %q, %v", text, id, ok)
		}
	})
}
