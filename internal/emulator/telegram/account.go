package telegram

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/pattern"
)

// maxDownload is the largest file that getFile gives out.
const maxDownload = 20 << 20

func (s *Server) getMe() any {
	return struct {
		User
		CanJoinGroups           bool `json:"can_join_groups"`
		CanReadAllGroupMessages bool `json:"can_read_all_group_messages"`
		SupportsInlineQueries   bool `json:"supports_inline_queries"`
	}{User: s.bot, CanJoinGroups: true, CanReadAllGroupMessages: !s.opts.Privacy}
}

func (s *Server) getChat(p params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.target(p)
	if refused != nil {
		return nil, refused
	}
	return *c.info, nil
}

var commandPattern = pattern.Lazy(`^[a-z0-9_]{1,32}$`)

func (s *Server) setMyCommands(p params) (any, *apiError) {
	var commands []Command
	if given, refused := p.json("commands", &commands); refused != nil {
		return nil, refused
	} else if !given {
		return nil, badRequest("commands is empty")
	}
	if len(commands) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, c := range commands {
		if !commandPattern.MatchString(c.Command) {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := utf8.RuneCountInString(c.Description); n < 1 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key, refused := s.scopeKey(p)
	if refused != nil {
		return nil, refused
	}
	s.commands[key] = commands
	return true, nil
}

func (s *Server) getMyCommands(p params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, refused := s.scopeKey(p)
	if refused != nil {
		return nil, refused
	}
	return append([]Command{}, s.commands[key]...), nil
}

func (s *Server) deleteMyCommands(p params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, refused := s.scopeKey(p)
	if refused != nil {
		return nil, refused
	}
	delete(s.commands, key)
	return true, nil
}

// Menu returns the commands that the bot set, by scope and language; the key of
// the default is "|". See ChatMenu for what the people of a chat see.
func (s *Server) Menu() map[string][]Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.commands)
}

// file is something that a person sent.
type file struct {
	path string
	size int64
	data []byte
}

// keepFile stores a file and returns its id. The lock must be held.
func (s *Server) keepFile(a Attachment) string {
	id := "file" + strconv.Itoa(len(s.files)+1)
	size := a.Size
	if size == 0 {
		size = int64(len(a.Data))
	}
	s.files[id] = &file{path: fmt.Sprintf("%ss/%s%s", a.Kind, id, path.Ext(a.Name)), size: size, data: a.Data}
	return id
}

func (s *Server) getFile(p params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := p["file_id"]
	f := s.files[id]
	if f == nil {
		return nil, badRequest("invalid file_id")
	}
	if f.size > maxDownload {
		return nil, badRequest("file is too big")
	}
	return map[string]any{
		"file_id": id, "file_unique_id": "u" + id, "file_size": f.size, "file_path": f.path,
	}, nil
}

func (s *Server) serveFile(w http.ResponseWriter, rest string) {
	token, name, _ := strings.Cut(rest, "/")
	s.mu.Lock()
	var found *file
	for _, f := range s.files {
		if f.path == name && token == s.token {
			found = f
		}
	}
	s.mu.Unlock()
	if found == nil {
		writeError(w, &apiError{code: http.StatusNotFound, text: "Not Found"})
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(found.data)))
	_, _ = w.Write(found.data)
}

func (s *Server) answerCallbackQuery(p params) (any, *apiError) {
	if utf8.RuneCountInString(p["text"]) > 200 {
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := p["callback_query_id"]
	if !s.callbacks[id] {
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	delete(s.callbacks, id)
	s.answers = append(s.answers, CallbackAnswer{QueryID: id, Text: p["text"], Alert: p.bool("show_alert")})
	return true, nil
}
