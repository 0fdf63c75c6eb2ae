package github

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

const (
	signatureHeader = "X-Hub-Signature-256"
	eventHeader     = "X-GitHub-Event"
	deliveryHeader  = "X-GitHub-Delivery"

	signaturePrefix = "sha256="
)

// claimOf returns the signature of a request. It reports false for what cannot
// be one, without looking at the body. There must be exactly one: what stands
// between could read another one than we. The SHA-1 signature, which GitHub
// still sends too, counts for nothing.
func claimOf(h http.Header) (string, bool) {
	values := h.Values(signatureHeader)
	if len(values) != 1 || len(values[0]) != len(signaturePrefix)+hex.EncodedLen(sha256.Size) || !strings.HasPrefix(values[0], signaturePrefix) {
		return "", false
	}
	return values[0], true
}

// signed reports whether body was signed with secret, which is not empty.
func signed(secret, signature string, body []byte) bool {
	return secret != "" && hmac.Equal([]byte(signature), []byte(sign(secret, body)))
}

// sign returns the signature of a body (docs.github.com, Validating webhook
// deliveries).
func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return signaturePrefix + hex.EncodeToString(mac.Sum(nil))
}
