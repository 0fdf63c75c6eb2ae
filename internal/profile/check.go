package profile

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
)

// The limits of a profile. Sizes are in bytes.
const (
	MinInterval   = 60              // seconds
	MaxInterval   = 366 * 24 * 3600 // seconds
	MaxIterations = 1000            // requests
	MaxText       = 16 << 10        // of one text
	MaxPrompt     = 64 << 10        // of all texts together: they are sent with each request
	MaxItems      = 200             // of a list
	MaxAvatar     = 256 << 10       // of the picture
	MaxRecalled   = 50              // memory.memory_size
	MaxWindow     = 10_000          // memory.short_term_memory_size
	maxModel      = 100             // of the name of a model
	mcpPrefix     = "mcp__"         // begins the names of MCP tools
	avatarTypes   = "png, jpeg, gif or webp"
	tiers         = "fast smart cheap"
	modes         = "interactive ask edit"
)

// Rules is what a profile is held against besides its own limits.
type Rules struct {
	// Tools are the names of all tools that the program has of its own; nil: names
	// are not compared.
	Tools []string

	// Servers are the MCP servers of the service, whose tools may be named.
	Servers []string

	// Self is the path of the running program; it may not be an MCP server of its
	// own.
	Self string
}

// Prepare returns the profile with what was left out set to its default.
func (p Profile) Prepare() Profile {
	p.Group = cmp.Or(p.Group, DefaultGroup)
	p.Mode = cmp.Or(p.Mode, Interactive)
	p.MaxIterations = cmp.Or(p.MaxIterations, DefaultMaxIterations)
	return p
}

// Check says all that is wrong with a prepared profile, a line each, in a
// fault.Invalid. It changes nothing.
func (p Profile) Check(r Rules) error {
	var problems []string
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if !name.MatchString(p.Name) {
		say("name: %q is not valid; use up to 63 lowercase letters, digits, dots, dashes and underscores.", short(p.Name))
	}
	if p.Name == Default {
		say("name: %q is reserved and means no profile; choose another name.", Default)
	}
	if !name.MatchString(p.Group) {
		say("group: %q is not valid; use up to 63 lowercase letters, digits, dots, dashes and underscores.", short(p.Group))
	}
	p.checkTexts(say)
	p.checkNumbers(say)
	p.checkModel(say)
	p.checkPlugins(r, say)
	p.checkServers(r, say)
	p.checkAvatar(say)
	if len(problems) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, strings.Join(problems, "\n"))
}

func (p Profile) checkTexts(say func(string, ...any)) {
	all := 0
	text := func(field, s string) {
		all += len(s)
		switch {
		case len(s) > MaxText:
			say("%s: %d bytes are too many; the limit is %d.", field, len(s), MaxText)
		case !utf8.ValidString(s):
			say("%s: not UTF-8; save the file as UTF-8.", field)
		case strings.ContainsRune(s, 0):
			say("%s: contains a zero byte; remove it.", field)
		}
	}
	text("description", p.Description)
	text("system_prompt", p.SystemPrompt)
	for _, list := range []struct {
		field string
		items Texts
	}{{"lore", p.Lore}, {"objectives", p.Objectives}, {"knowledge", p.Knowledge}} {
		if len(list.items) > MaxItems {
			say("%s: %d entries are too many; the limit is %d.", list.field, len(list.items), MaxItems)
			continue
		}
		for i, item := range list.items {
			text(fmt.Sprintf("%s, entry %d", list.field, i+1), item)
			if strings.TrimSpace(item) == "" {
				say("%s, entry %d: empty; remove it.", list.field, i+1)
			}
		}
	}
	if all > MaxPrompt {
		say("all texts together have %d bytes; the limit is %d, because they are sent with every request.", all, MaxPrompt)
	}
}

func (p Profile) checkNumbers(say func(string, ...any)) {
	switch {
	case p.Interval < 0:
		say("interval: %d seconds is negative; use 0 for no standing task, or at least %d.", p.Interval, MinInterval)
	case p.Interval > 0 && p.Interval < MinInterval:
		say("interval: %d seconds is too short; use at least %d, or 0 for no standing task.", p.Interval, MinInterval)
	case p.Interval > MaxInterval:
		say("interval: %d seconds is too long; use at most %d (one year).", p.Interval, MaxInterval)
	case p.Interval > 0 && len(p.Objectives) == 0:
		say("interval: nothing to do every %d seconds; put the standing task in objectives.", p.Interval)
	}
	if p.MaxIterations < 1 || p.MaxIterations > MaxIterations {
		say("max_iterations: %d is not valid; use 1 to %d.", p.MaxIterations, MaxIterations)
	}
	if p.Memory.ShortTerm < 0 || p.Memory.ShortTerm > MaxWindow {
		say("memory.short_term_memory_size: %d is not valid; use 0 (as many messages as fit) to %d.", p.Memory.ShortTerm, MaxWindow)
	}
	if p.Memory.Size < 0 || p.Memory.Size > MaxRecalled {
		say("memory.memory_size: %d is not valid; use 0 (the default) to %d.", p.Memory.Size, MaxRecalled)
	}
}

func (p Profile) checkModel(say func(string, ...any)) {
	oneOf(say, "mode", string(p.Mode), modes)
	if p.ModelTier != "" {
		oneOf(say, "model_tier", p.ModelTier, tiers)
	}
	if p.ModelTier != "" && p.Model != "" {
		say("model: model_tier is set too; keep only one.")
	}
	for _, model := range []struct{ field, value string }{{"model", p.Model}, {"rag.embedding_model", p.RAG.EmbeddingModel}} {
		if len(model.value) > maxModel || strings.ContainsFunc(model.value, func(c rune) bool { return c <= ' ' || c > '~' }) {
			say("%s: %q is not a model name.", model.field, short(model.value))
		}
	}
}

func oneOf(say func(string, ...any), field, value, list string) {
	all := strings.Fields(list)
	if slices.Contains(all, value) {
		return
	}
	if near, ok := command.Nearest(strings.ToLower(value), all); ok {
		say("%s: unknown value %q; did you mean %s?", field, short(value), near)
		return
	}
	say("%s: unknown value %q; use %s.", field, short(value), strings.Join(all, ", "))
}

func (p Profile) checkPlugins(r Rules, say func(string, ...any)) {
	if len(p.Plugins) > MaxItems {
		say("plugins: %d entries are too many; the limit is %d.", len(p.Plugins), MaxItems)
		return
	}
	for i, plugin := range p.Plugins {
		_, err := path.Match(plugin, "")
		switch {
		case plugin == "" || len(plugin) > 100 || err != nil || strings.ContainsFunc(plugin, func(c rune) bool { return c <= ' ' || c > '~' }):
			say("plugins: %q is not a tool name.", short(plugin))
		case slices.Contains(p.Plugins[:i], plugin):
			say("plugins: %s is listed twice.", plugin)
		case r.Tools != nil && !p.mayExist(plugin, r):
			names := slices.Clone(r.Tools)
			for _, server := range slices.Concat(r.Servers, slices.Sorted(maps.Keys(p.MCPServers))) {
				names = append(names, mcpPrefix+server+"__*")
			}
			if near, ok := command.Nearest(plugin, names); ok {
				say("plugins: there is no tool %q; did you mean %s?", plugin, near)
				continue
			}
			say("plugins: there is no tool %q. Available: %s.", plugin, strings.Join(names, ", "))
		}
	}
}

// mayExist reports whether a plugin can name a tool: one of the program's own, or
// one of an MCP server, whose tools are only known when it runs.
func (p Profile) mayExist(plugin string, r Rules) bool {
	for _, tool := range r.Tools {
		if ok, _ := path.Match(plugin, tool); ok { // patterns were checked
			return true
		}
	}
	rest, ok := strings.CutPrefix(plugin, mcpPrefix)
	if !ok {
		return false
	}
	server, _, _ := strings.Cut(rest, "__")
	for _, known := range slices.Concat(r.Servers, slices.Sorted(maps.Keys(p.MCPServers))) {
		if ok, _ := path.Match(server, known); ok {
			return true
		}
	}
	return false
}

func (p Profile) checkServers(r Rules, say func(string, ...any)) {
	if len(p.MCPServers) > mcpserver.MaxServers {
		say("mcp_servers: %d are too many; the limit is %d.", len(p.MCPServers), mcpserver.MaxServers)
		return
	}
	for _, server := range slices.Sorted(maps.Keys(p.MCPServers)) {
		if err := p.MCPServers[server].Check(server, r.Self); err != nil {
			say("mcp_servers: %s", fault.Public(err))
		}
		if slices.Contains(r.Servers, server) {
			say("mcp_servers: MCP_CONFIG already has a server %q, and the tools would have the same names; choose another name.", server)
		}
	}
}

func (p Profile) checkAvatar(say func(string, ...any)) {
	switch kind := http.DetectContentType(p.AvatarImage); {
	case len(p.AvatarImage) == 0 && p.AvatarType == "":
	case len(p.AvatarImage) == 0:
		say("avatar_mime_type: there is no avatar_image; remove this, or add the image in base64.")
	case len(p.AvatarImage) > MaxAvatar:
		say("avatar_image: %d bytes are too many; the limit is %d.", len(p.AvatarImage), MaxAvatar)
	case !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, p.AvatarType):
		say("avatar_mime_type: %q is not valid; use %s, such as image/png.", short(p.AvatarType), avatarTypes)
	case kind != p.AvatarType:
		say("avatar_mime_type: it is %s, but the image is %s.", p.AvatarType, kind)
	}
}

// Offers reports whether a tool is among those that the profile is offered.
func (p Profile) Offers(tool string) bool {
	return len(p.Plugins) == 0 || slices.ContainsFunc(p.Plugins, func(plugin string) bool {
		ok, _ := path.Match(plugin, tool)
		return ok
	})
}

// Missing returns the plugins that name none of the tools, in order.
func (p Profile) Missing(tools []string) []string {
	var missing []string
	for _, plugin := range p.Plugins {
		if !slices.ContainsFunc(tools, func(tool string) bool { ok, _ := path.Match(plugin, tool); return ok }) {
			missing = append(missing, plugin)
		}
	}
	return missing
}
