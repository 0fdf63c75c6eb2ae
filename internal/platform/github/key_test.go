package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"sync"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform/github"
)

// testKey is made once: it takes long.
var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func TestKeysAndPosts(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"acme/web#1": "acme/web#1", "Acme/Web#42": "acme/web#42", "a_b/x.y-z#7": "a_b/x.y-z#7",
	} {
		if got, err := github.KeyRoundTrip(id); err != nil || got != want {
			t.Errorf("%q: %q, %v", id, got, err)
		}
	}
	for _, id := range []string{"", "acme", "acme/web", "acme/web#", "acme/web#0", "acme/web#-1", "acme/web#1x", "acme/../web#1", "acme/..#1", "acme/we b#1", "/web#1", "-a/web#1", "acme/web#99999999999"} {
		if got, err := github.KeyRoundTrip(id); err == nil {
			t.Errorf("%q is taken for %q", id, got)
		}
	}
	for _, id := range []messages.MessageID{"ic:5", "rc:7", "rc:7/5", "rv:9", "is:42"} {
		if got, ok := github.PostRoundTrip(id); !ok || got != id {
			t.Errorf("%q: %q, %v", id, got, ok)
		}
	}
	for _, id := range []messages.MessageID{"", "ic", "ic:", "ic:0", "ic:-1", "xx:1", "ic:1/2", "rc:1/x", "ic:1:2"} {
		if got, ok := github.PostRoundTrip(id); ok {
			t.Errorf("%q is taken for %q", id, got)
		}
	}
}

func TestBranchNames(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"main", "feature/x", "bot/issue-42", "ünicode", "a.b", "x@y"} {
		if !github.IsBranch(good) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{"", "-x", "--upload-pack=x", "a..b", "a@{0}", "x.lock", "a.lock/b", "a b", "a\x00b", "a\nb", "/a", "a/", ".a", "a/.b", "a~1", "a^", "a:b", "a?", "a*", "a[", `a\b`, "@", "a//b"} {
		if github.IsBranch(bad) {
			t.Errorf("%q is taken", bad)
		}
	}
}
