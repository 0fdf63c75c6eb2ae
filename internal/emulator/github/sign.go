package github

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // GitHub still sends it, and receivers must not take it
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

const (
	headerSignature = "X-Hub-Signature-256"
	headerOld       = "X-Hub-Signature"
)

// Signature returns the signature of a delivery's body: "sha256=" and the HMAC.
func Signature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// oldSignature is the one with SHA-1, which GitHub still sends beside the other.
func oldSignature(secret string, body []byte) string {
	mac := hmac.New(sha1.New, []byte(secret))
	_, _ = mac.Write(body)
	return "sha1=" + hex.EncodeToString(mac.Sum(nil))
}

// Headers returns the headers of a signed delivery. Without a secret it is not
// signed.
func Headers(secret, event, guid string, body []byte) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "GitHub-Hookshot/e1a2b3c")
	h.Set("X-GitHub-Event", event)
	h.Set("X-GitHub-Delivery", guid)
	if secret != "" {
		h.Set(headerSignature, Signature(secret, body))
		h.Set(headerOld, oldSignature(secret, body))
	}
	return h
}
