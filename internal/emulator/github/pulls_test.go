package github_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/emulator/github"
)

var files = []github.File{{
	Path: "a.go", Additions: 1, Deletions: 1,
	Patch: "@@ -1,4 +1,4 @@\n package a\n \n-var x = 1\n+var x = 2\n // end",
}, {Path: "b.go", Status: "added", Additions: 1, Patch: "@@ -0,0 +1 @@\n+package b"}}

func TestPulls(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	pulls := "/repos/acme/web/pulls"
	w.ann.OpenIssue("x", "x")
	w.call("POST", pulls, o{"title": "Fix", "head": "bot/issue-1", "base": "main"}).is(422, `"field":"head"`)
	w.SetBranch("acme/web", "bot/issue-1", strings.Repeat("a", 40))
	w.call("POST", pulls, o{"title": "Fix", "head": "bot/issue-1", "base": "nothing"}).is(422, `"field":"base"`)
	w.call("POST", pulls, o{"title": "Fix", "head": "main", "base": "main"}).is(422, "No commits between")
	w.call("POST", pulls, o{"title": "Fix", "base": "main"}).is(422, "wasn't supplied")
	w.call("POST", pulls, o{"title": "", "head": "bot/issue-1", "base": "main"}).is(422, "title")
	made := w.call("POST", pulls, o{"title": "Fix", "head": "bot/issue-1", "base": "main", "body": "Closes #1", "draft": true}).is(201, `"draft":true`).object()
	if made["number"] != 2.0 || made["head"].(o)["sha"] != strings.Repeat("a", 40) || made["head"].(o)["label"] != "acme:bot/issue-1" || made["merged"] != false {
		t.Errorf("pull %v", made)
	}
	w.call("POST", pulls, o{"title": "Again", "head": "acme:bot/issue-1", "base": "main"}).is(422, "A pull request already exists for acme:bot/issue-1.")
	if got := w.call("GET", pulls+"?head=acme:bot/issue-1&base=main", nil).list(); len(got) != 1 {
		t.Errorf("by head: %v", got)
	}
	if got := w.call("GET", pulls+"?head=acme:other", nil).list(); len(got) != 0 {
		t.Errorf("by other head: %v", got)
	}
	w.call("PATCH", pulls+"/2", o{"title": "Better", "body": "Closes #1!"}).is(200, "Better")
	w.call("PATCH", pulls+"/2", o{"base": "nothing"}).is(422, "base")
	w.call("GET", "/repos/acme/web/issues/2", nil).is(200, `"pull_request":{`)
	w.SetBranch("acme/web", "bot/issue-1", strings.Repeat("b", 40))
	w.call("GET", pulls+"/2", nil).is(200, strings.Repeat("b", 40))
	if v := w.Issue("acme/web", 2); v.Title != "Better" || !v.FromBot || v.Pull.HeadSHA != strings.Repeat("b", 40) || !v.Pull.Draft {
		t.Errorf("ledger %+v", v)
	}
	w.call("PATCH", pulls+"/2", o{"state": "closed"}).is(200, `"state":"closed"`)
	w.call("POST", pulls, o{"title": "New", "head": "bot/issue-1", "base": "main"}).is(201, `"number":3`)
	w.SetInstallationPermissions("acme", map[string]string{"metadata": "read", "issues": "write"})
	w.call("POST", pulls, o{"title": "New", "head": "bot/issue-1", "base": "main"}).is(403, "not accessible")
	w.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "x"}).is(201, "")
}

func TestReviews(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	w.AddRepo(github.Repo{Name: "eve/web", Fork: "acme/web", NotInstalled: true})
	w.Person("eve").In("acme/web").OpenPull(github.Pull{Title: "From a fork", Head: "eve:patch", Files: files})
	pull := "/repos/acme/web/pulls/1"
	got := w.call("GET", pull, nil).is(200, `"changed_files":2`).object()
	head := got["head"].(o)
	if head["label"] != "eve:patch" || head["repo"].(o)["full_name"] != "eve/web" || head["repo"].(o)["fork"] != true {
		t.Errorf("head %v", head)
	}
	if list := w.call("GET", pull+"/files?per_page=1", nil).is(200, "var x = 2").list(); len(list) != 1 || list[0]["status"] != "modified" {
		t.Errorf("files %v", list)
	}
	comments := pull + "/comments"
	line := w.ann.ReviewComment(1, "a.go", 3, "why?")
	reply := w.call("POST", comments, o{"body": "because", "in_reply_to": line.Comment}).is(201, "")
	if hunk := reply.object()["diff_hunk"]; hunk != "@@ -1,4 +1,4 @@\n package a\n \n-var x = 1\n+var x = 2" {
		t.Errorf("hunk %q", hunk)
	}
	nested := w.call("POST", comments, o{"body": "really", "in_reply_to": reply.object()["id"]}).is(201, "")
	if to := int64(nested.object()["in_reply_to_id"].(float64)); to != line.Comment {
		t.Errorf("a thread has two levels: %d", to)
	}
	w.call("POST", comments, o{"body": "x", "in_reply_to": 1}).is(404, "")
	w.call("PATCH", "/repos/acme/web/pulls/comments/"+reply.id(), o{"body": "because!"}).is(200, "because!")
	w.call("PATCH", "/repos/acme/web/issues/comments/"+reply.id(), o{"body": "x"}).is(404, "")
	w.call("POST", "/repos/acme/web/pulls/comments/"+reply.id()+"/reactions", o{"content": "eyes"}).is(201, "")
	w.call("GET", "/repos/acme/web/pulls/comments", nil).is(200, "really")
	v := w.ann.Review(1, "REQUEST_CHANGES", "no", github.LineComment{Path: "b.go", Line: 1, Body: "name"})
	reviews := pull + "/reviews"
	w.call("GET", reviews+"/"+strconv.FormatInt(v.Review, 10), nil).is(200, "CHANGES_REQUESTED")
	w.call("GET", comments, nil).is(200, `"body":"name"`)
	view := w.Issue("acme/web", 1)
	var texts []string
	for _, c := range view.FromBotComments() {
		texts = append(texts, c.Text())
	}
	if diff := cmp.Diff([]string{"because!", "really"}, texts); diff != "" {
		t.Error(diff)
	}
	if got := view.Comment(line.Comment); got.Line != 3 || got.Path != "a.go" || got.FromBot || !strings.HasSuffix(got.DiffHunk, "+var x = 2") {
		t.Errorf("line %+v", got)
	}
}

func TestAttachedRepository(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := filepath.Join(t.TempDir(), "web.git")
	git := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_DIR="+dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(branch, from, entries string) {
		t.Helper()
		if from != "" {
			from = "from refs/heads/" + from + "^0\n"
		}
		git("commit refs/heads/"+branch+"\ncommitter T <t@example.com> 1700000000 +0000\ndata 1\nx\n"+from+entries, "fast-import", "--quiet")
	}
	git("", "init", "-q", "--bare", "-b", "main", dir)
	commit("main", "", "M 644 inline a.go\ndata 12\none\ntwo\nsix\n\nM 644 inline old name\ndata 8\nlonglong\nM 644 inline gone\ndata 2\nx\n\n")
	commit("fix", "main", "M 644 inline a.go\ndata 12\none\nTWO\nsix\n\nR \"old name\" \"new name\"\nD gone\nM 644 inline ümlaut\ndata 2\ny\n\n")
	w := installed(t, github.Options{})
	w.AttachGit("acme/web", github.Git{CloneURL: "http://127.0.0.1:9/acme/web.git", Dir: dir})
	w.call("GET", "/repos/acme/web", nil).is(200, "http://127.0.0.1:9/acme/web.git")
	w.call("POST", "/repos/acme/web/pulls", o{"title": "x", "head": "bot/x", "base": "main"}).is(422, `"field":"head"`)
	w.call("POST", "/repos/acme/web/pulls", o{"title": "x", "head": "fix", "base": "main"}).is(201, `"changed_files":4`)
	if got, want := git("", "rev-parse", "refs/pull/1/head"), git("", "rev-parse", "fix"); got != want {
		t.Errorf("refs/pull/1/head is %s", got)
	}
	var got []string
	for _, f := range w.call("GET", "/repos/acme/web/pulls/1/files", nil).list() {
		previous, _ := f["previous_filename"].(string)
		patch, _ := f["patch"].(string)
		got = append(got, f["status"].(string)+" "+previous+">"+f["filename"].(string)+" "+patch)
	}
	slices.Sort(got)
	want := []string{
		"added >ümlaut @@ -0,0 +1 @@\n+y",
		"modified >a.go @@ -1,3 +1,3 @@\n one\n-two\n+TWO\n six",
		"removed >gone @@ -1 +0,0 @@\n-x",
		"renamed old name>new name ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	line := w.ann.ReviewComment(1, "a.go", 2, "loud")
	if hunk := w.Issue("acme/web", 1).Comment(line.Comment).DiffHunk; hunk != "@@ -1,3 +1,3 @@\n one\n-two\n+TWO" {
		t.Errorf("hunk %q", hunk)
	}
	commit("fix", "fix", "M 644 inline c\ndata 2\nx\n\n")
	w.ann.Push("fix")
	if got, want := w.Issue("acme/web", 1).Pull.HeadSHA, git("", "rev-parse", "refs/pull/1/head"); got != want || got != git("", "rev-parse", "fix") {
		t.Errorf("after a push: %s, %s", got, want)
	}
}

func TestReadingOfTexts(t *testing.T) {
	t.Parallel()
	body := "Fixes #3, closes: #4. <!-- closes #5 @hidden -->\n`@code closes #6` @ann, mail a@b.de @acme/team.\n~~~\n@fenced fixes #7\n~~~\n(@bob)"
	if diff := cmp.Diff([]int{3, 4}, github.Closes(body)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ann", "acme/team.", "bob"}, github.Mentions(body)); diff != "" {
		t.Error(diff)
	}
	if got := github.Visible("<!-- a\nb -->\nhello <!-- c --> "); got != "hello" {
		t.Errorf("visible %q", got)
	}
}
