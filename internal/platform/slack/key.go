package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// place is what a conversation id stands for: "team/channel" for a direct
// message, "team/channel/ts" for a thread, "team/channel/new-…" for a thread
// that a slash command asked for and that is not there yet. The team of an
// organization-wide installation is "enterprise:team" (contract B1.12).
type place struct {
	account string
	channel string
	thread  string // ts of the thread's root, or empty
	opening string // what follows new-, or empty
}

const openingMark = "new-"

// account returns the account of a team.
func account(enterprise, team string) string {
	if enterprise == "" {
		return team
	}
	return enterprise + ":" + team
}

// makeKey returns the conversation of p.
func makeKey(p place) messages.ConversationKey {
	id := p.account + "/" + p.channel
	switch {
	case p.opening != "":
		id += "/" + openingMark + p.opening
	case p.thread != "":
		id += "/" + p.thread
	}
	return messages.ConversationKey{Platform: Name, ID: id}
}

// parseKey is the inverse of makeKey.
func parseKey(key messages.ConversationKey) (place, error) {
	parts := strings.Split(key.ID, "/")
	if key.Platform != Name || len(parts) < 2 || len(parts) > 3 || parts[0] == "" || !isID(parts[1]) {
		return place{}, errNoKey(key)
	}
	p := place{account: parts[0], channel: parts[1]}
	if len(parts) == 2 {
		return p, nil
	}
	var isNew bool
	if p.opening, isNew = strings.CutPrefix(parts[2], openingMark); isNew && p.opening != "" {
		return p, nil
	}
	if p.opening, p.thread = "", parts[2]; !isTS(p.thread) {
		return place{}, errNoKey(key)
	}
	return p, nil
}

func errNoKey(key messages.ConversationKey) error {
	return fault.Newf(fault.Invalid, "%s is not a Slack conversation: its ID has the team, as in T012AB3CD/C034EF5GH/1700000000.000100.", key)
}

// openingOf names a conversation that a slash command asked for.
func openingOf(trigger string) string {
	sum := sha256.Sum256([]byte(trigger))
	return hex.EncodeToString(sum[:12])
}

// isID reports whether s can be an id of Slack: a team, channel or user.
func isID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// isTS reports whether s can be the timestamp that identifies a message.
func isTS(s string) bool {
	whole, part, ok := strings.Cut(s, ".")
	return ok && isDigits(whole, 12) && isDigits(part, 9)
}

func isDigits(s string, atMost int) bool {
	return s != "" && len(s) <= atMost && strings.Trim(s, "0123456789") == ""
}

// timeOf returns the time of a message. It is zero for what is not a ts.
func timeOf(ts string) time.Time {
	if !isTS(ts) {
		return time.Time{}
	}
	whole, part, _ := strings.Cut(ts, ".")
	seconds, _ := strconv.ParseInt(whole, 10, 64)
	nanos, _ := strconv.ParseInt((part + "000000000")[:9], 10, 64)
	return time.Unix(seconds, nanos).UTC()
}

// eventID returns an event id of what identifies the event. A long one is
// replaced by its hash.
func eventID(kind string, parts ...string) messages.EventID {
	id := kind + ":" + strings.Join(parts, ":")
	if len(id) > 128 {
		sum := sha256.Sum256([]byte(id))
		id = kind + ":" + hex.EncodeToString(sum[:])
	}
	return messages.EventID(id)
}
