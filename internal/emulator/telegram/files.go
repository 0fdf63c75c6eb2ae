package telegram

import (
	"encoding/json"
	"net/http"
	"strings"
)

// maxUpload is the largest file that a bot may send.
const maxUpload = 50 << 20

func (s *Server) sendDocument(p params, files uploads) (any, *apiError) {
	body, refused := readDocument(p, files)
	if refused != nil {
		return nil, refused
	}
	m, wire, refused := s.publish(p, body)
	if refused != nil {
		return nil, refused
	}
	s.changedMessage(ChangeSent, m)
	return wire, nil
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
func (s *Server) editMessageMedia(p params, files uploads) (any, *apiError) {
	var media struct {
		Type     string          `json:"type"`
		Media    string          `json:"media"`
		Caption  string          `json:"caption"`
		Entities json.RawMessage `json:"caption_entities"`
	}
	if given, refused := p.json("media", &media); refused != nil || !given {
		return nil, badRequest("can't parse input media")
	}
	if media.Type != "document" {
		return nil, badRequest("the emulator takes documents only, not %q", media.Type)
	}
	body, refused := readDocument(params{
		"document": media.Media, "caption": media.Caption, "caption_entities": string(media.Entities), "reply_markup": p["reply_markup"],
	}, files)
	if refused != nil {
		return nil, refused
	}
	m, wire, refused := s.rewrite(p, body)
	if refused != nil {
		return nil, refused
	}
	s.changedMessage(ChangeEdited, m)
	return wire, nil
}
