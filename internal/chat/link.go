package chat

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (me *memories) linkCommand() *command.Command {
	return &command.Command{
		Name:    "link",
		Usage:   "link [code]",
		Summary: "share memory between your accounts",
		Example: "link",
		Reading: command.ReadingAside,
		Where:   command.Aside,
		Needs:   command.Memory,
		Run:     me.runLink,
	}
}

// codeLife is how long a link code is good. It has 130 random bits and works once.
const codeLife = 10 * time.Minute

// hashCode is what is stored of a code. How people type it does not matter.
func hashCode(code string) string {
	sum := sha256.Sum256([]byte("link:" + strings.ToUpper(strings.ReplaceAll(code, "-", ""))))
	return hex.EncodeToString(sum[:])
}

// linkAccount is who gave a command, and where they can be told something alone.
func linkAccount(r command.Request, now time.Time) memory.Account {
	return memory.Account{Name: r.Actor(), ConversationID: r.Conv.ID, Whispered: r.Entry.In.Aside(), Key: r.Entry.ID, LinkedAt: now}
}

func (me *memories) runLink(ctx context.Context, r command.Request) (command.Reply, error) {
	switch {
	case len(r.Call.Args) > 1:
		return command.Reply{}, fault.New(fault.Invalid, "`/link` shows a code; `/link <code>` from your other account links the two.")
	case len(r.Call.Args) == 0 && !private(r.Entry.In):
		return reply("Codes are private. Send this in a private chat with me.")
	case len(r.Call.Args) == 0:
		return me.showCode(ctx, r)
	case !private(r.Entry.In):
		return me.burnCode(ctx, r)
	}
	return me.useCode(ctx, r)
}

// showCode lists what is linked and shows a fresh code, which is stored as a hash
// only. Shown again after a crash it is another code.
func (me *memories) showCode(ctx context.Context, r command.Request) (command.Reply, error) {
	code, now := rand.Text(), me.now()
	accounts, err := store.Within(ctx, me.store.InTx, func(tx *store.Tx) ([]memory.Account, error) {
		accounts, err := tx.Persons().Accounts(ctx, r.Actor())
		if err != nil {
			return nil, err
		}
		return accounts, tx.Persons().SaveLinkCode(ctx, memory.LinkCode{Account: linkAccount(r, now), Hash: hashCode(code), Expires: now.Add(codeLife)})
	})
	if err != nil {
		return command.Reply{}, err
	}
	return command.Reply{
		Text: linked(accounts, r.Actor(), now) + "\n\nTo link another account, send me the next message as a command from it, in a private chat, within 10 minutes. " +
			"Leave out the slash if the platform uses it for its own commands. Both accounts then share one memory. " +
			"**Anyone who sends it shares your memory, so keep it secret.** It works once.",
		Unkept: "`/link " + code + "`",
	}, nil
}

// linked lists accounts for one of them.
func linked(accounts []memory.Account, actor string, now time.Time) string {
	if len(accounts) == 0 {
		return "No other account is linked with this one."
	}
	var b strings.Builder
	b.WriteString("Linked accounts:\n\n")
	for _, a := range accounts {
		if a.Name != actor {
			fmt.Fprintf(&b, "- `%s`, %s; to unlink: `/unlink %s`\n", a.Name, wording.Ago(a.LinkedAt, now), a.Name)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// burnCode makes a code worthless that was written where others read.
func (me *memories) burnCode(ctx context.Context, r command.Request) (command.Reply, error) {
	err := me.store.InTx(ctx, func(tx *store.Tx) error {
		c, ok, err := tx.Persons().TakeLinkCode(ctx, hashCode(r.Call.Args[0]), me.now())
		if err != nil || !ok {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "memory.link_burned", ConversationID: r.Conv.ID, Target: c.Name})
	})
	if err != nil {
		return command.Reply{}, err
	}
	return reply("Not linked: others can read this chat, so the code is no longer valid. Get a new one with `/link` in a private chat, and send it to me in private.")
}

// linkUse is what became of a code.
type linkUse struct {
	says   string // why nothing was linked
	joined memory.Joined
	host   string
}

func (me *memories) useCode(ctx context.Context, r command.Request) (command.Reply, error) {
	u, err := store.Within(ctx, me.store.InTx, func(tx *store.Tx) (linkUse, error) { return me.join(ctx, tx, r) })
	switch {
	case err != nil:
		return command.Reply{}, err
	case u.says != "":
		return reply("%s", u.says)
	}
	text := fmt.Sprintf("Linked with `%s`. Your memory is now shared between both accounts; either one can view, change and delete it.", u.host)
	if n := u.joined.Moved; n > 0 {
		text += fmt.Sprintf(" This account's memories now have numbers above %d.", u.joined.FirstMoved)
	}
	if u.joined.Off {
		text += " Memory is off because one of the accounts had it off; `/memory on` turns it on."
	}
	return reply("%s Permissions are not shared. To unlink: `/unlink %s`; the memories stay with the other account.", text, u.host)
}

// join links whoever gave a command with whoever showed the code. What it decides
// is kept, so its noes are texts and no errors.
func (me *memories) join(ctx context.Context, tx *store.Tx, r command.Request) (u linkUse, err error) {
	now, actor := me.now(), r.Actor()
	mine, err := tx.Persons().Accounts(ctx, actor)
	if err != nil {
		return u, err
	}
	for _, a := range mine {
		if a.Name == actor && a.Key == r.Entry.ID { // done before a crash
			others := slices.DeleteFunc(slices.Clone(mine), func(a memory.Account) bool { return a.Name == actor })
			return linkUse{host: others[0].Name}, nil
		}
	}
	tries, err := tx.Persons().LinkTries(ctx, actor, now.Add(-memory.LinkTriesFor))
	if err != nil {
		return u, err
	}
	if tries >= memory.LinkTries {
		return linkUse{says: "Too many wrong codes. Try again in an hour."}, nil
	}
	c, ok, err := tx.Persons().TakeLinkCode(ctx, hashCode(r.Call.Args[0]), now)
	switch {
	case err != nil:
		return u, err
	case !ok:
		return me.wrongCode(ctx, tx, r, tries+1)
	case c.Name == actor:
		return linkUse{says: "That code belongs to this account. Send it from the other one."}, tx.Persons().SaveLinkCode(ctx, c)
	}
	theirs, err := tx.Persons().Accounts(ctx, c.Name)
	if err != nil {
		return u, err
	}
	if why := together(append(theirs, c.Account), append(mine, memory.Account{Name: actor})); why != "" {
		return linkUse{says: why}, nil
	}
	host := c.Account
	host.LinkedAt = now
	if u.joined, err = tx.Persons().JoinPeople(ctx, host, linkAccount(r, now)); err != nil {
		return u, err
	}
	u.host = c.Name
	if err := tell(ctx, tx, host, fmt.Sprintf("`%s` sent your code and now shares this account's memory. If that was not you, send `/unlink %s`.", actor, actor)); err != nil {
		return u, err
	}
	return u, tx.Audit(ctx, sessions.AuditEntry{
		Actor: actor, Action: "memory.link", Target: c.Name, Detail: fmt.Sprintf(`{"moved":%d,"same":%d}`, u.joined.Moved, u.joined.Same),
	})
}

func (me *memories) wrongCode(ctx context.Context, tx *store.Tx, r command.Request, tries int64) (linkUse, error) {
	now := me.now()
	if err := tx.Persons().NoteLinkTry(ctx, r.Actor(), r.Entry.ID, now.Add(-memory.LinkTriesFor), now); err != nil {
		return linkUse{}, err
	}
	if tries < memory.LinkTries {
		return linkUse{says: "That code is wrong, expired (after 10 minutes) or already used. `/link` on the other account shows a new one."}, nil
	}
	return linkUse{says: "That code is wrong too. Try again in an hour."},
		tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "memory.link_locked"})
}

// together says why two people cannot be one, or nothing. A person has one account
// on a platform: two there are more likely two people.
func together(theirs, mine []memory.Account) string {
	for _, a := range theirs {
		for _, b := range mine {
			switch {
			case a.Name == b.Name:
				return "These accounts are already linked. `/link` lists them."
			case platformOf(a.Name) == platformOf(b.Name):
				return fmt.Sprintf("You can link one account per platform; `%s` and `%s` are on the same one.", a.Name, b.Name)
			}
		}
	}
	return ""
}

func platformOf(account string) string {
	name, _, _ := strings.Cut(account, "/")
	return name
}

// tell queues a notice to an account, where it was linked.
func tell(ctx context.Context, tx *store.Tx, a memory.Account, text string) error {
	if a.ConversationID == "" {
		return nil
	}
	d := messages.Delivery{ConversationID: a.ConversationID, Text: text, Final: true, Control: true}
	if a.Whispered {
		_, id, _ := strings.Cut(a.Name, "/")
		d.OnlyFor = messages.UserID(id)
	}
	return tx.Deliveries().AddDelivery(ctx, &d)
}
