package ratelimit

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestLimitsStaySmall(t *testing.T) {
	t.Parallel()
	l := New(1, 2)
	now := time.Now()
	for i := range 3 * maxLimited {
		l.Take(fmt.Sprint(i), now)
		if len(l.of) > maxLimited {
			t.Fatalf("%d names after %d", len(l.of), i+1)
		}
	}
	// Those that may do everything again go first.
	l = New(1, 2)
	for i := range maxLimited - 1 {
		l.Take(fmt.Sprint(i), now)
	}
	later := now.Add(time.Minute)
	l.Take("busy", later)
	l.Take("busy", later)
	l.Take("new", later)
	if len(l.of) != 2 || l.Wait("busy", later) == 0 {
		t.Errorf("%d names, busy waits %s", len(l.of), l.Wait("busy", later))
	}
}

func TestAWaitIsNotCounted(t *testing.T) {
	t.Parallel()
	l := New(1, 1)
	now := time.Now()
	if l.Wait("a", now) != 0 || l.Knows("a") || l.Any() {
		t.Error("asking remembers a name")
	}
	if l.Take("a", now) != 0 || l.Take("a", now) != time.Second || l.Take("a", now) != time.Second || l.Wait("a", now) != time.Second {
		t.Error("a refused use is counted")
	}
	if l.Take("a", now.Add(time.Second)) != 0 {
		t.Error("after the wait it is refused")
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7:1234":          "192.0.2.7",
		"[::ffff:192.0.2.7]:1":    "192.0.2.7",
		"[2001:db8:1:2:3::4]:80":  "2001:db8:1:2::/64",
		"[2001:db8:1:2:ff::]:80":  "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":       "fe80::/64",
		"@":                       "@",
		"a-name:80":               "a-name",
		"not an address at all::": "not an address at all::",
	} {
		if got := (Proxies{}).Client(&http.Request{RemoteAddr: remote}); got != want {
			t.Errorf("address(%q) = %q, want %q", remote, got, want)
		}
	}
}
