package responses

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"remote-agent/internal/emulator/modelapi"
)

const maxPrefixes = 100_000

// How a request ended; see modelapi.Outcome.
const (
	Completed = modelapi.Completed
	Canceled  = modelapi.Canceled
	Refused   = modelapi.Refused
)

type (
	// Options configure a Server. The zero value is usable.
	Options = modelapi.Options[Request]

	// Server is an emulated Responses API. It is safe for concurrent use.
	Server = modelapi.Server[Request]

	// Outcome says how a request ended.
	Outcome = modelapi.Outcome

	// Stats count requests to the model.
	Stats = modelapi.Stats

	// APIError is an error in the API's own form.
	APIError = modelapi.Error
)

// New returns a server that is not listening yet. It answers with Echo.
func New(opts Options) *Server {
	seen := prefixes{}
	return modelapi.New(opts, modelapi.API[Request]{
		Name: "Responses", Path: "/v1", Endpoint: "POST /v1/responses",
		Echo: Echo, Parse: parse, Voice: voice,
		Received:   func(r *Request) *modelapi.Received { return &r.Received },
		Model:      func(r *Request) string { return r.Model },
		Tokens:     func(r *Request) int { return r.Tokens },
		Prepare:    func(r *Request, _ *Response) { r.Cached = seen.cached(r) },
		WriteError: modelapi.WriteOpenAIError, NotFound: modelapi.NoEndpoint,
		NoKey:    modelapi.Unauthorized("", "Missing bearer or basic authentication in header"),
		WrongKey: Unauthorized().Fail,
		NoModel: func(name string) *APIError {
			return &APIError{
				Status: http.StatusBadRequest, Type: "invalid_request_error", Param: "model", Code: "model_not_found",
				Message: fmt.Sprintf("The requested model '%s' does not exist.", name),
			}
		},
		Overflow: func(int, int) *APIError { return ContextOverflow().Fail },
	})
}

// Echo is the script of a new server. It answers "echo: TEXT [N items]" with the
// text of the last user message and the number of items in the input.
func Echo(r Request) Response {
	return Text("echo: ", r.LastUserText(), " ["+strconv.Itoa(len(r.Items))+" items]")
}

// prefixes are the beginnings of inputs, with their tokens. They are used under the
// lock of the server.
type prefixes map[[sha256.Size]byte]int

// cached returns how many tokens of the input an earlier request began with, and
// remembers the beginnings of this one.
func (p prefixes) cached(req *Request) int {
	if len(p) > maxPrefixes {
		clear(p)
	}
	tools, err := json.Marshal(req.Tools)
	if err != nil {
		return 0
	}
	key := sha256.Sum256(append([]byte(req.Model+"\x00"+req.Instructions+"\x00"), tools...))
	tokens := Request{Instructions: req.Instructions, Tools: req.Tools}.tokens()
	longest := p[key]
	p[key] = tokens
	for _, i := range req.Items {
		key = sha256.Sum256(append(key[:], i.Raw...))
		tokens += itemTokens(i)
		longest = max(longest, p[key])
		p[key] = tokens
	}
	return longest
}
