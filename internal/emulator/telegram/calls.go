package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// Call is one API call of the bot.
type Call struct {
	Method string
	ChatID int64             // zero if there is none
	Params map[string]string // as sent; structures are JSON
	At     time.Time         // when it came in

	Status      int // of the answer, if it had arrived; zero if nothing was done
	Description string
	Faulty      bool // a fault was injected
	FromWebhook bool // named in the answer to a webhook
}

// ended returns the call as it is recorded when it has been answered.
func (c Call) ended(refused *apiError, faulty bool) Call {
	c.Status, c.Faulty = 200, faulty
	if refused != nil {
		c.Status, c.Description = refused.code, refused.text
	}
	return c
}

// answer carries out one call with the fault that is due.
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, method string, p params, files uploads) {
	call := Call{Method: method, ChatID: p.int("chat_id", 0), Params: p, At: s.opts.Now()}
	s.Answer(ctx, w, call, platformapi.Exchange[apiError]{
		Do: func() (*platformapi.Reply, *apiError) {
			result, refused := s.dispatch(ctx, method, p, files)
			if refused != nil {
				return nil, refused
			}
			return &platformapi.Reply{Type: jsonType, Body: encodeResult(result)}, nil
		},
		Log: func(refused *apiError, faulty, dropped bool) {
			if dropped {
				refused = &apiError{}
			}
			s.Log(call.ended(refused, faulty))
		},
		Refuse: writeError,
	})
}

// executeReply carries out the method that a webhook's answer may name.
func (s *Server) executeReply(ctx context.Context, body []byte) {
	p := params{}
	if platformapi.AddJSON(p, body) != nil || p["method"] == "" {
		return
	}
	method := p["method"]
	delete(p, "method")
	call := Call{Method: method, ChatID: p.int("chat_id", 0), Params: p, At: s.opts.Now(), FromWebhook: true}
	var refused *apiError
	switch strings.ToLower(method) {
	case "getupdates", "setwebhook", "deletewebhook", "getme", "getfile", "getchat", "getmycommands", "getwebhookinfo":
		refused = badRequest("method is not available in a webhook reply")
	default:
		_, refused = s.dispatch(ctx, method, p, nil)
	}
	s.Log(call.ended(refused, false))
}

// rawResult is a result that is sent byte for byte, even if it is not JSON.
type rawResult []byte

const jsonType = "application/json"

func encodeResult(result any) []byte {
	var out bytes.Buffer
	out.WriteString(`{"ok":true,"result":`)
	if raw, ok := result.(rawResult); ok {
		out.Write(raw)
	} else {
		b, err := json.Marshal(result)
		if err != nil {
			b = []byte("null")
		}
		out.Write(b)
	}
	out.WriteByte('}')
	return out.Bytes()
}

func writeError(w http.ResponseWriter, e *apiError) {
	type parameters struct {
		MigrateToChatID int64 `json:"migrate_to_chat_id,omitempty"`
		RetryAfter      int   `json:"retry_after,omitempty"`
	}
	body := struct {
		OK          bool        `json:"ok"`
		ErrorCode   int         `json:"error_code"`
		Description string      `json:"description"`
		Parameters  *parameters `json:"parameters,omitempty"`
	}{ErrorCode: e.code, Description: e.text}
	if e.retryAfter > 0 || e.migrateTo != 0 {
		body.Parameters = &parameters{MigrateToChatID: e.migrateTo, RetryAfter: e.retryAfter}
	}
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	platformapi.WriteBody(w, e.code, jsonType, platformapi.MustJSON(body))
}
