package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
)

// presized is up to which size a body is given room at once because it says that it has it.
const presized = 1 << 20

// ReadBody returns the body of a request, or another status than OK.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, int) {
	b := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), limit, presized)+bytes.MinRead))
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
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
