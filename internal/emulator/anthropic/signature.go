package anthropic

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// signingKey stands for the provider's secret. It is the same for every server,
// as that of an API is before and after a restart, so nothing has to be
// remembered.
const signingKey = "emulated messages api"

// stamp is what a signature says about a block, besides what it proves.
type stamp struct {
	Response string `json:"r"` // that the block was part of
	Index    int    `json:"i"` // among the thinking blocks of the response
	Count    int    `json:"n"` // how many it had
}

func mac(s stamp, kind, model, text string) []byte {
	h := hmac.New(sha256.New, []byte(signingKey))
	head, err := json.Marshal([]any{s, kind, model, text})
	if err != nil {
		return nil
	}
	_, _ = h.Write(head)
	return h.Sum(nil)
}

// sign returns the signature of a thinking block, or the data of a redacted one.
func sign(s stamp, kind, model, text string) string {
	head, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(append(head, mac(s, kind, model, text)...))
}

// verify returns the stamp of a signature that sign made for the same arguments.
func verify(signature, kind, model, text string) (s stamp, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(raw) < sha256.Size || json.Unmarshal(raw[:len(raw)-sha256.Size], &s) != nil {
		return stamp{}, false
	}
	// The whole signature counts, byte by byte.
	return s, hmac.Equal([]byte(signature), []byte(sign(s, kind, model, text)))
}

// checkThoughts refuses thinking that this model did not write, and in the
// latest assistant message also thinking of which a part is missing or moved.
// Leaving all of it out is allowed.
func checkThoughts(r *Request, _ ruleset) *APIError {
	latest := len(r.Messages) - 1
	for latest >= 0 && r.Messages[latest].Role != "assistant" {
		latest--
	}
	for i, m := range r.Messages {
		next := stamp{} // what has to come in a row that has begun
		for _, b := range m.Blocks {
			s, thinking, e := readStamp(r.Model, b)
			if e != nil {
				return e
			}
			if !thinking || i != latest {
				continue
			}
			if next.Index < next.Count && (s.Response != next.Response || s.Index != next.Index) || next.Index >= next.Count && s.Index != 0 {
				return changed(b.at)
			}
			next = stamp{Response: s.Response, Index: s.Index + 1, Count: s.Count}
		}
		if next.Index < next.Count {
			return changed(m.Blocks[len(m.Blocks)-1].at)
		}
	}
	return nil
}

func readStamp(model string, b ContentBlock) (s stamp, thinking bool, e *APIError) {
	var ok bool
	switch b.Type {
	case "thinking":
		if s, ok = verify(*b.Signature, b.Type, model, *b.Thinking); !ok {
			return s, true, invalid("%s: Invalid `signature` in `thinking` block", b.at)
		}
	case "redacted_thinking":
		if s, ok = verify(*b.Data, b.Type, model, ""); !ok {
			return s, true, invalid("%s: Invalid `data` in `redacted_thinking` block", b.at)
		}
	default:
		return s, false, nil
	}
	return s, true, nil
}

func changed(at string) *APIError {
	return invalid("%s: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "+
		"These blocks must remain as they were in the original response.", at)
}
