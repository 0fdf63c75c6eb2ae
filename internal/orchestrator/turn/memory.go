package turn

import (
	"context"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/commit"
	"remote-agent/internal/messages"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
)

// recallPatience is how long a turn may wait for what is remembered. It reads the
// database; the embeddings API has a much shorter limit of its own.
const recallPatience = 2 * time.Second

// recall returns what is remembered of the sender of a turn that has begun. It runs
// as well without it, so whatever goes wrong is only logged.
//
// An agent keeps what it was told in a session of its own, where the next person
// of the conversation would find it: it is told only where nobody else writes.
func (r *run) recall(ctx context.Context) []messages.Quote {
	m, p, entry := r.w.o.config.Memory, r.d.begun.profile, r.d.entry
	if m == nil || r.w.runsAgent() && !entry.In.Private || !remembersHere(p) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recallPatience)
	defer cancel()
	quotes, err := m.Recall(ctx, r.w.conv, entry, LimitsOf(p))
	if err != nil {
		r.w.o.config.Log.InfoContext(ctx, "could not recall what is remembered", "conversation", r.w.conv.Key, "entry", entry.ID, "err", err)
		return nil
	}
	return quotes
}

// lesson is what may be learned of the sender of an entry that a turn answers: nothing, or
// one. Words that come from somebody else, as in a turn that one person repeats in the
// name of another, are no lesson; and under a profile without memory there are none.
func (r *run) lesson(entry sessions.Entry) []commit.Lesson {
	if !r.w.o.isLesson(r.d.begun.profile, entry) {
		return nil
	}
	return []commit.Lesson{{Entry: entry.ID, Account: entry.In.Actor(), Due: time.Now()}}
}

func (o *Turns) isLesson(p *profile.Profile, entry sessions.Entry) bool {
	l := o.config.Learner
	return l != nil && remembersHere(p) && !strings.HasPrefix(string(entry.In.Event), command.FollowUpPrefix) && l.Teaches(entry.In)
}

// withRemembered returns array with what is remembered before the text of the
// turn's request. array itself, which others share, is not changed.
func withRemembered(array []messages.Message, remembered []messages.Quote) []messages.Message {
	if len(remembered) == 0 {
		return array
	}
	at := len(array) - 1
	for at >= 0 && array[at].Role != messages.RoleUser {
		at--
	}
	if at < 0 {
		return array
	}
	request := array[at]
	text := quoted(remembered)
	rest := request.Blocks
	if len(rest) > 0 {
		if first, ok := rest[0].(messages.Text); ok {
			text, rest = text+first.Text, rest[1:]
		}
	}
	request.Blocks = append([]messages.Block{messages.Text{Text: text}}, rest...)
	array = slices.Clone(array)
	array[at] = request
	return array
}
