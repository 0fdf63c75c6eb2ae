package modelapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator"
)

// Voice words one answer, in the form of an API.
type Voice interface {
	// Begin begins a stream. It is not called for an answer in one piece.
	Begin() error

	// Say says one step of a kind that not every API has alike.
	Say(Step) error

	// Fail ends a stream with the error of a step.
	Fail(Step) error

	// End ends an answer and returns it as it is sent in one piece.
	End() (whole any, err error)
}

// Out is where an answer goes: a stream of events, or nothing until it is whole.
type Out struct {
	// Stream is set by an API whose request asked for a stream.
	Stream bool

	w           http.ResponseWriter
	buf         bytes.Buffer
	crlf, tight bool
	refuse      func(http.ResponseWriter, *Error)
}

// Header sets a header of the answer, before it begins.
func (o *Out) Header(name, value string) { o.w.Header().Set(name, value) }

// Event streams a value as an event with a name, or without. An answer in one
// piece has none.
func (o *Out) Event(name string, v any) error {
	if !o.Stream {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.Data(name, string(data))
}

// Data streams an event with a text. An answer in one piece has none.
func (o *Out) Data(name, data string) error {
	newline, space := "\n", " "
	if o.crlf {
		newline = "\r\n"
	}
	if o.tight {
		space = ""
	}
	if name != "" {
		name = "event: " + name + newline
	}
	return o.send(name + "data:" + space + data + newline + newline)
}

func (o *Out) send(text string) error {
	if !o.Stream {
		return nil
	}
	o.buf.WriteString(text)
	_, err := o.w.Write(o.buf.Bytes())
	o.buf.Reset()
	if err != nil {
		return err
	}
	return http.NewResponseController(o.w).Flush()
}

// play carries out an answer.
func (o *Out) play(ctx context.Context, v Voice, steps []Step) error {
	if o.Stream {
		o.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		o.w.Header().Set("Cache-Control", "no-cache")
		if err := v.Begin(); err != nil {
			return err
		}
	}
	for _, step := range steps {
		ended, err := o.step(ctx, v, step)
		if ended || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	whole, err := v.End()
	if err != nil || o.Stream {
		return err
	}
	WriteJSON(o.w, http.StatusOK, whole)
	return nil
}

// step carries out one step and reports whether the answer ends with it.
func (o *Out) step(ctx context.Context, v Voice, step Step) (ended bool, err error) {
	switch step.Kind {
	case kindPause:
		return false, emulator.Sleep(ctx, step.wait)
	case kindGate:
		return false, step.gate.Pass(ctx)
	case kindKeepAlive:
		newline := "\n"
		if o.crlf {
			newline = "\r\n"
		}
		return false, o.send(strings.Repeat(": keep-alive"+newline+newline, step.N))
	case kindRaw:
		return false, o.send(step.Text)
	case kindReset:
		emulator.Reset(o.w)
	case kindCut:
		if !o.Stream {
			panic(http.ErrAbortHandler)
		}
	case KindError:
		if !o.Stream {
			o.refuse(o.w, step.Fail)
			return true, nil
		}
		return true, v.Fail(step)
	default:
		return false, v.Say(step)
	}
	return true, nil
}

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

// WithRetryAfter asks for a wait: a whole number of seconds as Retry-After, else
// as retry-after-ms. Zero asks for none.
func (r Response) WithRetryAfter(after time.Duration) Response {
	switch {
	case after <= 0:
		return r
	case after%time.Second == 0:
		return r.WithHeader("Retry-After", strconv.Itoa(int(after/time.Second)))
	}
	return r.WithHeader("Retry-After-Ms", strconv.FormatInt(after.Milliseconds(), 10))
}

// cut cuts text into pieces of at most size bytes, without cutting a character.
func cut(text string, size int) []string {
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
