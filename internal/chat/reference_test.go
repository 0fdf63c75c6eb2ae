package chat

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/command"
)

var write = flag.Bool("write", false, "write the table of commands into docs/commands.md")

// What stands around the table of commands.
const (
	tableBegin = "<!-- The table is made by `make generate` from the registry in internal/chat. -->\n"
	tableEnd   = "<!-- The end of the table. -->\n"
)

// TestReference compares docs/commands.md with the registry.
func TestReference(t *testing.T) {
	t.Parallel()
	const file = "../../docs/commands.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	have, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	want := reference((&Handler{}).commands())
	if *write {
		if err := os.WriteFile(file, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s is out of date, `make generate` writes it (-want +got):\n%s", file, diff)
	}
}

// reference is the table of commands.
func reference(all []*command.Command) string {
	runs := map[command.Lane]string{
		command.AtOnce: "at once",
		command.Ahead:  "at once, and before the messages behind it",
		command.Job:    "in order, like a message",
		command.Turn:   "by the assistant",
	}
	var b strings.Builder
	b.WriteString("| command | does | example | who | runs |\n|---|---|---|---|---|\n")
	for _, c := range all {
		does := c.Summary + alsoCalled(*c, "/")
		if c.Details != "" {
			does += ". " + strings.TrimSuffix(c.Details, ".")
		}
		when := runs[c.Lane]
		if c.Files {
			when += ", or in order where another replica has the files"
		}
		fmt.Fprintf(&b, "| `/%s` | %s | `/%s` | %s | %s |\n",
			strings.ReplaceAll(c.Usage, "|", `\|`), strings.ReplaceAll(does, "|", `\|`), c.Example, whoInTable(*c), when)
	}
	return b.String()
}

// whoInTable says who may give a command, in a word.
func whoInTable(c command.Command) string {
	switch {
	case c.Owners:
		return "owners"
	case c.Reading == command.NotReading:
		return "users"
	}
	return "everybody"
}
