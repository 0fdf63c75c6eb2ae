package profile_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/profile"
)

// pixel is a PNG of one pixel, as far as its kind is recognized.
const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"

func reviewer() profile.Profile {
	p := profile.New("reviewer")
	p.Description = "reviews changes"
	p.Lore = profile.Texts{"Ten years of Go.", "Has seen\nit all."}
	p.Objectives = profile.Texts{"Look at the newest commits."}
	p.Knowledge = profile.Texts{"Releases are on Mondays."}
	p.SystemPrompt = "Be strict."
	p.Interval = 3600
	p.Plugins = profile.Texts{"read_file", "mcp__jira__*"}
	p.Memory = profile.Memory{ShortTerm: 20, Size: 5}
	p.RAG = profile.RAG{EmbeddingModel: "small"}
	p.Mode, p.MaxIterations, p.ModelTier = profile.Ask, 7, "smart"
	p.MCPServers = map[string]mcpserver.Server{"jira": {
		Command: "jira-mcp", Args: []string{"--read-only"}, Env: map[string]string{"JIRA_URL": "https://jira.example"}, Allow: []string{"get_*"},
	}}
	p.AvatarImage, p.AvatarType = profile.Image(pixel), "image/png"
	return p
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	t.Parallel()
	want := []profile.Profile{reviewer(), profile.New("plain")}
	text, err := profile.Format(want...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := profile.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, text)
	}
	if err := got[0].Check(profile.Rules{Tools: []string{"read_file"}, Self: "/usr/bin/bot"}); err != nil {
		t.Errorf("a sound profile: %v", err)
	}
}

// What is empty is the same as what is not there, and neither needs quotes.
func TestEmptyIsAbsent(t *testing.T) {
	t.Parallel()
	p := profile.New("x")
	empty := p
	empty.Lore, empty.Plugins, empty.MCPServers = profile.Texts{}, profile.Texts{}, map[string]mcpserver.Server{}
	if !p.Same(empty) {
		t.Error("a profile with empty lists is another one")
	}
	if text, err := profile.Format(empty); err != nil || !strings.HasPrefix(string(text), "name: x\n") {
		t.Errorf("written as %q, %v", text, err)
	}
}

// Whatever texts a profile has, none of them changes on its way through YAML.
func TestTextsSurviveYAML(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		any := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"", " ", "\n", "a\n", "\na", " a\n b", "a\n\n", "# x", "- y", "yes", "null", "~", "0x10", "1_000", "2026-11-21", "'", "\"", "|", "&a", "*a", "!!binary x", "a: b", "\t", "\r\n", "\u0085", "\u2028", "\ufeff", "\x7f",
		}))
		p := profile.New("x")
		p.Description, p.SystemPrompt = any.Draw(t, "description"), any.Draw(t, "prompt")
		p.Lore = rapid.SliceOfN(any, 0, 4).Draw(t, "lore")
		p.MCPServers = map[string]mcpserver.Server{"s": {Command: "c", Args: rapid.SliceOfN(any, 0, 3).Draw(t, "args")}}
		if !validTexts(p) {
			t.Skip("not UTF-8")
		}
		text, err := profile.Format(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := profile.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%q", err, text)
		}
		if diff := cmp.Diff([]profile.Profile{p}, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s\n%q", diff, text)
		}
	})
}

func validTexts(p profile.Profile) bool {
	return !strings.ContainsRune(p.Description+p.SystemPrompt+strings.Join(p.Lore, "")+strings.Join(p.MCPServers["s"].Args, ""), '\uFFFD')
}

// A single text is a list of one; nothing is none.
func TestListsOfTexts(t *testing.T) {
	t.Parallel()
	got, err := profile.Parse([]byte("name: x\nlore: one\nobjectives: ~\nknowledge: [7, yes]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p := got[0]; !slices.Equal(p.Lore, profile.Texts{"one"}) || len(p.Objectives) != 0 || !slices.Equal(p.Knowledge, profile.Texts{"7", "yes"}) {
		t.Errorf("it was read as %q, %q, %q", p.Lore, p.Objectives, p.Knowledge)
	}
}

func TestWrongYAMLIsNamedByLine(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x,x]\n"
	for i := 1; i < 30; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d,*a%d,*a%d,*a%d]\n", i, i, i-1, i-1, i-1, i-1)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"UnknownField":  {"name: x\nobjective: [a]\n", `line 2: there is no field "objective"; did you mean objectives?`},
		"UnknownInside": {"name: x\nmemory:\n  enable: true\n", `line 3: there is no field "enable"; did you mean enabled?`},
		"Twice":         {"name: x\nname: y\n", `line 2: mapping key "name" already defined at line 1`},
		"WrongType":     {"name: x\ninterval: soon\n", "line 2: a text `soon` instead of a whole number"},
		"ListWanted":    {"name: x\nlore: {a: b}\n", "line 2: a group of fields instead of a list of texts"},
		"Bomb":          {bomb, "line 1: anchors and aliases"},
		"Cycle":         {"name: x\nlore: &l\n  - *l\n", "anchors and aliases"},
		"Merge":         {"base: &b {name: x}\n<<: *b\n", "anchors and aliases"},
		"NotBase64":     {"name: x\navatar_image: '@@@'\n", "line 2: avatar_image is not base64"},
		"Nothing":       {"# only a comment\n", "contains no profile"},
		"Text":          {"hello", "a text `hello` instead of a group of fields"},
		"NotUTF8":       {"name: \xff\n", "not UTF-8"},
		"Torn":          {"name: x\nlore: [a, b\n", "line 1: did not find expected"},
		"BoolWanted":    {"name: x\nmemory: {enabled: 7}\n", "a number `7` instead of true or false"},
		"TextWanted":    {"name: x\nsystem_prompt: [a]\n", "a list instead of a text"},
		"ModeWanted":    {"name: x\nmode: {a: b}\n", "a group of fields instead of a text"},
		"Anchor":        {"name: &x x\n", "line 1: anchors and aliases"},
		"TooLarge":      {strings.Repeat("#", profile.MaxFile+1), "the limit is"},
		"TooMany":       {strings.Repeat("---\nname: x\n", profile.MaxProfiles+1), "more than 1000 profiles"},
		"TooManyValues": {"lore: [" + strings.Repeat("a,", 300_000) + "]", "too many values"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := profile.Parse([]byte(tt.text))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), tt.want) {
				t.Errorf("error %v, public %q; want %q", err, fault.Public(err), tt.want)
			}
		})
	}
}

func TestToolsThatAreOffered(t *testing.T) {
	t.Parallel()
	p := profile.New("x")
	if !p.Offers("bash") {
		t.Error("without plugins not all tools are offered")
	}
	p.Plugins = profile.Texts{"read_*", "mcp__jira__get"}
	for tool, want := range map[string]bool{"read_file": true, "bash": false, "mcp__jira__get": true, "mcp__jira__set": false} {
		if p.Offers(tool) != want {
			t.Errorf("offers %s: %v", tool, !want)
		}
	}
	if missing := p.Missing([]string{"read_file"}); !slices.Equal(missing, []string{"mcp__jira__get"}) {
		t.Errorf("missing %q", missing)
	}
}

func TestPromptIsTheSameBytesEachTime(t *testing.T) {
	t.Parallel()
	const want = "Base.\n\nBe strict.\n\nYou are reviewer: reviews changes\n\nBackground:\n- Ten years of Go.\n- Has seen\n  it all.\n\n" +
		"Objectives:\n- Look at the newest commits.\n\nWhat you know:\n- Releases are on Mondays."
	for range 20 {
		if got := reviewer().Prompt(" Base.\n"); got != want {
			t.Fatalf("got %q", got)
		}
	}
	if got := profile.New("x").Prompt("Base."); got != "Base." {
		t.Errorf("an empty profile changes the prompt to %q", got)
	}
	p := reviewer()
	p.Objectives = profile.Texts{"/stop"}
	if strings.HasPrefix(p.Task(), "/") || !strings.Contains(p.Task(), "- /stop") {
		t.Errorf("the task is %q", p.Task())
	}
}

func TestHowOftenInWords(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]string{
		0: "never", -5: "never", 60: "every minute", 90: "every 90 seconds", 3600: "every hour", 7200: "every 2 hours", 5400: "every 90 minutes", 86400: "every day",
	} {
		if got := (profile.Profile{Interval: seconds}).Often(); got != want {
			t.Errorf("%d seconds are %q, want %q", seconds, got, want)
		}
	}
}

func TestNamesThatPeopleType(t *testing.T) {
	t.Parallel()
	a, b, c := profile.New("reviewer"), profile.New("reviewer"), profile.New("writer")
	b.Group, c.Group = "team", "team"
	all := []string{"reviewer", "team/reviewer", "team/writer"}
	for text, want := range map[string]string{
		"Reviewer": "reviewer", "team/reviewer": "team/reviewer", "writer": "team/writer", "default_group/reviewer": "reviewer",
		"writter": "!Did you mean", "x/reviewer": "!There is no profile x/reviewer", "a b": "!not a valid profile name", "": "!not a valid profile name", "a/b/c": "!not a valid profile name",
	} {
		r, err := profile.ParseRef(text)
		var p profile.Profile
		if err == nil {
			p, err = r.Choose([]profile.Profile{a, b, c}, all)
		}
		if wrong, ok := strings.CutPrefix(want, "!"); ok {
			if err == nil || !strings.Contains(fault.Public(err), wrong) {
				t.Errorf("%q: %v, want %q", text, err, wrong)
			}
		} else if err != nil || p.Title() != want {
			t.Errorf("%q: %q, %v", text, p.Title(), err)
		}
	}
	// The default group comes first, whatever the order is.
	for _, order := range [][]profile.Profile{{a, b}, {b, a}} {
		if p, err := (profile.Ref{Name: "reviewer"}).Choose(order, all); err != nil || p.Title() != "reviewer" {
			t.Errorf("of two groups: %q, %v", p.Title(), err)
		}
	}
	many := slices.Repeat([]string{"abc"}, 11)
	for _, tt := range []struct {
		all  []string
		want string
	}{
		{nil, "There is no profile zzzzzz. There are none yet; create one with `bot agent create`."},
		{many[:10], "There is no profile zzzzzz. There is: " + strings.Join(many[:10], ", ") + "."},
		{many, "There is no profile zzzzzz."},
		{[]string{"team/zzzzzy"}, "There is no profile zzzzzz. Did you mean zzzzzy?"},
	} {
		if _, err := (profile.Ref{Name: "zzzzzz"}).Choose(nil, tt.all); fault.Public(err) != tt.want {
			t.Errorf("%d profiles: %q, want %q", len(tt.all), fault.Public(err), tt.want)
		}
	}
	if err := profile.CheckGroup("team"); err != nil {
		t.Error(err)
	}
	if err := profile.CheckGroup("A team"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a group with a space: %v", err)
	}
	long := strings.Repeat("é", 51)
	if _, err := profile.ParseRef(long); !strings.Contains(fault.Public(err), `"`+long[:2*49]+`…"`) {
		t.Errorf("a long name: %v", err)
	}
	if _, err := profile.ParseRef(long[2:]); !strings.Contains(fault.Public(err), `"`+long[2:]+`"`) {
		t.Errorf("a name that is just short enough: %v", err)
	}
	d := c
	d.Group = "other"
	_, err := profile.Ref{Name: "writer"}.Choose([]profile.Profile{c, d}, all)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), "team/writer or other/writer") {
		t.Errorf("two of a name: %v", err)
	}
}

// FuzzParse: no text makes the reader panic or take for ever, and what it takes
// and finds sound is written and read again without a change.
func FuzzParse(f *testing.F) {
	text, err := profile.Format(reviewer(), profile.New("plain"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("name: x\n---\nname: y\nlore: one\n"))
	f.Add([]byte("name: &a x\nlore: *a\n"))
	f.Add([]byte("{name: x, memory: ~, rag: {}, mcp_servers: {a: {command: b}}}"))
	f.Add([]byte("? [a, b]\n: c\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := profile.Parse(text)
		if err != nil {
			if !fault.Is(err, fault.Invalid) || fault.Public(err) == "" {
				t.Errorf("error %v has no text for people", err)
			}
			return
		}
		for _, p := range list {
			if p.Check(profile.Rules{}) != nil {
				continue
			}
			written, err := profile.Format(p)
			if err != nil {
				t.Fatal(err)
			}
			again, err := profile.Parse(written)
			if err != nil || !cmp.Equal([]profile.Profile{p}, again, cmpopts.EquateEmpty()) {
				t.Fatalf("%v\n%s\n%s", err, written, cmp.Diff(p, again))
			}
			if second, _ := profile.Format(again...); !bytes.Equal(written, second) {
				t.Errorf("written twice: %q and %q", written, second)
			}
		}
	})
}
