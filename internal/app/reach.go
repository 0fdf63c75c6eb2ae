package app

import (
	"context"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/store"
)

// freshReach is how long what a replica has noted of its way to a platform counts: it
// notes it every minute.
const freshReach = platformsEvery + 2*lookEvery

// reach is what the replicas of a service know together of their ways to the platforms: a
// platform that one of them is connected to is not disconnected, and one that the only
// replica that receives from it does not hear is, although the others can call it.
type reach struct {
	store *store.Store
	owner string // this replica
}

// note records what this replica found, at a time. One that can call a platform from
// which another one receives has nothing to say.
func (r reach) note(ctx context.Context, name string, found error, receives bool, now time.Time) error {
	if found == nil && !receives {
		return nil
	}
	return r.store.InTx(ctx, func(tx *store.Tx) error {
		at := strconv.FormatInt(now.UnixMilli(), 10)
		if found == nil {
			return tx.Inbox().SaveCursor(ctx, "reach/"+name+"/ok", at+" "+r.owner)
		}
		mine, err := tx.Inbox().Cursor(ctx, "reach/"+name+"/ok")
		if err == nil && strings.HasSuffix(mine, " "+r.owner) {
			err = tx.Inbox().SaveCursor(ctx, "reach/"+name+"/ok", "") // what it found earlier is over
		}
		if err != nil {
			return err
		}
		return tx.Inbox().SaveCursor(ctx, "reach/"+name+"/bad", at+" "+platform.Cut(fault.Public(found), 200))
	})
}

// trouble returns why no replica is connected to a platform, or nothing.
func (r reach) trouble(ctx context.Context, name string, now time.Time) (reason string, err error) {
	err = r.store.InRead(ctx, func(tx *store.Tx) error {
		ok, err := tx.Inbox().Cursor(ctx, "reach/"+name+"/ok")
		if err != nil {
			return err
		}
		bad, err := tx.Inbox().Cursor(ctx, "reach/"+name+"/bad")
		if _, fine := fresh(ok, now); fine {
			bad = ""
		}
		reason, _ = fresh(bad, now)
		return err
	})
	return reason, err
}

// fresh returns what was noted behind its time, unless that is long ago.
func fresh(noted string, now time.Time) (what string, ok bool) {
	at, what, _ := strings.Cut(noted, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.UnixMilli(ms)).Abs() > freshReach {
		return "", false
	}
	return what, true
}
