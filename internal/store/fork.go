package store

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// MaxFork is how many messages a session may have that is forked.
const MaxFork = 10_000

// ForkSession begins a session that goes on from the first N messages of another
// one, which is its parent. Where it begins, the active session ends; nothing is
// deleted. A fork that is already there as it would be made, and in which nothing
// was said since, is returned as it is, with Again: a request that got no answer
// can be repeated.
//
// It is fault.NotFound if there is no such session, fault.Invalid if it has not that
// many messages, fault.Unsupported if it has none or more than MaxFork, and
// fault.Conflict while something runs or waits in its conversation. It locks the rows
// of the conversations.
func (t *Sessions) ForkSession(ctx context.Context, f sessions.Fork) (sessions.Forked, error) {
	from, err := t.Session(ctx, f.From)
	if err != nil {
		return sessions.Forked{}, err
	}
	all, err := t.forkable(ctx, from, f.Before)
	if err != nil {
		return sessions.Forked{}, err
	}
	switch {
	case f.N < 0 || f.N > len(all):
		return sessions.Forked{}, fault.Newf(fault.Invalid, "The session has %d messages: choose 1 to %d.", len(all), len(all))
	case f.N == 0:
		f.N = len(all)
	}
	into := f.Into
	if into == "" {
		into = from.ConversationID
	} else if err := t.tx.Conversations().lockConversationID(ctx, into); err != nil {
		return sessions.Forked{}, err
	}
	done := sessions.Forked{Taken: f.N, Of: len(all)}
	active, ok, err := t.ActiveSession(ctx, into)
	switch {
	case err != nil:
		return sessions.Forked{}, err
	case ok && active.ParentID == from.ID && active.Metadata.Forked() == f.N && active.LastSeq == int64(f.N):
		done.Session, done.Again = active, true
		return done, nil
	case ok:
		if err := t.DeactivateSession(ctx, active.ID, "fork"); err != nil {
			return sessions.Forked{}, err
		}
	}
	done.Session, err = t.beginFork(ctx, from, into, messages.NewArray(all...).Fork(f.N))
	return done, err
}

// forkable returns the messages of a session, oldest first, with the row of its
// conversation locked and nothing at work there.
func (t *Sessions) forkable(ctx context.Context, from sessions.Session, before int64) ([]messages.Message, error) {
	if err := t.tx.Conversations().lockConversationID(ctx, from.ConversationID); err != nil {
		return nil, err
	}
	before = cmp.Or(before, math.MaxInt64)
	busy, err := t.tx.exists(ctx, `
		SELECT 1 FROM inbound_events WHERE conversation_id = $1 AND `+openTurn+` AND (seq < $2 OR state = 'running' AND seq <> $2) LIMIT 1`,
		from.ConversationID, before)
	if err != nil {
		return nil, wrap(err, "look whether the conversation works")
	}
	if busy {
		return nil, &fault.Error{Kind: fault.Conflict, Err: sessions.ErrBusy, Public: "Something is still running or queued there. Send /stop, or wait for it, and then fork."}
	}
	all, err := t.tx.Messages().MessagesBefore(ctx, from.ID, 1<<62, MaxFork+1)
	switch {
	case err != nil:
		return nil, err
	case len(all) > MaxFork:
		return nil, fault.Newf(fault.Unsupported, "The session has more than %d messages and cannot be forked.", MaxFork)
	case len(all) == 0:
		return nil, fault.New(fault.Unsupported, "The session has no messages to continue from.")
	}
	slices.Reverse(all)
	return all, nil
}

func (t *Sessions) beginFork(ctx context.Context, from sessions.Session, into string, array *messages.Array) (sessions.Session, error) {
	next, err := t.CreateSession(ctx, sessions.NewSession{
		ConversationID: into, CodebaseID: from.CodebaseID, ParentID: from.ID, Assistant: from.Assistant, AgentName: from.AgentName,
		AgentID: from.AgentID, Model: from.Model, SystemPrompt: from.SystemPrompt, Config: from.Config, UserPrompt: from.UserPrompt,
	})
	if err != nil {
		return next, err
	}
	if err := t.UpdateSession(ctx, next.ID, sessions.SessionUpdate{Metadata: sessions.Metadata{sessions.MetaForked: array.Len()}}); err != nil {
		return next, err
	}
	if _, err := t.tx.Messages().AppendMessages(ctx, next.ID, "", array.Messages()...); err != nil {
		return next, err
	}
	return t.Session(ctx, next.ID)
}

// Ids of sessions are in the order of their beginnings.
const forksSQL = `
	SELECT id FROM remote_agent_sessions
	WHERE conversation_id = $1 AND parent_session_id IS NOT NULL AND id > $2 ORDER BY id DESC`

// ForkAfter returns the newest fork of a conversation that began after a session of
// it; an empty session means any fork. ok is false if there is none.
func (t *Sessions) ForkAfter(ctx context.Context, conversationID, sessionID string) (s sessions.Session, ok bool, err error) {
	sessionID = cmp.Or(sessionID, firstUUID)
	ids, err := t.tx.ids(ctx, forksSQL, conversationID, sessionID)
	if err != nil {
		return s, false, wrap(err, "find forks")
	}
	for _, id := range ids {
		if s, err = t.Session(ctx, id); err != nil {
			return s, false, err
		}
		if s.Metadata.Forked() > 0 {
			return s, true, nil
		}
	}
	return sessions.Session{}, false, nil
}

// maxForks is how many forks of forks are followed to who said something first.
const maxForks = 20

// forkedRunsSQL finds the messages of people that a fork copied in its parent: they have
// the same place among those that stand, and the same text. After something in the parent
// was taken back another message may have the place; it is not taken for the same one.
const forkedRunsSQL = `
	SELECT m.seq, p.seq, p.run_id FROM agent_messages m JOIN (
		SELECT seq, run_id, role, content, row_number() OVER (ORDER BY seq) AS place FROM agent_messages
		WHERE session_id = $2 AND part = 0 AND role <> 'system' AND NOT undone ORDER BY seq LIMIT $4) p ON p.place = m.seq
	WHERE m.session_id = $1 AND m.part = 0 AND m.role = 'user' AND m.seq >= $3 AND m.seq <= $4 AND p.role = 'user' AND p.content = m.content`

// forkedRuns gives messages of people that a fork copied the run in which they were said.
// The copies have none in the database: what is done to that run is none of theirs.
func (t *Pages) forkedRuns(ctx context.Context, sessionID string, list []TranscriptMessage) error {
	at := make(map[int64]int) // by number in the session that is looked at, the place in list
	for i, m := range list {
		if m.Role == messages.RoleUser && m.RunID == "" {
			at[m.Seq] = i
		}
	}
	for range maxForks {
		if len(at) == 0 {
			return nil
		}
		s, err := t.tx.Sessions().Session(ctx, sessionID)
		forked := int64(s.Metadata.Forked())
		if err != nil || s.ParentID == "" || forked == 0 {
			return err
		}
		first, last := slices.Min(slices.Collect(maps.Keys(at))), min(forked, slices.Max(slices.Collect(maps.Keys(at))))
		next := make(map[int64]int)
		err = t.tx.each(ctx, func(scan func(...any) error) error {
			var seq, before int64
			var run string
			if err := scan(&seq, &before, &run); err != nil {
				return err
			}
			if i, asked := at[seq]; asked && run == "" {
				next[before] = i
			} else if asked {
				list[i].RunID = run
			}
			return nil
		}, forkedRunsSQL, sessionID, s.ParentID, first, last)
		if err != nil {
			return wrap(err, "look who said what a fork copied")
		}
		sessionID, at = s.ParentID, next
	}
	return nil
}
