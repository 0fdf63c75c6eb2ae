package store

import (
	"context"
	"fmt"
	"sort"

	"remote-agent/internal/fault"
)

// held is a person whose row is locked.
type held struct {
	person string
	seq    int64
	on     bool // memory is, as they chose
}

// lockRow locks the row of a person and reads it; ok is false if there is none.
func (t *Persons) lockRow(ctx context.Context, h *held) (ok bool, err error) {
	ok, err = t.tx.one(ctx, []any{&h.seq, &h.on}, `SELECT seq, enabled FROM memory_people WHERE user_id = $1 {lock}`, h.person)
	return ok, wrap(err, "lock a person's memory")
}

func (t *Persons) touchPerson(ctx context.Context, person string) error {
	return t.tx.run(ctx, "make a person's memory", `INSERT INTO memory_people (user_id) VALUES ($1) ON CONFLICT (user_id) DO NOTHING`, person)
}

// holdPerson locks the person of an account, whose row is made if there is none. The
// account may be linked while the row is waited for: then it locks who has it since.
func (t *Persons) holdPerson(ctx context.Context, account string) (h held, err error) {
	for {
		if h.person, err = t.personOf(ctx, account); err != nil {
			return h, err
		}
		ok, err := t.lockRow(ctx, &h)
		if err != nil {
			return h, err
		}
		switch now, err := t.personOf(ctx, account); {
		case err != nil:
			return h, err
		case now != h.person:
			continue
		case ok:
			return h, nil
		}
		if err := t.touchPerson(ctx, h.person); err != nil {
			return h, err
		}
	}
}

// holdBoth locks the people of two accounts, always in the order of the people: two
// accounts of theirs may sort the other way round. If one of the accounts has another
// person by then, it lets go of what it has locked, so as to keep the order, and begins
// again. One person for both is a fault.Conflict.
func (t *Persons) holdBoth(ctx context.Context, a, b string) (first, second held, err error) {
	if _, err = t.tx.exec(ctx, `SAVEPOINT people`); err != nil {
		return first, second, fmt.Errorf("lock two people: %w", err)
	}
	for {
		if first.person, second.person, err = t.peopleOf(ctx, a, b); err != nil {
			return first, second, err
		}
		if first.person == second.person {
			return first, second, fault.Newf(fault.Conflict, "%s and %s are already linked.", a, b)
		}
		both, there := []*held{&first, &second}, true
		sort.Slice(both, func(i, k int) bool { return both[i].person < both[k].person })
		for _, h := range both {
			if err := t.touchPerson(ctx, h.person); err != nil {
				return first, second, err
			}
			ok, err := t.lockRow(ctx, h)
			if err != nil {
				return first, second, err
			}
			there = there && ok
		}
		nowA, nowB, err := t.peopleOf(ctx, a, b)
		if err != nil || there && nowA == first.person && nowB == second.person {
			return first, second, err
		}
		if _, err := t.tx.exec(ctx, `ROLLBACK TO SAVEPOINT people`); err != nil {
			return first, second, fmt.Errorf("lock two people again: %w", err)
		}
	}
}

func (t *Persons) peopleOf(ctx context.Context, a, b string) (first, second string, err error) {
	if first, err = t.personOf(ctx, a); err == nil {
		second, err = t.personOf(ctx, b)
	}
	return first, second, err
}
