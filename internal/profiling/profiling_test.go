package profiling

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"remote-agent/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, url, host string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestProfilesAreThereForThisMachine(t *testing.T) {
	at, stop, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, "http://"+at+"/debug/pprof/goroutine?debug=1", ""); status != http.StatusOK || !strings.Contains(body, "profiling.Listen") {
		t.Errorf("%d: %s", status, body)
	}
	if status, body := get(t, "http://"+at+"/debug/pprof/heap?debug=1", "localhost:1"); status != http.StatusOK || !strings.Contains(body, "heap profile") {
		t.Errorf("%d: %s", status, body)
	}
	for ask, want := range map[string]string{"": "profile\ntrace\n", "nothing": "goroutine, heap", "heap?debug=x": "a number", "profile?seconds=NaN": "up to 600", "trace?seconds=601": "up to 600"} {
		status, body := get(t, "http://"+at+"/debug/pprof/"+ask, "")
		if (status == http.StatusOK) != (ask == "") || !strings.Contains(body, want) {
			t.Errorf("%q: %d %q", ask, status, body)
		}
	}
	recorded := make(chan string)
	for _, name := range []string{"profile", "profile", "trace", "allocs"} {
		go func() {
			_, body := get(t, "http://"+at+"/debug/pprof/"+name+"?seconds=0.2", "")
			recorded <- name + body
		}()
	}
	var found []string
	for range 4 {
		switch body := <-recorded; {
		case strings.Contains(body, "already"):
			found = append(found, "already")
		case strings.HasPrefix(body, "profile\x1f\x8b"), strings.HasPrefix(body, "allocs\x1f\x8b"), strings.HasPrefix(body, "tracego 1."):
			found = append(found, body[:5])
		default:
			t.Errorf("recorded %.40q", body)
		}
	}
	if slices.Sort(found); !slices.Equal(found, []string{"alloc", "already", "profi", "trace"}) {
		t.Errorf("recorded %q", found)
	}
	if status, _ := get(t, "http://"+at+"/debug/pprof/", "evil.example.com"); status != http.StatusForbidden {
		t.Errorf("another host's name was answered with %d", status)
	}
	if _, _, err := Listen(t.Context(), at); !fault.Is(err, fault.Invalid) {
		t.Errorf("a port that is taken: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestOnlyThisMachineIsListenedOn(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{":6060", "0.0.0.0:6060", "192.0.2.1:6060", "example.com:6060", "6060", "", "[::]:6060"} {
		if _, _, err := Listen(t.Context(), addr); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "--pprof-addr") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
