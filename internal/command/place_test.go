package command_test

import (
	"testing"

	"remote-agent/internal/command"
)

func TestInPlace(t *testing.T) {
	t.Parallel()
	known := func(name string) bool { return name == "execute" || name == "load_commands" || name == "agent" }
	for _, c := range []struct{ prefix, text, want string }{
		{"/", "`/execute p-1` runs it.", "`/execute p-1` runs it."},
		{"@bot ", "`/execute p-1` runs it, `/execute` too.", "`@bot execute p-1` runs it, `@bot execute` too."},
		{"@bot ", "`/load-commands x`", "`@bot load-commands x`"},
		{"@bot ", "the file `/etc/passwd`, `/nothing here`, /execute", "the file `/etc/passwd`, `/nothing here`, /execute"},
		{"/agent ", "`/agent execute p-1` or `/execute p-1`", "`/agent execute p-1` or `/agent execute p-1`"},
		{"@bot ", "`/execute", "`/execute"},
		{"@bot ", "`/` and `/ execute`", "`/` and `/ execute`"},
		{"@bot ", "", ""},
	} {
		if got := command.InPlace(c.text, c.prefix, known); got != c.want {
			t.Errorf("%q with %q is %q, want %q", c.text, c.prefix, got, c.want)
		}
	}
}
