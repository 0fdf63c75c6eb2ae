package slack

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// Options configure a Server. The zero value is usable.
type Options struct {
	// Team is the workspace in which the app is installed.
	Team Team

	AppID         string // default "A1"
	AppToken      string // app-level token of Socket Mode; default "xapp-1-test"
	SigningSecret string // default "signing-secret"

	// Events are the events to which the app subscribed, such as
	// "message.channels" or "app_mention"; nil is all.
	Events []string

	// AgentSessions switches on agents.sessions.*, which answer unknown_method
	// otherwise.
	AgentSessions bool

	// NoEcho keeps the events back that the bot's own messages cause.
	NoEcho bool

	// Retries are the pauses before the second, third, ... attempt to deliver an
	// event. The default is Slack's: at once, one minute, five minutes. An event
	// that fails after the last is lost. Commands and interactions are never
	// repeated.
	Retries []time.Duration

	// AckTimeout is how long the bot may take to acknowledge; default 3 s.
	AckTimeout time.Duration

	// PingInterval is how often the server pings Socket Mode connections;
	// default 10 s.
	PingInterval time.Duration

	// TriggerLifetime is how long a trigger_id is good; default 3 s.
	TriggerLifetime time.Duration

	// ResponseURLLifetime is how long a response_url is good; default 30 min.
	ResponseURLLifetime time.Duration

	// StreamIdle and StreamMax end a stream with an error that nothing was
	// appended to for so long, or that is so old. Zero is never.
	StreamIdle, StreamMax time.Duration

	// Limits, if set, checks how fast the bot calls.
	Limits *Limits

	// KeepEdits is how many earlier texts of a message are kept, and KeepCalls
	// how many calls and deliveries. Zero keeps all, a negative number none
	// (deliveries in flight are always kept).
	KeepEdits, KeepCalls int

	// OnChange is called after each change of what people see, outside of the
	// server's lock and before the bot's call is answered. It may be called
	// concurrently.
	OnChange func(Change)

	// Now is the clock of all dates; default time.Now. Timers use real time.
	Now func() time.Time
}

// subscribed reports whether the app gets events of a name.
func (o Options) subscribed(name string) bool {
	return o.Events == nil || slices.Contains(o.Events, name)
}

func (o Options) withDefaults() Options {
	o.AppID = cmp.Or(o.AppID, "A1")
	o.AppToken = cmp.Or(o.AppToken, "xapp-1-test")
	o.SigningSecret = cmp.Or(o.SigningSecret, "signing-secret")
	if o.Retries == nil {
		o.Retries = []time.Duration{0, time.Minute, 5 * time.Minute}
	}
	o.AckTimeout = cmp.Or(o.AckTimeout, 3*time.Second)
	o.PingInterval = cmp.Or(o.PingInterval, 10*time.Second)
	o.TriggerLifetime = cmp.Or(o.TriggerLifetime, 3*time.Second)
	o.ResponseURLLifetime = cmp.Or(o.ResponseURLLifetime, 30*time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Server is an emulated Slack with one app. It is safe for concurrent use. Its
// state lives as long as the value does, through any number of restarts of the
// bot.
type Server struct {
	*platform
	*Workspace
	*Outbox
	*Sockets
	*pacing

	files     *files
	views     *views
	responses *responses
	methods   map[string]method

	appRefusal string // with which calls with the app-level token are refused; guarded by mu
}

// New returns a server that is not listening yet.
func New(opts Options) *Server {
	p := &platform{opts: opts.withDefaults()}
	s := &Server{
		platform:  p,
		Sockets:   &Sockets{platform: p, on: true, tickets: map[string]bool{}},
		pacing:    newPacing(p),
		files:     &files{platform: p, byID: map[string]*file{}},
		views:     &views{platform: p, triggers: map[string]*trigger{}, byID: map[string]*view{}},
		responses: &responses{platform: p, byID: map[string]*responseURL{}},
	}
	s.Outbox = &Outbox{platform: p, sockets: s.Sockets}
	p.core = platformapi.New[apiError](platformapi.Config[Call]{
		Name: "Slack", Handler: s.Handler, Now: p.opts.Now, KeepCalls: p.opts.KeepCalls, OnClose: s.CutConnections,
		NameOf: func(c Call) string { return c.Method }, Faults: func(c Call) []string { return []string{c.Method, AnyMethod} },
	})
	s.Workspace = newWorkspace(s, p.opts.Team)
	s.methods = s.table()
	return s
}

// APIURL returns what stands before the names of methods, with a slash at the
// end.
func (s *Server) APIURL() string { return s.URL() + "/api/" }

// AppToken returns the app-level token, which opens Socket Mode connections.
func (s *Server) AppToken() string { return s.opts.AppToken }

// SigningSecret returns the secret with which HTTP deliveries are signed.
func (s *Server) SigningSecret() string { return s.opts.SigningSecret }

// Handler returns the HTTP interface: /api/<method>, response URLs, uploads,
// downloads and Socket Mode.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveMethod)
	mux.HandleFunc("POST /response/{id}", s.serveResponse)
	mux.HandleFunc("POST /upload/{id}", s.serveUpload)
	mux.HandleFunc("GET /files-pri/{id}/{name}", s.serveDownload)
	mux.HandleFunc("GET /link", s.serveSocket)
	mux.HandleFunc("GET /signin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html><html><body>Sign in</body></html>"))
	})
	return mux
}

// request is one call of a method.
type request struct {
	method string
	p      params
	ws     *Workspace
	scopes []string // that the token has
}

// method is how a Web API method is carried out. run is called with the lock.
type method struct {
	run    func(*request) (map[string]any, *apiError)
	scopes []string // one of them is needed; none for methods that check themselves
	noJSON bool     // a JSON body is not looked at
	app    bool     // called with the app-level token
}

func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("method")
	p, refused := parseParams(r)
	call := Call{Method: name, Params: p.values, Channel: p.channel(), At: s.opts.Now()}
	s.answer(w, r, call, func() (map[string]any, *apiError, []string) { //nolint:contextcheck // what the call makes Slack deliver outlives it
		if refused != nil {
			return nil, refused, nil
		}
		return s.run(name, p)
	}, p)
}

// run carries out a method and returns the scopes of the token.
func (s *Server) run(name string, p params) (map[string]any, *apiError, []string) {
	s.mu.Lock()
	defer s.unlock()
	m, known := s.methods[name]
	if !known || strings.HasPrefix(name, "agents.") && !s.opts.AgentSessions {
		return nil, &apiError{code: "unknown_method", extra: map[string]any{"req_method": name}}, nil
	}
	if p.json && m.noJSON {
		p.values = map[string]string{}
	}
	req := &request{method: name, p: p, ws: s.Workspace, scopes: s.team.Scopes}
	if m.app {
		if refused := s.authenticateApp(p.token); refused != nil {
			return nil, refused, nil
		}
		result, refused := m.run(req)
		return result, refused, []string{"connections:write"}
	}
	if refused := s.authenticate(p); refused != nil {
		return nil, refused, nil
	}
	if refused := s.paceCall(name, p.channel()); refused != nil {
		return nil, refused, req.scopes
	}
	if len(m.scopes) > 0 {
		if refused := req.need(m.scopes...); refused != nil {
			return nil, refused, req.scopes
		}
	}
	result, refused := m.run(req)
	return result, refused, req.scopes
}

// table returns the emulated methods.
func (s *Server) table() map[string]method {
	write := []string{"chat:write"}
	return map[string]method{
		"auth.test":                    {run: authTest},
		"apps.connections.open":        {run: s.connectionsOpen, app: true},
		"chat.postMessage":             {run: postMessage, scopes: write},
		"chat.update":                  {run: update, scopes: write},
		"chat.delete":                  {run: deleteMessage, scopes: write},
		"chat.postEphemeral":           {run: postEphemeral, scopes: write},
		"chat.getPermalink":            {run: getPermalink, noJSON: true},
		"chat.startStream":             {run: startStream, scopes: write},
		"chat.appendStream":            {run: appendStream, scopes: write},
		"chat.stopStream":              {run: stopStream, scopes: write},
		"assistant.threads.setStatus":  {run: setStatus, scopes: []string{"chat:write", "assistant:write"}},
		"agents.sessions.setStatus":    {run: sessionStatus, scopes: write},
		"conversations.replies":        {run: replies, noJSON: true},
		"conversations.history":        {run: history, noJSON: true},
		"users.info":                   {run: userInfo, scopes: []string{"users:read"}, noJSON: true},
		"reactions.add":                {run: addReaction, scopes: []string{"reactions:write"}},
		"reactions.remove":             {run: removeReaction, scopes: []string{"reactions:write"}},
		"files.getUploadURLExternal":   {run: s.files.uploadURL, scopes: []string{"files:write"}, noJSON: true},
		"files.completeUploadExternal": {run: s.files.complete, scopes: []string{"files:write"}},
		"files.info":                   {run: s.files.info, scopes: []string{"files:read"}, noJSON: true},
		"views.open":                   {run: s.views.open},
	}
}
