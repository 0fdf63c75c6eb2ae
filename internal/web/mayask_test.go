package web

import "testing"

// Finding 10: who listens on more than this machine is asked by more names, and not
// by those that a stranger can make.
func TestFinding10HostsOfAServerThatListensEverywhere(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:3000", ":3000", "[::]:3000"} {
		s := New(Config{Addr: addr, Hosts: []string{"bot.example.com"}})
		for host, want := range map[string]bool{
			"10.0.0.7:3000": true, "[2001:db8::1]:3000": true, "bot:3000": true, "localhost": true, "bot.example.com": true,
			"evil.example:3000": false, "": false, "evil.example.": false,
		} {
			if got := s.mayAsk(host); got != want {
				t.Errorf("listening on %s, mayAsk(%q) = %t", addr, host, got)
			}
		}
	}
}
