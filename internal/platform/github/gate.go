package github

import (
	"context"
	"strconv"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// Admits implements platform.Gatekeeper: whoever may write to the repository may
// use the bot there, unless Config.Allowed names others. GitHub is asked each
// time; only a yes is remembered, and for seconds. What an event says of its
// author's association is no authority (contract C9).
func (a *Adapter) Admits(ctx context.Context, in messages.Inbound) (bool, error) {
	at, err := parseKey(in.Conversation)
	if err != nil {
		return false, err
	}
	id, err := strconv.ParseInt(string(in.Sender.ID), 10, 64)
	if err != nil || id < 1 || in.Sender.Bot {
		return false, nil //nolint:nilerr // who is nobody may nothing
	}
	if len(a.cfg.Allowed) > 0 {
		allowed := a.allowed.Load()
		if allowed == nil {
			return false, fault.New(fault.Unavailable, "I do not know yet who is allowed to use me; try again in a moment.")
		}
		if !(*allowed)[id] {
			return false, nil
		}
	}
	return a.mayWrite(ctx, at.repo, id, in.Sender.Name)
}

// mayWrite asks whether an account may write to a repository. The endpoint takes
// a login; the number in its answer says whose that is now.
func (a *Adapter) mayWrite(ctx context.Context, repo string, id int64, login string) (bool, error) {
	memory := repo + " " + strconv.FormatInt(id, 10)
	if until, ok := a.admits.Get(memory); ok && time.Now().Before(until) {
		return true, nil
	}
	ok, err := a.askPermission(ctx, repo, id, login)
	if err != nil || !ok {
		a.admits.Put(memory, time.Time{})
		return false, err
	}
	if a.cfg.PermissionTTL > 0 {
		a.admits.Put(memory, time.Now().Add(min(a.cfg.PermissionTTL, time.Minute)))
	}
	return true, nil
}

func (a *Adapter) askPermission(ctx context.Context, repo string, id int64, login string) (bool, error) {
	if !loginForm.MatchString(login) {
		return false, nil
	}
	var out struct {
		Permission string `json:"permission"`
		User       user   `json:"user"`
	}
	_, err := a.inRepo(ctx, repo, request{route: routePermission, args: repoArgs(repo, login), idempotent: true}, &out)
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil // no such account, or nothing to do with the repository
	case err != nil:
		return false, err
	case out.User.ID != id:
		return false, nil // somebody else has the login now
	}
	switch out.Permission {
	case "admin", "maintain", "write":
		return true, nil
	}
	return false, nil
}
