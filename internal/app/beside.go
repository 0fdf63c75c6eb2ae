package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
)

// Commands that change what a running daemon works on are done by that daemon: the
// program that was called sends it the command, by its name and what it was given, and
// prints what it says. On PostgreSQL, which many processes may change at once, the
// program does it by itself.

// The commands that a daemon does.
const (
	callRepo               = "repo"
	callFork               = "fork"
	callForget             = "forget"
	callRemoveSession      = "remove-session"
	callRemoveConversation = "remove-conversation"
	callRetention          = "retention"
	callScrub              = "scrub"
	callImport             = "import"
	callImportSeed         = "import-seed"
	callMigrate            = "migrate"
)

const (
	maxCall   = 1 << 20 // bytes of what a command is given
	maxOutput = 4 << 20 // of one line that it prints
)

// What the commands are given.
type (
	repoCall struct {
		Action RepoAction
		What   string
		Folder string // the one that What is relative to, if it is a folder
	}
	forkCall struct {
		ID string
		N  int
	}
	nameCall      struct{ Name string }
	retentionCall struct{ Keep config.Retention }
	importCall    struct{ File string }
)

// perform does a command that was sent to this daemon.
func (d *daemon) perform(ctx context.Context, name string, given []byte, out io.Writer) error {
	cfg, env := d.current(), d.env
	env.Stdout, env.Stderr, env.Log, env.daemon = out, out, d.log, d
	switch name {
	case callRepo:
		return with(given, func(c repoCall) error { return repo(ctx, cfg, env, c) })
	case callFork:
		return with(given, func(c forkCall) error { return ForkSession(ctx, cfg, env, c.ID, c.N) })
	case callForget:
		return with(given, func(c nameCall) error { return ForgetPerson(ctx, cfg, env, c.Name) })
	case callRemoveSession:
		return with(given, func(c nameCall) error { return RemoveSession(ctx, cfg, env, c.Name, true) })
	case callRemoveConversation:
		return with(given, func(c nameCall) error { return RemoveConversation(ctx, cfg, env, c.Name, true) })
	case callRetention:
		return with(given, func(c retentionCall) error {
			cfg.Retention = c.Keep
			return Retention(ctx, cfg, env, false)
		})
	case callScrub:
		return Scrub(ctx, cfg, env)
	case callImport:
		return with(given, func(c importCall) error {
			f, err := os.Open(c.File)
			if err != nil {
				return fault.Newf(fault.Invalid, "The bot cannot read %s: move it to a folder that the bot's user can read.", c.File)
			}
			return errors.Join(Import(ctx, cfg, env, f), f.Close())
		})
	case callImportSeed:
		return with(given, func(c SeedImport) error { return ImportSeed(ctx, cfg, env, c) })
	case callMigrate:
		return showMigrations(ctx, d.store, out, false)
	}
	return fault.Newf(fault.Unsupported, "The running bot is another version and has no command %q. Restart it.", name)
}

// with decodes what a command was given.
func with[C any](given []byte, do func(c C) error) error {
	var c C
	decoder := json.NewDecoder(bytes.NewReader(given))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return fault.Newf(fault.Invalid, "The command is not valid: %v.", err)
	}
	return do(c)
}

// said is a line of the answer to a command: what it prints, or its end.
type said struct {
	Out   string     `json:"out,omitempty"`
	Over  bool       `json:"over,omitempty"`
	Kind  fault.Kind `json:"kind,omitempty"`
	Error string     `json:"error,omitempty"`
}

// serveCall does the command of a request. It ends if the other side goes away.
func (d *daemon) serveCall(w http.ResponseWriter, r *http.Request) {
	given, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	if err != nil {
		localsocket.WriteError(w, fault.New(fault.Invalid, "The command is longer than 1 MiB."))
		return
	}
	name := r.PathValue("name")
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := &sayer{w: w, flush: http.NewResponseController(w)}
	d.log.InfoContext(r.Context(), "a command came through the local socket", "command", name)
	end := said{Over: true}
	if err := d.perform(r.Context(), name, given, out); err != nil {
		end.Kind, end.Error = fault.KindOf(err), fault.Public(err)
		if end.Kind == fault.Internal {
			d.log.ErrorContext(r.Context(), "a command failed", "command", name, "err", err)
		}
	}
	out.say(end)
}

// sayer sends what a command prints. It is safe for concurrent use.
type sayer struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	flush *http.ResponseController
}

// Write implements io.Writer.
func (s *sayer) Write(p []byte) (int, error) {
	s.say(said{Out: string(p)})
	return len(p), nil
}

func (s *sayer) say(line said) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.NewEncoder(s.w).Encode(line) // the other side may be gone; then the request's context ends
	_ = s.flush.Flush()                   // as above
}

// inDaemon has the daemon that runs on the data directory do a command. done is false
// if none does, or this is it.
func inDaemon(ctx context.Context, cfg config.Config, env Env, name string, given any) (done bool, err error) {
	if env.daemon != nil || cfg.Database.Driver != config.DriverSQLite {
		return false, nil
	}
	return post(ctx, cfg, "calls/"+name, given, func(answer io.Reader) error { return listen(ctx, answer, env.Stdout) })
}

// post sends something to the daemon that runs on the data directory of cfg, and has its
// answer read. running is false if there is none.
func post(ctx context.Context, cfg config.Config, path string, body any, read func(answer io.Reader) error) (running bool, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return true, fault.Wrap(err, fault.Internal, "encode the request")
	}
	client := localsocket.Client(socketPath(cfg))
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bot/"+path, bytes.NewReader(text))
	if err != nil {
		return true, fault.Wrap(err, fault.Internal, "make the request")
	}
	response, err := client.Do(request)
	if err != nil {
		return !errors.Is(err, localsocket.ErrNobody), classified(ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if err := localsocket.ReadError(response); err != nil {
		return true, err
	}
	return true, read(response.Body)
}

// listen prints what a daemon says until it is over.
func listen(ctx context.Context, from io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxOutput)
	for lines.Scan() {
		var line said
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fault.Wrap(err, fault.Internal, "read what the bot says")
		}
		if line.Over && line.Error != "" {
			return fault.New(line.Kind, line.Error)
		}
		if line.Over {
			return nil
		}
		_, _ = io.WriteString(out, line.Out) // a closed terminal
	}
	return classified(ctx, errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

// classified says what became of a command whose end nobody has heard.
func classified(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &fault.Error{Kind: fault.Canceled, Public: "Canceled.", Err: ctx.Err()}
	}
	if known := (*fault.Error)(nil); errors.As(err, &known) {
		return known
	}
	return &fault.Error{Kind: fault.Unavailable, Err: err,
		Public: "The bot stopped before the command finished. Start it, check what was done, and try again."}
}

// absoluteMaps does so for the new folder of each OLD=NEW.
func absoluteMaps(maps []string) []string {
	out := make([]string, len(maps))
	for i, m := range maps {
		before, after, ok := strings.Cut(m, "=")
		if out[i] = m; ok {
			out[i] = before + "=" + absolute(after)
		}
	}
	return out
}

// absolute returns a path as another process understands it.
func absolute(path string) string {
	if path == "" || strings.Contains(path, "://") {
		return path
	}
	if at, err := filepath.Abs(strings.TrimPrefix(path, "sqlite:")); err == nil {
		return at
	}
	return path
}
