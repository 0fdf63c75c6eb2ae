package store

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/memory"
)

// addLessonSQL stores a lesson once, and none of somebody whose memory is off: what they
// say then is not learned later either.
const addLessonSQL = `
	INSERT INTO memory_lessons (entry_id, account, conversation_id, next_ms)
	SELECT e.id, CAST($2 AS TEXT), e.conversation_id, CAST($3 AS BIGINT) FROM inbound_events e
	WHERE e.id = $1 AND NOT EXISTS (
		SELECT 1 FROM memory_people p
		WHERE p.user_id = COALESCE((SELECT a.user_id FROM memory_accounts a WHERE a.account = $2), $2) AND NOT p.enabled)
	ON CONFLICT (entry_id) DO NOTHING`

const dueLessonSQL = `SELECT account, conversation_id FROM memory_lessons WHERE next_ms <= $1 ORDER BY next_ms, entry_id LIMIT 1`

// ClaimLessons gives the caller the oldest lesson that is due, and up to limit
// that one person gave in one conversation. Until a time nobody else gets them;
// claim, which is unique to the call, finishes or releases them. There are none
// if nothing is due.
func (t *Lessons) ClaimLessons(ctx context.Context, claim string, now, until time.Time, limit int) ([]memory.Lesson, error) {
	var account, conversation string
	ok, err := t.tx.one(ctx, []any{&account, text{&conversation}}, dueLessonSQL, millis(now))
	if err != nil || !ok {
		return nil, wrap(err, "look for lessons")
	}
	var list []memory.Lesson
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		l := memory.Lesson{Account: account, ConversationID: conversation}
		err := scan(text{&l.EntryID}, &l.Attempts, msTime{&l.Due})
		l.Attempts++
		list = append(list, l)
		return err
	}, `
		SELECT entry_id, attempts, next_ms FROM memory_lessons
		WHERE account = $1 AND conversation_id = $2 AND (next_ms <= $3 OR claim = '' AND attempts = 0)
		ORDER BY entry_id LIMIT $4 {lock}`, account, conversation, millis(now), limit)
	if err != nil {
		return nil, fmt.Errorf("claim lessons: %w", err)
	}
	for _, l := range list {
		if _, err := t.tx.exec(ctx, `UPDATE memory_lessons SET claim = $2, next_ms = $3, attempts = attempts + 1 WHERE entry_id = $1`, l.EntryID, claim, millis(until)); err != nil {
			return nil, fmt.Errorf("claim lessons: %w", err)
		}
	}
	return list, nil
}

// FinishLessons deletes the lessons of a claim and returns those that still had
// it: the others were dropped since, or somebody else has them, and nothing may
// be learned from them.
func (t *Lessons) FinishLessons(ctx context.Context, claim string) ([]string, error) {
	ids, err := t.tx.ids(ctx, `DELETE FROM memory_lessons WHERE claim = $1 RETURNING entry_id`, claim)
	return ids, wrap(err, "finish lessons")
}

// ReleaseLessons gives the lessons of a claim back, due at a time. The attempt is
// taken back if it was not the lessons' fault.
func (t *Lessons) ReleaseLessons(ctx context.Context, claim string, due time.Time, counts bool) error {
	back := 1
	if counts {
		back = 0
	}
	return t.tx.run(ctx, "release lessons", `UPDATE memory_lessons SET claim = '', next_ms = $2, attempts = attempts - $3 WHERE claim = $1`, claim, millis(due), back)
}

// dropLessons deletes what is still to be learned of a person.
func (t *Lessons) dropLessons(ctx context.Context, person string) (int64, error) {
	n, err := t.tx.exec(ctx, `
		DELETE FROM memory_lessons WHERE account = $1 OR account IN (SELECT account FROM memory_accounts WHERE user_id = $1)`, person)
	return n, wrap(err, "drop lessons")
}
