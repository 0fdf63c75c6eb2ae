// Package transcription is a stand-in for an OpenAI-compatible transcription API
// (POST /v1/audio/transcriptions). It checks what the API checks, records what it got
// and answers with the texts that it was given.
package transcription

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Recording is what was sent.
type Recording struct {
	Name, Model string
	Data        []byte
}

// Server is an emulated API. It is safe for concurrent use.
type Server struct {
	key    string
	server *http.Server
	url    string

	mu         sync.Mutex // guards all below
	texts      []string
	fail       []int
	recordings []Recording
}

// New returns a server that takes one key, or any if it is empty. It does not listen yet.
func New(key string) *Server { return &Server{key: key} }

// Start listens on a free port of the loopback address.
func (s *Server) Start() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/transcriptions", s.transcribe)
	s.url = "http://" + l.Addr().String() + "/v1"
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(l) }()
	return nil
}

// URL returns the address, with /v1.
func (s *Server) URL() string { return s.url }

// Close ends the server.
func (s *Server) Close() { _ = s.server.Close() }

// Says answers the next recording with a text. Without one the answer is its length.
func (s *Server) Says(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
}

// Fails answers the next request with a status.
func (s *Server) Fails(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = append(s.fail, status)
}

// Recordings returns what was transcribed.
func (s *Server) Recordings() []Recording {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.recordings)
}

func (s *Server) transcribe(w http.ResponseWriter, r *http.Request) {
	recording, status, problem := s.read(r)
	if problem != "" {
		refuse(w, status, problem)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fail) > 0 {
		status, s.fail = s.fail[0], s.fail[1:]
		refuse(w, status, "The server had an error while processing your request.")
		return
	}
	s.recordings = append(s.recordings, recording)
	text := fmt.Sprintf("%d bytes of sound", len(recording.Data))
	if len(s.texts) > 0 {
		text, s.texts = s.texts[0], s.texts[1:]
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"text": text})
}

// endings are the formats that the API takes, by the ending of the name.
var endings = []string{".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".oga", ".ogg", ".wav", ".webm"}

func (s *Server) read(r *http.Request) (recording Recording, status int, problem string) {
	if s.key != "" && r.Header.Get("Authorization") != "Bearer "+s.key {
		return recording, http.StatusUnauthorized, "Incorrect API key provided."
	}
	r.Body = http.MaxBytesReader(nil, r.Body, 26<<20)
	if err := r.ParseMultipartForm(26 << 20); err != nil { //nolint:gosec // bounded a line above
		return recording, http.StatusBadRequest, "Could not parse multipart form"
	}
	if recording.Model = r.FormValue("model"); recording.Model == "" {
		return recording, http.StatusBadRequest, "you must provide a model parameter"
	}
	file, head, err := r.FormFile("file")
	if err != nil {
		return recording, http.StatusBadRequest, "you must provide a file"
	}
	defer file.Close() //nolint:errcheck // only read
	recording.Name = head.Filename
	if !slices.Contains(endings, strings.ToLower(path.Ext(head.Filename))) {
		return recording, http.StatusBadRequest, "Invalid file format. Supported formats: flac, m4a, mp3, mp4, mpeg, mpga, oga, ogg, wav, webm"
	}
	if recording.Data, err = io.ReadAll(file); err != nil || len(recording.Data) == 0 {
		return recording, http.StatusBadRequest, "Audio file might be corrupted or unsupported"
	}
	return recording, 0, ""
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": text, "type": "invalid_request_error"}})
}
