package commandfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/codebase/commandfile"
	"remote-agent/internal/fault"
)

func folder(tb testing.TB, files map[string]string) (*os.Root, string) {
	tb.Helper()
	dir := tb.TempDir()
	for path, text := range files {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { root.Close() })
	return root, dir
}

func TestLoad(t *testing.T) {
	t.Parallel()
	root, dir := folder(t, map[string]string{
		".claude/commands/review.md":              "---\ndescription: Reviews a change\nargument-hint: [pr]\n---\nReview $1\n",
		".claude/commands/git/Fix-It.md":          "Fix $ARGUMENTS",
		".agents/commands/fix_it.MD":              "other",
		".agents/commands/plan.md":                "---\nproduces: plan\nmodel: gpt-5\n---\nPlan",
		".agents/commands/notes.txt":              "no",
		".agents/commands/bad.md":                 "---\nproduces: cake\n---\nx",
		".agents/commands/has space.md":           "x",
		".agents/commands/empty.md":               "---\ndescription: x\n---\n \n",
		".agents/commands/binary.md":              "x\x00y",
		".agents/commands/latin.md":               "\xe9t\xe9",
		".agents/commands/.git/x.md":              "x",
		".agents/commands/d/d/d/d/d/d/d/d/d/x.md": "x",
		"elsewhere/x.md":                          "x",
	})
	if err := os.WriteFile(filepath.Join(dir, ".agents/commands/huge.md"), make([]byte, 2<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, ".agents/commands/link.md")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, ".agents/commands/pipe.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, problems := commandfile.Load(root, append(commandfile.DefaultFolders(), ".agents/commands", "none")...)
	unusable := func(name, why string) commandfile.File {
		p := ".agents/commands/" + name + ".md"
		return commandfile.File{Name: name, Path: p, Problem: strings.ReplaceAll(why, "IT", p)}
	}
	want := []commandfile.File{
		unusable("bad", "The front matter of IT cannot be read: line 2: produces must be “plan” or “none”, not “cake”."),
		unusable("binary", "IT is not a text file in UTF-8."),
		unusable("empty", "IT has no text."),
		{Name: "fix_it", Path: ".agents/commands/fix_it.MD", Conflict: true},
		{Name: "Fix-It", Path: ".claude/commands/git/Fix-It.md", Conflict: true},
		unusable("huge", "IT is larger than 256 KiB."),
		unusable("latin", "IT is not a text file in UTF-8."),
		unusable("pipe", "IT is a pipe, not a file."),
		{Name: "plan", Path: ".agents/commands/plan.md", Meta: commandfile.Meta{Produces: "plan", Model: "gpt-5"}},
		{Name: "review", Path: ".claude/commands/review.md", Meta: commandfile.Meta{Description: "Reviews a change", ArgumentHint: "[pr]"}},
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	all := strings.Join(problems, "\n")
	for _, part := range []string{"bad.md", "has space.md", "empty.md has no text", "binary.md", "latin.md", "huge.md is larger", "link.md is a link", "pipe.md is a pipe", "nested too deeply"} {
		if !strings.Contains(all, part) {
			t.Errorf("no problem says %q:\n%s", part, all)
		}
	}
	usable, problems := commandfile.LoadFolder(root, ".agents/commands")
	if len(usable) != 2 || len(problems) == 0 {
		t.Errorf("LoadFolder = %v, %v", usable, problems)
	}
	if files, problems := commandfile.LoadFolder(root, "../x"); len(files) != 0 || len(problems) != 1 {
		t.Errorf("LoadFolder outside = %v, %v", files, problems)
	}
	if _, problems := commandfile.LoadFolder(root, "none"); len(problems) != 1 {
		t.Errorf("LoadFolder of nothing = %v", problems)
	}
}

func TestLoadIsBounded(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 2100 {
		many[fmt.Sprintf("c/f%d.md", i)] = "x"
	}
	root, _ := folder(t, many)
	files, problems := commandfile.Load(root, "c")
	if len(files) != 2000 || len(problems) != 1 {
		t.Errorf("%d files, problems %v", len(files), problems)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	root, dir := folder(t, map[string]string{"ok.md": "hello", "dir.md/x": "x", "bin.md": "\x00"})
	if err := os.WriteFile(filepath.Join(dir, "big.md"), []byte(strings.Repeat("x", 2<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, reason := range map[string]string{"gone.md": "no gone.md", "dir.md": "a folder", "bin.md": "not a text", "big.md": "larger than 256 KiB", "../x.md": "“..”", "/etc/passwd": "absolute"} {
		_, err := commandfile.Read(root, path)
		if k := fault.KindOf(err); (k != fault.Invalid && k != fault.NotFound) || !strings.Contains(fault.Public(err), reason) {
			t.Errorf("Read(%q): %v", path, err)
		}
	}
	if c, err := commandfile.Read(root, "./ok.md"); err != nil || c.Body != "hello" || c.Path != "ok.md" || c.Name != "ok" {
		t.Errorf("Read = %+v, %v", c, err)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text string
		want commandfile.Meta
		body string
		err  string
	}{
		"none":           {text: "Hello\n---\nx", body: "Hello\n---\nx"},
		"empty":          {text: "---\n---\nx", body: "x"},
		"crlf and bom":   {text: "\ufeff---\r\ndescription: a b \r\n---\r\nx\r\n", want: commandfile.Meta{Description: "a b"}, body: "x\r\n"},
		"all":            {text: "---\ndescription: \"say \\\"hi\\\" \\\\\"\nargument-hint: 'it''s'\nproduces: plan\nconsumes: \"plan\"\nmodel: claude-sonnet-4.5\n---\n", want: commandfile.Meta{Description: `say "hi" \`, ArgumentHint: "it's", Produces: "plan", Consumes: "plan", Model: "claude-sonnet-4.5"}},
		"unknown":        {text: "---\nallowed-tools:\n  - Bash(git:*)\n- x\nnested:\n  description: no\n# comment\n\ndescription: yes # 12\n---\nx", want: commandfile.Meta{Description: "yes # 12"}, body: "x"},
		"not closed":     {text: "---\ndescription: x\n", err: "not closed"},
		"no end at all":  {text: "---", err: "not closed"},
		"not a pair":     {text: "---\ndescription\n---\n", err: "line 2"},
		"no space":       {text: "---\nmodel:x\n---\n", err: "line 2"},
		"twice":          {text: "---\nmodel: a\nmodel: b\n---\n", err: "twice"},
		"block":          {text: "---\ndescription: |\n  x\n---\n", err: "one line"},
		"continued":      {text: "---\ndescription: x\n  y\n---\n", err: "line 3"},
		"open quote":     {text: "---\ndescription: \"x\n---\n", err: "unclosed"},
		"open quote 2":   {text: "---\ndescription: 'it's'\n---\n", err: "unclosed"},
		"behind quote":   {text: "---\ndescription: \"x\" y\n---\n", err: "after"},
		"escape":         {text: "---\ndescription: \"\\x41\"\n---\n", err: "escape"},
		"no produces":    {text: "---\nproduces: none\nconsumes:\n---\n", want: commandfile.Meta{Produces: "none", Consumes: "none"}},
		"other produces": {text: "---\nproduces: code\n---\n", err: "must be “plan”"},
		"model":          {text: "---\nmodel: a b\n---\n", err: "not a model name"},
		"control":        {text: "---\ndescription: a\x07b\n---\n", err: "control"},
		"anchor":         {text: "---\ndescription: &a b\n---\n", err: "quotes"},
		"long":           {text: "---\ndescription: " + strings.Repeat("x", 1001) + "\n---\n", err: "longer"},
		"large":          {text: "---\n" + strings.Repeat("x: y\n", 5000) + "---\n", err: "not closed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta, body, err := commandfile.Split(c.text)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q in it", err, c.err)
				}
				return
			}
			if err != nil || body != c.body {
				t.Errorf("body %q, error %v", body, err)
			}
			if diff := cmp.Diff(c.want, meta); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	args := []string{"one", "$2 $ARGUMENTS $PLAN $$"}
	const rest, plan = "one '$2'", "the $1 plan"
	cases := map[string]struct {
		body, want string
		warnings   []string // parts
	}{
		"numbers":      {"$1-$2.", "one-$2 $ARGUMENTS $PLAN $$.", nil},
		"all":          {"<$ARGUMENTS>", "<one '$2'>", nil},
		"plan":         {"$PLAN $1", "the $1 plan one", nil},
		"ten":          {"$10 $1", "$10 one", []string{"$10"}},
		"zero":         {"$0 $1", "$0 one", []string{"$0"}},
		"text after":   {"$1st $1_x", "onest one_x", nil},
		"too few":      {"$1 [$3]", "one []", []string{"$3"}},
		"unknown":      {"$FOO $FOO $ARGUMENTSX $1", "$FOO $FOO $ARGUMENTSX one", []string{"$FOO", "$ARGUMENTSX"}},
		"other":        {"$path ${1} $(x) $ $", "$path ${1} $(x) $ $", nil},
		"dollar":       {"$$1 costs $$$1 $$$$", "$1 costs $one $$", nil},
		"a program":    {"See\n!`git diff $1` and !`ls`", "See\n!`git diff one` and !`ls`", []string{"!`git diff $1` was not run"}},
		"no program":   {"Stop!`x` ! `x` !`", "Stop!`x` ! `x` !`", nil},
		"no arguments": {"plain", "plain", nil},
		"no plan":      {"plain $ARGUMENTS", "plain one '$2'", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(c.body, "$PLAN") {
				c.want += "\n\nPlan:\n\nthe $1 plan"
			}
			if !strings.Contains(c.want, "one") {
				c.want += "\n\nArguments: one '$2'"
			}
			got, warnings, err := commandfile.Expand(c.body, args, rest, plan)
			if err != nil || got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
			if len(warnings) != len(c.warnings) {
				t.Fatalf("warnings %q", warnings)
			}
			for i, part := range c.warnings {
				if !strings.Contains(warnings[i], part) {
					t.Errorf("warning %q, want %q in it", warnings[i], part)
				}
			}
		})
	}
	if _, _, err := commandfile.Expand(strings.Repeat("$1", 1000), []string{strings.Repeat("x", 5000)}, "x", ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("a large text: %v", err)
	}
	if _, warnings, _ := commandfile.Expand("$PLAN", nil, "", ""); len(warnings) != 1 {
		t.Errorf("no plan: %q", warnings)
	}
}

// FuzzExpand checks that what is put in is never looked at again: with letters in
// place of the arguments, the result differs in those places only. The fuzzed
// arguments are never empty: what is empty is not put behind the text.
func FuzzExpand(f *testing.F) {
	f.Add("$1 $ARGUMENTS $PLAN $10 $$ $X $", "a", "b", "c")
	f.Add("$$$1", "$1", "$$", "$PLAN")
	f.Fuzz(func(t *testing.T, body, arg, rest, plan string) {
		if strings.ContainsAny(body, "\x01\x02\x03") || len(body)+len(arg)+len(rest)+len(plan) > 2000 {
			return
		}
		rest, plan = "r"+rest, "p"+plan
		got, _, err := commandfile.Expand(body, []string{arg}, rest, plan)
		if err != nil {
			t.Skip()
		}
		marked, warnings, err := commandfile.Expand(body, []string{"\x01"}, "\x02", "\x03")
		if err != nil || len(warnings) > 21 {
			t.Fatalf("%v, %d warnings", err, len(warnings))
		}
		if want := strings.NewReplacer("\x01", arg, "\x02", rest, "\x03", plan).Replace(marked); got != want {
			t.Errorf("Expand(%q) = %q, want %q", body, got, want)
		}
		if !strings.Contains(body, "$") && got != body+"\n\nPlan:\n\n"+plan+"\n\nArguments: "+rest {
			t.Errorf("Expand(%q) = %q", body, got)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("---\ndescription: \"x\"\n---\nbody")
	f.Add("---\nproduces: plan\n  x\n---")
	f.Add("body")
	f.Fuzz(func(t *testing.T, text string) {
		meta, body, err := commandfile.Split(text)
		if err != nil {
			return
		}
		if !strings.HasSuffix(text, body) {
			t.Errorf("body %q is not the end of %q", body, text)
		}
		for _, p := range []string{meta.Produces, meta.Consumes} {
			if p != "" && p != commandfile.Plan && p != commandfile.None {
				t.Errorf("%+v", meta)
			}
		}
		if strings.ContainsAny(meta.Description+meta.ArgumentHint+meta.Model, "\n\r\x00") {
			t.Errorf("%+v", meta)
		}
	})
}
