package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// presized is up to which size a body is given room at once because it says that it has it.
const presized = 1 << 20

// ReadBody returns the body of a request, or another status than OK. A large one has room
// for all of it at once: doubling would take three times as much.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, int) {
	b := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), limit, presized)+bytes.MinRead))
	body := http.MaxBytesReader(w, r.Body, limit)
	_, err := b.ReadFrom(io.LimitReader(body, presized))
	if err == nil && b.Len() == presized {
		if r.ContentLength >= presized {
			limit = min(limit, r.ContentLength)
		}
		b.Grow(int(limit) - presized + bytes.MinRead)
		_, err = b.ReadFrom(body)
	}
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusBadRequest
	}
	return b.Bytes(), http.StatusOK
}

// Lenient decodes JSON and overlooks fields of another type than expected, which are
// empty then. What is essential is checked after that.
func Lenient(body []byte, out any) error {
	err := json.Unmarshal(body, out)
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); wrongType && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return nil
	}
	return err
}
