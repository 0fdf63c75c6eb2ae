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

// attachments are the files that people dropped.
type attachments struct {
	world  *world
	tokens *credentials

	files map[string]attachment // by id; the world's lock guards it
}

// Redirect has the address of a dropped file redirect to another server.
func (a *attachments) Redirect(address, to string) {
	defer a.world.writing()()
	id := address[strings.LastIndexByte(address, '/')+1:]
	file := a.files[id]
	file.to = to
	a.files[id] = file
}

// Drop keeps a file as GitHub does when somebody drops it into a comment, and returns
// its address, which is handed out to those with a token only and redirects to where
// the bytes are, which takes none.
func (a *attachments) Drop(mime string, data []byte) string {
	defer a.world.writing()()
	id := itoa64(a.world.id())
	a.files[id] = attachment{mime: mime, data: data}
	return a.world.core.URL() + attachmentsPath + id
}

const (
	attachmentsPath = "/user-attachments/assets/"
	bytesPath       = "/private-user-images/"
)

// serve answers a request for a dropped file. It reports false for others.
func (a *attachments) serve(w http.ResponseWriter, r *http.Request) bool {
	if id, asset := strings.CutPrefix(r.URL.Path, attachmentsPath); asset {
		done := a.world.reading()
		file, known := a.files[id]
		_, refused := a.tokens.authenticate(r)
		done()
		if !known || refused != nil {
			http.NotFound(w, r) // GitHub does not say whether there is something
			return true
		}
		http.Redirect(w, r, cmp.Or(file.to, bytesPath+id+"?jwt=signed"), http.StatusFound) //nolint:gosec // a test says where to
		return true
	}
	id, stored := strings.CutPrefix(r.URL.Path, bytesPath)
	if !stored {
		return false
	}
	if r.Header.Get("Authorization") != "" { // as S3 answers two ways to sign in
		http.Error(w, "Only one auth mechanism allowed", http.StatusBadRequest)
		return true
	}
	done := a.world.reading()
	file, known := a.files[id]
	done()
	if !known || r.URL.Query().Get("jwt") == "" {
		http.NotFound(w, r)
		return true
	}
	w.Header().Set("Content-Type", file.mime)
	_, _ = w.Write(file.data)
	return true
}
