package github

import (
	"cmp"
	"net/http"
	"strings"
)

// attachment is a file that somebody dropped into a comment.
type attachment struct {
	mime string
	data []byte
	to   string // where its address redirects to; empty: to its bytes
}

// Redirect has the address of a dropped file redirect to another server.
func (s *Server) Redirect(address, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := address[strings.LastIndexByte(address, '/')+1:]
	a := s.attachments[id]
	a.to = to
	s.attachments[id] = a
}

// Drop keeps a file as GitHub does when somebody drops it into a comment, and returns
// its address, which is handed out to those with a token only and redirects to where
// the bytes are, which takes none.
func (s *Server) Drop(mime string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attachments == nil {
		s.attachments = map[string]attachment{}
	}
	id := itoa64(s.id())
	s.attachments[id] = attachment{mime: mime, data: data}
	return s.URL() + attachmentsPath + id
}

const (
	attachmentsPath = "/user-attachments/assets/"
	bytesPath       = "/private-user-images/"
)

// serveAttachment answers a request for a dropped file. It reports false for others.
func (s *Server) serveAttachment(w http.ResponseWriter, r *http.Request) bool {
	id, asset := strings.CutPrefix(r.URL.Path, attachmentsPath)
	if !asset {
		if id, asset = strings.CutPrefix(r.URL.Path, bytesPath); !asset {
			return false
		}
		if r.Header.Get("Authorization") != "" { // as S3 answers two ways to sign in
			http.Error(w, "Only one auth mechanism allowed", http.StatusBadRequest)
			return true
		}
		s.mu.Lock()
		a, known := s.attachments[id]
		s.mu.Unlock()
		if !known || r.URL.Query().Get("jwt") == "" {
			http.NotFound(w, r)
			return true
		}
		w.Header().Set("Content-Type", a.mime)
		_, _ = w.Write(a.data)
		return true
	}
	s.mu.Lock()
	a, known := s.attachments[id]
	_, refused := s.authenticate(r)
	s.mu.Unlock()
	if !known || refused != nil {
		http.NotFound(w, r) // GitHub does not say whether there is something
		return true
	}
	http.Redirect(w, r, cmp.Or(a.to, bytesPath+id+"?jwt=signed"), http.StatusFound) //nolint:gosec // a test says where to
	return true
}
