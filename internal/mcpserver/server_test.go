package mcpserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
)

// many returns n entries.
func many(n int) map[string]string {
	all := make(map[string]string)
	for i := range n {
		all[fmt.Sprint("A", i)] = "x"
	}
	return all
}

func TestCheck(t *testing.T) {
	t.Parallel()
	type server = mcpserver.Server
	for name, test := range map[string]struct {
		named  string // default "docs"
		server server
		wrong  string // part of what is said; nothing is wrong if it is empty
	}{
		"a program":    {server: server{Command: "npx", Args: []string{"-y", "server"}, Env: map[string]string{"A_1": "x"}, Hosts: []string{"*.example.com"}, Allow: []string{"read_*"}}},
		"an address":   {server: server{URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "a\tb"}}},
		"this machine": {server: server{URL: "http://127.0.0.1:8000/mcp"}},
		"by its name":  {server: server{URL: "http://localhost:8000/mcp"}},
		"IPv6":         {server: server{URL: "http://[::1]:8000/mcp"}},

		"upper case":      {named: "Docs", server: server{Command: "npx"}, wrong: `"Docs"`},
		"a name of 33":    {named: strings.Repeat("a", 33), server: server{Command: "npx"}, wrong: "32 lower case"},
		"nothing":         {wrong: "either a command or a URL"},
		"both":            {server: server{Command: "npx", URL: "https://example.com"}, wrong: "either a command or a URL"},
		"a pattern":       {server: server{Command: "npx", Allow: []string{"[a"}}, wrong: `"[a"`},
		"plain http":      {server: server{URL: "http://example.com/mcp"}, wrong: "https://"},
		"another scheme":  {server: server{URL: "file://example.com/mcp"}, wrong: "https://"},
		"a user":          {server: server{URL: "https://me:secret@example.com/mcp"}, wrong: "without a user name"},
		"no host":         {server: server{URL: "https:///mcp"}, wrong: "not valid"},
		"a port alone":    {server: server{URL: "https://:443/mcp"}, wrong: "no host"},
		"a header":        {server: server{URL: "https://example.com", Headers: map[string]string{"X Key": "a"}}, wrong: `"X Key"`},
		"two lines":       {server: server{URL: "https://example.com", Headers: map[string]string{"X-Key": "a\nb"}}, wrong: "one line"},
		"arguments there": {server: server{URL: "https://example.com", Args: []string{"x"}}, wrong: "require a command"},
		"variables there": {server: server{URL: "https://example.com", Env: map[string]string{"A": "x"}}, wrong: "require a command"},
		"an option":       {server: server{Command: "-c"}, wrong: "not a valid program name"},
		"a space":         {server: server{Command: " npx"}, wrong: "not a valid program name"},
		"a line":          {server: server{Command: "n\npx"}, wrong: "not a valid program name"},
		"itself":          {server: server{Command: "/opt/bot"}, wrong: "again and again"},
		"itself by name":  {server: server{Command: "bot"}, wrong: "again and again"},
		"a variable":      {server: server{Command: "npx", Env: map[string]string{"1A": "x"}}, wrong: `"1A"`},
		"headers there":   {server: server{Command: "npx", Headers: map[string]string{"X-Key": "a"}}, wrong: "require a url"},
		"a long text":     {server: server{Command: "npx", Args: []string{strings.Repeat("x", 16<<10+1)}}, wrong: "the limit is 16384"},
		"much text":       {server: server{Command: "npx", Args: slices.Repeat([]string{strings.Repeat("x", 16<<10)}, 17)}, wrong: "the limit is 262144"},
		"a long list":     {server: server{Command: "npx", Env: many(101)}, wrong: "the limit is 100"},
		"no UTF-8":        {server: server{Command: "npx", Args: []string{"\xff"}}, wrong: "not UTF-8"},
		"a zero byte":     {server: server{Command: "npx", Env: map[string]string{"A": "x\x00"}}, wrong: "zero byte"},
	} {
		if test.named == "" {
			test.named = "docs"
		}
		err := test.server.Check(test.named, "/opt/bot")
		switch {
		case test.wrong == "":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), test.wrong):
			t.Errorf("%s: %v, want a text with %s", name, err, test.wrong)
		case strings.Contains(err.Error(), "secret") || strings.ContainsAny(err.Error(), "\n\x00"):
			t.Errorf("%s: %q", name, err)
		}
	}
	if err := mcpserver.CheckURL("docs", "http://127.0.0.1/mcp", false); !fault.Is(err, fault.Invalid) {
		t.Errorf("this machine, where it is not allowed: %v", err)
	}
	if got := (mcpserver.Server{Env: map[string]string{"B": "2", "A": "1"}}).Environ(); !slices.Equal(got, []string{"A=1", "B=2"}) {
		t.Errorf("Environ = %q", got)
	}
}
