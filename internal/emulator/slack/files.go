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
	ID    string
	Name  string
	Title string
	MIME  string
	Data  []byte
}

// files are what people and the bot uploaded.
type files struct {
	*platform

	byID map[string]*file
}

type file struct {
	File
	expected int  // announced length of an upload
	uploaded bool // its bytes are there
	complete bool // it is shared
}

// add gives a file its id. The lock must be held.
func (f *files) add(one *file) *file {
	one.ID = f.id("F")
	f.byID[one.ID] = one
	return one
}

func (f *files) uploadURL(r *request) (map[string]any, *apiError) {
	name, length := r.p.get("filename"), r.p.int("length", 0)
	if name == "" || length <= 0 {
		return nil, refuse("invalid_arguments")
	}
	id := f.add(&file{File: File{Name: name, Title: name}, expected: length}).ID
	return map[string]any{"upload_url": f.URL() + "/upload/" + id, "file_id": id}, nil
}

// fill takes the bytes of a file. It refuses more or less than was announced.
func (f *files) fill(id string, data []byte, err error) *apiError {
	f.mu.Lock()
	defer f.unlock()
	one := f.byID[id]
	switch {
	case one == nil || one.expected == 0:
		return &apiError{code: "file_not_found", status: http.StatusNotFound}
	case err != nil || len(data) != one.expected || one.complete:
		return &apiError{code: "invalid_upload", status: http.StatusBadRequest}
	}
	one.Data, one.uploaded = data, true
	return nil
}

// serveUpload takes the bytes of a file, as a body or as a part of a form.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	data, err := uploadBody(r)
	call := Call{Method: Upload, Params: map[string]string{"file": id, "length": strconv.Itoa(len(data))}, At: s.opts.Now()}
	do := func() (map[string]any, *apiError, []string) {
		return map[string]any{"length": len(data)}, s.files.fill(id, data, err), nil
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

// complete shares uploaded files in one channel, or in none.
func (f *files) complete(r *request) (map[string]any, *apiError) {
	var wanted []struct{ ID, Title string }
	if json.Unmarshal([]byte(r.p.get("files")), &wanted) != nil || len(wanted) == 0 {
		return nil, refuse("invalid_arguments")
	}
	var shared []File
	for _, want := range wanted {
		one := f.byID[want.ID]
		switch {
		case one == nil || one.complete:
			return nil, refuse("file_not_found")
		case !one.uploaded:
			return nil, refuse("file_not_uploaded")
		}
		one.Title = cmp.Or(want.Title, one.Title)
		shared = append(shared, one.File)
	}
	id := r.p.get("channel_id")
	if list := r.p.list("channels"); id == "" && len(list) > 0 {
		id = list[0]
	}
	if id != "" {
		if refused := shareFiles(r, id, shared); refused != nil {
			return nil, refused
		}
	}
	for _, one := range shared {
		f.byID[one.ID].complete = true
	}
	return map[string]any{"files": wireFiles(r.ws, shared)}, nil
}

// shareFiles posts a message with files.
func shareFiles(r *request, channelID string, shared []File) *apiError {
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
	c.post(m)
	return nil
}

func (f *files) info(r *request) (map[string]any, *apiError) {
	one := f.byID[r.p.get("file")]
	if one == nil {
		return nil, refuse("file_not_found")
	}
	return map[string]any{"file": wireFiles(r.ws, []File{one.File})[0], "comments": []any{}}, nil
}

func wireFiles(w *Workspace, list []File) []map[string]any {
	var out []map[string]any
	for _, f := range list {
		kind := f.MIME
		if kind == "" {
			kind, _, _ = mime.ParseMediaType(mime.TypeByExtension(path.Ext(f.Name)))
		}
		kind = cmp.Or(kind, "application/octet-stream")
		u := w.server.URL() + "/files-pri/" + f.ID + "/" + f.Name
		one := fields{
			{"id", f.ID}, {"name", f.Name}, {"title", f.Title}, {"mimetype", kind}, {"size", len(f.Data)}, {"mode", "hosted"},
			{"filetype", strings.TrimPrefix(path.Ext(f.Name), ".")}, {"is_external", false},
			{"url_private", u}, {"url_private_download", u}, {"permalink", "https://" + w.team.Domain + ".slack.com/files/" + f.ID},
			{"created", 1_700_000_000}, {"timestamp", 1_700_000_000},
		}.Object()
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
	call := Call{Method: Download, Params: map[string]string{"file": id}, At: s.opts.Now()}
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
	s.Log(call)
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
	f := s.files.byID[id]
	if f == nil {
		return nil, false, false
	}
	if s.authenticate(p) != nil || !slices.Contains(s.team.Scopes, "files:read") {
		return nil, true, false
	}
	return f.Data, true, true
}
