package arch

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImports checks the module as it is.
func TestImports(t *testing.T) {
	t.Parallel()
	pkgs := list(t)
	if len(pkgs) < 10 {
		t.Fatalf("only %d packages found", len(pkgs))
	}
	for _, v := range violations(pkgs) {
		t.Error(v)
	}
}

// TestCheckerFindsViolations gives the checker a made-up module with one
// violation of each kind, and arrows that are fine.
func TestCheckerFindsViolations(t *testing.T) {
	t.Parallel()
	own := func(p string) string { return module + "/" + p }
	fake := []pkg{
		{Path: "cmd/bot", Imports: []string{"os", own("internal/app"), own("internal/config"), own("internal/store")}, Calls: []call{{"os.Environ", "main.go:1"}}},
		{Path: "internal/app", Imports: []string{own("internal/store"), own("internal/platform/telegram"), own("migrations"), own("internal/store/storetest")}},
		{Path: "internal/fault", Imports: []string{"context", own("internal/messages")}},
		{Path: "internal/messages", Imports: []string{own("internal/redact")}},
		{Path: "internal/metrics", Imports: []string{"github.com/VictoriaMetrics/metrics", own("internal/fault")}},
		{Path: "internal/platform/telegram", Imports: []string{
			own("internal/platform"), own("internal/failpoint"), own("internal/metrics"), "github.com/go-telegram/bot/models",
			own("internal/platform/slack"), own("internal/store"), own("internal/orchestrator"), own("internal/sessions"),
		}, Calls: []call{{"os.Getenv", "poll.go:7"}}},
		{Path: "internal/platform/slack", Imports: []string{"github.com/go-telegram/bot", "github.com/jackc/pgx/v5/pgxpool", "testing"}},
		{Path: "internal/platform/platformtest", Imports: []string{"testing", "github.com/google/go-cmp/cmp", own("internal/platform")}},
		{Path: "internal/assistant/demo", Imports: []string{own("internal/assistant"), own("internal/assistant/openai")}},
		{Path: "internal/orchestrator", Imports: []string{own("internal/platform"), own("internal/platform/telegram"), own("internal/store"), "database/sql"}},
		{Path: "internal/emulator/telegram", Imports: []string{own("internal/emulator"), own("internal/messages"), "net/http/httptest"}},
		{Path: "internal/failpoint", Calls: []call{{"os.Getenv", "on.go:3"}}},
		{Path: "internal/platform/platformtest", Calls: []call{{"failpoint.Arm", "x.go:2"}}},
		{Path: "internal/store", Imports: []string{"github.com/jackc/pgx/v5", own("internal/emulator"), "example.com/new/thing"}},
		{Path: "internal/store/storetest", Imports: []string{"testing", own("internal/store")}, Calls: []call{{"os.Getenv", "x.go:1"}}},
		{Path: "internal/utility", Imports: []string{own("internal/fault")}},
	}
	const (
		arrow = ": the arrow is not in the table of internal/arch"
		m     = module + "/"
	)
	want := []string{
		"cmd/bot imports " + m + "internal/store" + arrow,
		"internal/app imports " + m + "internal/store/storetest: it is for tests",
		"internal/assistant/demo imports " + m + "internal/assistant/openai" + arrow,
		"internal/emulator/telegram imports " + m + "internal/messages" + arrow,
		"internal/failpoint calls os.Getenv at on.go:3: options come through config.Config",
		"internal/fault imports " + m + "internal/messages" + arrow,
		"internal/platform/platformtest calls failpoint.Arm at x.go:2: only tests may, so that no released binary can be told to die",
		"internal/messages imports " + m + "internal/redact" + arrow,
		"internal/metrics imports " + m + "internal/fault: the package is not in the table of internal/arch",
		"internal/orchestrator imports database/sql: only internal/store, internal/store/*, internal/tool/projectdb may",
		"internal/orchestrator imports " + m + "internal/platform/telegram" + arrow,
		"internal/orchestrator imports " + m + "internal/store" + arrow,
		"internal/platform/slack imports github.com/go-telegram/bot: only internal/platform/telegram may",
		"internal/platform/slack imports github.com/jackc/pgx/v5/pgxpool: only internal/store, internal/store/*, internal/queue may",
		"internal/platform/slack imports testing: only tests may",
		"internal/platform/telegram calls os.Getenv at poll.go:7: options come through config.Config",
		"internal/platform/telegram imports " + m + "internal/orchestrator" + arrow,
		"internal/platform/telegram imports " + m + "internal/platform/slack" + arrow,
		"internal/platform/telegram imports " + m + "internal/sessions" + arrow,
		"internal/platform/telegram imports " + m + "internal/store" + arrow,
		"internal/store imports example.com/new/thing: a new dependency; add it to the table in internal/arch if it is meant",
		"internal/store imports " + m + "internal/emulator" + arrow,
		"internal/utility imports " + m + "internal/fault: the package is not in the table of internal/arch",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, violations(fake)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// TestNoArrowIsUnused keeps the table as small as the program is. What may import
// everything, it may.
func TestNoArrowIsUnused(t *testing.T) {
	t.Parallel()
	used := map[string]map[string]bool{}
	for _, p := range list(t) {
		key := ""
		for pattern := range allowed {
			if match(pattern, p.Path) && (key == "" || specific(pattern, key) > 0) {
				key = pattern
			}
		}
		if used[key] == nil {
			used[key] = map[string]bool{}
		}
		for _, imported := range p.Imports {
			own, ok := strings.CutPrefix(imported, module+"/")
			if !ok {
				continue
			}
			for _, pattern := range allowed[key] {
				if match(pattern, own) {
					used[key][pattern] = true
				}
			}
		}
	}
	for key, patterns := range allowed {
		if slices.Contains(patterns, "internal/*") {
			continue
		}
		if used[key] == nil {
			t.Errorf("no package is %s, which the table has", key)
			continue
		}
		for _, pattern := range patterns {
			if !used[key][pattern] {
				t.Errorf("%s may import %s, and does not", key, pattern)
			}
		}
	}
}

func TestSourceScanFindsTheEnvironment(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.go")
	source := "package x\nimport (\"os\"; sys \"syscall\"; \"remote-agent/internal/failpoint\")\nvar a, _ = os.LookupEnv(\"A\")\nvar b = os.Args\nvar c, _ = sys.Getenv(\"C\")\nvar d = failpoint.Arm\nvar e = failpoint.Hit\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []call{{"os.LookupEnv", "x.go:3"}, {"syscall.Getenv", "x.go:5"}, {"failpoint.Arm", "x.go:6"}}
	if diff := cmp.Diff(want, watchedCalls(t, file)); diff != "" {
		t.Error(diff)
	}
}

// list returns the packages of the module.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,GoFiles,Imports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var pkgs []pkg
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir  string
			GoFiles, Imports []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		one := pkg{Path: strings.TrimPrefix(p.ImportPath, module+"/"), Imports: p.Imports}
		for _, name := range p.GoFiles {
			one.Calls = append(one.Calls, watchedCalls(t, filepath.Join(p.Dir, name))...)
		}
		pkgs = append(pkgs, one)
	}
}

// watchedCalls returns the places where a file uses a function of os or syscall that
// reads or changes the environment, or the one that arms a failpoint.
func watchedCalls(t *testing.T, file string) []call {
	t.Helper()
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{} // local name to path
	for _, spec := range tree.Imports {
		switch p := path.Base(strings.Trim(spec.Path.Value, `"`)); {
		case p != "os" && p != "syscall" && p != "failpoint":
		case spec.Name != nil:
			names[spec.Name.Name] = p
		default:
			names[p] = p
		}
	}
	functions := []string{"Getenv", "LookupEnv", "Environ", "Setenv", "Unsetenv", "Clearenv", "ExpandEnv", "Arm"}
	var out []call
	ast.Inspect(tree, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(functions, selector.Sel.Name) {
			return true
		}
		if name, ok := selector.X.(*ast.Ident); ok && names[name.Name] != "" {
			position := set.Position(selector.Pos())
			position.Filename = filepath.Base(file)
			position.Column = 0
			out = append(out, call{names[name.Name] + "." + selector.Sel.Name, position.String()})
		}
		return true
	})
	return out
}
