package telegram

import (
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
