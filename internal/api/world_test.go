//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/docs"
	"remote-agent/internal/api"
	"remote-agent/internal/apikey"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/profile"
	"remote-agent/internal/ratelimit"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

const (
	missingID = "0198c2d1-7a3b-7c4d-8e5f-0123456789ab"
	ann       = "telegram/42"
)

// world is an API on a database with something in it.
type world struct {
	*store.Store

	t     *testing.T
	now   atomic.Pointer[time.Time]
	log   lockedBuffer
	url   string
	token string // of a key with all scopes

	proxies ratelimit.Proxies // for serve

	conversation, other sessions.Conversation
	done, busy          sessions.Session // of conversation: ended, and at work
	idle                sessions.Session // of other
	calls               []sessions.ToolCall
	agent, worker       profile.Profile // worker is used by conversation, which works
}

// each runs a test on every database.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		test(t, newWorld(t, open(t)))
	})
}

func newWorld(t *testing.T, s *store.Store) *world {
	t.Helper()
	w := &world{Store: s, t: t}
	w.clock(time.Now())
	w.serve()
	return w
}

// serve starts an API, with limits of its own, in the place of the one before.
func (w *world) serve() {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})) // on purpose without a redactor
	server := httptest.NewServer(api.New(api.Config{
		Store: w.Store, Version: "test", Document: docs.OpenAPI, Log: log, Proxies: w.proxies, Now: func() time.Time { return *w.now.Load() },
	}))
	w.t.Cleanup(server.Close)
	w.url = server.URL
}

func (w *world) clock(at time.Time) { w.now.Store(&at) }

func (w *world) do(fn func(ctx context.Context, tx *store.Tx) error) {
	w.t.Helper()
	if err := w.InTx(w.t.Context(), func(tx *store.Tx) error { return fn(w.t.Context(), tx) }); err != nil {
		w.t.Fatal(err)
	}
}

// key makes a key and returns its token.
func (w *world) key(name string, life time.Duration, scopes ...apikey.Scope) (k apikey.Key, token string) {
	w.t.Helper()
	k, token, err := apikey.New(name, scopes, life, *w.now.Load())
	if err != nil {
		w.t.Fatal(err)
	}
	w.do(func(ctx context.Context, tx *store.Tx) error { return tx.SignIn().InsertAPIKey(ctx, k) })
	return k, token
}

// fill makes a key with all scopes and something of everything.
func (w *world) fill() *world {
	w.t.Helper()
	_, w.token = w.key("all", 0, apikey.Scopes()...)
	w.do(func(ctx context.Context, tx *store.Tx) (err error) {
		w.agent, err = tx.Profiles().Create(ctx, profile.New("reviewer"))
		if err != nil {
			return err
		}
		worker := profile.New("worker")
		worker.Group, worker.Lore, worker.ModelTier = "team", profile.Texts{"old"}, "smart"
		worker.MCPServers = map[string]mcpserver.Server{"tracker": {Command: "tracker", Args: []string{"--hidden"}, Env: map[string]string{"TOKEN": "hidden"}}}
		w.worker, err = tx.Profiles().Create(ctx, worker)
		return err
	})
	w.conversation, w.done = w.talk("42", "reviewer")
	w.other, w.idle = w.talk("77", "")
	w.do(func(ctx context.Context, tx *store.Tx) (err error) {
		w.busy, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: w.conversation.ID, Assistant: "demo", UserPrompt: "more"})
		if err != nil {
			return err
		}
		e := sessions.Entry{ConversationID: w.conversation.ID, In: messages.Inbound{
			Account: "bot", Event: "1", Kind: messages.KindMessage, Conversation: w.conversation.Key,
			Message: "1", Sender: messages.Sender{ID: "42"}, Text: "more",
		}}
		e.State, e.SessionID = sessions.EntryRunning, w.busy.ID
		if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
			return err
		}
		if _, err := tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: w.busy.ID, EntryID: e.ID, Model: "m"}); err != nil {
			return err
		}
		if err := tx.Conversations().UpdateConversation(ctx, w.conversation.ID, sessions.ConversationUpdate{AgentID: &w.worker.ID}); err != nil {
			return err
		}
		_, _, _, err = tx.Leases().ClaimLease(ctx, w.conversation.ID, "test", time.Hour)
		return err
	})
	w.remember()
	return w
}

// talk makes a conversation with an ended session that has a message of every
// block and a tool call of every end.
func (w *world) talk(chat, agent string) (c sessions.Conversation, s sessions.Session) {
	w.t.Helper()
	w.do(func(ctx context.Context, tx *store.Tx) (err error) {
		key := messages.ConversationKey{Platform: "telegram", ID: chat}
		if c, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, "demo"); err != nil {
			return err
		}
		s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{
			ConversationID: c.ID, Assistant: "demo", AgentName: agent, UserPrompt: "why does it\npanic? " + strings.Repeat("long ", 60), SystemPrompt: "be kind",
		})
		if err != nil {
			return err
		}
		question := messages.NewText(messages.RoleUser, "why does it panic?")
		question.Blocks = append(question.Blocks, messages.Attachment{Name: "crash.log", MediaType: "text/plain", Size: 5, Text: "panic"})
		asks := messages.Message{Role: messages.RoleAssistant, ProviderMetadata: json.RawMessage(`{"model":"m"}`), Blocks: []messages.Block{
			messages.Thinking{Text: "hm", Signature: "opaque-signature"}, messages.ToolCall{ID: "c1", Name: "bash", Arguments: `{"command":"ls"}`},
		}}
		result := messages.NewToolResult("c1", "pool.go", false)
		answer := messages.NewText(messages.RoleAssistant, "Two goroutines <write> the map in pool.go & race.")
		if _, err := tx.Messages().AppendMessages(ctx, s.ID, missingID, question, asks, result, answer); err != nil {
			return err
		}
		call := sessions.ToolCall{SessionID: s.ID, MessageSeq: 2, CallID: "c3", Name: "bash", Request: `{"command":"ls"}`, Status: sessions.ToolExecuting}
		done, failed := call, call
		done.CallID, done.Status, done.Response = "c1", sessions.ToolCompleted, `"pool.go"`
		failed.CallID, failed.Status, failed.Error = "c2", sessions.ToolFailed, "no such file"
		if err := storetest.Calls(ctx, tx, done, failed, call); err != nil {
			return err
		}
		if w.calls, err = tx.Calls().ToolCalls(ctx, s.ID); err != nil {
			return err
		}
		if err := tx.Sessions().RecordTurn(ctx, s.ID, sessions.TurnRecord{Model: "m", Result: "Two goroutines", InputTokens: 10, OutputTokens: 5}); err != nil {
			return err
		}
		for _, status := range []sessions.RunStatus{sessions.RunFailed, sessions.RunCompleted} {
			run := sessions.NewRun{SessionID: s.ID, EntryID: missingID, Model: "m"}
			if _, err := tx.Sessions().BeginRun(ctx, run); err != nil {
				return err
			}
			end := sessions.RunEnd{Status: status, Took: time.Second}
			if status == sessions.RunFailed {
				end.Error = "no key"
			}
			if err := tx.Sessions().EndOpenRun(ctx, s.ID, missingID, end); err != nil {
				return err
			}
		}
		return tx.Sessions().DeactivateSession(ctx, s.ID, "reset")
	})
	return c, s
}

// remember makes the memories 1 to 3 of Ann, of which the last has expired.
func (w *world) remember() {
	w.t.Helper()
	scope := memory.Scope{Person: ann}
	w.do(func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Memories().UpsertFact(ctx, memory.Fact{Scope: scope, RunID: missingID, Text: "I prefer tabs", Category: memory.Preference, Origin: memory.ByPerson}); err != nil {
			return err
		}
		if _, err := tx.Memories().CorrectFact(ctx, 1, memory.Fact{Scope: scope, RunID: missingID, Text: "I prefer spaces", Origin: memory.ByPerson}); err != nil {
			return err
		}
		if _, err := tx.Memories().InsertEpisode(ctx, memory.Episode{Scope: scope, RunID: missingID, Text: "We moved the server", Sources: []string{"a message"}}); err != nil {
			return err
		}
		_, err := tx.Memories().InsertEpisode(ctx, memory.Episode{Scope: scope, RunID: missingID, Text: "We had cake", Now: time.Now().Add(-2 * memory.EpisodeLife)})
		return err
	})
}

// reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// at returns what is behind a path of names and numbers in the JSON.
func (r reply) at(t *testing.T, path ...any) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(r.body, &value); err != nil {
		t.Fatalf("not JSON: %v: %s", err, r.body)
	}
	return walk(value, path...)
}

// walk returns what is behind a path in a value of JSON.
func walk(value any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := value.(map[string]any)
			value = m[p]
		case int:
			l, _ := value.([]any)
			if p >= len(l) {
				return nil
			}
			value = l[p]
		}
	}
	return value
}

// send sends a request as it is.
func (w *world) send(method, path, token string, change ...func(*http.Request)) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, f := range change {
		f(req)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, body}
}

// get asks with the key that may do everything and wants 200.
func (w *world) get(path string) reply {
	w.t.Helper()
	r := w.send(http.MethodGet, path, w.token)
	if r.status != http.StatusOK {
		w.t.Fatalf("GET %s: %d %s", path, r.status, r.body)
	}
	return r
}

// lockedBuffer is a log that may be written to and read at once.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
