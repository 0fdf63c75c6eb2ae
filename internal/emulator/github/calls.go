package github

import "encoding/json"

// Call is one call of the API by the bot.
type Call struct {
	Operation string // as in GitHub's OpenAPI description, or "unknown"
	Method    string
	Path      string
	Body      map[string]json.RawMessage // as sent
	As        string                     // who called; empty if the credential is no good

	Status int    // of the answer, if it had arrived; zero if nothing was done
	Error  string // GitHub's message; empty if the call was carried out
}
