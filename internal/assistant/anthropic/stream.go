package anthropic

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"remote-agent/internal/assistant/modelhttp"
)

// maxEvent is the longest event of a stream, in bytes; one that brings all results
// of a search in one piece fits.
const maxEvent = 16 << 20

// errCut means that the stream ended, cleanly or not, before message_stop: what
// came is no answer.
var errCut = errors.New("the stream ended before the message did")

// post sends a request and returns the stream of its answer. An answer that is no
// stream is an *apiFailure, or an error of modelhttp.
func (m *Model) post(ctx context.Context, x *exchange, r *messagesRequest) (io.ReadCloser, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.address, nil)
	if err != nil {
		return nil, err
	}
	modelhttp.SetBody(req, body...)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	m.identify(req)
	resp, err := m.http.Do(req)
	if err != nil {
		return nil, err
	}
	x.requestID = resp.Header.Get("Request-Id")
	switch {
	case x.failure != nil:
		err = x.failure
	case resp.StatusCode != http.StatusOK:
		err = modelhttp.ErrNotStream
	default:
		return resp.Body, nil
	}
	_ = resp.Body.Close()
	return nil, err
}

// identify says in which version, and with whose key, a request asks.
func (m *Model) identify(req *http.Request) {
	req.Header.Set("Anthropic-Version", apiVersion)
	if m.key != "" {
		req.Header.Set("X-Api-Key", m.key)
	}
}

// encode writes a request without the escapes that JSON in a web page needs: a
// line of code is full of them.
func encode(v any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), err
}

// body returns the encoded request in pieces.
func (r *messagesRequest) body() ([][]byte, error) {
	whole, err := encode(r)
	if err != nil || len(r.earlier) == 0 {
		return [][]byte{whole}, err
	}
	last, err := encode(r.Messages)
	if err != nil {
		return nil, err
	}
	// The messages end the request: [...]}
	head, ok := bytes.CutSuffix(whole, append(last, '}'))
	if !ok {
		return nil, errors.New("the request does not end with its messages")
	}
	return [][]byte{head, []byte("["), r.earlier, []byte(","), last[1:], []byte("}")}, nil
}

// eventReader reads server-sent events, whose lines end with LF or CRLF, as the
// API sends them.
type eventReader struct {
	lines *bufio.Reader
	data  []byte // of the event being read; used again
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{lines: bufio.NewReaderSize(r, 4<<10)}
}

// next returns the name and the data of the next event; the data holds until the
// next call. Comments are skipped. An event that the end of the stream cuts is
// none; the error is then errCut.
func (r *eventReader) next() (name string, data []byte, err error) {
	r.data = r.data[:0]
	for {
		line, err := modelhttp.ReadLine(r.lines, maxEvent)
		switch {
		case errors.Is(err, io.EOF):
			return "", nil, errCut
		case err != nil:
			return "", nil, err
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(line) == 0 {
			if name != "" || len(r.data) > 0 {
				return name, r.data, nil
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if len(r.data)+len(value) >= maxEvent {
				return "", nil, modelhttp.ErrTooLong
			}
			if len(r.data) > 0 {
				r.data = append(r.data, '\n')
			}
			r.data = append(r.data, value...)
		}
	}
}

// event returns the next event. One that is not known has no type. An error that
// the API sends inside the stream is an *apiFailure.
func (r *eventReader) event() (e streamEvent, err error) {
	name, data, err := r.next()
	if err != nil {
		return e, err
	}
	switch name {
	case "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "":
		if err := json.Unmarshal(data, &e); err != nil {
			return e, err
		}
		e.Type = cmp.Or(e.Type, name)
	case "error":
		e.Type = name
	}
	if e.Type == "error" {
		return e, parseFailure(http.StatusOK, data)
	}
	return e, nil
}
