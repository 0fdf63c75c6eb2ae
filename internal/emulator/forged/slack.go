// Package forged has the requests to a webhook that nobody but the platform may send: what is
// signed wrongly, and all that a receiver must refuse. Only tests use it.
package forged

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator/slack"
)

const (
	slackSignature = "X-Slack-Signature"
	slackTimestamp = "X-Slack-Request-Timestamp"

	// slackWindow is how far a timestamp may be from the receiver's clock.
	slackWindow = 5 * time.Minute
)

// Slack returns headers of Slack for a body that a receiver must refuse, by what
// is wrong with them.
func Slack(secret string, now time.Time, body []byte) map[string]http.Header {
	good := slack.Sign(secret, now, body)
	ts, sig := good.Get(slackTimestamp), good.Get(slackSignature)
	doubled := good.Clone()
	doubled.Add(slackSignature, "v0="+strings.Repeat("0", 64))
	doubledTime := good.Clone()
	doubledTime.Add(slackTimestamp, strconv.FormatInt(now.Unix()-1, 10))
	at := func(timestamp string) http.Header {
		return slackHeaders(timestamp, slack.Signature(secret, timestamp, body))
	}
	return map[string]http.Header{
		"no headers":        {},
		"no signature":      {slackTimestamp: {ts}},
		"no timestamp":      {slackSignature: {sig}},
		"empty signature":   slackHeaders(ts, ""),
		"wrong secret":      slack.Sign(secret+"x", now, body),
		"empty secret":      slack.Sign("", now, body),
		"wrong body":        slack.Sign(secret, now, append(bytes.Clone(body), ' ')),
		"other timestamp":   slackHeaders(strconv.FormatInt(now.Unix()-1, 10), sig),
		"old":               slack.Sign(secret, now.Add(-slackWindow-2*time.Second), body),
		"very old":          slack.Sign(secret, now.Add(-24*time.Hour), body),
		"future":            slack.Sign(secret, now.Add(slackWindow+2*time.Second), body),
		"far future":        at("9223372036854775807"),
		"beyond integers":   at("99999999999999999999999"),
		"negative time":     at("-1"),
		"time with a unit":  at(ts + "s"),
		"time with a point": at(ts + ".0"),
		"no time":           at(""),
		"truncated":         slackHeaders(ts, sig[:len(sig)-2]),
		"half":              slackHeaders(ts, sig[:len(sig)/2]),
		"only the version":  slackHeaders(ts, "v0="),
		"no version":        slackHeaders(ts, strings.TrimPrefix(sig, "v0=")),
		"wrong version":     slackHeaders(ts, "v1="+strings.TrimPrefix(sig, "v0=")),
		"not hexadecimal":   slackHeaders(ts, "v0="+strings.Repeat("zz", 32)),
		"longer":            slackHeaders(ts, sig+"00"),
		"written twice":     slackHeaders(ts, sig+sig),
		"list of two":       slackHeaders(ts, sig+","+sig),
		"doubled header":    doubled,
		"doubled timestamp": doubledTime,
	}
}

func slackHeaders(timestamp, signature string) http.Header {
	h := http.Header{}
	h.Set(slackTimestamp, timestamp)
	h.Set(slackSignature, signature)
	return h
}
