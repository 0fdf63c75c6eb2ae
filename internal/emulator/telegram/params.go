package telegram

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/emulator/platformapi"
)

// maxBody is the largest request that is read, as in the real server. It has
// room for the largest file that a bot may send and what is around it.
const maxBody = maxUpload + 1<<20

// params are the parameters of a call. Values that are not strings are JSON
// texts, whichever way they were sent.
type params map[string]string

// uploads are the files of a multipart body, by the name of their part.
type uploads map[string]upload

type upload struct {
	name string
	data []byte
}

// parseParams reads the parameters from the query and from a body in any of the
// encodings that the Bot API takes.
func parseParams(r *http.Request) (params, uploads, error) {
	p := params{}
	files := uploads{}
	err := p.read(r, files)
	return p, files, err
}

func (p params) read(r *http.Request, files uploads) error {
	if r.URL.RawQuery != "" {
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return err
		}
		platformapi.AddForm(p, q)
	}
	if r.Method == http.MethodGet {
		return nil
	}
	body := io.LimitReader(r.Body, maxBody)
	kind, attrs, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	switch kind {
	case "multipart/form-data":
		return p.addMultipart(body, attrs["boundary"], files)
	case "application/json":
		b, err := io.ReadAll(body)
		if err != nil || len(b) == 0 {
			return err
		}
		return platformapi.AddJSON(p, b)
	case "application/x-www-form-urlencoded":
		b, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		q, err := url.ParseQuery(string(b))
		if err != nil {
			return err
		}
		platformapi.AddForm(p, q)
	}
	return nil
}

func (p params) addMultipart(body io.Reader, boundary string, files uploads) error {
	if boundary == "" {
		return errors.New("no boundary")
	}
	form := multipart.NewReader(body, boundary)
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if name := part.FileName(); name != "" {
			files[part.FormName()] = upload{name: name, data: b}
		} else {
			p[part.FormName()] = string(b)
		}
	}
}

// int returns a number, or fallback if it is missing or not a number.
func (p params) int(name string, fallback int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(p[name]), 10, 64)
	if err != nil {
		return fallback
	}
	return n
}

// bool understands what the real server understands.
func (p params) bool(name string) bool {
	switch strings.ToLower(strings.TrimSpace(p[name])) {
	case "true", "yes", "1":
		return true
	}
	return false
}

// json decodes a parameter into v and reports whether it was there.
func (p params) json(name string, v any) (bool, *apiError) {
	text := p[name]
	if text == "" {
		return false, nil
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return true, badRequest("can't parse %s JSON object", strings.ReplaceAll(name, "_", " "))
	}
	return true, nil
}

// validUTF8 reports whether all parameters are encoded in UTF-8.
func (p params) validUTF8() bool {
	for _, v := range p {
		if !utf8.ValidString(v) {
			return false
		}
	}
	return true
}
