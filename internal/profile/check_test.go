package profile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/profile"
)

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
