package slack

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/emulator/platformapi"
)

// maxBody is the largest body that is read.
const maxBody = 64 << 20

// params are the arguments of a call. Structures are JSON.
type params struct {
	values  map[string]string
	token   string
	json    bool   // they came as JSON
	warning string // for the answer
}

func (p params) get(name string) string { return p.values[name] }

func (p params) has(name string) bool { _, ok := p.values[name]; return ok }

func (p params) bool(name string) bool {
	switch strings.ToLower(p.values[name]) {
	case "1", "true":
		return true
	}
	return false
}

// flag returns an optional boolean.
func (p params) flag(name string) *bool {
	if p.values[name] == "" {
		return nil
	}
	v := p.bool(name)
	return &v
}

func (p params) int(name string, otherwise int) int {
	n, err := strconv.Atoi(p.values[name])
	if err != nil {
		return otherwise
	}
	return n
}

// channel returns the channel that a call is about, whatever it is called there.
func (p params) channel() string {
	if c := p.values["channel"]; c != "" {
		return c
	}
	return p.values["channel_id"]
}

// list reads an array of strings, which may also be separated by commas.
func (p params) list(name string) []string {
	text := strings.TrimSpace(p.values[name])
	if text == "" {
		return nil
	}
	var out []string
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &out) == nil {
		return out
	}
	return strings.Split(text, ",")
}

func parseParams(r *http.Request) (params, *apiError) {
	p := params{values: map[string]string{}}
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return p, &apiError{code: "invalid_request", status: http.StatusMethodNotAllowed}
	}
	platformapi.AddForm(p.values, r.URL.Query())
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return p, &apiError{code: "request_timeout"}
	}
	kind, extra, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case len(body) == 0:
	case err != nil:
		return p, &apiError{code: "missing_post_type"}
	case kind == "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return p, &apiError{code: "invalid_form_data"}
		}
		platformapi.AddForm(p.values, form)
	case kind == "application/json":
		p.json = true
		if extra["charset"] == "" {
			p.warning = "missing_charset"
		}
		if platformapi.AddJSON(p.values, body) != nil {
			return p, &apiError{code: "invalid_json"}
		}
	default:
		return p, &apiError{code: "invalid_post_type"}
	}
	for _, v := range p.values {
		if !utf8.ValidString(v) {
			return p, &apiError{code: "invalid_charset"}
		}
	}
	p.token = p.values["token"]
	delete(p.values, "token")
	if p.json {
		p.token = "" // with JSON it must be in the header
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		p.token = strings.TrimSpace(bearer)
	}
	return p, nil
}
