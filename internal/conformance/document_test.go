package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const document = "../../docs/conformance.md"

var write = flag.Bool("write", false, "write docs/conformance.md anew from the rules")

// seed is a document with its rules.
type seed struct {
	number string
	title  string
	rules  []rule
}

func seeds() []seed {
	return []seed{
		{"001", "provider-agnostic message storage", rules001()},
		{"002", "the schema of a remote coding agent", rules002()},
		{"003", "the audit of agents in SQLite", rules003()},
		{"004", "the database of an agent with memory", rules004()},
	}
}

//nolint:tparallel // the rules of a seed share a world and are checked one after another
func TestSeed001(t *testing.T) { t.Parallel(); conforms(t, rules001(), tell001) }

//nolint:tparallel // as above
func TestSeed002(t *testing.T) { t.Parallel(); conforms(t, rules002(), tell002, withGitHub) }

//nolint:tparallel // as above
func TestSeed003(t *testing.T) { t.Parallel(); conforms(t, rules003(), tell003) }

//nolint:tparallel // as above
func TestSeed004(t *testing.T) { t.Parallel(); conforms(t, rules004(), tell004) }

// TestDocument fails when docs/conformance.md says something else than the rules.
func TestDocument(t *testing.T) {
	t.Parallel()
	want := describe(seeds())
	if *write {
		if err := os.WriteFile(document, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/conformance.md is out of date, run make generate (-want +got):\n%s", diff)
	}
}

// TestRulesAreComplete fails for a rule that nobody could read or run.
func TestRulesAreComplete(t *testing.T) {
	t.Parallel()
	for _, s := range seeds() {
		seen := make(map[string]bool)
		for _, r := range s.rules {
			name := s.number + "/" + r.section + "/" + r.name
			marks := 0
			for _, mark := range []string{r.differs, r.open, r.apart} {
				if mark != "" {
					marks++
				}
			}
			switch {
			case seen[name]:
				t.Errorf("%s is there twice", name)
			case r.section == "" || r.name == "" || r.asks == "" || strings.ContainsAny(r.section+r.name, " /"):
				t.Errorf("%s lacks a section, a name or what it asks, or its name has blanks", name)
			case (r.holds == nil) != (r.apart != ""):
				t.Errorf("%s has to be checked, or to say why it does not apply", name)
			case marks > 1:
				t.Errorf("%s has %d marks", name, marks)
			case strings.ContainsAny(r.asks+r.differs+r.open+r.apart, "|\n"):
				t.Errorf("%s has a text that breaks the table", name)
			}
			seen[name] = true
		}
	}
}

// describe returns docs/conformance.md.
func describe(seeds []seed) string {
	var b strings.Builder
	b.WriteString(`# What holds of the seeds

The product grew out of four documents, the seeds (see [architecture.md](architecture.md)). This page has a line for
each of their rules: what it asks, whether that holds, and the test that shows it from outside, on a database that the
running program has filled. It is made from the tests (` + "`make generate`" + `), and a test fails when it is out of date.

Run one line with ` + "`go test ./internal/conformance -run 'TestSeed003/Queries'`" + `. Tests run on SQLite and on PostgreSQL
unless the last column says otherwise. *Does not hold* is tested, too: the test fails as soon as it does hold. A few rules go
beyond the seeds: they say how the program meets what the seeds' users bring along.

| seed | rules | hold | with a difference | do not hold | do not apply |
|---|---|---|---|---|---|
`)
	for _, s := range seeds {
		count := make(map[string]int)
		for _, r := range s.rules {
			count[r.state()]++
		}
		fmt.Fprintf(&b, "| %s, %s | %d | %d | %d | %d | %d |\n", s.number, s.title, len(s.rules), count["holds"],
			count["holds with a difference"], count["does not hold"], count["does not apply"])
	}
	for _, s := range seeds {
		fmt.Fprintf(&b, "\n## Seed %s: %s\n", s.number, s.title)
		section := ""
		for _, r := range s.rules {
			if r.section != section {
				section = r.section
				fmt.Fprintf(&b, "\n### %s\n\n| asked | holds | test |\n|---|---|---|\n", section)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.asks, r.verdict(), r.test(s.number))
		}
	}
	return b.String()
}

// verdict is the state with its reason.
func (r rule) verdict() string {
	switch {
	case r.apart != "":
		return "does not apply: " + r.apart
	case r.open != "":
		return "**does not hold**: " + r.open
	case r.differs != "":
		return "with a difference: " + r.differs
	}
	return "yes"
}

func (r rule) test(seed string) string {
	if r.apart != "" {
		return "none"
	}
	name := fmt.Sprintf("`TestSeed%s/%s/%s`", seed, r.section, r.name)
	switch r.on {
	case onSQLite:
		return name + " (SQLite)"
	case onPostgres:
		return name + " (PostgreSQL)"
	case inCode:
		return name + " (no database)"
	}
	return name
}
