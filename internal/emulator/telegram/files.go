package telegram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// maxDownload is the largest file that getFile gives out.
const maxDownload = 20 << 20

// maxUpload is the largest file that a bot may send.
const maxUpload = 50 << 20

// files are what people and the bot sent.
type files struct{ byID map[string]*file }

type file struct {
	path string
	size int64
	data []byte
}

// keep stores a file and returns its id. The lock must be held.
func (f *files) keep(a Attachment) string {
	id := "file" + strconv.Itoa(len(f.byID)+1)
	f.byID[id] = &file{
		path: fmt.Sprintf("%ss/%s%s", a.Kind, id, path.Ext(a.Name)), size: cmp.Or(a.Size, int64(len(a.Data))), data: a.Data,
	}
	return id
}

// document keeps a file that the bot sent, and returns what people see of it.
func (f *files) document(doc *upload) *File {
	if doc == nil {
		return nil
	}
	id := f.keep(Attachment{Kind: "document", Name: doc.name, Data: doc.data})
	return &File{ID: id, Name: doc.name, Size: int64(len(doc.data)), Data: doc.data}
}

// describe stores a file and returns the fields that a message has for it.
func (f *files) describe(a Attachment) map[string]any {
	a.Kind = cmp.Or(a.Kind, "document")
	id := f.keep(a)
	out := map[string]any{"file_id": id, "file_unique_id": "u" + id, "file_size": f.byID[id].size}
	switch a.Kind {
	case "photo":
		out["width"], out["height"] = 640, 480
		return map[string]any{"photo": []any{out}}
	case "sticker":
		out["type"], out["emoji"], out["width"], out["height"] = "regular", a.Name, 512, 512
		out["is_animated"], out["is_video"] = false, false
		return map[string]any{"sticker": out}
	case "voice", "audio", "video":
		out["duration"] = 3
	}
	if a.MIME != "" {
		out["mime_type"] = a.MIME
	}
	if a.Name != "" && a.Kind != "voice" {
		out["file_name"] = a.Name
	}
	return map[string]any{a.Kind: out}
}

func (f *files) get(r *request) (any, *apiError) {
	id := r.p["file_id"]
	found := f.byID[id]
	if found == nil {
		return nil, badRequest("invalid file_id")
	}
	if found.size > maxDownload {
		return nil, badRequest("file is too big")
	}
	return map[string]any{
		"file_id": id, "file_unique_id": "u" + id, "file_size": found.size, "file_path": found.path,
	}, nil
}

func (s *Server) serveFile(w http.ResponseWriter, rest string) {
	token, name, _ := strings.Cut(rest, "/")
	s.mu.Lock()
	var found *file
	for _, f := range s.files.byID {
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

func sendDocument(r *request) (any, *apiError) {
	body, refused := readDocument(r.p, r.files)
	if refused != nil {
		return nil, refused
	}
	return r.publish(body)
}

func readDocument(p params, files uploads) (c content, refused *apiError) {
	part := "document"
	if given := p["document"]; given != "" {
		var attached bool
		if part, attached = strings.CutPrefix(given, "attach://"); !attached {
			return c, badRequest("wrong file identifier/HTTP URL specified") // the emulator takes uploads only
		}
	}
	doc, ok := files[part]
	switch {
	case !ok:
		return c, badRequest("there is no document in the request")
	case len(doc.data) == 0:
		return c, badRequest("file must be non-empty")
	case len(doc.data) > maxUpload:
		return c, &apiError{code: http.StatusRequestEntityTooLarge, text: "Request Entity Too Large"}
	}
	c.document = &doc
	if c.text, c.entities, refused = readText(p, captionField, true); refused != nil {
		return c, refused
	}
	c.markup, refused = markup(p)
	return c, refused
}

// editMessageMedia puts a document in the place of what a message shows, also of a text.
// Other media than uploaded documents are not emulated.
func editMessageMedia(r *request) (any, *apiError) {
	var media struct {
		Type     string          `json:"type"`
		Media    string          `json:"media"`
		Caption  string          `json:"caption"`
		Entities json.RawMessage `json:"caption_entities"`
	}
	if given, refused := r.p.json("media", &media); refused != nil || !given {
		return nil, badRequest("can't parse input media")
	}
	if media.Type != "document" {
		return nil, badRequest("the emulator takes documents only, not %q", media.Type)
	}
	body, refused := readDocument(params{
		"document": media.Media, "caption": media.Caption, "caption_entities": string(media.Entities), "reply_markup": r.p["reply_markup"],
	}, r.files)
	if refused != nil {
		return nil, refused
	}
	return r.rewrite(body)
}
