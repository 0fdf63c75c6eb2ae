package forged

import (
	"bytes"
	"net/http"
	"strings"

	"remote-agent/internal/emulator/github"
)

const (
	headerNew = "X-Hub-Signature-256"
	headerOld = "X-Hub-Signature"
)

// GitHub returns headers of GitHub for a body that a receiver must refuse, by what
// is wrong with them.
func GitHub(secret, event, guid string, body []byte) map[string]http.Header {
	good := github.Signature(secret, body)
	oldSignature := github.Headers(secret, event, guid, body).Get(headerOld)
	digest := strings.TrimPrefix(good, "sha256=")
	with := func(values ...string) http.Header {
		h := github.Headers("", event, guid, body)
		for _, v := range values {
			h.Add(headerNew, v)
		}
		return h
	}
	old := with()
	old.Set(headerOld, oldSignature)
	oldAndWrong := with("sha256=" + strings.Repeat("0", 64))
	oldAndWrong.Set(headerOld, oldSignature)
	return map[string]http.Header{
		"no signature":          with(),
		"empty":                 with(""),
		"only the name":         with("sha256="),
		"no name":               with(digest),
		"SHA-1 only":            old,
		"SHA-1 beside a wrong":  oldAndWrong,
		"SHA-1 in the new":      with(oldSignature),
		"SHA-1 named SHA-256":   with("sha256=" + strings.TrimPrefix(oldSignature, "sha1=")),
		"SHA-512 by name":       with("sha512=" + digest),
		"wrong secret":          with(github.Signature(secret+"x", body)),
		"empty secret":          with(github.Signature("", body)),
		"wrong body":            with(github.Signature(secret, append(bytes.Clone(body), ' '))),
		"empty body":            with(github.Signature(secret, nil)),
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
