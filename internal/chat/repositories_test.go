package chat_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/assistant"
	"remote-agent/internal/chat"
	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/work"
)

// bench has the commands about repositories over a real git server, without an engine
// that runs turns: git is a program of its own, for which no time stands still.
type bench struct {
	*chat.Handler
	t      *testing.T
	db     *store.Store
	git    *gittest.Server
	shop   *work.Service
	conv   string // the conversation's id on the platform
	events int
	shown  []string // by jobs
	pulls  []platform.PullRequest

	where      messages.Platform
	repository *messages.Repository
}

// quietEngine is an engine at which nothing runs.
type quietEngine struct {
	chat.Engine
	busy bool
}

func (quietEngine) ForgetSession(string)               {}
func (quietEngine) Wake(string)                        {}
func (quietEngine) RunningTurns() int                  { return 0 }
func (quietEngine) Live() *orchestrator.Live           { return new(orchestrator.Live) }
func (e quietEngine) Running(string) (time.Time, bool) { return time.Time{}, e.busy }

// hub is a platform that has pull requests, menus of chats and threads.
type hub struct{ b *bench }

func (hub) Platform() messages.Platform              { return "hub" }
func (hub) Capabilities() platform.Capabilities      { return platform.Capabilities{CommandPrefix: "/"} }
func (hub) Run(context.Context, platform.Sink) error { return nil }
func (hub) Send(context.Context, messages.Outbound) (messages.Ref, error) {
	return messages.Ref{}, fault.New(fault.Unavailable, "")
}
func (h hub) OpenPullRequest(_ context.Context, _ messages.ConversationKey, pr platform.PullRequest) (string, error) {
	h.b.pulls = append(h.b.pulls, pr)
	return "https://hub.example/pull/1", nil
}
func (hub) Open(_ context.Context, o platform.Opening) (messages.ConversationKey, error) {
	return messages.ConversationKey{Platform: o.Beside.Platform, ID: string(o.Delivery)}, nil
}
func (hub) Link(context.Context, messages.ConversationKey) string { return "" }

func (hub) Hosts(string) bool            { return true }
func (hub) RepositoryID(a string) string { return a }
func (h hub) SetChatMenu(context.Context, messages.ConversationKey, []platform.CommandInfo) error {
	return nil
}

func setupBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, db: storetest.SQLite(t)(t), git: gittest.NewServer(t), conv: "1", where: "hub"}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	space, err := codebase.New(t.Context(), codebase.Config{Root: filepath.Join(dir, "ws"), AllowedHosts: []string{b.git.Host()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := space.Close(); err != nil {
			t.Error(err)
		}
	})
	b.shop = work.New(work.Config{Store: b.db, Workspace: space, Log: storetest.Log(t)})
	b.Handler, err = chat.New(chat.Config{
		Storage: b.db, Adapters: []platform.Adapter{hub{b}}, Work: b.shop, Workspace: space, Log: storetest.Log(t),
		Assistants: map[assistant.Name]assistant.Assistant{},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Bind(quietEngine{})
	return b
}

// do gives a command and returns the answer, errors as a person reads them.
func (b *bench) do(text string) string {
	b.t.Helper()
	ctx := b.t.Context()
	call, ok := command.Parse(text)
	c, found := b.Find(call.Name)
	if !ok || !found {
		b.t.Fatalf("%q is no command", text)
	}
	r := command.Request{Call: call, Role: sessions.Owner, Show: func(s string) { b.shown = append(b.shown, s) }}
	err := b.db.InTx(ctx, func(tx *store.Tx) error {
		var err error
		key := messages.ConversationKey{Platform: b.where, ID: b.conv}
		if r.Conv, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, "demo"); err != nil {
			return err
		}
		b.events++
		r.Entry = sessions.Entry{
			ID: uuid.Must(uuid.NewV7()).String(), ConversationID: r.Conv.ID, AcceptedAt: time.Now(), Lane: laneOf(c),
			In: messages.Inbound{Event: messages.EventID(fmt.Sprint(b.events)), Conversation: key, Text: text, Private: true, Repository: b.repository, Sender: messages.Sender{ID: "ann", Name: "Ann", Email: "ann@example.org"}},
		}
		_, err = tx.Inbox().InsertEntry(ctx, &r.Entry)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	reply, err := c.Run(ctx, r)
	done := sessions.EntryDone
	if failed := b.db.InTx(ctx, func(tx *store.Tx) error {
		return tx.Inbox().UpdateEntry(ctx, r.Entry.ID, sessions.EntryUpdate{State: &done})
	}); failed != nil {
		b.t.Fatal(failed)
	}
	if err != nil {
		return "✖ " + fault.Public(err)
	}
	for _, f := range reply.Files {
		reply.Text += "\n[" + f.Name + "]\n" + string(f.Data)
	}
	if reply.Again != nil {
		reply.Text += "again: " + reply.Again.Text
	}
	return reply.Text
}

// prepare prepares the turn of a command file.
func (b *bench) prepare(text string) (orchestrator.Prepared, error) {
	b.t.Helper()
	ctx, key := b.t.Context(), messages.ConversationKey{Platform: b.where, ID: b.conv}
	var conv sessions.Conversation
	err := b.db.InRead(ctx, func(tx *store.Tx) (err error) {
		conv, err = tx.Conversations().FindConversation(ctx, key)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	call, _ := command.Parse(text)
	return b.shop.Prepare(ctx, conv, sessions.Entry{ID: uuid.Must(uuid.NewV7()).String(), In: messages.Inbound{Conversation: key, Text: text}}, call)
}

// about is what the commands of a bench are about, on a platform that knows.
func (b *bench) about(r *messages.Repository) { b.repository = r }

// turn has a turn take place: it says something and changes files of the worktree.
func (b *bench) turn(said string, files map[string]string) {
	b.t.Helper()
	ctx := b.t.Context()
	var conv sessions.Conversation
	entry := sessions.Entry{ID: uuid.Must(uuid.NewV7()).String(), AcceptedAt: time.Now()}
	err := b.db.InTx(ctx, func(tx *store.Tx) error {
		var err error
		key := messages.ConversationKey{Platform: b.where, ID: b.conv}
		if conv, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, "demo"); err != nil {
			return err
		}
		b.events++
		entry.ConversationID = conv.ID
		entry.In = messages.Inbound{Event: messages.EventID(fmt.Sprint(b.events)), Kind: messages.KindMessage, Conversation: key, Text: said, Repository: b.repository, Sender: messages.Sender{ID: "ann"}}
		_, err = tx.Inbox().InsertEntry(ctx, &entry)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	prepared, err := b.shop.Prepare(ctx, conv, entry, command.Call{})
	if err != nil {
		b.t.Fatal(err)
	}
	err = b.db.InTx(ctx, func(tx *store.Tx) error {
		s, active, err := tx.Sessions().ActiveSession(ctx, conv.ID)
		if err == nil && !active {
			s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: conv.ID, CodebaseID: conv.CodebaseID, Assistant: "demo", UserPrompt: said})
		}
		if err != nil {
			return err
		}
		seqs, err := tx.Messages().AppendMessages(ctx, s.ID, entry.ID, messages.NewText(messages.RoleUser, said), messages.NewText(messages.RoleAssistant, "Done."))
		if err != nil {
			return err
		}
		done := sessions.EntryDone
		if err := tx.Inbox().UpdateEntry(ctx, entry.ID, sessions.EntryUpdate{State: &done, SessionID: &s.ID}); err != nil {
			return err
		}
		return tx.Inbox().UpdateEntry(ctx, entry.ID, sessions.EntryUpdate{Checkpoint: &sessions.Checkpoint{SessionID: s.ID, Seq: seqs[0], Ref: prepared.Checkpoint}})
	})
	if err != nil {
		b.t.Fatal(err)
	}
	write(b.t, prepared.Dir, files)
}

// TestUnusableCommandFile: whoever runs the command of a file that cannot be used reads what
// is wrong with the file, and not that there is no such command.
func TestUnusableCommandFile(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	url := b.git.Repo("team/app", map[string]string{
		".claude/commands/ship.md":    "---\nproduces: cake\n---\nShip it.\n",
		".agents/commands/latin.md":   "\xe9t\xe9",
		".claude/commands/greet.md":   "Say hello.\n",
		".agents/commands/x/greet.md": "\x00",
	})
	if got := b.do("/clone " + url); !strings.Contains(got, "produces must be") {
		t.Errorf("/clone is answered %q", got)
	}
	const why = "The front matter of .claude/commands/ship.md cannot be read: line 2: produces must be “plan” or “none”, not “cake”."
	for _, text := range []string{"/commands", "/help ship"} {
		if got := b.do(text); !strings.Contains(got, "⚠ "+why) {
			t.Errorf("%q is answered %q", text, got)
		}
	}
	for text, want := range map[string]string{"/ship": why, "/latin": ".agents/commands/latin.md is not a text file in UTF-8."} {
		if _, err := b.prepare(text); err == nil || fault.Public(err) != want {
			t.Errorf("%s ends with %v, want %q", text, err, want)
		}
	}
	if p, err := b.prepare("/greet"); err != nil || p.Prompt == nil {
		t.Errorf("the sound file of two does not run: %v", err)
	}
}

// TestRepositoryCommands clones, works, takes back and publishes, as a person would.
func TestRepositoryCommands(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	url := b.git.Repo("team/app", map[string]string{
		"main.go": "package main\n", "docs/readme.md": "# Docs\n",
		".claude/commands/ship.md":   "---\ndescription: ship it\n---\nShip $ARGUMENTS\n",
		".claude/commands/design.md": "---\ndescription: design it\nproduces: plan\n---\nDesign $ARGUMENTS\n",
		".claude/commands/build.md":  "---\ndescription: build it\nconsumes: plan\n---\nBuild $PLAN\n",
		"more/check.md":              "Check it.\n",
	})
	other := b.git.Repo("team/lib", map[string]string{"lib.go": "package lib\n"})
	said := func(text, want string) {
		t.Helper()
		if got := b.do(text); !strings.Contains(got, want) {
			t.Errorf("%q is answered %q, want %q in it", text, got, want)
		}
	}
	for _, text := range []string{"/diff", "/undo", "/pr", "/branch", "/setcwd docs", "/getcwd", "/commands", "/load-commands more", "/command-set a b", "/retry"} {
		if got := b.do(text); got == "" {
			t.Errorf("%q without a repository is not answered", text)
		}
	}
	said("/repos", "clone")
	said("/repo app", "✖")
	said("/clone", "Specify one repository")
	said("/clone https://elsewhere.example/x", "✖")
	said("/clone "+url, "app")
	said("/clone "+url, "app")
	said("/repos", "app")
	said("/branch", "bot/")
	said("/getcwd", "")
	said("/setcwd docs", "docs")
	said("/getcwd", "docs")
	said("/setcwd nowhere", "✖")
	said("/setcwd ..", "✖")
	said("/setcwd .", "")
	said("/commands", "ship")
	said("/commands design", "plan")
	said("/commands nothing-like-it", "")
	said("/help ship", "runs `.claude/commands/ship.md` of the repository. ship it")
	said("/load-commands more", "1 command registered from `more`.")
	said("/load-commands nowhere", "There are no command files in `nowhere`.")
	said("/command-set", "✖")
	said("/command-set br!oken x", "✖")
	said("/command-set greet greet.md Say hello to $ARGUMENTS", "`/greet` runs `greet.md`. The file was written")
	said("/command-set greet nowhere.md", "✖")
	said("/diff", "greet.md")
	b.turn("change the program", map[string]string{"main.go": "package main\n\nfunc main() {}\n"})
	said("/diff", "main.go")
	said("/retry faster", "again: ")
	b.turn("break it", map[string]string{"main.go": "broken"})
	said("/undo", "↩ Undid the last turn: 2 messages; the files")
	if got := b.do("/diff"); strings.Contains(got, "broken") {
		t.Errorf("after /undo the files are %q", got)
	}
	said("/allow", "No always-allow rules here yet.")
	said("/allow revoke x", "✖")
	said("/allow revoke 7", "There is no rule 7")
	said("/allow what", "`/allow` lists the always-allow rules")
	said("/status", "/team/app, folder `.`")

	said("/pr Have a program", "https://hub.example/pull/1")
	if len(b.pulls) == 0 || b.pulls[0].Title != "Have a program" || !b.pulls[0].Draft {
		t.Errorf("the pull requests are %+v", b.pulls)
	}
	said("/pr", "https://hub.example/pull/1")
	b.conv = "2"
	said("/clone "+other, "lib")
	said("/repo app", "app")
	said("/repo 2", "")
	said("/repo nothing", "✖")
	said("/repo", "← here")
	said("/repos", "lib")
	said("/status", "repository:")
	said("/help ship", "")
	b.turn("a third change", map[string]string{"lib.go": "package lib // more\n"})
	b.where, b.conv = "chat", "3" // a platform without pull requests
	said("/repo lib", "lib")
	b.turn("Describe the library", map[string]string{"readme.md": "A library.\n"})
	said("/pr", "https://hub.example/pull/1")
	if p := b.pulls[len(b.pulls)-1]; p.Title != "Describe the library" {
		t.Errorf("the title is %q", p.Title)
	}
	b.about(&messages.Repository{URL: other, Branch: "topic", Base: "main", Closes: "#42"})
	b.turn("more", map[string]string{"readme.md": "A good library.\n"})
	said("/pr", "https://hub.example/pull/1")
	// A comment of a person's pull request tells less of it than what began the work.
	b.git.Run("team/lib", nil, "update-ref", "refs/heads/topic", "main")
	b.where, b.conv = "hub", "5"
	said("/repo lib", "lib")
	b.about(&messages.Repository{URL: other, Branch: "topic", Base: "main", Existing: true})
	b.turn("even more", map[string]string{"readme.md": "The best library.\n"})
	opened := len(b.pulls)
	b.about(&messages.Repository{URL: other, Branch: "bot/pull-5", ReadOnly: true, Fetch: "refs/pull/5/head"})
	said("/pr", "to `topic`, the branch of this pull request.")
	if len(b.pulls) != opened {
		t.Errorf("a pull request that is there was opened or changed: %+v", b.pulls[opened:])
	}
	// One that was closed is read where it is kept, once its branch is gone.
	b.conv = "6"
	said("/repo lib", "lib")
	b.git.Run("team/lib", nil, "update-ref", "refs/pull/6/head", "refs/heads/topic")
	b.git.Run("team/lib", nil, "update-ref", "-d", "refs/heads/topic")
	b.about(&messages.Repository{URL: other, Branch: "topic", Base: "gone", Existing: true, Fetch: "refs/pull/6/head"})
	b.turn("what of it?", map[string]string{"readme.md": "A library.\n"})
	said("/pr", "✖ This pull request comes from a fork, or was merged or closed")
	b.git.Run("team/lib", nil, "update-ref", "refs/heads/topic", "refs/pull/6/head")
	b.where, b.conv, b.repository = "hub", "4", nil
	said("/pr", "✖")
	said("/repo app", "app")
	said("/pr", "No pull request: there are no changes")
	said("/command-set evil ../evil.md Say something", "✖")
	said("/command-set evil main.go/evil.md Say something", "✖")
	said("/command-set evil evil.txt Say something", "✖")
	if len(b.shown) == 0 {
		t.Error("nothing was shown while the jobs ran")
	}
}

// TestCommandThatTheBranchDoesNotHave: the registry is that of the repository, the files are
// those of the conversation's branch, which may be older.
func TestCommandThatTheBranchDoesNotHave(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.do("/clone " + b.git.Repo("team/app", map[string]string{"main.go": "package main\n"}))
	b.do("/command-set greet greet.md Say hello")
	b.conv = "2"
	b.do("/repo app")
	if got := b.do("/commands"); !strings.Contains(got, "`/greet`") {
		t.Errorf("/commands answers %q", got)
	}
	_, err := b.prepare("/greet")
	const want = "The branch of this conversation does not have `greet.md`, the file of `/greet`. If the file is newer than the branch, " +
		"use the command in a new chat, topic, thread or issue, which starts from the repository as it is now."
	if !fault.Is(err, fault.NotFound) || fault.Public(err) != want {
		t.Errorf("/greet where its file is not: %v, want %q", err, want)
	}
	if got := b.do("/command-set greet greet.md"); !strings.HasPrefix(got, "✖ The branch of this conversation does not have `greet.md`. To write it, ") {
		t.Errorf("/command-set answers %q", got)
	}
}

// TestCommandFilesNamedAsTheBotsCommands: a file replaces a prompt of the bot and no command
// of it, and nobody is told that one does.
func TestCommandFilesNamedAsTheBotsCommands(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.do("/clone " + b.git.Repo("team/app", map[string]string{
		".claude/commands/status.md": "Say how it stands.\n", ".claude/commands/plan.md": "Write our plan.\n", ".claude/commands/ship.md": "Ship it.\n",
	}))
	const never = "(⚠ never runs, because the bot has a command of this name: rename the file)"
	for line := range strings.SplitSeq(b.do("/commands"), "\n") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "- `/"), "`"); ok && strings.Contains(line, never) != (name == "status") {
			t.Errorf("/commands says %q", line)
		}
	}
	for name, want := range map[string]string{
		"status": "✖ `/status` is a command of the bot, and no file replaces it. Choose another name.",
		"reset":  "✖ `/reset` is a command of the bot, and no file replaces it. Choose another name.",
		"plan":   "`/plan` runs `.claude/commands/ship.md`.",
	} {
		if got := b.do("/command-set " + name + " .claude/commands/ship.md"); got != want {
			t.Errorf("/command-set %s answers %q, want %q", name, got, want)
		}
	}
}

// TestCommandFilesOfAFolder: what is registered while a folder is chosen is found from
// everywhere.
func TestCommandFilesOfAFolder(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.do("/clone " + b.git.Repo("team/app", map[string]string{"web/page.md": "Make a page.\n", "web/more/ship.md": "Ship it.\n"}))
	b.do("/setcwd web")
	for text, want := range map[string]string{
		"/command-set page web/page.md":              "`/page` runs `web/page.md`.",
		"/command-set greet web/greet.md Say hi.":    "`/greet` runs `web/greet.md`.",
		`/command-set bye "web/say bye.md" Say bye.`: "`/bye` runs `web/say bye.md`.",
		"/load-commands web/more":                    "1 command registered from `web/more`.",
	} {
		if got := b.do(text); !strings.HasPrefix(got, want) {
			t.Errorf("%s answers %q, want %q", text, got, want)
		}
	}
	for name, want := range map[string]string{"page": "Make a page.\n", "greet": "Say hi.\n", "bye": "Say bye.\n", "ship": "Ship it.\n"} {
		p, err := b.prepare("/" + name)
		if err != nil || p.Prompt == nil {
			t.Errorf("/%s is not found: %v", name, err)
		} else if got, _ := p.Prompt.Expand(command.Call{Name: name}, ""); got != want {
			t.Errorf("/%s is %q, want %q", name, got, want)
		}
	}
}

func (quietEngine) RetryNow(context.Context, sessions.Conversation, int64) (bool, error) {
	return false, nil
}

// TestCommandsNameTheBranchThatIsPushed: people know the work by the branch that it is
// pushed to, not by that of the worktree.
func TestCommandsNameTheBranchThatIsPushed(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	url := b.git.Repo("team/app", map[string]string{"main.go": "package main\n"})
	b.about(&messages.Repository{URL: url, Branch: "bot/issue-42"})
	b.do("/clone " + url)
	for _, files := range []map[string]string{nil, {"main.go": "package app\n"}} {
		b.turn("work", files)
		for _, text := range []string{"/diff", "/branch", "/status"} {
			if got := b.do(text); !strings.Contains(got, "`bot/issue-42`") {
				t.Errorf("%s answers %q", text, got)
			}
		}
	}
	err := b.db.InRead(t.Context(), func(tx *store.Tx) error {
		conv, err := tx.Conversations().FindConversation(t.Context(), messages.ConversationKey{Platform: b.where, ID: b.conv})
		if err != nil {
			return err
		}
		branch, _, _, err := b.shop.Changes(t.Context(), conv)
		if branch != "bot/issue-42" {
			t.Errorf("the page of changes names %q", branch)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// laneOf is the lane that the inbox gives a command while no turn waits for its next try.
func laneOf(c command.Command) sessions.Lane {
	if c.Lane == command.Job {
		return sessions.LaneTurn
	}
	return sessions.LaneControl
}
