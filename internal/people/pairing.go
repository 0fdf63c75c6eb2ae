package people

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// Request names the request of a stranger to be let in: by its number, or by its code
// as people write it.
type Request struct {
	Number int64
	Code   string
}

// IsCode reports whether a text can be the code of a request, such as "WDJ-BMJ": no id
// of a platform looks like one.
func IsCode(text string) bool { return canonicalCode(text) != "" }

func canonicalCode(text string) string {
	letters := strings.ToUpper(strings.ReplaceAll(text, "-", ""))
	if len(letters) != 6 || strings.Trim(letters, "BCDFGHJKLMNPQRSTVWXZ") != "" {
		return ""
	}
	return letters[:3] + "-" + letters[3:]
}

func find(ctx context.Context, tx *store.Tx, r Request) (p sessions.Pairing, err error) {
	var ok bool
	if code := canonicalCode(r.Code); code != "" {
		p, ok, err = tx.People().PairingByCode(ctx, code)
	} else {
		p, ok, err = tx.People().PairingByNumber(ctx, r.Number)
	}
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "That code has expired: a request lasts a day. If they write again, they get a new code.")
	}
	return p, err
}

// Waiting returns who requests access, the oldest first.
func (s *Service) Waiting(ctx context.Context) ([]sessions.Pairing, error) {
	return store.Within(ctx, s.config.Store.InRead, func(tx *store.Tx) ([]sessions.Pairing, error) {
		return tx.People().PairingsSince(ctx, time.Now().Add(-sessions.PairingTTL))
	})
}

// WaitingLine is somebody who waits in a list.
func WaitingLine(p sessions.Pairing) string {
	return fmt.Sprintf("%s (%s): waiting for an owner since %s, code %s", p.Account(), wording.Name(p.Name), wording.Moment(p.AskedAt), p.Code)
}

// Answer decides the request of a stranger to be let in: with sessions.User or
// sessions.Reader they are, with sessions.Stranger they are not, and nobody is asked
// about them again for a day. It is decided once: for whoever comes later it is a
// fault.Conflict that says what was decided, and by whom.
func (s *Service) Answer(ctx context.Context, by By, r Request, role sessions.Role) (said string, err error) {
	err = s.change(ctx, by, func(tx *transaction) error {
		p, err := find(ctx, tx.Tx, r)
		if err != nil {
			return err
		}
		a := Account{p.Platform, p.UserID}
		was, err := s.standing(ctx, tx, a)
		if err != nil {
			return err
		}
		if p, err = find(ctx, tx.Tx, r); err != nil { // again: who settled it in between gave the role that was read
			return err
		}
		if !p.Waits(time.Now()) {
			return settled(ctx, tx.Tx, by, p)
		}
		if was.role != sessions.Stranger || !was.RemovedAt.IsZero() { // it was decided in another way meanwhile
			said = already(a, was.role) + " `/people` changes it."
			return nil
		}
		// The one who settles it first decides: only then is a role given.
		err = tx.People().SettlePairing(ctx, p.Number, stateOf(role), by.actor())
		if fault.Is(err, fault.Conflict) {
			if p, err = find(ctx, tx.Tx, r); err == nil {
				err = settled(ctx, tx.Tx, by, p)
			}
		}
		if err != nil {
			return err
		}
		if role == sessions.Stranger {
			said = fmt.Sprintf("%s was refused; owners are not asked about them again for a day.", a)
			err = audit(ctx, tx, by, "person.deny", a.String(), map[string]any{"code": p.Code})
		} else {
			said = allowed(a, role)
			err = give(ctx, tx, by, "person.allow", sessions.Identity{Platform: a.Platform, UserID: a.ID, Name: p.Name, Role: role}, was, false)
		}
		if err != nil {
			return err
		}
		return s.tell(ctx, tx, by, p.Number, role)
	})
	return said, err
}

func stateOf(role sessions.Role) sessions.PairingState {
	if role == sessions.Stranger {
		return sessions.PairingDenied
	}
	return sessions.PairingAllowed
}

// allowed says that somebody is let in.
func allowed(a Account, role sessions.Role) string {
	if role == sessions.Reader {
		return fmt.Sprintf("%s can use the bot now, read only: they can ask questions but not change anything.", a)
	}
	return fmt.Sprintf("%s can use the bot now.", a)
}

// already says how somebody stands. Chats and pages have other names for the roles.
func already(a Account, role sessions.Role) string {
	switch role {
	case sessions.Owner:
		return fmt.Sprintf("%s is already an owner.", a)
	case sessions.Reader:
		return fmt.Sprintf("%s can already use the bot, read only.", a)
	case sessions.Stranger:
		return fmt.Sprintf("%s was removed.", a)
	case sessions.User:
	}
	return fmt.Sprintf("%s can already use the bot.", a)
}

// settled is the error of deciding what was decided already.
func settled(ctx context.Context, tx *store.Tx, by By, p sessions.Pairing) error {
	if p.State == sessions.PairingWaiting {
		return fault.New(fault.Conflict, "That request has expired: nobody decided within a day. If they write again, they get a new code.")
	}
	outcome, err := outcomeOf(ctx, tx, p)
	if err != nil {
		return err
	}
	again := "`/people` changes it."
	if by.is(p.DecidedBy) {
		again = "Nothing else happened."
	}
	return fault.Newf(fault.Conflict, "Already decided: %s. %s", outcome, again)
}

// outcomeOf says what became of a request that was decided, and by whom.
func outcomeOf(ctx context.Context, tx *store.Tx, p sessions.Pairing) (string, error) {
	by := p.DecidedBy
	if platform, id, ok := strings.Cut(by, "/"); ok {
		who, _, err := tx.People().Identity(ctx, messages.Platform(platform), messages.UserID(id))
		if err != nil {
			return "", err
		}
		if who.Name != "" {
			by = wording.Name(who.Name)
		}
	}
	if p.State == sessions.PairingDenied {
		return "✖ Refused by " + by, nil
	}
	who, _, err := tx.People().Identity(ctx, p.Platform, p.UserID)
	if who.Role == sessions.Reader {
		return "✔ Allowed, read only, by " + by, err
	}
	return "✔ Allowed by " + by, err
}

// tell shows owners on their cards what was decided, and tells who was let in.
func (s *Service) tell(ctx context.Context, tx *transaction, by By, number int64, role sessions.Role) error {
	p, err := find(ctx, tx.Tx, Request{Number: number}) // as it is settled: owners may have been asked meanwhile
	if err != nil {
		return err
	}
	cards, err := decidedCards(ctx, tx.Tx, p)
	if err != nil {
		return err
	}
	for _, d := range cards {
		if by.pressedIn(d.ConversationID) {
			continue // the answer to the button edits it, see Cards
		}
		if err := tx.Deliveries().RewriteDelivery(ctx, d.ID, d.Text); err != nil {
			return err
		}
		tx.wake = append(tx.wake, d.ConversationID)
	}
	if role == sessions.Stranger {
		return nil
	}
	key := messages.ConversationKey{Platform: p.Platform, ID: p.Conversation}
	conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, key, s.config.Assistant)
	if err != nil {
		return err
	}
	tx.wake = append(tx.wake, conv.ID)
	return tx.Deliveries().AddDelivery(ctx, &messages.Delivery{
		ConversationID: conv.ID, Text: welcome(role), Final: true,
		Placeholder: letIn + " …", // it notifies: they may have waited for hours
	})
}

const letIn = "An owner has let you in"

// welcome is what somebody reads who was let in.
func welcome(role sessions.Role) string {
	if role == sessions.Reader {
		return letIn + " with read-only access: you can ask questions but not change anything. What you wrote before was not kept, so please send it again."
	}
	return letIn + ". Just write what you want; what you wrote before was not kept, so please send it again."
}

// decidedCards returns the messages that asked owners, without their buttons and with
// what was decided. One that is gone is left out.
func decidedCards(ctx context.Context, tx *store.Tx, p sessions.Pairing) (cards []messages.Delivery, err error) {
	outcome, err := outcomeOf(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	for _, id := range p.Cards {
		d, err := tx.Deliveries().Delivery(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		question, _, _ := strings.Cut(d.Text, "\n\n")
		d.Text, d.Buttons, d.Final = question+"\n\n**"+outcome+"**", nil, true
		if d.Message != "" {
			d.State = messages.DeliveryPlaced
		}
		cards = append(cards, d)
	}
	return cards, nil
}

// Cards returns the messages in a conversation that asked about a request that was
// decided, as they are to be now; pressed is that of the button, if one was.
func (s *Service) Cards(ctx context.Context, r Request, conversation string, pressed messages.MessageID) (cards []messages.Delivery, err error) {
	err = s.config.Store.InRead(ctx, func(tx *store.Tx) error {
		cards = nil
		p, err := find(ctx, tx, r)
		if err != nil || p.State == sessions.PairingWaiting {
			return err
		}
		all, err := decidedCards(ctx, tx, p)
		for _, d := range all {
			if d.Message == "" {
				d.Message = pressed // before our own record of sending it
			}
			if d.ConversationID == conversation && d.Message != "" {
				cards = append(cards, d)
			}
		}
		return err
	})
	return cards, err
}
