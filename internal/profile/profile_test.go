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

func TestAllThatIsWrongIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	rules := profile.Rules{Tools: []string{"read_file", "write_file", "bash"}, Servers: []string{"github"}, Self: "/usr/bin/bot"}
	server := func(s mcpserver.Server) map[string]mcpserver.Server { return map[string]mcpserver.Server{"jira": s} }
	for name, tt := range map[string]struct {
		change func(p *profile.Profile)
		want   string
	}{
		"Name":           {func(p *profile.Profile) { p.Name = "Code Reviewer" }, "name: "},
		"NameOfDefault":  {func(p *profile.Profile) { p.Name = "default" }, "means no profile"},
		"Group":          {func(p *profile.Profile) { p.Group = "../x" }, "group: "},
		"Negative":       {func(p *profile.Profile) { p.Interval = -5 }, "is negative"},
		"TooShort":       {func(p *profile.Profile) { p.Interval = 59 }, "too short; use at least 60"},
		"TooLong":        {func(p *profile.Profile) { p.Interval = 1 << 40 }, "too long"},
		"NoTask":         {func(p *profile.Profile) { p.Interval, p.Objectives = 60, nil }, "nothing to do"},
		"NearTool":       {func(p *profile.Profile) { p.Plugins = profile.Texts{"raed_file"} }, `no tool "raed_file"; did you mean read_file?`},
		"NoTool":         {func(p *profile.Profile) { p.Plugins = profile.Texts{"teleportation"} }, "Available: read_file, write_file, bash"},
		"ToolTwice":      {func(p *profile.Profile) { p.Plugins = profile.Texts{"bash", "bash"} }, "twice"},
		"ForeignServer":  {func(p *profile.Profile) { p.Plugins = profile.Texts{"mcp__gitlab__*"} }, "did you mean mcp__github__*?"},
		"BadPattern":     {func(p *profile.Profile) { p.Plugins = profile.Texts{"read_[file"} }, "not a tool name"},
		"ManyTools":      {func(p *profile.Profile) { p.Plugins = slices.Repeat(profile.Texts{"bash"}, 201) }, "201 entries are too many"},
		"Mode":           {func(p *profile.Profile) { p.Mode = "interctive" }, "did you mean interactive?"},
		"ModeThatWidens": {func(p *profile.Profile) { p.Mode = "auto" }, `unknown value "auto"`},
		"Tier":           {func(p *profile.Profile) { p.ModelTier = "smrt" }, "did you mean smart?"},
		"TierAndModel":   {func(p *profile.Profile) { p.ModelTier, p.Model = "fast", "x" }, "keep only one"},
		"Model":          {func(p *profile.Profile) { p.ModelTier, p.Model = "", "two words" }, "not a model name"},
		"Iterations":     {func(p *profile.Profile) { p.MaxIterations = -1 }, "max_iterations"},
		"Window":         {func(p *profile.Profile) { p.Memory.ShortTerm = -1 }, "short_term_memory_size"},
		"Recall":         {func(p *profile.Profile) { p.Memory.Size = 51 }, "memory_size"},
		"LongText":       {func(p *profile.Profile) { p.SystemPrompt = strings.Repeat("x", profile.MaxText+1) }, "too many"},
		"LongPrompt": {func(p *profile.Profile) {
			p.Knowledge = slices.Repeat(profile.Texts{strings.Repeat("x", 10_000)}, 7)
		}, "all texts together"},
		"EmptyEntry":  {func(p *profile.Profile) { p.Lore = profile.Texts{" "} }, "lore, entry 1: empty"},
		"ZeroByte":    {func(p *profile.Profile) { p.Description = "a\x00b" }, "zero byte"},
		"NotUTF8":     {func(p *profile.Profile) { p.Description = "a\xff" }, "not UTF-8"},
		"AvatarKind":  {func(p *profile.Profile) { p.AvatarType = "image/jpeg" }, "the image is image/png"},
		"AvatarSVG":   {func(p *profile.Profile) { p.AvatarImage, p.AvatarType = profile.Image("<svg/>"), "image/svg+xml" }, "use png"},
		"AvatarSize":  {func(p *profile.Profile) { p.AvatarImage = append([]byte(pixel), make([]byte, profile.MaxAvatar)...) }, "too many"},
		"AvatarNone":  {func(p *profile.Profile) { p.AvatarImage = nil }, "no avatar_image"},
		"ServerName":  {func(p *profile.Profile) { p.MCPServers = map[string]mcpserver.Server{"A B": {Command: "x"}} }, "not valid"},
		"ServerEmpty": {func(p *profile.Profile) { p.MCPServers = server(mcpserver.Server{}) }, "either a command or a URL"},
		"ServerBoth": {func(p *profile.Profile) {
			p.MCPServers = server(mcpserver.Server{Command: "x", URL: "https://x.example"})
		}, "either a command or a URL"},
		"ServerHTTP": {func(p *profile.Profile) { p.MCPServers = server(mcpserver.Server{URL: "http://x.example/mcp"}) }, "https://"},
		"ServerUser": {func(p *profile.Profile) { p.MCPServers = server(mcpserver.Server{URL: "https://u:p@x.example/mcp"}) }, "without a user name"},
		"ServerPort": {func(p *profile.Profile) { p.MCPServers = server(mcpserver.Server{URL: "https://:443/mcp"}) }, "has no host"},
		"ServerFile": {func(p *profile.Profile) { p.MCPServers = server(mcpserver.Server{URL: "file:///etc/passwd"}) }, "not valid"},
		"ServerHeader": {func(p *profile.Profile) {
			p.MCPServers = server(mcpserver.Server{URL: "https://x.example", Headers: map[string]string{"A": "b\r\nC: d"}})
		}, "cannot be sent"},
		"ServerEnv": {func(p *profile.Profile) {
			p.MCPServers = server(mcpserver.Server{Command: "x", Env: map[string]string{"A=B": "c"}})
		}, "not a valid variable name"},
		"ServerSelf":       {func(p *profile.Profile) { p.MCPServers = server(mcpserver.Server{Command: "/usr/bin/bot"}) }, "this program again and again"},
		"ServerSelfByName": {func(p *profile.Profile) { p.MCPServers = server(mcpserver.Server{Command: "bot"}) }, "this program again and again"},
		"ServerZero": {func(p *profile.Profile) {
			p.MCPServers = server(mcpserver.Server{Command: "x", Args: []string{"a\x00b"}})
		}, "zero byte"},
		"ServerArgs": {func(p *profile.Profile) {
			p.MCPServers = server(mcpserver.Server{Command: "x", Args: make([]string, 101)})
		}, "101 entries"},
		"ServerFlag":  {func(p *profile.Profile) { p.MCPServers = server(mcpserver.Server{Command: "--help"}) }, "not a valid program name"},
		"ServerTaken": {func(p *profile.Profile) { p.MCPServers = map[string]mcpserver.Server{"github": {Command: "x"}} }, "MCP_CONFIG already has a server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := reviewer()
			tt.change(&p)
			err := p.Check(rules)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), tt.want) {
				t.Errorf("error %v; want %q", err, tt.want)
			}
		})
	}
	p := reviewer()
	p.Interval, p.Mode, p.MaxIterations = -1, "x", -1
	if lines := strings.Split(fault.Public(p.Check(rules)), "\n"); len(lines) != 3 {
		t.Errorf("three mistakes are told in %q", lines)
	}
}

// What is just at a limit is taken; the least more is not.
func TestLimits(t *testing.T) {
	t.Parallel()
	rules := profile.Rules{Tools: []string{"bash"}}
	servers := func(n int) map[string]mcpserver.Server {
		all := make(map[string]mcpserver.Server)
		for i := range n {
			all[fmt.Sprintf("s%d", i)] = mcpserver.Server{Command: "x"}
		}
		return all
	}
	patterns := func(n int) profile.Texts {
		all := make(profile.Texts, n)
		for i := range all {
			all[i] = "bash" + strings.Repeat("*", i)
		}
		return all
	}
	for name, tt := range map[string]struct {
		at, over func(p *profile.Profile)
		want     string
	}{
		"Interval":   {func(p *profile.Profile) { p.Interval = 60 }, func(p *profile.Profile) { p.Interval = 59 }, "too short"},
		"Year":       {func(p *profile.Profile) { p.Interval = profile.MaxInterval }, func(p *profile.Profile) { p.Interval = profile.MaxInterval + 1 }, "too long"},
		"NoInterval": {func(p *profile.Profile) { p.Interval, p.Objectives = 0, nil }, func(p *profile.Profile) { p.Interval = -1 }, "negative"},
		"Iterations": {func(p *profile.Profile) { p.MaxIterations = 1 }, func(p *profile.Profile) { p.MaxIterations = 0 }, "max_iterations"},
		"ManyIterations": {
			func(p *profile.Profile) { p.MaxIterations = profile.MaxIterations },
			func(p *profile.Profile) { p.MaxIterations = profile.MaxIterations + 1 }, "max_iterations",
		},
		"NoWindow": {func(p *profile.Profile) { p.Memory.ShortTerm = 0 }, func(p *profile.Profile) { p.Memory.ShortTerm = -1 }, "short_term"},
		"Window": {
			func(p *profile.Profile) { p.Memory.ShortTerm = profile.MaxWindow },
			func(p *profile.Profile) { p.Memory.ShortTerm = profile.MaxWindow + 1 }, "short_term",
		},
		"NoRecall": {func(p *profile.Profile) { p.Memory.Size = 0 }, func(p *profile.Profile) { p.Memory.Size = -1 }, "memory_size"},
		"Recall":   {func(p *profile.Profile) { p.Memory.Size = profile.MaxRecalled }, func(p *profile.Profile) { p.Memory.Size = profile.MaxRecalled + 1 }, "memory_size"},
		"Text": {
			func(p *profile.Profile) { p.SystemPrompt = strings.Repeat("x", profile.MaxText) },
			func(p *profile.Profile) { p.SystemPrompt = strings.Repeat("x", profile.MaxText+1) }, "system_prompt: 16385 bytes",
		},
		"Prompt": {
			func(p *profile.Profile) {
				p.Description, p.SystemPrompt, p.Objectives, p.Lore = "", "", profile.Texts{"x"}, nil
				p.Knowledge = append(slices.Repeat(profile.Texts{strings.Repeat("x", profile.MaxText)}, 3), strings.Repeat("x", profile.MaxText-1))
			},
			func(p *profile.Profile) {
				p.Description, p.SystemPrompt, p.Objectives, p.Lore = "", "", profile.Texts{"x"}, nil
				p.Knowledge = slices.Repeat(profile.Texts{strings.Repeat("x", profile.MaxText)}, 4)
			}, "all texts together have 65537",
		},
		"Entries": {
			func(p *profile.Profile) { p.Lore = slices.Repeat(profile.Texts{"x"}, profile.MaxItems) },
			func(p *profile.Profile) { p.Lore = slices.Repeat(profile.Texts{"x"}, profile.MaxItems+1) }, "lore: 201 entries",
		},
		"Plugins": {func(p *profile.Profile) { p.Plugins = patterns(97) }, func(p *profile.Profile) { p.Plugins = patterns(98) }, "not a tool name"},
		"Model": {
			func(p *profile.Profile) { p.ModelTier, p.Model = "", strings.Repeat("~", 100) },
			func(p *profile.Profile) { p.ModelTier, p.Model = "", strings.Repeat("~", 101) }, "not a model name",
		},
		"ModelInASCII": {func(p *profile.Profile) { p.ModelTier, p.Model = "", "!" }, func(p *profile.Profile) { p.ModelTier, p.Model = "", "é" }, "not a model name"},
		"EmbeddingModel": {
			func(p *profile.Profile) { p.RAG.EmbeddingModel = "e" },
			func(p *profile.Profile) { p.RAG.EmbeddingModel = "e e" }, "rag.embedding_model",
		},
		"PluginInASCII": {func(p *profile.Profile) { p.Plugins = profile.Texts{"bas?"} }, func(p *profile.Profile) { p.Plugins = profile.Texts{"bäsh"} }, "not a tool name"},
		"PluginEmpty":   {func(p *profile.Profile) { p.Plugins = nil }, func(p *profile.Profile) { p.Plugins = profile.Texts{""} }, "not a tool name"},
		"PluginSpace":   {func(p *profile.Profile) { p.Plugins = profile.Texts{"ba*"} }, func(p *profile.Profile) { p.Plugins = profile.Texts{"ba sh"} }, "not a tool name"},
		"Servers": {
			func(p *profile.Profile) { p.MCPServers = servers(mcpserver.MaxServers) },
			func(p *profile.Profile) { p.MCPServers = servers(mcpserver.MaxServers + 1) }, "mcp_servers",
		},
		"Avatar": {
			func(p *profile.Profile) {
				p.AvatarImage = append([]byte(pixel), make([]byte, profile.MaxAvatar-len(pixel))...)
			},
			func(p *profile.Profile) {
				p.AvatarImage = append([]byte(pixel), make([]byte, profile.MaxAvatar-len(pixel)+1)...)
			}, "avatar_image",
		},
		"NoAvatar": {func(p *profile.Profile) { p.AvatarImage, p.AvatarType = nil, "" }, func(p *profile.Profile) { p.AvatarType = "" }, "avatar_mime_type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, q := reviewer(), reviewer()
			p.Plugins, q.Plugins = nil, nil
			tt.at(&p)
			if err := p.Check(rules); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			tt.over(&q)
			if err := q.Check(rules); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), tt.want) {
				t.Errorf("over the limit: %v; want %q", err, tt.want)
			}
		})
	}
}

func TestWhatIsLeftOutHasADefault(t *testing.T) {
	t.Parallel()
	p := profile.Profile{Name: "plain"}.Prepare()
	if p.Group != profile.DefaultGroup || p.Mode != profile.Interactive || p.MaxIterations != profile.DefaultMaxIterations || p.Title() != "plain" {
		t.Errorf("it became %+v", p)
	}
	q := reviewer()
	q.Group, q.Mode, q.MaxIterations = "team", profile.Ask, 3
	if got := q.Prepare(); !got.Same(q) || got.Group != "team" || got.Mode != profile.Ask || got.MaxIterations != 3 {
		t.Errorf("what was set became %+v", got)
	}
	if got := (profile.Profile{Name: "x"}).Title(); got != "x" {
		t.Errorf("without a group it is called %q", got)
	}
	if q.Same(p) {
		t.Error("two profiles are the same")
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
