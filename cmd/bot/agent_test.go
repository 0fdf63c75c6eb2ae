package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAgentProfilesFromTheCommandLine(t *testing.T) {
	dir, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	environ := []string{"DATA_DIR=" + filepath.Join(dir, "data"), "PATH=" + os.Getenv("PATH")}
	good := write("good.yaml", "name: reviewer\ndescription: reviews\nmcp_servers:\n  jira:\n    command: jira-mcp\n    env: {JIRA_TOKEN: hunter2}\n")
	wrong := write("wrong.yaml", "name: reviewer\nplugins: [raed_file]\ninterval: -1\n")
	unknown := write("unknown.yaml", "name: reviewer\nobjective: x\n")
	two := write("two.yaml", "name: writer\ngroup: team\n---\nname: reviewer\ndescription: reviews all\n")
	half := write("half.yaml", "name: fresh\n---\nname: BAD\n")
	twice := write("twice.yaml", "name: fresh\n---\nname: fresh\n")
	other := write("other.yaml", "name: reviewer\ndescription: changed by file\nplugins: [read_*]\n")
	for _, c := range []struct {
		args   string
		code   int
		want   string
		editor string
	}{
		{args: "agent list", code: exitUsage, want: "There is no database"},
		{args: "migrate up", want: "applied"},
		{args: "agent list", want: "there are no profiles"},
		{args: "agent show reviewer", code: exitFailed, want: "There are none yet"},
		{args: "agent create", code: exitUsage, want: "--file"},
		{args: "agent create -f " + dir + "/none", code: exitUsage, want: "cannot read"},
		{args: "agent create -f " + wrong, code: exitUsage, want: wrong + `: reviewer: plugins: there is no tool "raed_file"; did you mean read_file?`},
		{args: "agent create -f " + wrong, code: exitUsage, want: wrong + ": reviewer: interval: -1 seconds"},
		{args: "agent create -f " + unknown, code: exitUsage, want: unknown + `: line 2: there is no field "objective"; did you mean objectives?`},
		{args: "agent create -f " + two, code: exitUsage, want: two + ": The file has 2 profiles"},
		{args: "agent list", want: "there are no profiles"},
		{args: "agent create -f " + good, want: "created reviewer"},
		{args: "agent create -f " + good, code: exitFailed, want: "A profile reviewer already exists"},
		{args: "agent show Reviewer", want: "JIRA_TOKEN: (hidden"},
		{args: "agent export reviewer", want: "JIRA_TOKEN: hunter2"},
		{args: "agent export", code: exitUsage, want: "--all"},
		{args: "agent edit reviewer", code: exitUsage, want: "EDITOR is not set"},
		{args: "agent edit reviewer", editor: "true", want: "nothing was changed"},
		{args: "agent edit reviewer", editor: "false", code: exitUsage, want: "nothing was changed"},
		{args: "agent edit reviewer", editor: "sed -i s/interactive/asking/", code: exitUsage, want: "your text was saved to"},
		{args: "agent edit reviewer", editor: "sed -i s/reviews/edited/", want: "takes effect with the next turn"},
		{args: "agent show reviewer", want: "description: edited"},
		{args: "agent edit reviewer -f " + other, want: "changed reviewer"},
		{args: "agent list", want: "changed by file"},
		{args: "agent import " + half, code: exitUsage, want: "BAD: name"},
		{args: "agent import " + twice, code: exitUsage, want: "in the file twice"},
		{args: "agent show fresh", code: exitFailed, want: "no profile fresh"},
		{args: "agent import " + two, want: "created 1, changed 1, unchanged 0"},
		{args: "agent import " + two, want: "created 0, changed 0, unchanged 2"},
		{args: "agent list --group team", want: "team/writer"},
		{args: "agent rm", code: exitUsage, want: "--group"},
		{args: "agent rm writer", code: exitUsage, want: "nothing was removed"},
		{args: "agent rm --group nobody", code: exitFailed, want: "no profiles in the group nobody"},
		{args: "agent rm --group ../x", code: exitUsage, want: "not a valid group name"},
		{args: "agent rm --group team --yes", want: "removed 1 profile, 0"},
		{args: "agent show writer", code: exitFailed, want: "no profile writer"},
		{args: "agent rm reviewer --yes", want: "removed 1 profile, 0 standing tasks, 0 memories"},
		{args: "agent export --all", want: ""},
	} {
		r := bot(t, append(environ, "EDITOR="+c.editor), strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("bot %s: code %d, want %d with %q\n%s%s", c.args, r.code, c.code, c.want, r.stdout, r.stderr)
		}
		if strings.HasPrefix(c.args, "agent show") && strings.Contains(r.stdout, "hunter2") {
			t.Errorf("bot %s shows a secret: %s", c.args, r.stdout)
		}
	}
}

// What a person answers decides whether a group is removed.
func TestRemovingAGroupAsks(t *testing.T) {
	dir := t.TempDir()
	environ := []string{"DATA_DIR=" + filepath.Join(dir, "data"), "PATH=" + os.Getenv("PATH")}
	file := filepath.Join(dir, "p.yaml")
	if err := os.WriteFile(file, []byte("name: a\ngroup: team\n---\nname: b\ngroup: team\n---\nname: c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := func(text string, args ...string) result {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, process{environ: environ, stdin: strings.NewReader(text), stdout: &stdout, stderr: &stderr})
		return result{code, stdout.String(), stderr.String()}
	}
	t.Chdir(dir)
	answer("", "migrate", "up")
	if r := answer("", "agent", "import", file); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	r := answer("no\n", "agent", "rm", "--group", "team")
	if r.code != exitUsage || !strings.Contains(r.stdout, "Remove the group team: 2 profiles, 0 standing tasks") || !strings.Contains(r.stderr, "nothing was removed") {
		t.Errorf("no: %+v", r)
	}
	if r := answer("y\n", "agent", "rm", "--group", "team"); r.code != exitOK || !strings.Contains(r.stdout, "removed 2 profiles") {
		t.Errorf("yes: %+v", r)
	}
	if r := answer("", "agent", "list"); !strings.Contains(r.stdout, "c ") || strings.Contains(r.stdout, "team/") {
		t.Errorf("left: %+v", r)
	}
	if r := answer("name: piped\n", "agent", "create", "-f", "-"); r.code != exitOK {
		t.Errorf("from stdin: %+v", r)
	}
}
