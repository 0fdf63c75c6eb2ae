// Package access decides who may talk to the bot: by what is stored of somebody, by
// the configuration, and by the platform where that decides itself.
package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// ownerCodeTTL is how long a one-time owner link works.
const ownerCodeTTL = 15 * time.Minute

// Rule is what the configuration says of who may talk to the bot on a platform; see
// Role for what holds besides.
type Rule struct {
	Everyone bool
	IDs      map[messages.UserID]bool
	Owners   map[messages.UserID]bool // all owners there, if it names any
}

// Verdict says who somebody is to the bot.
type Verdict struct {
	Role    sessions.Role
	Claimed bool                  // by this message
	Removed bool                  // the sender was removed
	State   sessions.ServiceState // as it was read with the role
}

// Access knows who may. It is safe for concurrent use.
type Access struct {
	Storage  port.Storage
	Rules    func(p messages.Platform) Rule // as they are now
	Adapters map[messages.Platform]platform.Adapter
	Log      *slog.Logger
}

// Authorize says who the sender is, by immutable id only. It is asked when a
// message arrives and again when its turn runs. A valid one-time code in
// "/start <code>" makes its sender the owner.
func (a *Access) Authorize(ctx context.Context, tx port.Tx, in messages.Inbound) (Verdict, error) {
	v, err := a.Judge(ctx, tx, in)
	if err != nil || in.Sender.Bot || in.Sender.ID == "" || in.Outside() {
		return v, err
	}
	p, code := in.Conversation.Platform, OwnerCode(in)
	if v.Role == sessions.Owner || v.Removed || code == "" || !a.Rules(p).claimable() {
		return v, nil
	}
	ok, err := tx.People().UseOwnerCode(ctx, p, hashCode(code))
	if err != nil || !ok {
		return v, err
	}
	if err := a.makeOwner(ctx, tx, in); err != nil {
		return Verdict{}, err
	}
	v.Role, v.Claimed = sessions.Owner, true
	return v, nil
}

// Judge says who the sender is, and how the service stands, as they are at
// this moment. It writes nothing.
func (a *Access) Judge(ctx context.Context, tx port.Tx, in messages.Inbound) (Verdict, error) {
	p := in.Home()
	who, err := tx.People().Access(ctx, p, in.Sender.ID)
	v := Verdict{Role: sessions.Stranger, Removed: !who.RemovedAt.IsZero(), State: who.ServiceState}
	if err == nil && !in.Sender.Bot && in.Sender.ID != "" {
		v.Role = a.Rules(p).Role(who.Identity, in.Sender, a.Gated(p) && !in.Outside())
	}
	return v, err
}

// Role says what somebody may do, by what is stored of them (the zero value if
// nothing is) and by the configuration, which wins over what was claimed:
//
//   - who was removed is a stranger, wherever else they are named;
//   - owners in the configuration are owners, and where it names some, nobody else is;
//   - a role that an operator or an owner gave holds until it is taken away;
//   - a claim with a one-time code holds until it is taken away, or until the
//     configuration lists who may come in without naming them;
//   - else it is the list of the configuration, or the platform's own gate.
func (r Rule) Role(who sessions.Identity, s messages.Sender, gated bool) sessions.Role {
	switch {
	case !who.RemovedAt.IsZero():
		return sessions.Stranger
	case r.Owners[s.ID]:
		return sessions.Owner
	case who.Role == sessions.Owner && len(r.Owners) == 0 && (!who.Claimed() || r.IDs[s.ID] || len(r.IDs) == 0 || r.Everyone):
		return sessions.Owner
	case who.Role == sessions.User, r.IDs[s.ID], r.Everyone && !s.External:
		return sessions.User
	case who.Role == sessions.Reader:
		return sessions.Reader
	case gated:
		return sessions.User // if the platform admits them, which is asked outside of transactions
	}
	return sessions.Stranger
}

// claimable reports whether the configuration leaves it to a one-time code who the
// owner is.
func (r Rule) claimable() bool {
	return !r.Everyone && len(r.IDs) == 0 && len(r.Owners) == 0
}

// OwnerCode returns the code of a private "/start <code>". The slash may be
// missing, because some platforms keep what begins with one to themselves.
func OwnerCode(in messages.Inbound) string {
	words := strings.Fields(in.Text)
	if len(words) != 2 || !in.Private || in.Kind != messages.KindMessage {
		return ""
	}
	if name, ok := command.Canonical(strings.TrimPrefix(words[0], "/")); !ok || name != "start" {
		return ""
	}
	return words[1]
}

func (a *Access) makeOwner(ctx context.Context, tx port.Tx, in messages.Inbound) error {
	err := tx.People().SetRole(ctx, sessions.Identity{
		Platform: in.Conversation.Platform,
		UserID:   in.Sender.ID,
		Name:     in.Sender.Name,
		Role:     sessions.Owner,
	}, sessions.GrantedByCode, false)
	if err != nil {
		return err
	}
	return tx.Audit(ctx, sessions.AuditEntry{Actor: in.Actor(), Action: "owner.claim", Target: in.Actor()})
}

func hashCode(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// OfferOwnership stores code as the one-time owner code of a platform, if the
// platform has no owner and no other way in. It reports whether the code is to
// be shown. The code works once, for 15 minutes.
func (a *Access) OfferOwnership(ctx context.Context, p messages.Platform, code string) (bool, error) {
	if !a.Rules(p).claimable() || a.Gated(p) {
		return false, nil
	}
	offered := false
	err := a.Storage.InTx(ctx, func(tx port.Tx) error {
		owned, err := tx.People().HasOwner(ctx, p)
		if err != nil || owned {
			offered = false
			return err
		}
		offered = true
		return tx.People().SaveOwnerCode(ctx, p, hashCode(code), time.Now().Add(ownerCodeTTL))
	})
	if err != nil {
		return false, fmt.Errorf("offer ownership: %w", err)
	}
	return offered, nil
}
