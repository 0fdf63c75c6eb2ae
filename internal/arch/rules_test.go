package arch

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

const module = "remote-agent"

// allowed lists, for each package, the packages of this module that it may
// import; for the leaves see there. A package that matches no key may
// import nothing. "*" stands for one element of a path; the longest key that
// matches counts.
var allowed = map[string][]string{
	"cmd/bot":      {"internal/app", "internal/bench", "internal/chaos", "internal/commandline", "internal/config", "internal/fault", "internal/platform/console", "internal/platform/github", "internal/platform/slack", "internal/profiling", "internal/sandbox", "internal/setup/dialog", "internal/terminal", "internal/tour", "internal/transcript", "internal/web"},
	"internal/app": {"internal/*", "internal/*/*", "internal/*/*/*", "docs", "migrations"},

	// The vocabulary.
	"internal/fault":       {},
	"internal/messages":    {},
	"internal/messages/*":  {"internal/messages"}, // test helpers
	"internal/command":     {"internal/messages", "internal/plan", "internal/sessions"},
	"internal/sessions":    {"internal/messages"},
	"internal/plan":        {"internal/fault"},
	"internal/memory":      {"internal/fault"},
	"internal/memory/*":    {"internal/fault", "internal/memory"},
	"internal/apikey":      {"internal/fault"},
	"internal/audit":       {},
	"internal/mcpserver":   {"internal/fault"},
	"internal/profile":     {"internal/command", "internal/fault", "internal/mcpserver"},
	"internal/approval":    {"internal/assistant", "internal/fault"},
	"internal/spend":       {"internal/assistant", "internal/fault"},
	"internal/commit":      {"internal/messages", "internal/sessions", "internal/spend"},
	"internal/sandbox":     {"internal/fault"},
	"internal/tool":        {"internal/assistant", "internal/fault", "internal/messages"},
	"internal/tool/*":      {"internal/assistant", "internal/fault", "internal/messages", "internal/tool"},
	"internal/tool/fetch":  {"internal/assistant", "internal/egress", "internal/fault", "internal/messages", "internal/tool"},
	"internal/tool/mcp":    {"internal/assistant", "internal/fault", "internal/mcpserver", "internal/messages", "internal/sandbox", "internal/tool"},
	"internal/tool/memo":   {"internal/assistant", "internal/fault", "internal/messages", "internal/tool"},
	"internal/egress":      {"internal/fault"},
	"internal/resource":    {"internal/fault"},
	"internal/incident":    {},
	"internal/media":       {"internal/fault"},
	"internal/files":       {"internal/fault", "internal/media", "internal/messages", "internal/store"},
	"internal/transcribe":  {"internal/fault"},
	"internal/commandline": {},
	"internal/child":       {},
	"internal/terminal":    {"internal/fault"},
	"internal/doctor":      {"internal/fault"},
	"internal/setup":       {"internal/doctor"},
	"internal/setup/*":     {"internal/doctor", "internal/fault", "internal/html", "internal/setup"},
	"internal/localsocket": {"internal/fault"},
	"internal/codebase":    {"internal/codebase/*", "internal/fault"},
	"internal/codebase/*":  {"internal/codebase/*", "internal/egress", "internal/fault"},

	// The ports and what implements them.
	"internal/option":              {},
	"internal/platform":            {"internal/doctor", "internal/failpoint", "internal/fault", "internal/messages", "internal/option", "internal/setup"},
	"internal/platform/*":          {"internal/doctor", "internal/fault", "internal/messages", "internal/option", "internal/platform", "internal/platform/exchange", "internal/setup", "internal/failpoint"},
	"internal/platform/console":    {"internal/fault", "internal/localsocket", "internal/messages", "internal/platform", "internal/redact", "internal/terminal"},
	"internal/platform/exchange":   {"internal/fault", "internal/platform"},
	"internal/assistant":           {"internal/fault", "internal/messages", "internal/option", "internal/setup"},
	"internal/assistant/*":         {"internal/fault", "internal/messages", "internal/option", "internal/setup", "internal/assistant", "internal/assistant/modelhttp"}, // model APIs
	"internal/assistant/acp":       {"internal/fault", "internal/messages", "internal/assistant"},
	"internal/assistant/acp/*":     {"internal/assistant/acp"}, // test helpers
	"internal/assistant/demo":      {"internal/fault", "internal/messages", "internal/assistant"},
	"internal/assistant/loop":      {"internal/fault", "internal/messages", "internal/assistant"},
	"internal/assistant/modelhttp": {"internal/fault", "internal/messages"},
	"internal/queue":               {"internal/fault"},
	"internal/store": {
		"internal/apikey", "internal/approval", "internal/audit", "internal/command", "internal/commit", "internal/fault", "internal/memory", "internal/messages", "internal/plan", "internal/profile", "internal/queue", "internal/sessions", "internal/signin", "internal/spend", "migrations",
	},
	"internal/store/cluster":   {},
	"internal/store/storetest": {"internal/store", "internal/store/cluster", "internal/waittest", "internal/commit", "internal/sessions"},
	"migrations":               {},

	// The engine: a message walks from the inbox through its turn to the outbox.
	"internal/orchestrator": {
		"internal/orchestrator/access", "internal/orchestrator/background", "internal/orchestrator/control", "internal/orchestrator/inbox", "internal/orchestrator/outbox",
		"internal/orchestrator/port", "internal/orchestrator/turn",
		"internal/approval", "internal/assistant", "internal/command", "internal/fault", "internal/messages",
		"internal/platform", "internal/profile", "internal/queue", "internal/sessions", "internal/spend",
	},
	"internal/orchestrator/inbox": {
		"internal/orchestrator/access", "internal/orchestrator/background", "internal/orchestrator/control", "internal/orchestrator/outbox", "internal/orchestrator/port",
		"internal/orchestrator/turn",
		"internal/assistant", "internal/command", "internal/fault", "internal/messages", "internal/platform", "internal/profile", "internal/queue", "internal/sessions",
	},
	"internal/orchestrator/turn": {
		"internal/orchestrator/access", "internal/orchestrator/background", "internal/orchestrator/outbox", "internal/orchestrator/port",
		"internal/approval", "internal/assistant", "internal/command", "internal/commit", "internal/failpoint", "internal/fault", "internal/messages",
		"internal/plan", "internal/platform", "internal/profile", "internal/queue", "internal/sessions", "internal/spend", "internal/tool",
	},
	"internal/orchestrator/control": {
		"internal/orchestrator/access", "internal/orchestrator/background", "internal/orchestrator/outbox", "internal/orchestrator/port",
		"internal/command", "internal/fault", "internal/messages", "internal/platform", "internal/queue", "internal/sessions",
	},
	"internal/orchestrator/outbox": {
		"internal/orchestrator/background", "internal/orchestrator/port",
		"internal/command", "internal/failpoint", "internal/fault", "internal/messages", "internal/platform", "internal/sessions",
	},
	"internal/orchestrator/access": {
		"internal/orchestrator/port", "internal/command", "internal/fault", "internal/messages", "internal/platform", "internal/sessions",
	},
	"internal/orchestrator/background": {"internal/fault"},
	"internal/orchestrator/port": {
		"internal/approval", "internal/command", "internal/commit", "internal/plan", "internal/profile", "internal/queue", "internal/sessions", "internal/spend",
	},
	"internal/orchestrator/orchestratortest": {
		"internal/*", "internal/*/*",
	},

	"internal/work": {
		"internal/codebase", "internal/codebase/*", "internal/command", "internal/fault", "internal/messages", "internal/orchestrator", "internal/sessions", "internal/store",
	},

	"internal/recollect": {
		"internal/command", "internal/fault", "internal/memory", "internal/messages", "internal/orchestrator", "internal/sessions", "internal/tool", "internal/tool/memo",
	},

	"internal/people": {
		"internal/command", "internal/fault", "internal/messages", "internal/orchestrator", "internal/sessions", "internal/store",
	},

	"internal/chat": {
		"internal/approval", "internal/assistant", "internal/codebase", "internal/codebase/commandfile", "internal/codebase/confine", "internal/command", "internal/doctor", "internal/failpoint",
		"internal/fault", "internal/memory", "internal/messages", "internal/orchestrator", "internal/people", "internal/plan", "internal/platform", "internal/profile",
		"internal/recollect", "internal/sessions", "internal/signin", "internal/spend", "internal/store", "internal/transcript", "internal/work",
	},

	"internal/learn": {
		"internal/assistant", "internal/command", "internal/fault", "internal/memory", "internal/messages", "internal/sessions", "internal/spend",
	},

	"internal/config":    {"internal/option"},
	"internal/profiling": {"internal/fault"},

	// Care of the data.
	"internal/importer":   {"internal/codebase/remote", "internal/fault", "internal/messages", "internal/sessions", "internal/store"},
	"internal/export":     {"internal/fault", "internal/sessions", "internal/spend", "internal/store"},
	"internal/transcript": {"internal/fault", "internal/messages", "internal/sessions", "internal/store"},
	"internal/backup":     {"internal/audit", "internal/codebase", "internal/fault", "internal/sessions", "internal/store", "internal/tool/projectdb"},

	"internal/web":           {"internal/fault"},
	"internal/api":           {"internal/apikey", "internal/fault", "internal/memory", "internal/messages", "internal/profile", "internal/ratelimit", "internal/sessions", "internal/spend", "internal/store"},
	"internal/ratelimit":     {},
	"internal/signin":        {"internal/messages"},
	"internal/signin/issuer": {"internal/fault"},
	"internal/html":          {"internal/markup"},
	"internal/pages": {
		"docs", "internal/approval", "internal/audit", "internal/backup", "internal/command", "internal/doctor", "internal/export", "internal/fault", "internal/html", "internal/mcpserver", "internal/memory", "internal/messages", "internal/plan", "internal/profile", "internal/ratelimit", "internal/sessions", "internal/setup", "internal/signin", "internal/signin/issuer", "internal/spend", "internal/store", "internal/wording",
	},
	"docs": {},

	// Stand-ins for services know nothing of the program that they test.
	"internal/emulator":             {},
	"internal/emulator/*":           {"internal/emulator", "internal/emulator/modelapi", "internal/emulator/platformapi"},
	"internal/emulator/forged":      {"internal/emulator/github", "internal/emulator/slack"},
	"internal/emulator/modelapi":    {"internal/emulator"},
	"internal/emulator/platformapi": {"internal/emulator"},

	// They run the whole program against the stand-ins.
	"internal/bench":        {"internal/emulator", "internal/emulator/*"},
	"internal/chaos":        {"internal/chaos/ledger", "internal/child", "internal/emulator", "internal/emulator/*", "internal/store/cluster"},
	"internal/chaos/ledger": {},
	"internal/tour":         {"internal/child", "internal/emulator", "internal/emulator/*"},

	"internal/arch":        {},
	"internal/waittest":    {},
	"internal/heavytest":   {},
	"internal/journey":     {"internal/*", "internal/*/*"},
	"internal/conformance": {"internal/*", "internal/*/*"},
}

// leaves are packages that import nothing of this module, with those that may
// import them besides what allowed says.
var leaves = map[string][]string{
	"internal/wording":   {"internal/app", "internal/chat", "internal/people", "internal/recollect", "internal/orchestrator", "internal/orchestrator/*", "internal/sessions", "internal/work"},
	"internal/resident":  {"cmd/bot"},
	"internal/live":      {"internal/app", "internal/pages", "internal/store"},
	"internal/overflow":  {"internal/assistant/*"},
	"internal/pattern":   {"internal/*", "internal/*/*"},
	"internal/order":     {"internal/*", "internal/*/*"},
	"internal/lists":     {"internal/*", "internal/*/*"},
	"internal/letters":   {"internal/memory", "internal/store"},
	"internal/markup":    {"internal/html", "internal/terminal", "internal/platform/*"},
	"internal/failpoint": {}, // only where a key of allowed names it
	"internal/metrics":   {"cmd/bot", "internal/app", "internal/orchestrator", "internal/orchestrator/*", "internal/platform/*", "internal/assistant/*", "internal/store", "internal/queue"},
	"internal/redact":    {"cmd/bot", "internal/app", "internal/export", "internal/transcript", "internal/chat", "internal/orchestrator", "internal/platform/*", "internal/assistant/*", "internal/store", "internal/web"},
}

// external lists who may import what from outside. A module that is not here may
// not be imported at all: adding a dependency is a decision, and this table is
// where it shows. The longest prefix counts.
var external = map[string][]string{
	// SDKs.
	"github.com/go-telegram/bot":             {"internal/platform/telegram"},
	"github.com/sashabaranov/go-openai":      {"internal/assistant/openai", "internal/memory/embed", "internal/transcribe"},
	"github.com/slack-go/slack":              {"internal/platform/slack"},
	"github.com/google/go-github/v62":        {"internal/platform/github"},
	"github.com/coder/acp-go-sdk":            {"internal/assistant/acp"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/tool/mcp"},
	"github.com/gorilla/websocket":           {"internal/platform/slack", "internal/emulator/slack"},

	// Databases.
	"database/sql":                     {"internal/store", "internal/store/*", "internal/tool/projectdb"},
	"github.com/jackc/pgx/v5":          {"internal/store", "internal/store/*", "internal/queue"},
	"modernc.org/sqlite":               {"internal/store", "internal/store/*", "internal/tool/projectdb"},
	"github.com/pressly/goose/v3":      {"internal/store", "migrations"},
	"github.com/klauspost/compress/s2": {"internal/store", "migrations", "docs"},
	"github.com/riverqueue/river":      {"internal/queue"},

	// Everything else.
	"github.com/muesli/mango-cobra":      {"cmd/bot"},
	"github.com/muesli/roff":             {"cmd/bot"},
	"github.com/spf13/cobra":             {"cmd/bot", "internal/commandline"},
	"github.com/spf13/pflag":             {"internal/commandline"},
	"github.com/lmittmann/tint":          {"cmd/bot"},
	"golang.org/x/term":                  {"cmd/bot", "internal/terminal"},
	"golang.org/x/text":                  {"internal/terminal", "internal/store", "internal/letters", "internal/memory"},
	"github.com/joho/godotenv":           {"internal/config"},
	"github.com/VictoriaMetrics/metrics": {"internal/metrics"},
	"github.com/yuin/goldmark":           {"internal/html", "internal/platform/*", "internal/terminal"},
	"github.com/coreos/go-oidc/v3":       {"internal/signin/*"},
	"golang.org/x/oauth2":                {"internal/signin/issuer"},
	"github.com/microcosm-cc/bluemonday": {"internal/html"},
	"go.yaml.in/yaml/v3":                 {"internal/profile", "internal/platform/slack"},
	"github.com/google/uuid":             {"internal/*", "internal/*/*"},
	"github.com/cenkalti/backoff/v5":     {"internal/*", "internal/*/*"},
	"golang.org/x/image":                 {"internal/media"},
	"golang.org/x/sync":                  {"internal/*", "internal/*/*"},
	"golang.org/x/time":                  {"internal/*", "internal/*/*"},
	"golang.org/x/sys":                   {"internal/chaos", "internal/codebase/gitcmd", "internal/localsocket", "internal/terminal", "internal/store", "internal/app", "internal/sandbox", "internal/resource"},

	// Tests and the packages for them.
	"testing":                         {},
	"github.com/google/jsonschema-go": {},
	"github.com/google/go-cmp":        {},
	"go.uber.org/goleak":              {},
	"pgregory.net/rapid":              {},
	"net/http/httptest":               {"internal/emulator", "internal/emulator/*"},
	"testing/synctest":                {},
	"github.com/google/go-cmp/*":      {},
}

// environmentReaders may read the process environment. Everybody else gets a
// Config.
var environmentReaders = []string{"cmd/bot"}

// armsFailpoint is called by no package at all, not even by those for tests, which
// the program could come to import: only by files that end in _test.go.
const armsFailpoint = "failpoint.Arm"

// pkg is what the rules look at, without tests. Paths of this module have no
// module prefix.
type pkg struct {
	Path    string
	Imports []string
	Calls   []call // of functions that read the environment, or arm a failpoint
}

// call is a place in the source.
type call struct{ Function, Position string }

// violations returns what breaks the rules, in order.
func violations(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		for _, imported := range p.Imports {
			if why := judge(p.Path, imported); why != "" {
				out = append(out, fmt.Sprintf("%s imports %s: %s", p.Path, imported, why))
			}
		}
		for _, c := range p.Calls {
			if c.Function == armsFailpoint {
				out = append(out, fmt.Sprintf("%s calls %s at %s: only tests may, so that no released binary can be told to die", p.Path, c.Function, c.Position))
				continue
			}
			if !forTests(p.Path) && !slices.Contains(environmentReaders, p.Path) {
				out = append(out, fmt.Sprintf("%s calls %s at %s: options come through config.Config", p.Path, c.Function, c.Position))
			}
		}
	}
	slices.Sort(out)
	return out
}

// judge returns why importer may not import imported, or nothing.
func judge(importer, imported string) string {
	if own, ok := strings.CutPrefix(imported, module+"/"); ok {
		return judgeOwn(importer, own)
	}
	rule, listed := longest(external, func(prefix string) bool {
		return imported == prefix || strings.HasPrefix(imported, prefix+"/")
	})
	switch {
	case !listed && isStandard(imported):
		return ""
	case !listed:
		return "a new dependency; add it to the table in internal/arch if it is meant"
	case matchesAny(rule, importer), forTests(importer) && !isDriver(imported):
		return ""
	case len(rule) == 0:
		return "only tests may"
	}
	return "only " + strings.Join(rule, ", ") + " may"
}

func judgeOwn(importer, own string) string {
	if forTests(own) && !forTests(importer) {
		return "it is for tests"
	}
	if importers, ok := leaves[own]; ok && matchesAny(importers, importer) {
		return ""
	}
	rule, known := longest(allowed, func(pattern string) bool { return match(pattern, importer) })
	switch {
	case !known:
		return "the package is not in the table of internal/arch"
	case matchesAny(rule, own):
		return ""
	}
	return "the arrow is not in the table of internal/arch"
}

// forTests reports whether a package exists for tests: it may use testing and
// its helpers, and no other package may use it.
func forTests(p string) bool {
	return strings.HasSuffix(path.Base(p), "test") || p == "internal/journey" || p == "internal/arch"
}

func isDriver(imported string) bool {
	return strings.HasPrefix(imported, "github.com/jackc/") || strings.HasPrefix(imported, "modernc.org/") || imported == "database/sql"
}

// isStandard reports whether a path is of the standard library: its first
// element has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func match(pattern, p string) bool {
	ok, err := path.Match(pattern, p)
	return ok && err == nil
}

func matchesAny(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return match(pattern, p) })
}

// longest returns the value of the longest key that fits; a key without "*" goes
// before one with it.
func longest(table map[string][]string, fits func(key string) bool) (value []string, ok bool) {
	best := ""
	for key := range table {
		if fits(key) && (best == "" || specific(key, best) > 0) {
			best = key
		}
	}
	if best == "" {
		return nil, false
	}
	return table[best], true
}

func specific(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(b, "*"), strings.Count(a, "*")), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
