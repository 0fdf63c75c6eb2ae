package openai

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"remote-agent/internal/assistant/modelhttp"
)

const maxLine = 4 << 20 // of a stream; a chunk with a whole answer fits

// exchange is one request and what go-openai does not pass on: the error that the API answered
// with, as it was sent, and the cost.
type exchange struct {
	*modelhttp.Exchange

	failure *apiFailure // nil while nothing failed
	cost    float64     // in US dollars; zero while the API did not say
}

func newExchange(idle time.Duration) *exchange {
	x := &exchange{}
	x.Exchange = modelhttp.NewExchange(modelhttp.FirstByte, idle, x)
	return x
}

// Refused implements modelhttp.Receiver.
func (x *exchange) Refused(status int, _ http.Header, body []byte) bool {
	x.fail(parseFailure(status, body))
	return x.failure.message != ""
}

// fail keeps an error, with the wait that came with the answer.
func (x *exchange) fail(f *apiFailure) {
	f.retryAfter = x.RetryAfter
	x.failure = f
}

// Stream implements modelhttp.Receiver.
func (x *exchange) Stream(body io.ReadCloser) io.ReadCloser { return newEventReader(body, x) }

type fieldsKey struct{} // of the fields of a request

// fields are what go-openai does not encode.
type fields struct {
	messages [][]byte // elements of an array, in pieces
	tools    []byte   // an array; nil for none
}

// sender completes a request: go-openai writes it without messages and with some tool,
// and both come encoded, so that they are not encoded again with every turn.
type sender struct{ http *http.Client }

// Do implements go-openai's HTTPDoer.
func (s sender) Do(req *http.Request) (*http.Response, error) {
	f, ok := req.Context().Value(fieldsKey{}).(fields)
	if !ok {
		return s.http.Do(req) //nolint:gosec // the address is the operator's
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	// The fields come behind the model's name, in which a quote would be escaped: so this
	// is where they first occur.
	before, after, found := bytes.Cut(body, []byte(`"messages":[]`))
	if !found {
		return nil, errors.New("the request has no place for its messages")
	}
	pieces := slices.Concat([][]byte{before, []byte(`"messages":[`)}, f.messages, [][]byte{[]byte(`]`)})
	if f.tools != nil {
		place, err := json.Marshal(someTool)
		if err != nil {
			return nil, err
		}
		between, rest, found := bytes.Cut(after, slices.Concat([]byte(`"tools":[`), place, []byte(`]`)))
		if !found {
			return nil, errors.New("the request has no place for its tools")
		}
		pieces, after = append(pieces, between, []byte(`"tools":`), f.tools), rest
	}
	modelhttp.SetBody(req, append(pieces, after)...)
	return s.http.Do(req) //nolint:gosec // the address is the operator's
}

// apiFailure is an error that the API sent.
type apiFailure struct {
	status  int    // HTTP status; 200 for an error inside a stream
	code    string // error.code; also a number in digits
	kind    string // error.type
	message string
	body    bool // there was a body

	retryAfter time.Duration // zero if the API did not say
}

// parseFailure reads the errors of all the servers that call themselves
// compatible: {"error":{...}}, {"error":"text"}, {"message":"text"},
// {"detail":...}, a list of one of these, or plain text.
func parseFailure(status int, body []byte) *apiFailure {
	f := &apiFailure{status: status, body: len(bytes.TrimSpace(body)) > 0}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
	}
	if json.Unmarshal(body, &outer) != nil {
		if status != http.StatusOK {
			f.message = string(body)
		}
		return f
	}
	f.message = cmp.Or(plain(outer.Message), plain(outer.Detail))
	f.code, f.kind = plain(outer.Code), plain(outer.Type)
	if len(outer.Error) > 0 && string(outer.Error) != "null" {
		f.addInner(outer.Error)
	}
	if status == http.StatusOK && len(outer.Error) == 0 {
		f.message = ""
	}
	return f
}

func (f *apiFailure) addInner(raw json.RawMessage) {
	var inner struct {
		Message json.RawMessage `json:"message"`
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
		Status  json.RawMessage `json:"status"` // Google

		Metadata json.RawMessage `json:"metadata"` // OpenRouter: {"raw"}, what the provider behind it said
	}
	if json.Unmarshal(raw, &inner) != nil {
		f.message = cmp.Or(plain(raw), f.message)
		return
	}
	f.message = cmp.Or(plain(inner.Message), f.message, string(raw))
	var behind struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(inner.Metadata, &behind) == nil && len(behind.Raw) > 0 {
		f.message += " " + plain(behind.Raw)
	}
	f.code = cmp.Or(plain(inner.Code), f.code)
	f.kind = cmp.Or(plain(inner.Type), plain(inner.Status), f.kind)
}

// plain returns the text of a JSON string, or other JSON as it is.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil || len(raw) == 0 {
		return s
	}
	return string(raw)
}

// eventReader passes on the data lines of an event stream, each with a blank
// line after it. go-openai mixes comments and "event:" lines into the error
// that follows them and then cannot read it, so errors are taken out here.
type eventReader struct {
	body  io.ReadCloser
	lines *bufio.Reader
	x     *exchange
	rest  []byte // of the line being passed on
	buf   []byte // what rest is cut from; used again
	err   error
}

func newEventReader(body io.ReadCloser, x *exchange) *eventReader {
	return &eventReader{body: body, lines: bufio.NewReaderSize(body, 4<<10), x: x}
}

// Read implements io.Reader.
func (r *eventReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *eventReader) Close() error { return r.body.Close() }

func (r *eventReader) next() {
	line, err := modelhttp.ReadLine(r.lines, maxLine)
	r.err = err
	if err != nil && !errors.Is(err, io.EOF) {
		return
	}
	line = bytes.TrimSpace(line)
	if said, ok := bytes.CutPrefix(line, []byte("error:")); ok { // as llama.cpp wrote it for long
		r.refuse(parseFailure(http.StatusOK, slices.Concat([]byte(`{"error":`), said, []byte("}"))))
		return
	}
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return
	}
	if err != nil && !json.Valid(data) && string(data) != "[DONE]" {
		r.err = io.ErrUnexpectedEOF // cut in the middle of the line
		return
	}
	if f := streamFailure(data); f != nil {
		r.refuse(f)
		return
	}
	r.x.addCost(data)
	data = asTexts(data)
	r.buf = append(r.buf[:0], "data: {"...)
	// go-openai takes every chunk that begins with an error for one, also with
	// "error":null. A space keeps it from seeing that.
	if rest, ok := bytes.CutPrefix(data, []byte(`{"error"`)); ok {
		r.buf = append(append(r.buf, ` "error"`...), rest...)
	} else {
		r.buf = append(r.buf[:len("data: ")], data...)
	}
	r.buf = append(r.buf, "\n\n"...)
	r.rest = r.buf
}

// addCost takes in what a chunk says that the request cost, as OpenRouter's do. With the
// operator's own key at the provider, that one's price comes on top.
func (x *exchange) addCost(data []byte) {
	if !bytes.Contains(data, []byte(`"cost"`)) {
		return
	}
	var chunk struct {
		Usage struct {
			Cost    float64 `json:"cost"`
			OwnKey  bool    `json:"is_byok"`
			Details struct {
				Provider float64 `json:"upstream_inference_cost"`
			} `json:"cost_details"`
		} `json:"usage"`
	}
	_ = json.Unmarshal(data, &chunk) // what has another form is not said
	cost := chunk.Usage.Cost
	if chunk.Usage.OwnKey {
		cost += chunk.Usage.Details.Provider
	}
	x.cost = max(x.cost, cost)
}

// refuse ends the stream with an error that the API sent inside of it.
func (r *eventReader) refuse(f *apiFailure) {
	r.x.fail(f)
	r.err = errors.New("the API sent an error inside the stream")
}

// streamFailure returns the error in a chunk, if there is one.
func streamFailure(data []byte) *apiFailure {
	if !bytes.Contains(data, []byte(`"error"`)) {
		return nil
	}
	var chunk struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &chunk) != nil || len(chunk.Error) == 0 || string(chunk.Error) == "null" {
		return nil
	}
	return parseFailure(http.StatusOK, data)
}
