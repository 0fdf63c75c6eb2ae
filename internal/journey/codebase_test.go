package journey_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

// withRepository gives the world a git server with one repository and returns
// its address.
func (w *world) withRepository(files map[string]string) (*gittest.Server, string) {
	w.t.Helper()
	server := gittest.NewServer(w.t)
	url := server.Repo("acme/web", files)
	w.with(map[string]string{"GIT_ALLOWED_HOSTS": server.Host(), "WORKSPACE_PATH": filepath.Join(w.env["DATA_DIR"], "workspace")})
	return server, url
}

// trees returns the worktrees that exist, by looking for a file that the
// repository has.
func (w *world) trees(file string) []string {
	w.t.Helper()
	var found []string
	root := filepath.Join(w.env["WORKSPACE_PATH"], ".worktrees")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(path) == file {
			found = append(found, filepath.Dir(path))
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

var webRepo = map[string]string{
	"README.md":                        "# web\n",
	"src/main.go":                      "package main\n",
	".claude/commands/prime.md":        "---\ndescription: Research the codebase\n---\nLook at $1 and then at $2. All: $ARGUMENTS\n",
	".claude/commands/design.md":       "---\ndescription: Write a design\nproduces: plan\n---\nDesign: $ARGUMENTS\n",
	".agents/commands/build.md":        "---\nconsumes: plan\n---\nBuild exactly this:\n$PLAN\n",
	"docs/prompts/deep/summarize.md":   "Summarize $ARGUMENTS for $10.\n",
	".claude/commands/twice/deploy.md": "one\n",
	".agents/commands/deploy.md":       "two\n",
}

func TestCodebaseFromCloneToUndo(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(webRepo)
		w.start()
		w.says(ann, "/commands")
		w.seesText(ann, "no repository yet", "/clone")
		w.says(ann, "before there was code")
		w.seesText(ann, "echo: before")

		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned", "web", "session ended", "4 commands", "/deploy", "none of them runs")
		w.restart()
		w.says(ann, "/repos")
		w.seesText(ann, "1. ", "web", "← here")
		w.says(ann, "/commands")
		w.seesText(ann, "/prime", "Research the codebase", "/design")
		menu := ""
		for _, c := range w.tg.ChatMenu(ann) {
			menu += " " + c.Command
		}
		if !strings.Contains(menu, " prime") || !strings.Contains(menu, " help") {
			t.Errorf("the chat's menu is%s", menu)
		}
		w.restart()

		t.Log("a command of the repository, with quoted arguments")
		w.says(ann, `/prime "the server" tests`)
		w.seesText(ann, `echo: Look at the server and then at tests. All: "the server" tests [1 messages]`)
		w.says(ann, "/deploy now")
		w.seesText(ann, "Two files are named")
		w.says(ann, "/load-commands docs/prompts")
		w.seesText(ann, "1 command registered")
		w.says(ann, "/summarize it")
		w.seesText(ann, "echo: Summarize it for $10. [3 messages]")
		w.seesText(ann, "⚠", "$10")
		w.restart()

		t.Log("plan, edit, approve, execute by commands of the repository")
		w.ai.Enqueue(openai.Text("1. Add a page."))
		w.says(ann, "/design a page")
		w.seesText(ann, "Add a page", "Plan p-1, version 1")
		w.says(ann, "/edit p-1 1. Add two pages.")
		w.seesText(ann, "Add two pages", "version 2")
		w.restart()
		w.says(ann, "/approve")
		w.seesText(ann, "Approved plan")
		w.restart()
		tree := w.trees("README.md")
		if len(tree) != 1 {
			t.Fatalf("one conversation has the worktrees %v", tree)
		}
		w.ai.Script(func(r openai.Request) openai.Response {
			if strings.Contains(r.LastUserText(), "Build exactly this") { // what an agent would do
				write(t, filepath.Join(tree[0], "pages.txt"), "two pages\n")
				return openai.Text("Built both pages.")
			}
			return openai.Echo(r)
		})
		w.says(ann, "/build p-1")
		w.seesText(ann, "Built both pages.")
		requests := w.ai.Requests()
		built := requests[len(requests)-1]
		if text := built.LastUserText(); !strings.Contains(text, "Build exactly this:\n1. Add two pages.") {
			t.Errorf("what runs is %q", text)
		}
		if roles := strings.Join(built.Roles(), " "); roles != "system user" && roles != "user" {
			t.Errorf("executing sees earlier messages: %s", roles)
		}
		w.restart()

		t.Log("diff and undo, files and talk together")
		w.says(ann, "/diff")
		w.seesText(ann, "Changes on", "pages.txt")
		patch := w.seesFile(ann, "changes.patch")
		if !strings.Contains(patch, "+two pages") {
			t.Errorf("the patch is %q", patch)
		}
		w.says(ann, "/undo")
		w.seesText(ann, "Undid the last turn")
		if _, err := os.Stat(filepath.Join(tree[0], "pages.txt")); !os.IsNotExist(err) {
			t.Errorf("the file is still there: %v", err)
		}
		w.says(ann, "/diff")
		w.seesText(ann, "No changes")
		w.says(ann, "what did you build?")
		w.seesText(ann, "echo: what did you build? [1 messages]")
	})
}

func TestConversationsOnOneCodebaseDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(webRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.says(bob, "/clone "+url)
		w.seesText(bob, "Already cloned")
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello")
		annTree := w.trees("README.md")
		write(t, filepath.Join(annTree[0], "src", "ann.go"), "package main\n")
		w.says(bob, "hello")
		w.seesText(bob, "echo: hello")
		w.restart()
		w.says(bob, "/diff")
		w.seesText(bob, "No changes")
		w.says(ann, "/diff")
		w.seesText(ann, "ann.go")
		if n := len(w.trees("README.md")); n != 2 {
			t.Errorf("two conversations have %d worktrees", n)
		}
		w.says(ann, "/setcwd src")
		w.seesText(ann, "Working in src")
		w.says(ann, "/getcwd")
		w.seesText(ann, "folder src")
		for _, bad := range []string{"..", "/etc", "../../x", "~", "README.md", "nowhere"} {
			w.says(bob, "/setcwd "+bad)
		}
		w.says(bob, "/getcwd")
		w.seesText(bob, "folder .")
		w.says(bob, "/status")
		w.seesText(bob, "repository:", "web", "branch:", "bot/")

		t.Log("a command file that went bad is a clear error, and the chat goes on")
		prime := filepath.Join(annTree[0], ".claude", "commands", "prime.md")
		for what, spoil := range map[string]func(){
			"binary":    func() { write(t, prime, "\xff\xfe\x00") },
			"too large": func() { write(t, prime, strings.Repeat("x", 2<<20)) },
			"a folder":  func() { _ = os.Remove(prime); _ = os.Mkdir(prime, 0o700) },
			"gone":      func() { _ = os.Remove(prime) },
		} {
			spoil()
			before := len(w.tg.ChatView(ann).FromBot())
			w.says(ann, "/prime it")
			texts := w.sees(ann, "an error for a file that is "+what, func(texts []string) bool {
				return len(texts) > before && strings.HasPrefix(texts[len(texts)-1], "✖")
			})
			t.Logf("%s: %s", what, texts[len(texts)-1])
			_ = os.RemoveAll(prime)
			write(t, prime, "Look.\n")
		}
		w.says(ann, "still there?")
		w.seesText(ann, "echo: still there?")
	})
}

func TestCloneRefusesWhatIsNotAllowed(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		server, _ := w.withRepository(webRepo)
		w.start()
		for _, bad := range []string{
			"file:///etc", "ext::sh -c touch% /tmp/x", "ssh://git@github.com/a/b", "git@github.com:a/b", "https://example.com/a/b",
			"https://user:pw@github.com/a/b", "--upload-pack=x", "http://169.254.169.254/latest",
		} {
			w.says(ann, "/clone "+bad)
		}
		w.says(ann, "/clone")
		w.seesText(ann, "Specify one repository")
		w.says(ann, "/repos")
		w.seesText(ann, "no repositories yet")
		w.sees(ann, "a refusal for each", func(texts []string) bool {
			refused := 0
			for _, text := range texts {
				if strings.HasPrefix(text, "✖") {
					refused++
				}
			}
			return refused >= 9
		})
		if n := len(server.Requests()); n != 0 {
			t.Errorf("the git server was asked %d times", n)
		}
	})
}

// seesFile waits for a file of the bot and returns its content.
func (w *world) seesFile(chat int64, name string) string {
	w.t.Helper()
	content := ""
	err := w.tg.Wait(w.ctx(), func(l telegram.Ledger) bool {
		for _, m := range l.Chat(chat).FromBot() {
			if m.Document != nil && m.Document.Name == name {
				content = string(m.Document.Data)
			}
		}
		return content != ""
	})
	if err != nil {
		w.t.Fatalf("there is no file %s", name)
	}
	return content
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

func TestSwitchingRepositoriesAndWritingCommands(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		server, url := w.withRepository(webRepo)
		other := server.Repo("acme/api", map[string]string{"go.mod": "module api\n"})
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned", "acme/web")
		w.says(ann, "/clone "+other)
		w.seesText(ann, "Cloned", "acme/api")
		w.says(ann, "/repo 9")
		w.seesText(ann, "no repository number 9", "2 repositories")
		w.says(ann, "/repo web")
		w.seesText(ann, "This conversation works on", "acme/web")

		w.says(ann, "/command-set greet prompts/greet.md Greet $1 politely.")
		w.seesText(ann, "/greet runs prompts/greet.md", "/diff shows it")
		w.says(ann, "/greet Bob")
		w.seesText(ann, "echo: Greet Bob politely.")
		for _, bad := range []string{"x ../out.md text", "x .git/hooks/post-checkout.md text", "x run.sh text", "x /etc/x.md text", "bad/name a.md"} {
			before := len(w.tg.ChatView(ann).FromBot())
			w.says(ann, "/command-set "+bad)
			w.sees(ann, "a refusal of "+bad, func(texts []string) bool {
				return len(texts) > before && strings.HasPrefix(texts[len(texts)-1], "✖")
			})
		}
		w.restart()
		w.says(ann, "/greet again")
		w.seesText(ann, "echo: Greet again politely.")
		w.says(ann, "/branch")
		w.seesText(ann, "acme/web", "bot/")
	})
}

// TestAWorkspaceThatIsGone is said in each conversation that had files there, once, and that
// the bot has to be started again where it is deleted while it runs.
func TestAWorkspaceThatIsGone(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(webRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned", "web")
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello [1 messages]")
		if text := strings.Join(w.tg.ChatView(ann).BotTexts(), "\n"); strings.Contains(text, "is not on this machine") {
			t.Errorf("at the beginning something is missing: %s", text)
		}
		if err := os.RemoveAll(w.env["WORKSPACE_PATH"]); err != nil {
			t.Fatal(err)
		}
		w.says(ann, "and now?")
		w.seesText(ann, "✖ The folder of repositories (WORKSPACE_PATH) was deleted or replaced", "has to start the bot again")
		w.restart()
		w.says(ann, "again")
		w.seesText(ann, "a-1", "Clone "+url+"?", "web is not on this machine")
		w.says(ann, "/approve a-1")
		w.seesText(ann, "echo: again")
		w.seesText(ann, "What this conversation changed before is not on this machine")
		w.says(ann, "still?")
		w.seesText(ann, "echo: still?")
		if n := strings.Count(strings.Join(w.tg.ChatView(ann).BotTexts(), "\n"), "What this conversation changed before"); n != 1 {
			t.Errorf("it is told %d times", n)
		}
	})
}
