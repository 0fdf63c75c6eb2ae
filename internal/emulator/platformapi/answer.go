package platformapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"remote-agent/internal/emulator"
)

// Exchange is how one call is carried out and answered.
type Exchange[E any] struct {
	// Do carries the call out.
	Do func() (*Reply, *E)

	// Log records how the call ended. With dropped nothing was done and nobody
	// will be answered.
	Log func(refused *E, faulty, dropped bool)

	// Refuse answers with an error in the form of the platform.
	Refuse func(http.ResponseWriter, *E)
}

// Reply is the answer to a call that was carried out.
type Reply struct {
	Status int // zero is 200
	Type   string
	Body   []byte
}

// Answer carries out one call with the fault that is due. It does not return if
// the fault breaks the connection.
func (c *Core[Call, E]) Answer(ctx context.Context, w http.ResponseWriter, call Call, x Exchange[E]) {
	fault := c.Due(call)
	if c.Hold(ctx, fault.Gate, fault.Delay) != nil {
		panic(http.ErrAbortHandler)
	}
	if fault.End == Before {
		x.Log(nil, true, true)
		emulator.Reset(w)
	}
	if fault.Refuse != nil {
		x.Log(fault.Refuse, true, false)
		x.Refuse(w, fault.Refuse)
		return
	}
	reply, refused := x.Do()
	x.Log(refused, fault.broken(), false)
	if c.Hold(ctx, fault.Stall, 0) != nil {
		panic(http.ErrAbortHandler)
	}
	if refused == nil {
		refused = fault.Instead
	}
	switch {
	case fault.End == After:
		emulator.Reset(w)
	case fault.End == Garbage:
		WritePage(w, http.StatusOK, "Something went wrong")
	case refused != nil:
		x.Refuse(w, refused)
	default:
		reply.write(w, fault.End)
	}
}

func (r *Reply) write(w http.ResponseWriter, end Ending) {
	status := cmp.Or(r.Status, http.StatusOK)
	body := r.Body
	switch {
	case status == http.StatusNotModified:
		w.WriteHeader(status)
		return
	case end == Truncated:
		body = body[:len(body)/2]
	case end == Short:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	WriteBody(w, status, r.Type, body)
}

// WriteBody answers with a body of a type; empty is JSON.
func WriteBody(w http.ResponseWriter, status int, kind string, body []byte) {
	kind = cmp.Or(kind, "application/json; charset=utf-8")
	if status != http.StatusNoContent {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// WritePage answers with a page, as a proxy in front of the platform does.
func WritePage(w http.ResponseWriter, status int, text string) {
	WriteBody(w, status, "text/html; charset=utf-8", []byte("<html><body>"+text+"</body></html>"))
}

// Fields are those of a JSON object. The program is smaller with them than with a map's
// literal, if there are many.
type Fields []struct {
	Name  string
	Value any
}

// Object returns the object.
func (list Fields) Object() map[string]any {
	out := make(map[string]any, len(list))
	for _, f := range list {
		out[f.Name] = f.Value
	}
	return out
}

// MustJSON encodes a value that the emulator made.
func MustJSON(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic("emulator: a value that is not JSON: " + err.Error())
	}
	return body
}

// AddForm adds the first value of each field to the arguments of a call.
func AddForm(to map[string]string, form url.Values) {
	for name, values := range form {
		if len(values) > 0 {
			to[name] = values[0]
		}
	}
}

// AddJSON adds the fields of an object to the arguments of a call. What is not a
// string stays JSON, and null is left out.
func AddJSON(to map[string]string, body []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return err
	}
	for name, raw := range fields {
		var text string
		switch {
		case string(raw) == "null":
		case json.Unmarshal(raw, &text) == nil:
			to[name] = text
		default:
			to[name] = string(raw)
		}
	}
	return nil
}
