package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

const (
	timestampHeader = "X-Slack-Request-Timestamp"
	signatureHeader = "X-Slack-Signature"

	// maxAge is how far a request's time may be from ours, both ways.
	maxAge = 5 * time.Minute
)

// claim is what the headers of a request say about who sent it.
type claim struct {
	timestamp, signature string
}

// claimOf reads the headers. It reports false for what cannot be a signature of
// now, without looking at the body. Of each header there must be exactly one:
// what stands between could read another one than we.
func claimOf(h http.Header, now time.Time) (claim, bool) {
	at, signatures := h.Values(timestampHeader), h.Values(signatureHeader)
	if len(at) != 1 || len(signatures) != 1 || !isDigits(at[0], 12) {
		return claim{}, false
	}
	seconds, err := strconv.ParseInt(at[0], 10, 64)
	if err != nil {
		return claim{}, false
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > maxAge || age < -maxAge {
		return claim{}, false
	}
	return claim{timestamp: at[0], signature: signatures[0]}, len(signatures[0]) == len("v0=")+hex.EncodedLen(sha256.Size)
}

// signs reports whether body was signed with secret, which is not empty.
func (c claim) signs(secret string, body []byte) bool {
	return secret != "" && hmac.Equal([]byte(c.signature), []byte(sign(secret, c.timestamp, body)))
}

// sign returns the signature of a request (docs.slack.dev, Verifying requests).
func sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}
