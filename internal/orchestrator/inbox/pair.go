package inbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// How often a stranger who was answered is answered again: when they ask who they are,
// or when they write something else while an owner is asked about them.
const (
	whoEvery    = time.Minute
	remindEvery = time.Hour
)

// maxNaming is how long a platform may take to tell a stranger's name.
const maxNaming = 5 * time.Second

// codeLetters are those of codes that people read to each other: no vowels, so that no
// word comes of them, and no digits, so that no code is an id (RFC 8628, 6.1).
const codeLetters = "BCDFGHJKLMNPQRSTVWXZ"

// newCode returns a code such as "WDJ-BMJ". It is a name, not a secret: only an owner
// can do something with it.
func newCode() string {
	code := make([]byte, 0, 7)
	var random [1]byte
	for len(code) < 7 {
		if len(code) == 3 {
			code = append(code, '-')
		}
		rand.Read(random[:]) //nolint:errcheck // it never fails
		if n := int(random[0]); n < 256/len(codeLetters)*len(codeLetters) {
			code = append(code, codeLetters[n%len(codeLetters)])
		}
	}
	return string(code)
}

// answerStranger returns what a stranger is told of a message that was recorded, empty
// for nothing, and whether pair is to find out whether owners can be asked about them,
// and to answer.
func (i *Inbox) answerStranger(ctx context.Context, tx port.Tx, in messages.Inbound, v access.Verdict) (text string, pairs bool, err error) {
	wants := wantsAnswer(in)
	if i.Pairing && in.Private && !v.Removed {
		p, known, err := tx.People().Pairing(ctx, in.Conversation.Platform, in.Sender.ID)
		if err != nil {
			return "", false, err
		}
		if known && p.Settled(time.Now()) {
			every := remindEvery
			if wants {
				every = whoEvery
			}
			if !i.Outbox.AnswerAgain(in, wants, every) {
				return "", false, nil
			}
			return strangerText(in, p), false, nil
		}
		if !i.nobody.since(time.Now().Add(-nobodyFor)) {
			return "", i.Outbox.AnswerAgain(in, wants, 0), nil
		}
	}
	due, err := i.Outbox.RefusalDue(ctx, tx, in, true)
	if err != nil || !due && (!wants || !i.Outbox.AnswerAgain(in, true, whoEvery)) {
		return "", false, err
	}
	return strangerText(in, sessions.Pairing{}), false, nil
}

// nobodyFor is how long it is not looked again whether there is an owner who can be
// asked, once there was none: to look may mean to read all that was said lately.
const nobodyFor = 30 * time.Second

// moment is when something was so, last. It is safe for concurrent use.
type moment struct{ at atomic.Int64 }

func (m *moment) now() { m.at.Store(time.Now().UnixNano()) }

func (m *moment) never() { m.at.Store(0) }

func (m *moment) since(t time.Time) bool { return m.at.Load() > t.UnixNano() }

// pair answers a stranger for whom a place among the refusals is taken: with a code,
// and owners are asked, or with a refusal, if nobody can be asked or too many ask. It
// runs behind the transaction that recorded the message, so that it delays nobody. If
// the process dies before it, the stranger's next message begins it again.
func (i *Inbox) pair(ctx context.Context, in messages.Inbound) error {
	in.Sender.Name = i.nameOf(ctx, in)
	i.pairing.Lock() // one after the other: see nobodyFor
	defer i.pairing.Unlock()
	chats, err := i.askable(ctx)
	if err != nil {
		return err
	}
	var (
		text  string
		cards []card
	)
	err = i.Storage.InTx(ctx, func(tx port.Tx) error {
		text, cards = "", nil
		p, known, err := tx.People().Pairing(ctx, in.Conversation.Platform, in.Sender.ID)
		if err != nil || known && p.Settled(time.Now()) {
			return err // they wrote twice
		}
		p = sessions.Pairing{
			Platform: in.Conversation.Platform, UserID: in.Sender.ID, Name: wording.Head(in.Sender.Name, 200), Conversation: in.Conversation.ID,
			Code: newCode(), AskedAt: time.Now(),
		}
		asked := false
		if len(chats) > 0 {
			if asked, err = tx.People().AskPairing(ctx, &p); err != nil {
				return err
			}
		}
		if !asked {
			due, err := i.Outbox.RefusalDue(ctx, tx, in, false)
			if due || wantsAnswer(in) {
				text = strangerText(in, sessions.Pairing{})
			}
			return err
		}
		text = strangerText(in, p)
		if cards, err = i.addCards(ctx, tx, p, chats); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: in.Actor(), Action: "person.ask", Target: in.Actor()})
	})
	if err != nil {
		return fmt.Errorf("ask owners about a stranger: %w", err)
	}
	if text != "" {
		i.Outbox.Refuse(in, text)
	}
	for _, c := range cards {
		i.Background.Go(func(ctx context.Context) { i.Outbox.SendNotice(ctx, c.chat, c.delivery) })
	}
	return nil
}

// askable returns the chats in which owners can be asked; none while too many ask.
func (i *Inbox) askable(ctx context.Context) (chats []sessions.Conversation, err error) {
	if i.nobody.since(time.Now().Add(-nobodyFor)) {
		return nil, nil
	}
	err = i.Storage.InRead(ctx, func(tx port.Tx) error {
		chats = nil
		waiting, err := tx.People().PairingsSince(ctx, time.Now().Add(-sessions.PairingTTL))
		if err != nil || len(waiting) >= sessions.MaxPairings {
			return err
		}
		if chats, err = i.Access.OwnerChats(ctx, tx); err == nil && len(chats) == 0 {
			i.nobody.now()
		}
		return err
	})
	return chats, err
}

// wantsAnswer reports whether a stranger asks who they are, or gives the code of an
// owner.
func wantsAnswer(in messages.Inbound) bool {
	call, ok := command.Parse(in.Text)
	return in.Private && (access.OwnerCode(in) != "" || ok && call.Name == "whoami")
}

// strangerText is what a stranger reads; p is zero if no owner is asked about them.
func strangerText(in messages.Inbound, p sessions.Pairing) string {
	text, id := "This is a private bot. ", fmt.Sprintf("Your ID here is `%s`.", in.Sender.ID)
	if access.OwnerCode(in) != "" {
		text = "That code has expired or was already used. " + text
	}
	switch p.State {
	case sessions.PairingWaiting:
		text += fmt.Sprintf("Your code is **%s**, and you are waiting for an owner to let you in. If you know an owner, tell them the code.", p.Code)
		if wantsAnswer(in) {
			text += " " + id
		}
	case sessions.PairingDenied:
		text += "An owner declined your request. " + id
	default:
		text += fmt.Sprintf("Ask its owner to let you in; your ID here is `%s`.", in.Sender.ID)
	}
	return text
}

// nameOf returns what a sender is called. The platform is asked if the event does not say.
func (i *Inbox) nameOf(ctx context.Context, in messages.Inbound) string {
	n, ok := i.Outbox.Adapters[in.Conversation.Platform].(platform.Namer)
	if in.Sender.Name != "" || !ok {
		return in.Sender.Name
	}
	ctx, cancel := context.WithTimeout(ctx, maxNaming)
	defer cancel()
	return n.NameOf(ctx, in.Sender.ID)
}

// card is a message that asks an owner about a stranger.
type card struct {
	chat     messages.ConversationKey
	delivery messages.Delivery
}

// addCards stores a card in each chat.
func (i *Inbox) addCards(ctx context.Context, tx port.Tx, p sessions.Pairing, chats []sessions.Conversation) ([]card, error) {
	cards := make([]card, len(chats))
	ids := make([]messages.DeliveryID, len(chats))
	for n, chat := range chats {
		caps := i.Outbox.Caps(chat.Key.Platform)
		cards[n] = card{chat.Key, outbox.Held(chat.ID, sessions.Entry{}, cardText(p, i.Outbox.Prefix(chat.Key), caps))}
		cards[n].delivery.Placeholder = outbox.Beginning(cards[n].delivery.Text) // it notifies
		ids[n] = cards[n].delivery.ID
	}
	if err := tx.People().SaveCards(ctx, p.Number, ids); err != nil {
		return nil, err
	}
	for n, chat := range chats {
		d := &cards[n].delivery
		if i.Outbox.Caps(chat.Key.Platform).Buttons {
			var err error
			d.Buttons, err = command.Offer(ctx, tx.Buttons(),
				command.Button{ConversationID: chat.ID, On: command.OnPairing, Number: p.Number, ExpiresAt: p.AskedAt.Add(sessions.PairingTTL)},
				command.Choice{Decision: command.LetIn, Label: "Allow", Style: messages.ButtonPrimary},
				command.Choice{Decision: command.LetInRead, Label: "Allow, read only", Style: messages.ButtonPlain},
				command.Choice{Decision: command.LetOut, Label: "No", Style: messages.ButtonDanger},
			)
			if err != nil {
				return nil, err
			}
		}
		if err := tx.Deliveries().AddDelivery(ctx, d); err != nil {
			return nil, err
		}
	}
	return cards, nil
}

// cardText asks an owner about a stranger. What the stranger wrote is not shown: it was
// not kept. The first paragraph stays when the request is decided.
func cardText(p sessions.Pairing, prefix string, caps platform.Capabilities) string {
	platform := strings.ToUpper(string(p.Platform[:1])) + string(p.Platform[1:])
	text := fmt.Sprintf("👤 %s asks to use this bot: %s, ID `%s`, code **%s**.", wording.Name(p.Name), platform, p.UserID, p.Code)
	how := "Their message is withheld. Names can be faked: let them in only if they told you the code, or if you expect them."
	if !caps.Buttons {
		how += fmt.Sprintf(" `%[1]speople allow %[2]s` lets them in, `%[1]speople allow %[2]s read-only` allows questions only, and `%[1]speople deny %[2]s` refuses.", prefix, p.Code)
	}
	return text + "\n\n" + how
}
