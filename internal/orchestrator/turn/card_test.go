package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// story is a card on which time passes by hand.
type story struct {
	card
	now time.Time
}

func newStory(verbose int) *story {
	begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return &story{card: newCard(verbose, begin), now: begin}
}

func (s *story) pass(d time.Duration) { s.now = s.now.Add(d) }

func (s *story) start(id string, kind assistant.PermissionKind, summary string) {
	s.started(assistant.ToolStarted{ID: id, Name: "tool_" + id, Summary: summary, Kind: kind}, s.now)
}

func (s *story) end(id string, ok bool, note string) {
	if r := s.at(id); r != nil {
		r.note = note
	}
	s.finished(id, ok, s.now)
}

func (s *story) result(id, content string) {
	s.results(messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{messages.ToolResult{CallID: id, Content: content}}})
}

// telling plays one turn that reads, edits, runs a test that fails, and asks.
func telling(verbose int) *story {
	s := newStory(verbose)
	s.steps = []assistant.Step{{Text: "Find the mistake", Done: true}, {Text: "Mend\nit", Now: true}, {Text: "Run the tests"}}
	s.start("r1", assistant.KindRead, "Read server.go")
	s.end("r1", true, "120 lines")
	s.result("r1", "package server\n")
	s.start("r2", assistant.KindRead, "Search \"listen\"")
	s.end("r2", false, "")
	s.start("w", assistant.KindWrite, "Edit server.go")
	s.pass(2 * time.Second)
	s.end("w", true, "+12 −3")
	s.result("w", "done")
	s.start("x", assistant.KindExecute, "go test ./... `x`")
	s.pass(7 * time.Second)
	s.end("x", false, "exit 1")
	s.result("x", "--- FAIL\n1\n2\n3\n4\n5\n6\n```\n")
	s.start("n", assistant.KindNetwork, "Fetch example.com")
	s.start("o", "", "")
	s.end("o", true, "")
	s.start("r3", assistant.KindRead, "Read main.go")
	s.pass(3 * time.Second)
	s.thought = "Perhaps the port is taken"
	s.notes = 1
	s.waiting = []string{"a-7"}
	return s
}

func TestCard(t *testing.T) {
	t.Parallel()
	for verbose, want := range map[int][]string{
		verboseResult: {
			"✋ Waiting for approval of a-7",
			"📥 1 note added",
		},
		verbosePhases: {
			"✋ Waiting for approval of a-7",
			"✔ Find the mistake",
			"◐ Mend it",
			"○ Run the tests",
			"✔ Read 2 times",
			"✔ ✎ Edit server.go +12 −3",
			"✖ ▶ `go test ./... 'x'` exit 1 · 7 s",
			"◐ ⇡ Fetch example.com",
			"✔ tool_o",
			"◐ Read main.go",
			"📥 1 note added",
		},
	} {
		s := telling(verbose)
		if diff := cmp.Diff(want, strings.Split(s.render(s.now), "  \n")); diff != "" {
			t.Errorf("at level %d (-want +got):\n%s", verbose, diff)
		}
	}
}

func TestCardOfEverything(t *testing.T) {
	t.Parallel()
	s := newStory(verboseAll)
	s.start("r", assistant.KindRead, "Read server.go")
	s.end("r", true, "120 lines")
	s.result("r", "\npackage server\n")
	s.start("x", assistant.KindExecute, "go test ./...")
	s.pass(65 * time.Second)
	s.end("x", false, "exit 1")
	s.result("x", "--- FAIL\n1\n```\n3\n4\n5\n6\n")
	s.start("w", assistant.KindWrite, "Edit server.go")
	s.thought = "Perhaps the port is taken"
	want := "✔ Read server.go 120 lines  \n" +
		"```\npackage server\n```  \n" +
		"✖ ▶ `go test ./...` exit 1 · 1:05  \n" +
		"```\n--- FAIL\n1\n'''\n3\n4\n```  \n" +
		"◐ ✎ Edit server.go  \n" +
		"💭 Perhaps the port is taken  \n" +
		"◐ Working · 1:05"
	if diff := cmp.Diff(want, s.render(s.now)); diff != "" {
		t.Errorf("card (-want +got):\n%s", diff)
	}
}

// TestCardOverTime shows what people see of a turn that says nothing for long.
func TestCardOverTime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		verbose int
		after   time.Duration
		change  func(s *story)
		want    string
	}{
		"NothingYet":    {verbosePhases, 0, nil, ""},
		"StillNothing":  {verbosePhases, quietAfter - time.Second, nil, ""},
		"ItWorks":       {verbosePhases, quietAfter, nil, "◐ Working · 30 s"},
		"SaysNothing":   {verbosePhases, 4 * time.Minute, func(s *story) { s.silence = 3 * time.Minute }, "◐ Working · 4:00 · no output for 3:00"},
		"SaidSomething": {verbosePhases, 4 * time.Minute, func(s *story) { s.silence = 3*time.Minute - 1 }, "◐ Working · 4:00"},
		"WaitsInSilence": {verboseResult, 4 * time.Minute, func(s *story) { s.waiting, s.silence = []string{"a-7"}, 4*time.Minute },
			"✋ Waiting for approval of a-7  \n◐ Working · 4:00"},
		"ItWorksForLong":     {verboseResult, time.Hour, nil, "◐ Working · 1:00:00"},
		"ToolsAtOnce":        {verboseResult, time.Second, func(s *story) { s.start("a", assistant.KindRead, "Read x") }, "◐ Working · 1 s"},
		"StepsAtOnce":        {verboseResult, time.Second, func(s *story) { s.steps = []assistant.Step{{Text: "x"}} }, "◐ Working · 1 s"},
		"ToolSaysItself":     {verbosePhases, time.Second, func(s *story) { s.start("a", assistant.KindRead, "Read x") }, "◐ Read x"},
		"NameAsItIs":         {verbosePhases, time.Second, func(s *story) { s.start("a", assistant.KindWrite, "Edit src/__init__.py") }, "◐ ✎ `Edit src/__init__.py`"},
		"OneRead":            {verbosePhases, time.Second, func(s *story) { s.start("a", assistant.KindRead, "x"); s.end("a", true, "") }, "✔ Read 1 time"},
		"SlowTool":           {verbosePhases, 40 * time.Second, func(s *story) { s.start("a", assistant.KindExecute, "make") }, "◐ ▶ `make` · 40 s  \n◐ Working · 40 s"},
		"TwoNotes":           {verboseResult, 0, func(s *story) { s.notes = 2 }, "📥 2 notes added"},
		"ThoughtsAreDetails": {verbosePhases, 0, func(s *story) { s.thought = "hm" }, ""},
		"ThoughtsForDetails": {verboseAll, 0, func(s *story) { s.thought = "hm" }, "💭 hm"},
		"NoThought":          {verboseAll, 0, nil, ""},
		"LongThought":        {verboseAll, 0, func(s *story) { s.thought = strings.Repeat("é", 300) }, "💭 " + strings.Repeat("é", 200)},
		"WaitsAtOnce":        {verboseResult, 0, func(s *story) { s.waiting = []string{"a-7"} }, "✋ Waiting for approval of a-7"},
	} {
		s := newStory(tt.verbose)
		if tt.change != nil {
			tt.change(s)
		}
		s.pass(tt.after)
		if got := s.render(s.now); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestCardKeepsTheNewestRows(t *testing.T) {
	t.Parallel()
	s := newStory(verbosePhases)
	for i := range 12 {
		id := fmt.Sprint(i)
		s.steps = append(s.steps, assistant.Step{Text: "step " + id, Done: true})
		s.start(id, assistant.KindWrite, "Edit "+id)
		s.end(id, true, "")
	}
	lines := strings.Split(s.render(s.now), "  \n")
	var want []string
	for _, kind := range []string{"✔ step ", "✔ ✎ Edit "} {
		want = append(want, "✔ 5 earlier steps")
		for i := 5; i < 12; i++ {
			want = append(want, kind+fmt.Sprint(i))
		}
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("12 of each (-want +got):\n%s", diff)
	}
}

func TestCardTakesAnyText(t *testing.T) {
	t.Parallel()
	s := newStory(verbosePhases)
	s.start("a", assistant.KindExecute, "  echo a\n\trm -rf `b`\r\n")
	s.start("b", assistant.KindWrite, strings.Repeat("ü", 500))
	s.end("b", true, "a\nb")
	s.finished("unknown", true, s.now)
	s.result("unknown", "x")
	s.results(messages.NewText(messages.RoleUser, "not a result"))
	want := []string{"◐ ▶ `echo a rm -rf 'b'`", "✔ ✎ " + strings.Repeat("ü", 200) + " a b"}
	if diff := cmp.Diff(want, strings.Split(s.render(s.now), "  \n")); diff != "" {
		t.Errorf("card (-want +got):\n%s", diff)
	}
}

func TestCardSummary(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kinds []assistant.PermissionKind
		took  time.Duration
		used  string
		want  string
	}{
		"Nothing":  {nil, time.Second, "", "✔ Worked for 1 s"},
		"OneRead":  {[]assistant.PermissionKind{assistant.KindRead}, 42 * time.Second, "", "✔ Worked for 42 s · 1 read"},
		"WithCost": {nil, 42 * time.Second, "21k tokens · $0.14", "✔ Worked for 42 s · 21k tokens · $0.14"},
		"AllKinds": {
			[]assistant.PermissionKind{
				assistant.KindRead, assistant.KindRead, assistant.KindWrite, assistant.KindWrite, assistant.KindWrite, assistant.KindExecute,
				assistant.KindNetwork, assistant.KindOther, "",
			},
			102 * time.Second, "21k tokens", "✔ Worked for 1:42 · 3 edits, 1 command, 2 reads, 1 request, 2 tool calls · 21k tokens",
		},
	} {
		s := newStory(verbosePhases)
		if s.worked() {
			t.Error("nothing was done yet")
		}
		for i, kind := range tt.kinds {
			s.start(fmt.Sprint(i), kind, "x")
			s.end(fmt.Sprint(i), i%2 == 0, "") // a failed one counts
		}
		if got := s.summary(tt.took, tt.used); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if s.worked() != (len(tt.kinds) > 0) {
			t.Errorf("%s: worked is %v", name, s.worked())
		}
	}
	s := newStory(verbosePhases)
	if s.steps = []assistant.Step{{Text: "x"}}; !s.worked() {
		t.Error("a plan is nothing to tell")
	}
}
