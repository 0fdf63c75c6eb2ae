package slack

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	headerSignature = "X-Slack-Signature"
	headerTimestamp = "X-Slack-Request-Timestamp"
)

// Signature returns the signature of a body: "v0=" and the HMAC of the version,
// the timestamp and the body.
func Signature(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "v0:%s:", timestamp)
	_, _ = mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// Sign returns the headers of a signed request.
func Sign(secret string, at time.Time, body []byte) http.Header {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	return signed(timestamp, Signature(secret, timestamp, body))
}

func signed(timestamp, signature string) http.Header {
	h := http.Header{}
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, signature)
	return h
}

// signatureWindow is how far a timestamp may be from the receiver's clock.
const signatureWindow = 5 * time.Minute

// BadSignatures returns headers for a body that a receiver must refuse, by what
// is wrong with them.
func BadSignatures(secret string, now time.Time, body []byte) map[string]http.Header {
	good := Sign(secret, now, body)
	ts, sig := good.Get(headerTimestamp), good.Get(headerSignature)
	doubled := good.Clone()
	doubled.Add(headerSignature, "v0="+strings.Repeat("0", 64))
	doubledTime := good.Clone()
	doubledTime.Add(headerTimestamp, strconv.FormatInt(now.Unix()-1, 10))
	at := func(timestamp string) http.Header { return signed(timestamp, Signature(secret, timestamp, body)) }
	return map[string]http.Header{
		"no headers":        {},
		"no signature":      {headerTimestamp: {ts}},
		"no timestamp":      {headerSignature: {sig}},
		"empty signature":   signed(ts, ""),
		"wrong secret":      Sign(secret+"x", now, body),
		"empty secret":      Sign("", now, body),
		"wrong body":        Sign(secret, now, append(bytes.Clone(body), ' ')),
		"other timestamp":   signed(strconv.FormatInt(now.Unix()-1, 10), sig),
		"old":               Sign(secret, now.Add(-signatureWindow-2*time.Second), body),
		"very old":          Sign(secret, now.Add(-24*time.Hour), body),
		"future":            Sign(secret, now.Add(signatureWindow+2*time.Second), body),
		"far future":        at("9223372036854775807"),
		"beyond integers":   at("99999999999999999999999"),
		"negative time":     at("-1"),
		"time with a unit":  at(ts + "s"),
		"time with a point": at(ts + ".0"),
		"no time":           at(""),
		"truncated":         signed(ts, sig[:len(sig)-2]),
		"half":              signed(ts, sig[:len(sig)/2]),
		"only the version":  signed(ts, "v0="),
		"no version":        signed(ts, strings.TrimPrefix(sig, "v0=")),
		"wrong version":     signed(ts, "v1="+strings.TrimPrefix(sig, "v0=")),
		"not hexadecimal":   signed(ts, "v0="+strings.Repeat("zz", 32)),
		"longer":            signed(ts, sig+"00"),
		"written twice":     signed(ts, sig+sig),
		"list of two":       signed(ts, sig+","+sig),
		"doubled header":    doubled,
		"doubled timestamp": doubledTime,
	}
}
