package recollect_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/recollect"
	"remote-agent/internal/redact"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/tool"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

const runID = "01900000-0000-7000-8000-0000000000%02x"

// storage shows a store through the port of package recollect.
func storage(s *store.Store) recollect.Storage {
	return store.Through[recollect.Tx]{Store: s, As: func(tx *store.Tx) recollect.Tx { return tx.Memories() }}
}

// desk is a Service with short ways to use it.
type desk struct {
	*recollect.Service
	t    *testing.T
	runs int
}

func setup(t *testing.T, change ...func(*recollect.Config)) *desk {
	t.Helper()
	config := recollect.Config{
		Storage: storage(storetest.SQLite(t)(t)), Log: storetest.Log(t),
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") },
	}
	for _, f := range change {
		f(&config)
	}
	s := recollect.New(config)
	t.Cleanup(s.Close)
	return &desk{Service: s, t: t}
}

func entry(user, text string, private bool) sessions.Entry {
	return sessions.Entry{In: messages.Inbound{
		Conversation: messages.ConversationKey{Platform: "test", ID: "c"}, Sender: messages.Sender{ID: messages.UserID(user)}, Text: text, Private: private,
	}}
}

// knows has something remembered of a person.
func (d *desk) knows(user, text string) {
	d.t.Helper()
	d.runs++
	e := entry(user, text, true)
	e.ID = fmt.Sprintf(runID, d.runs)
	if _, err := d.Remember(d.t.Context(), e, memory.Fact{Scope: memory.Scope{Person: "test/" + user}, Text: text, Origin: memory.ByPerson}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) recalls(user, text string) string {
	d.t.Helper()
	quotes, err := d.Recall(d.t.Context(), sessions.Conversation{}, entry(user, text, true), orchestrator.RecallLimits{})
	if err != nil {
		d.t.Fatal(err)
	}
	if len(quotes) == 0 {
		return ""
	}
	return quotes[0].Relation + ": " + quotes[0].Text
}

func TestRecallBeforeATurn(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	d := setup(t, func(c *recollect.Config) { c.Tokens, c.Storage = 150, storage(db) })
	if got := d.recalls("ann", "hello"); got != "" {
		t.Errorf("with nothing: %q", got)
	}
	for i := range 12 {
		d.knows("ann", fmt.Sprintf("something about topic%d that is rather long", i))
	}
	got := d.recalls("ann", "tell me of topic3")
	if !strings.HasPrefix(got, "remembered about you: ") || !strings.Contains(got, "topic3 ") || len(got) > 900 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if got := d.recalls("bob", "tell me of topic3"); got != "" {
		t.Errorf("Bob: %q", got)
	}
	bot := entry("ann", "topic3", true)
	bot.In.Sender.Bot = true
	if quotes, err := d.Recall(t.Context(), sessions.Conversation{}, bot, orchestrator.RecallLimits{}); len(quotes) != 0 || err != nil {
		t.Errorf("a bot: %v, %v", quotes, err)
	}
	err := db.InTx(t.Context(), func(tx *store.Tx) error { return tx.Memories().SetMemoryOn(t.Context(), "test/ann", false) })
	if err != nil {
		t.Fatal(err)
	}
	if got := d.recalls("ann", "topic3"); got != "" {
		t.Errorf("switched off: %q", got)
	}
}

// stuck is an embeddings API that does not answer until it is asked to.
type stuck struct {
	memorytest.Embedder
	hang  atomic.Bool
	calls atomic.Int64
}

func (s *stuck) Embed(ctx context.Context, texts []string) ([]memory.Vector, error) {
	s.calls.Add(1)
	if s.hang.Load() {
		<-ctx.Done()
		return nil, errors.New("gave up")
	}
	return s.Embedder.Embed(ctx, texts)
}

func (s *stuck) EmbedEach(ctx context.Context, texts []string) ([]memory.Vector, error) {
	return s.Embed(ctx, texts)
}

func TestEmbeddingsAreMadeLater(t *testing.T) {
	t.Parallel()
	api := &stuck{}
	api.hang.Store(true)
	var db recollect.Storage
	d := setup(t, func(c *recollect.Config) { c.Embedder, c.Patience, db = api, time.Millisecond, c.Storage })
	d.knows("ann", "I like green tea")
	if got := d.recalls("ann", "tea?"); !strings.Contains(got, "green tea") {
		t.Errorf("while the API hangs: %q", got)
	}
	api.hang.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	deadline := time.Now().Add(10 * time.Second)
	for bare := 1; bare > 0; {
		err := db.InRead(t.Context(), func(tx recollect.Tx) error {
			list, err := tx.BareMemories(t.Context(), memorytest.Model, 10, time.Now())
			bare = len(list)
			return err
		})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d memories have no embedding: %v", bare, err)
		}
	}
	cancel()
	<-done
}

func TestTools(t *testing.T) {
	t.Parallel()
	d := setup(t)
	tools := func(user string, private bool) (*tool.Box, string) {
		e := entry(user, "x", private)
		e.ID = fmt.Sprintf(runID, 99)
		box, err := tool.NewBox(d.Tools(orchestrator.ToolTurn{Entry: e})...)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range box.Specs() {
			names = append(names, s.Name)
		}
		return box, strings.Join(names, " ")
	}
	ann, names := tools("ann", true)
	if names != "remember recall forget" {
		t.Errorf("in private: %s", names)
	}
	bob, names := tools("bob", false)
	if names != "remember forget" {
		t.Errorf("where others write: %s", names)
	}
	for _, tt := range []struct {
		box             *tool.Box
		name, args, say string
		fails           bool
	}{
		{ann, "remember", `{"text":"Likes tea","category":"preference"}`, "INSERT_NEW: it is memory 1", false},
		{ann, "remember", `{"text":"Does not like tea"}`, "UPDATE_SIMILAR: it is memory 1. It replaces", false},
		{ann, "remember", `{"text":"Likes cocoa","replaces":1}`, "Updated memory 1", false},
		{ann, "remember", `{"text":"Likes cocoa","replaces":8}`, "no memory 8", true},
		{ann, "remember", `{"text":"The password is hunter2"}`, "was not saved", true},
		{ann, "remember", `{"text":"x","category":"gossip"}`, "no category", true},
		{ann, "recall", `{"query":"cocoa"}`, "[1] Likes cocoa", false},
		{bob, "forget", `{"number":1}`, "no memory 1", true},
		{ann, "forget", `{"number":1}`, "Deleted memory 1", false},
		{ann, "recall", `{"query":"cocoa"}`, "You remember nothing", false},
	} {
		r, _, _ := tt.box.Run(t.Context(), messages.ToolCall{ID: "1", Name: tt.name, Arguments: tt.args})
		if !strings.Contains(r.Content, tt.say) || r.IsError != tt.fails {
			t.Errorf("%s %s: %+v, want %q", tt.name, tt.args, r, tt.say)
		}
	}
}

// counted counts what it is asked to embed.
type counted struct {
	memorytest.Embedder
	asked atomic.Int64
}

func (c *counted) Embed(ctx context.Context, texts []string) ([]memory.Vector, error) {
	c.asked.Add(int64(len(texts)))
	return c.Embedder.Embed(ctx, texts)
}

// What a profile says about recall holds: how many, and whether by embedding.
func TestAProfileLimitsRecall(t *testing.T) {
	t.Parallel()
	e := &counted{}
	d := setup(t, func(c *recollect.Config) { c.Embedder, c.Patience = e, time.Minute })
	for i := range 4 {
		d.knows("ann", fmt.Sprintf("Fact %d is about tea", i))
	}
	for name, tt := range map[string]struct {
		limits orchestrator.RecallLimits
		lines  int // with the sentence before them
		embeds int64
	}{
		"None":         {orchestrator.RecallLimits{}, 5, 1},
		"Two":          {orchestrator.RecallLimits{Max: 2}, 3, 1},
		"Words":        {orchestrator.RecallLimits{WordsOnly: true}, 5, 0},
		"ThisModel":    {orchestrator.RecallLimits{EmbeddingModel: memorytest.Model}, 5, 1},
		"AnotherModel": {orchestrator.RecallLimits{EmbeddingModel: "another"}, 5, 0},
	} {
		before := e.asked.Load()
		quotes, err := d.Recall(t.Context(), sessions.Conversation{}, entry("ann", "tea, for "+name, true), tt.limits)
		if err != nil || len(quotes) != 1 {
			t.Fatalf("%s: %v, %v", name, quotes, err)
		}
		if n := strings.Count(quotes[0].Text, "\n") + 1; n != tt.lines {
			t.Errorf("%s: %d lines, want %d: %s", name, n, tt.lines, quotes[0].Text)
		}
		if n := e.asked.Load() - before; n != tt.embeds {
			t.Errorf("%s: %d texts were embedded, want %d", name, n, tt.embeds)
		}
	}
}

// A budget of tokens bounds what is recalled, and a bot has no memory.
func TestRecallKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	d := setup(t, func(c *recollect.Config) { c.Tokens = 60 })
	for i := range 6 {
		d.knows("ann", fmt.Sprintf("something about tea that is rather long, number %d", i))
	}
	if n := strings.Count(d.recalls("ann", "tea"), "\n- ["); n == 0 || n > 4 {
		t.Errorf("%d memories for 60 tokens", n)
	}
	bot := entry("ann", "tea", true)
	bot.In.Sender.Bot = true
	if tools := d.Tools(orchestrator.ToolTurn{Entry: bot}); len(tools) != 0 {
		t.Errorf("a bot has %d tools for a person's memory", len(tools))
	}
}

// Where others read the answer, the model is told so.
func TestRecallIsDiscreetWhereOthersRead(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.knows("ann", "I like green tea")
	for private, told := range map[bool]bool{true: false, false: true} {
		quotes, err := d.Recall(t.Context(), sessions.Conversation{}, entry("ann", "tea?", private), orchestrator.RecallLimits{})
		if err != nil || len(quotes) != 1 || strings.Contains(quotes[0].Text, "Others read the answer") != told {
			t.Errorf("private %v: %v, %v", private, quotes, err)
		}
	}
}

// What the model notes of a person holds everywhere, but for a plain fact, which is likely
// to be about the repository at hand; it may say where.
func TestWhereANoteHolds(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	d := setup(t, func(c *recollect.Config) { c.Storage = storage(db) })
	var repo sessions.Codebase
	err := db.InTx(t.Context(), func(tx *store.Tx) (err error) {
		repo, err = tx.Registry().Create(t.Context(), sessions.Codebase{Name: "acme/web", DefaultCwd: "/srv/web"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct{ category, where, codebase string }{
		{"", "", repo.ID}, {"fact", "", repo.ID}, {"preference", "", ""}, {"skill", "", ""}, {"fact", "everywhere", ""}, {"preference", "repository", repo.ID},
	} {
		who := fmt.Sprint("p", i)
		e := entry(who, "x", true)
		e.ID = fmt.Sprintf(runID, i)
		box, err := tool.NewBox(d.Tools(orchestrator.ToolTurn{Entry: e, Conversation: sessions.Conversation{CodebaseID: repo.ID}})...)
		if err != nil {
			t.Fatal(err)
		}
		args := fmt.Sprintf(`{"text":"Deploys on Fridays","category":%q,"where":%q}`, tt.category, tt.where)
		if r, _, _ := box.Run(t.Context(), messages.ToolCall{ID: "1", Name: "remember", Arguments: args}); r.IsError {
			t.Fatalf("%s: %s", args, r.Content)
		}
		err = db.InRead(t.Context(), func(tx *store.Tx) error {
			m, err := tx.Memories().Memory(t.Context(), "test/"+who, 1)
			if m.Codebase != tt.codebase {
				t.Errorf("%s: holds in %q, want %q", args, m.Codebase, tt.codebase)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A secret is one also where it is said in a sentence; how one is kept is none.
func TestNoSecretIsRemembered(t *testing.T) {
	t.Parallel()
	d := setup(t, func(c *recollect.Config) { c.Redact = redact.New().String })
	for text, secret := range map[string]bool{
		"My password is hunter2pass": true, "the wifi password: Tr0ub4dor&3": true, "MY PASSWORD IS hunter2pass": true,
		"our API key is q7Vx2LmPz9Kd84TnWr": true, "The api key is rotated each month": false,
		"mein WLAN-Passwort ist Hund1234": true, "mot de passe : chatnoir88": true, "mi contraseña es gatonegro88": true, "a minha senha é gatopreto88": true,
		"мой пароль: qwerty12345": true, "我的密码是qwerty12345": true, "パスワードは himitsu99 です": true, "비밀번호는 qwerty12345": true,
		"Mein Passwort ist im Tresor": false, "密码由管理员保管": false, "Der Passwort-Manager ist KeePass": false,
		"My password is kept in a vault": false, "My password is rotated each month": false, "Works with Ann, who is here since 2019": false,
	} {
		d.runs++
		e := entry("ann", "x", true)
		e.ID = fmt.Sprintf(runID, d.runs)
		_, err := d.Remember(t.Context(), e, memory.Fact{Scope: memory.Scope{Person: "test/ann"}, Text: text})
		if (err != nil) != secret {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// That something was forgotten is on record, and not what it was.
func TestForgettingIsOnRecord(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	d := setup(t, func(c *recollect.Config) { c.Storage = storage(db) })
	d.knows("ann", "I like green tea")
	if err := d.Forget(t.Context(), "test/ann", 1); err != nil {
		t.Fatal(err)
	}
	err := db.InRead(t.Context(), func(tx *store.Tx) error {
		rows, err := tx.AuditLog().Rows(t.Context(), store.AuditFilter{Actor: "test/ann", Action: "memory.forget", Limit: 9})
		if len(rows) != 1 || rows[0].Target != "1" || strings.Contains(rows[0].Detail, "tea") {
			t.Errorf("on record: %+v", rows)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Codes that nobody used in time are deleted, by whichever process looks first.
func TestExpiredLinkCodesAreSwept(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	d := setup(t, func(c *recollect.Config) { c.Storage = storage(db) })
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for name, left := range map[string]time.Duration{"test/old": -time.Minute, "test/good": time.Hour} {
			code := memory.LinkCode{Account: memory.Account{Name: name}, Hash: name, Expires: time.Now().Add(left)}
			if err := tx.Persons().SaveLinkCode(t.Context(), code); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	codes := func(account string) (n int64) {
		err := db.InRead(t.Context(), func(tx *store.Tx) error {
			h, err := tx.Persons().Holdings(t.Context(), account)
			n = h.Codes
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	waittest.Until(t, "the sweep", func() bool { return codes("test/old") == 0 })
	cancel()
	<-done
	if codes("test/good") != 1 {
		t.Error("a code that is good was swept")
	}
}
