package web_test

import (
	"net/http"
	"testing"

	"remote-agent/internal/web"
)

// Finding 10: /metrics answered whatever name it was asked by.
func TestFinding10MetricsAnswersItsOwnHostsOnly(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("figures")) })
	type hosts map[string]bool
	for name, tt := range map[string]struct {
		addr  string
		hosts hosts
	}{
		"loopback": {"127.0.0.1:0", hosts{
			"127.0.0.1": true, "127.0.0.1:9": true, "localhost:3000": true, "LOCALHOST": true, "localhost.": true, "[::1]:3000": true, "bot.example.com": true, "BOT.example.com:443": true,
			"evil.example": false, "evil.example:3000": false, "127.0.0.1.evil.example": false, "localhost.evil.example": false, "10.0.0.7:3000": false, "bot:3000": false, "": false, "bot.example.com.evil": false,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, web.Config{Addr: tt.addr, Metrics: metrics, Hosts: []string{"bot.example.com"}})
			for host, want := range tt.hosts {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/metrics", nil)
				if err != nil {
					t.Fatal(err)
				}
				if req.Host = host; host == "" {
					req.Host = " " // an empty one is filled in
				}
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					if want {
						t.Errorf("%q: %v", host, err)
					}
					continue
				}
				_ = resp.Body.Close()
				if ok := resp.StatusCode == http.StatusOK; ok != want || !ok && resp.StatusCode != http.StatusMisdirectedRequest && resp.StatusCode != http.StatusBadRequest {
					t.Errorf("%q: %s", host, resp.Status)
				}
			}
		})
	}
}

// TestPagesAnswerNamesOfThisServerOnly has other names refused, before anything is said.
func TestPagesAnswerNamesOfThisServerOnly(t *testing.T) {
	t.Parallel()
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a page")) })
	s := start(t, web.Config{Pages: pages, Hosts: []string{"bot.example.com"}})
	for host, want := range map[string]int{
		"127.0.0.1": 200, "localhost:9": 200, "[::1]:3000": 200, "bot.example.com": 200, "BOT.example.com:443": 200,
		"evil.example": 421, "localhost.evil.example": 421, "192.0.2.7": 421, "0.0.0.0": 421, "bot": 421, "bot.example.com.evil.example": 421,
	} {
		for _, path := range []string{"/", "/sessions"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s at %q: %s, want %d", path, host, resp.Status, want)
			}
		}
	}
	if status, _, _ := do(t, "GET", s.url+"/healthz", nil); status != http.StatusOK {
		t.Errorf("what is no page: %d", status)
	}
}
