package github_test

import (
	"net/http"
	"strings"
	"testing"

	emulated "remote-agent/internal/emulator/github"
)

// The example of docs.github.com, "Validating webhook deliveries".
const (
	publishedSecret    = "It's a Secret to Everybody"
	publishedBody      = "Hello, World!"
	publishedSignature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
)

func TestPublishedSignature(t *testing.T) {
	t.Parallel()
	if got := emulated.Signature(publishedSecret, []byte(publishedBody)); got != publishedSignature {
		t.Errorf("the emulator signs with %s", got)
	}
	for name, test := range map[string]struct {
		secret, body, signature string
		status                  int
	}{
		"as published":  {publishedSecret, publishedBody, publishedSignature, http.StatusAccepted},
		"other body":    {publishedSecret, "Hello, world!", publishedSignature, http.StatusUnauthorized},
		"other secret":  {publishedSecret + "?", publishedBody, publishedSignature, http.StatusUnauthorized},
		"without kind":  {publishedSecret, publishedBody, strings.TrimPrefix(publishedSignature, "sha256="), http.StatusUnauthorized},
		"one bit apart": {publishedSecret, publishedBody, strings.Replace(publishedSignature, "757", "756", 1), http.StatusUnauthorized},
	} {
		status, _, kept := deliver(t, example{event: "ping"}, test.secret, test.signature, []byte(test.body))
		// It is signed, and no JSON: it is kept for an operator to look at.
		if status != test.status || (len(kept) == 1) != (status == http.StatusAccepted) {
			t.Errorf("%s: answered %d, kept %d, want %d", name, status, len(kept), test.status)
		}
	}
}
