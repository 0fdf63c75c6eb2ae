package github

import (
	"encoding/json"
	"net/url"
	"time"
)

// Call is one call of the API by the bot.
type Call struct {
	Operation string // as in GitHub's OpenAPI description, or "unknown"
	Method    string
	Path      string
	Query     url.Values
	Body      map[string]json.RawMessage // as sent
	As        string                     // who called; empty if the credential is no good
	At        time.Time                  // when it came in

	Status int    // of the answer, if it had arrived; zero if nothing was done
	Error  string // GitHub's message; empty if the call was carried out
}

// Text returns an argument of the body that is a string.
func (c Call) Text(name string) string {
	var text string
	_ = json.Unmarshal(c.Body[name], &text)
	return text
}
