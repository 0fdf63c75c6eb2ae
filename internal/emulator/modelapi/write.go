package modelapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// WriteJSON answers with a value in JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// WritePage answers with something that is not the API's, as a proxy in between
// does.
func WritePage(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// BeginStream sets the header of an event stream.
func BeginStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
}

// Flush sends what is in buf, and empties it.
func Flush(w http.ResponseWriter, buf *bytes.Buffer) error {
	_, err := w.Write(buf.Bytes())
	buf.Reset()
	if err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// WithHeader returns a copy of h with one more header.
func WithHeader(h http.Header, name, value string) http.Header {
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set(name, value)
	return h
}

// WithRetryAfter returns a copy of h that asks for a wait: a whole number of
// seconds as Retry-After, else as retry-after-ms. With zero it is h.
func WithRetryAfter(h http.Header, after time.Duration) http.Header {
	switch {
	case after <= 0:
		return h
	case after%time.Second == 0:
		return WithHeader(h, "Retry-After", strconv.Itoa(int(after/time.Second)))
	}
	return WithHeader(h, "Retry-After-Ms", strconv.FormatInt(after.Milliseconds(), 10))
}

// Pieces cuts text into pieces of at most size bytes, without cutting a
// character.
func Pieces(text string, size int) []string {
	var out []string
	var piece strings.Builder
	for _, c := range text {
		if piece.Len() > 0 && piece.Len()+len(string(c)) > size {
			out = append(out, piece.String())
			piece.Reset()
		}
		piece.WriteRune(c)
	}
	if piece.Len() > 0 {
		out = append(out, piece.String())
	}
	return out
}

// Split cuts text into about n pieces of whole characters.
func Split(text string, n int) []string {
	runes := []rune(text)
	size := max((len(runes)+n-1)/n, 1)
	var out []string
	for len(runes) > 0 {
		k := min(size, len(runes))
		out = append(out, string(runes[:k]))
		runes = runes[k:]
	}
	return out
}

// model is a model as OpenAI's APIs describe it.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// WriteModel answers with a model as OpenAI's APIs describe it.
func WriteModel(w http.ResponseWriter, id string) {
	WriteJSON(w, http.StatusOK, model{ID: id, Object: "model", OwnedBy: "emulator"})
}

// WriteModels answers with a list of models as OpenAI's APIs do.
func WriteModels(w http.ResponseWriter, ids []string) {
	list := []model{}
	for _, id := range ids {
		list = append(list, model{ID: id, Object: "model", OwnedBy: "emulator"})
	}
	WriteJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}
