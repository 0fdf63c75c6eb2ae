package github

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // GitHub still sends it, and receivers must not take it
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
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

// BadSignatures returns headers for a body that a receiver must refuse, by what
// is wrong with them.
func BadSignatures(secret, event, guid string, body []byte) map[string]http.Header {
	good := Signature(secret, body)
	digest := strings.TrimPrefix(good, "sha256=")
	with := func(values ...string) http.Header {
		h := Headers("", event, guid, body)
		for _, v := range values {
			h.Add(headerSignature, v)
		}
		return h
	}
	old := with()
	old.Set(headerOld, oldSignature(secret, body))
	oldAndWrong := with("sha256=" + strings.Repeat("0", 64))
	oldAndWrong.Set(headerOld, oldSignature(secret, body))
	return map[string]http.Header{
		"no signature":          with(),
		"empty":                 with(""),
		"only the name":         with("sha256="),
		"no name":               with(digest),
		"SHA-1 only":            old,
		"SHA-1 beside a wrong":  oldAndWrong,
		"SHA-1 in the new":      with(oldSignature(secret, body)),
		"SHA-1 named SHA-256":   with("sha256=" + strings.TrimPrefix(oldSignature(secret, body), "sha1=")),
		"SHA-512 by name":       with("sha512=" + digest),
		"wrong secret":          with(Signature(secret+"x", body)),
		"empty secret":          with(Signature("", body)),
		"wrong body":            with(Signature(secret, append(bytes.Clone(body), ' '))),
		"empty body":            with(Signature(secret, nil)),
		"zeros":                 with("sha256=" + strings.Repeat("0", 64)),
		"truncated":             with(good[:len(good)-2]),
		"half":                  with(good[:len("sha256=")+32]),
		"one digit":             with(good[:len("sha256=")+1]),
		"longer":                with(good + "00"),
		"written twice":         with(good + digest),
		"list of two":           with("sha256=" + strings.Repeat("0", 64) + "," + good),
		"not hexadecimal":       with("sha256=" + strings.Repeat("zz", 32)),
		"doubled, first wrong":  with("sha256="+strings.Repeat("0", 64), good),
		"doubled, second wrong": with(good, "sha256="+strings.Repeat("0", 64)),
		"space inside":          with("sha256= " + digest),
		"name in upper case":    with("SHA256=" + digest),
	}
}
