package telegram

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/emulator/platformapi"
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
	*core

	opts Options
	bot  User

	// mu guards all that follows.
	mu        sync.Mutex
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
	profile   Profile
	pace      pacing
	problems  []Violation
}

// New returns a server that is not listening yet.
func New(opts Options) *Server {
	opts.Token = cmp.Or(opts.Token, "1000:test")
	opts.BotUsername = cmp.Or(opts.BotUsername, "test_bot")
	opts.BotName = cmp.Or(opts.BotName, "Test Bot")
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.WebhookBackoff == nil {
		opts.WebhookBackoff = webhookBackoff
	}
	id, _, _ := strings.Cut(opts.Token, ":")
	botID, _ := strconv.ParseInt(id, 10, 64)
	s := &Server{
		opts:      opts,
		bot:       User{ID: botID, IsBot: true, FirstName: opts.BotName, Username: opts.BotUsername},
		token:     opts.Token,
		chats:     map[int64]*chat{},
		users:     map[int64]User{},
		queue:     newQueue(),
		commands:  map[string][]Command{},
		files:     map[string]*file{},
		callbacks: map[string]bool{},
	}
	s.core = platformapi.New[apiError](platformapi.Config[Call]{
		Name: "Telegram", Addr: opts.Addr, Handler: s.Handler, Now: opts.Now, KeepCalls: opts.KeepCalls, OnClose: s.endHook,
		NameOf: func(c Call) string { return c.Method }, Faults: faultsOf, Canonical: strings.ToLower,
	})
	return s
}

type core = platformapi.Core[Call, apiError]

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
	s.Answer(ctx, w, call, platformapi.Exchange[apiError]{
		Do: func() (*platformapi.Reply, *apiError) {
			result, refused := s.dispatch(ctx, method, p, files)
			if refused != nil {
				return nil, refused
			}
			return &platformapi.Reply{Type: jsonType, Body: encodeResult(result)}, nil
		},
		Log: func(refused *apiError, faulty, dropped bool) {
			if dropped {
				refused = &apiError{}
			}
			s.log(call, refused, faulty)
		},
		Refuse: writeError,
	})
}

// dispatch carries out a method, by its name in any case.
func (s *Server) dispatch(ctx context.Context, method string, p params, files uploads) (any, *apiError) {
	if !p.validUTF8() {
		return nil, badRequest("strings must be encoded in UTF-8")
	}
	switch strings.ToLower(method) {
	case "getme":
		return s.getMe(), nil
	case "getupdates":
		return s.getUpdates(ctx, p)
	case "setwebhook":
		return s.setWebhook(p) //nolint:contextcheck // the webhook outlives the call
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
	case "editmessagemedia":
		return s.editMessageMedia(p, files)
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
	case "setmydescription":
		return s.setText(p["description"], "description", maxBotDescription, &s.profile.Description)
	case "getmydescription":
		return s.getText("description", &s.profile.Description)
	case "setmyshortdescription":
		return s.setText(p["short_description"], "short_description", maxShortDescription, &s.profile.ShortDescription)
	case "getmyshortdescription":
		return s.getText("short_description", &s.profile.ShortDescription)
	case "setmyprofilephoto":
		return s.setMyProfilePhoto(p, files)
	case "getuserprofilephotos":
		return s.getUserProfilePhotos(p)
	case "getfile":
		return s.getFile(p)
	case "answercallbackquery":
		return s.answerCallbackQuery(p)
	case "getchat":
		return s.getChat(p)
	}
	return nil, &apiError{code: http.StatusNotFound, text: "Not Found"}
}

const jsonType = "application/json"

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
	platformapi.WriteBody(w, e.code, jsonType, platformapi.MustJSON(body))
}
