package telegram

import (
	"cmp"
	"context"
	"crypto/subtle"
	"net/http"
	"strconv"
	"strings"
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

	// Now is the clock of all dates; default time.Now.
	Now func() time.Time
}

// Server is an emulated Bot API server with one bot. It is safe for concurrent
// use. Its state lives as long as the value does, through any number of
// restarts of the bot.
type Server struct {
	*platform
	*Chats
	*Updates
	*Account
	*pacing

	files   *files
	methods map[string]handler // by their names in lower case

	token string // guarded by mu
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
	p := &platform{opts: opts, bot: User{ID: botID, IsBot: true, FirstName: opts.BotName, Username: opts.BotUsername}}
	s := &Server{
		platform: p,
		Chats:    &Chats{platform: p, byID: map[int64]*chat{}, users: map[int64]User{}, callbacks: map[string]bool{}},
		pacing:   &pacing{platform: p, chats: map[int64]*chatPace{}},
		files:    &files{byID: map[string]*file{}},
		token:    opts.Token,
	}
	s.Updates = &Updates{platform: p, queue: newQueue(), reply: s.executeReply}
	s.Account = &Account{platform: p, chats: s.Chats, commands: map[string][]Command{}}
	s.methods = s.table()
	p.core = platformapi.New[apiError](platformapi.Config[Call]{
		Name: "Telegram", Handler: s.Handler, Now: opts.Now, KeepCalls: opts.KeepCalls, OnClose: s.endHook,
		NameOf: func(c Call) string { return c.Method }, Faults: faultsOf, Canonical: strings.ToLower,
	})
	return s
}

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

// request is one call of a method.
type request struct {
	server *Server
	ctx    context.Context
	p      params
	files  uploads
}

// handler carries out a method. It is called with the lock.
type handler func(*request) (any, *apiError)

// dispatch carries out a method, by its name in any case.
func (s *Server) dispatch(ctx context.Context, method string, p params, files uploads) (any, *apiError) {
	if !p.validUTF8() {
		return nil, badRequest("strings must be encoded in UTF-8")
	}
	run := s.methods[strings.ToLower(method)]
	if run == nil {
		return nil, &apiError{code: http.StatusNotFound, text: "Not Found"}
	}
	s.mu.Lock()
	defer s.unlock()
	return run(&request{server: s, ctx: ctx, p: p, files: files})
}

// table returns the emulated methods.
func (s *Server) table() map[string]handler {
	return map[string]handler{
		"getme":                 getMe,
		"getupdates":            s.getUpdates,
		"setwebhook":            s.setWebhook,
		"deletewebhook":         s.deleteWebhook,
		"getwebhookinfo":        s.webhookInfo,
		"sendmessage":           sendMessage,
		"senddocument":          sendDocument,
		"editmessagetext":       editMessageText,
		"editmessagemedia":      editMessageMedia,
		"deletemessage":         deleteMessage,
		"sendchataction":        sendChatAction,
		"sendmessagedraft":      sendMessageDraft,
		"setmessagereaction":    setMessageReaction,
		"createforumtopic":      createForumTopic,
		"setmycommands":         s.setMyCommands,
		"getmycommands":         s.getMyCommands,
		"deletemycommands":      s.deleteMyCommands,
		"setmydescription":      setText("description", maxBotDescription, &s.profile.Description),
		"getmydescription":      getText("description", &s.profile.Description),
		"setmyshortdescription": setText("short_description", maxShortDescription, &s.profile.ShortDescription),
		"getmyshortdescription": getText("short_description", &s.profile.ShortDescription),
		"setmyprofilephoto":     s.setMyProfilePhoto,
		"getuserprofilephotos":  s.getUserProfilePhotos,
		"getfile":               s.files.get,
		"answercallbackquery":   s.answerCallbackQuery,
		"getchat":               getChat,
	}
}
