package slack

import (
	"cmp"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/emulator/platformapi"
)

// File is a file that people see at a message.
type File struct {
	ID       string
	Name     string
	Title    string
	MIME     string
	Data     []byte
	Size     int  // what Slack says it is; zero for the length of Data
	External bool // lives elsewhere: there is nothing to download
}

// file is a file that the server knows.
type file struct {
	File
	ws       *Workspace
	user     string
	expected int  // announced length of an upload
	uploaded bool // its bytes are there
	complete bool // it is shared
}

func (s *Server) uploadURL(r *request) (map[string]any, *apiError) {
	name, length := r.p.get("filename"), r.p.int("length", 0)
	if name == "" || length <= 0 {
		return nil, refuse("invalid_arguments")
	}
	f := &file{File: File{ID: s.id("F"), Name: name, Title: name}, ws: r.ws, user: r.ws.team.BotUserID, expected: length}
	s.files[f.ID] = f
	return map[string]any{"upload_url": s.URL() + "/upload/" + f.ID, "file_id": f.ID}, nil
}

// serveUpload takes the bytes of a file, as a body or as a part of a form. It
// refuses more or less than was announced.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	data, err := uploadBody(r)
	call := Call{Method: Upload, Params: map[string]string{"file": id, "length": strconv.Itoa(len(data))}, At: s.opts.Now()}
	do := func() (map[string]any, *apiError, []string) {
		s.mu.Lock()
		defer s.unlock()
		f := s.files[id]
		switch {
		case f == nil || f.expected == 0:
			return nil, &apiError{code: "file_not_found", status: http.StatusNotFound}, nil
		case err != nil || len(data) != f.expected || f.complete:
			return nil, &apiError{code: "invalid_upload", status: http.StatusBadRequest}, nil
		}
		f.Data, f.uploaded = data, true
		return map[string]any{"length": len(data)}, nil, nil
	}
	s.answer(w, r, call, do, params{})
}

func uploadBody(r *http.Request) ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		return io.ReadAll(io.LimitReader(r.Body, maxBody))
	}
	form, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	for {
		part, err := form.NextPart()
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" {
			data, err := io.ReadAll(io.LimitReader(part, maxBody))
			_, _ = io.Copy(io.Discard, r.Body)
			return data, err
		}
	}
}

// completeUpload shares uploaded files in one channel, or in none.
func (s *Server) completeUpload(r *request) (map[string]any, *apiError) {
	var wanted []struct{ ID, Title string }
	if json.Unmarshal([]byte(r.p.get("files")), &wanted) != nil || len(wanted) == 0 {
		return nil, refuse("invalid_arguments")
	}
	var shared []File
	for _, want := range wanted {
		f := s.files[want.ID]
		switch {
		case f == nil || f.ws != r.ws || f.complete:
			return nil, refuse("file_not_found")
		case !f.uploaded:
			return nil, refuse("file_not_uploaded")
		}
		if want.Title != "" {
			f.Title = want.Title
		}
		shared = append(shared, f.File)
	}
	id := r.p.get("channel_id")
	if list := r.p.list("channels"); id == "" && len(list) > 0 {
		id = list[0]
	}
	if id != "" {
		if refused := s.shareFiles(r, id, shared); refused != nil {
			return nil, refused
		}
	}
	for _, f := range shared {
		s.files[f.ID].complete = true
	}
	return map[string]any{"files": wireFiles(r.ws, shared)}, nil
}

func (s *Server) shareFiles(r *request, channelID string, shared []File) *apiError {
	c, refused := r.writable(channelID)
	if refused != nil {
		return refused
	}
	root, refused := c.root(r.p.get("thread_ts"))
	if refused != nil {
		return refused
	}
	comment := r.p.get("initial_comment")
	blocks, refused := checkBlocks(r.p.get("blocks"), inMessage)
	if refused != nil {
		return refused
	}
	m := r.ws.botMessage()
	m.ThreadTS, m.Subtype, m.Files = root, "file_share", shared
	m.Text, m.Plain, m.Pings = comment, plainMrkdwn(comment), pingsOf(comment, blocks)
	if len(blocks) > 0 && comment == "" {
		m.Blocks, m.Plain = json.RawMessage(r.p.get("blocks")), plainBlocks(blocks)
	}
	s.post(c, m)
	return nil
}

func (s *Server) fileInfo(r *request) (map[string]any, *apiError) {
	f := s.files[r.p.get("file")]
	if f == nil || f.ws != r.ws {
		return nil, refuse("file_not_found")
	}
	return map[string]any{"file": wireFiles(r.ws, []File{f.File})[0], "comments": []any{}}, nil
}

func wireFiles(w *Workspace, list []File) []map[string]any {
	var out []map[string]any
	for _, f := range list {
		size := f.Size
		size = cmp.Or(size, len(f.Data))
		kind := f.MIME
		if kind == "" {
			kind, _, _ = mime.ParseMediaType(mime.TypeByExtension(path.Ext(f.Name)))
		}
		kind = cmp.Or(kind, "application/octet-stream")
		u := w.server.URL() + "/files-pri/" + f.ID + "/" + f.Name
		one := map[string]any{
			"id": f.ID, "name": f.Name, "title": f.Title, "mimetype": kind, "size": size, "mode": "hosted",
			"filetype": strings.TrimPrefix(path.Ext(f.Name), "."), "is_external": f.External,
			"url_private": u, "url_private_download": u, "permalink": "https://" + w.team.Domain + ".slack.com/files/" + f.ID,
			"created": 1_700_000_000, "timestamp": 1_700_000_000,
		}
		if f.External {
			one["mode"], one["external_type"] = "external", "app"
			one["url_private"] = "https://files.example.com/" + f.Name
			delete(one, "url_private_download")
		}
		out = append(out, one)
	}
	return out
}

// serveDownload gives a file to a token that may read it, and sends everybody
// else to the page where people sign in, which answers 200.
func (s *Server) serveDownload(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	id := r.PathValue("id")
	p := params{token: token}
	call := Call{Method: Download, Team: s.teamOf(p), Params: map[string]string{"file": id}, At: s.opts.Now()}
	fault := s.Due(call)
	if s.Hold(r.Context(), fault.Gate, fault.Delay) != nil {
		panic(http.ErrAbortHandler)
	}
	data, found, allowed := s.download(id, p)
	var refused *apiError
	switch {
	case fault.Refuse != nil:
		refused = fault.Refuse
	case !found:
		refused = &apiError{code: "file_not_found", status: http.StatusNotFound}
	case !allowed:
		refused = &apiError{code: "not_authed", status: http.StatusFound}
	}
	s.log(call, refused, fault.Refuse != nil || fault.End != platformapi.Normal, false)
	switch {
	case fault.End == platformapi.Before || fault.End == platformapi.After:
		panic(http.ErrAbortHandler)
	case refused != nil && refused.status == http.StatusFound:
		http.Redirect(w, r, "/signin?redir="+url.QueryEscape(r.URL.Path), http.StatusFound)
	case refused != nil:
		writeError(w, refused)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		if fault.End != platformapi.Normal {
			_, _ = w.Write(data[:len(data)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(data)
	}
}

func (s *Server) download(id string, p params) (data []byte, found, allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[id]
	if f == nil || f.External {
		return nil, false, false
	}
	w, refused := s.authenticate(p)
	if refused != nil || w != f.ws || !slices.Contains(w.team.Scopes, "files:read") {
		return nil, true, false
	}
	return f.Data, true, true
}
