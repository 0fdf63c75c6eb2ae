package telegram

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/calls"
)

// Options configure a Server. The zero value is usable.
type Options struct {
	Token       string // default "1000:test"; what stands before the colon is the bot's user id
	BotUsername string // default "test_bot"
	BotName     string // default "Test Bot"

	// Privacy switches on privacy mode: in groups the bot gets only commands,
	// mentions, replies to it and service messages.
	Privacy bool

	// Limits, if set, checks how fast the bot sends.
	Limits *Limits

	// KeepEdits is how many earlier texts of a message are kept, and KeepCalls
	// how many calls. Zero keeps all, a negative number none.
	KeepEdits, KeepCalls int

	// KeepMessages is how many visible, and how many deleted, messages of a chat
	// are kept; zero keeps all. A bot cannot edit or answer messages that are
	// not kept, so it must be larger than what is in flight.
	KeepMessages int

	// OnChange is called after each change of a chat, outside of the server's
	// lock and before the bot's call is answered. It may be called concurrently.
	OnChange func(Change)

	// WebhookBackoff returns how long to wait after a failed webhook delivery,
	// counted from 1. The default doubles from one second as the real server
	// does, with a first retry almost at once.
	WebhookBackoff func(attempt int) time.Duration

	// Addr is where Start listens; default a free port of 127.0.0.1.
	Addr string

	// Now is the clock of all dates; default time.Now.
	Now func() time.Time
}

// ChangeKind says what happened to a message.
type ChangeKind string

// The kinds of changes.
const (
	ChangeReceived ChangeKind = "received" // a person sent it
	ChangeSent     ChangeKind = "sent"     // the bot sent it
	ChangeEdited   ChangeKind = "edited"
	ChangeDeleted  ChangeKind = "deleted"
	ChangeReacted  ChangeKind = "reacted"
)

// Change is one change of what people see.
type Change struct {
	Kind    ChangeKind
	Message Message // as it is after the change
	At      time.Time
}

// Server is an emulated Bot API server with one bot. It is safe for concurrent
// use. Its state lives as long as the value does, through any number of
// restarts of the bot.
type Server struct {
	opts    Options
	bot     User
	done    chan struct{} // closed by Close
	once    sync.Once
	changed emulator.Signal
	tasks   sync.WaitGroup // webhook deliveries
	client  *http.Client   // for webhook deliveries
	faults  calls.Faults[Call, Fault]
	calls   *calls.Log[Call]

	// mu guards all that follows.
	mu        sync.Mutex
	loop      *emulator.Loopback
	closed    bool
	token     string
	chats     map[int64]*chat
	users     map[int64]User
	queue     queue
	poll      *poller
	lastPoll  pollMemory
	hook      *webhook
	allowed   []string             // allowed_updates; nil is the default
	commands  map[string][]Command // by scope and language
	files     map[string]*file
	callbacks map[string]bool // open callback queries
	answers   []CallbackAnswer
	pace      pacing
	problems  []Violation
}

// New returns a server that is not listening yet.
func New(opts Options) *Server {
	if opts.Token == "" {
		opts.Token = "1000:test"
	}
	if opts.BotUsername == "" {
		opts.BotUsername = "test_bot"
	}
	if opts.BotName == "" {
		opts.BotName = "Test Bot"
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.WebhookBackoff == nil {
		opts.WebhookBackoff = webhookBackoff
	}
	id, _, _ := strings.Cut(opts.Token, ":")
	botID, _ := strconv.ParseInt(id, 10, 64)
	return &Server{
		opts:      opts,
		bot:       User{ID: botID, IsBot: true, FirstName: opts.BotName, Username: opts.BotUsername},
		done:      make(chan struct{}),
		client:    &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: time.Minute},
		token:     opts.Token,
		chats:     map[int64]*chat{},
		users:     map[int64]User{},
		queue:     newQueue(),
		commands:  map[string][]Command{},
		files:     map[string]*file{},
		callbacks: map[string]bool{},
		calls:     calls.NewLog[Call](opts.KeepCalls),
	}
}

// Start serves on Options.Addr.
func (s *Server) Start() error {
	loop, err := emulator.Listen(s.opts.Addr, s.Handler())
	if err != nil {
		return fmt.Errorf("starting the Telegram emulator: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loop = loop
	return nil
}

// URL returns the base URL for the bot, without a slash at the end, or the empty
// string before Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop == nil {
		return ""
	}
	return s.loop.URL()
}

// Bot returns the bot's own account.
func (s *Server) Bot() User { return s.bot }

// Token returns the token that the bot must use.
func (s *Server) Token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// SetToken replaces the token, after which the old one is refused with 401.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Close ends all polls and deliveries and waits for them. The ledger stays
// readable. It may be called more than once.
func (s *Server) Close() {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.closeHook()
		loop := s.loop
		s.mu.Unlock()
		close(s.done)
		if loop != nil {
			loop.Close()
		}
		s.tasks.Wait()
		s.client.CloseIdleConnections()
	})
}

// rawResult is a result that is sent byte for byte, even if it is not JSON.
type rawResult []byte

// Handler returns the HTTP interface: /bot<token>/<method> and
// /file/bot<token>/<path>.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/file/bot"); ok {
		s.serveFile(w, rest)
		return
	}
	rest, ok := strings.CutPrefix(path, "/bot")
	token, method, found := strings.Cut(rest, "/")
	if !ok || !found || method == "" || strings.Contains(method, "/") || !strings.Contains(token, ":") {
		writeError(w, &apiError{code: http.StatusNotFound, text: "Not Found"})
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		writeError(w, &apiError{code: http.StatusMethodNotAllowed, text: "Method Not Allowed"})
		return
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.Token())) != 1 {
		writeError(w, &apiError{code: http.StatusUnauthorized, text: "Unauthorized"})
		return
	}
	p, files, err := parseParams(r)
	if err != nil {
		// The body was cut or is not what its type says. A client that is gone
		// does not read this.
		writeError(w, badRequest("can't parse the request body"))
		return
	}
	s.answer(r.Context(), w, method, p, files)
}

// answer carries out one call with the fault that is due.
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, method string, p params, files uploads) {
	call := Call{Method: method, ChatID: p.int("chat_id", 0), Params: p, At: s.opts.Now()}
	fault := s.nextFault(call)
	if s.waitFault(ctx, fault) != nil {
		panic(http.ErrAbortHandler)
	}
	if fault.end == calls.Before {
		s.log(call, &apiError{}, true)
		emulator.Reset(w)
	}
	if fault.refuse != nil {
		s.log(call, fault.refuse, true)
		writeError(w, fault.refuse)
		return
	}
	result, refused := s.dispatch(ctx, method, p, files)
	s.log(call, refused, fault.end != calls.Normal)
	writeEnding(w, result, refused, fault.end)
}

// waitFault spends the time of a fault, unless the client or the server goes
// away first.
func (s *Server) waitFault(ctx context.Context, fault Fault) error {
	return calls.Hold(ctx, s.done, fault.gate, fault.delay)
}

// dispatch carries out a method, by its name in any case.
func (s *Server) dispatch(ctx context.Context, method string, p params, files uploads) (any, *apiError) {
	if !p.validUTF8() {
		return nil, badRequest("strings must be encoded in UTF-8")
	}
	switch canonical(method) {
	case "getme":
		return s.getMe(), nil
	case "getupdates":
		return s.getUpdates(ctx, p)
	case "setwebhook":
		return s.setWebhook(p)
	case "deletewebhook":
		return s.deleteWebhook(p)
	case "getwebhookinfo":
		return s.webhookInfo(), nil
	case "sendmessage":
		return s.sendMessage(p)
	case "senddocument":
		return s.sendDocument(p, files)
	case "editmessagetext":
		return s.editMessageText(p)
	case "deletemessage":
		return s.deleteMessage(p)
	case "sendchataction":
		return s.sendChatAction(p)
	case "sendmessagedraft":
		return s.sendMessageDraft(p)
	case "setmessagereaction":
		return s.setMessageReaction(p)
	case "createforumtopic":
		return s.createForumTopic(p)
	case "setmycommands":
		return s.setMyCommands(p)
	case "getmycommands":
		return s.getMyCommands(p)
	case "deletemycommands":
		return s.deleteMyCommands(p)
	case "getfile":
		return s.getFile(p)
	case "answercallbackquery":
		return s.answerCallbackQuery(p)
	case "getchat":
		return s.getChat(p)
	}
	return nil, &apiError{code: http.StatusNotFound, text: "Not Found"}
}

func canonical(method string) string { return strings.ToLower(method) }

func writeEnding(w http.ResponseWriter, result any, refused *apiError, end calls.Ending) {
	if end == calls.After {
		emulator.Reset(w)
	}
	if end == calls.Garbage {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>502 Bad Gateway</body></html>"))
		return
	}
	if refused != nil {
		writeError(w, refused)
		return
	}
	body := encodeResult(result)
	switch end {
	case calls.Truncated:
		writeBody(w, http.StatusOK, body[:len(body)/2])
	case calls.Short:
		calls.CutShort(w, http.StatusOK, body)
	default:
		writeBody(w, http.StatusOK, body)
	}
}

func encodeResult(result any) []byte {
	var out bytes.Buffer
	out.WriteString(`{"ok":true,"result":`)
	if raw, ok := result.(rawResult); ok {
		out.Write(raw)
	} else {
		b, err := json.Marshal(result)
		if err != nil {
			b = []byte("null")
		}
		out.Write(b)
	}
	out.WriteByte('}')
	return out.Bytes()
}

func writeError(w http.ResponseWriter, e *apiError) {
	type parameters struct {
		MigrateToChatID int64 `json:"migrate_to_chat_id,omitempty"`
		RetryAfter      int   `json:"retry_after,omitempty"`
	}
	body := struct {
		OK          bool        `json:"ok"`
		ErrorCode   int         `json:"error_code"`
		Description string      `json:"description"`
		Parameters  *parameters `json:"parameters,omitempty"`
	}{ErrorCode: e.code, Description: e.text}
	if e.retryAfter > 0 || e.migrateTo != 0 {
		body.Parameters = &parameters{MigrateToChatID: e.migrateTo, RetryAfter: e.retryAfter}
	}
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	b, err := json.Marshal(body)
	if err != nil {
		b = []byte(`{"ok":false}`)
	}
	writeBody(w, e.code, b)
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
