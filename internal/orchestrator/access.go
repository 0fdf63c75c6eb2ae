package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// ownerCodeTTL is how long a one-time owner link works.
const ownerCodeTTL = 15 * time.Minute

type verdict struct {
	role    sessions.Role
	claimed bool                  // by this message
	removed bool                  // the sender was removed
	state   sessions.ServiceState // as it was read with the role
}

// authorize says who the sender is, by immutable id only. It is asked when a
// message arrives and again when its turn runs. A valid one-time code in
// "/start <code>" makes its sender the owner.
func (o *Orchestrator) authorize(ctx context.Context, tx Tx, in messages.Inbound) (verdict, error) {
	v, err := o.judgeSender(ctx, tx, in)
	if err != nil || in.Sender.Bot || in.Sender.ID == "" {
		return v, err
	}
	p, code := in.Conversation.Platform, ownerCode(in)
	if v.role == sessions.Owner || v.removed || code == "" || !o.live().Access[p].claimable() {
		return v, nil
	}
	ok, err := tx.UseOwnerCode(ctx, p, hashCode(code))
	if err != nil || !ok {
		return v, err
	}
	if err := o.makeOwner(ctx, tx, in); err != nil {
		return verdict{}, err
	}
	v.role, v.claimed = sessions.Owner, true
	return v, nil
}

// judgeSender says who the sender is, and how the service stands, as they are at
// this moment. It writes nothing.
func (o *Orchestrator) judgeSender(ctx context.Context, tx Tx, in messages.Inbound) (verdict, error) {
	p := in.Conversation.Platform
	who, err := tx.Access(ctx, p, in.Sender.ID)
	v := verdict{role: sessions.Stranger, removed: !who.RemovedAt.IsZero(), state: who.ServiceState}
	if err == nil && !in.Sender.Bot && in.Sender.ID != "" {
		v.role = o.live().Access[p].Role(who.Identity, in.Sender, o.gate(p) != nil)
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
func (r AccessRule) Role(who sessions.Identity, s messages.Sender, gated bool) sessions.Role {
	switch {
	case !who.RemovedAt.IsZero():
		return sessions.Stranger
	case r.Owners[s.ID]:
		return sessions.Owner
	case who.Role == sessions.Owner && len(r.Owners) == 0 && (!who.Claimed() || r.IDs[s.ID] || len(r.IDs) == 0 || r.Everyone):
		return sessions.Owner
	case who.Role == sessions.User, r.IDs[s.ID], r.Everyone && !s.External:
		return sessions.User
	case gated:
		return sessions.User // if the platform admits them, which is asked outside of transactions
	}
	return sessions.Stranger
}

// claimable reports whether the configuration leaves it to a one-time code who the
// owner is.
func (r AccessRule) claimable() bool {
	return !r.Everyone && len(r.IDs) == 0 && len(r.Owners) == 0
}

// ownerCode returns the code of a private "/start <code>". The slash may be
// missing, because some platforms keep what begins with one to themselves.
func ownerCode(in messages.Inbound) string {
	words := strings.Fields(in.Text)
	if len(words) != 2 || !in.Private || in.Kind != messages.KindMessage {
		return ""
	}
	if name, ok := command.Canonical(strings.TrimPrefix(words[0], "/")); !ok || name != "start" {
		return ""
	}
	return words[1]
}

func (o *Orchestrator) makeOwner(ctx context.Context, tx Tx, in messages.Inbound) error {
	err := tx.SetRole(ctx, sessions.Identity{
		Platform: in.Conversation.Platform,
		UserID:   in.Sender.ID,
		Name:     in.Sender.Name,
		Role:     sessions.Owner,
	}, sessions.GrantedByCode, false)
	if err != nil {
		return err
	}
	return tx.Audit(ctx, sessions.AuditEntry{Actor: actor(in), Action: "owner.claim", Target: actor(in)})
}

// actor names the sender of in for the audit log.
func actor(in messages.Inbound) string { return in.Actor() }

func hashCode(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// OfferOwnership stores code as the one-time owner code of a platform, if the
// platform has no owner and no other way in. It reports whether the code is to
// be shown. The code works once, for 15 minutes.
func (o *Orchestrator) OfferOwnership(ctx context.Context, p messages.Platform, code string) (bool, error) {
	if !o.live().Access[p].claimable() || o.gate(p) != nil {
		return false, nil
	}
	offered := false
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		owned, err := tx.HasOwner(ctx, p)
		if err != nil || owned {
			offered = false
			return err
		}
		offered = true
		return tx.SaveOwnerCode(ctx, p, hashCode(code), time.Now().Add(ownerCodeTTL))
	})
	if err != nil {
		return false, fmt.Errorf("offer ownership: %w", err)
	}
	return offered, nil
}

// canWhisper reports whether a message can be shown to the sender of in only.
func (o *Orchestrator) canWhisper(in messages.Inbound) bool {
	a := o.adapters[in.Conversation.Platform]
	return a != nil && a.Capabilities().OnlyFor
}
