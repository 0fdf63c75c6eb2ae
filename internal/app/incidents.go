package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/incident"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/people"
	"remote-agent/internal/platform"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/migrations"
)

const (
	lookEvery        = 10 * time.Second // at the database
	platformsEvery   = time.Minute      // a call to each platform
	ownersEvery      = 5 * time.Minute
	awayAfter        = 3 * time.Minute
	oldBackup        = 26 * time.Hour
	budgetShare      = 0.8
	privateChatsPast = 90 * 24 * time.Hour
)

// incidents tells owners in their chats of trouble with the service.
type incidents struct {
	backups   string              // the folder
	limits    func() spend.Budget // as they are now
	store     *store.Store
	people    *people.Service
	platforms *platforms
	core      *orchestrator.Orchestrator
	leases    leases
	room      func() error // whether the disk of the database has room
	log       *slog.Logger

	// leads is whether this replica is the one that tells. While the database is away
	// it is whoever was when that began.
	leads, led atomic.Bool

	chats []privateChat // where owners are told; kept for when it cannot be read
	read  time.Time     // when chats was read
	told  bool          // that nothing can be stored

	reach *reach            // what all replicas know of the platforms; nil where one process is alone
	known map[string]string // states of incidents that are on record, while this replica leads
}

// privateChat is where an owner talks with the bot alone.
type privateChat struct {
	conversation string
	key          messages.ConversationKey
}

// watch runs until ctx ends.
func (i *incidents) watch(ctx context.Context) {
	alone := i.store.Dialect() != string(migrations.Postgres)
	i.leads.Store(alone)
	i.led.Store(alone)
	elected := make(chan struct{})
	go func() { // ends with ctx
		defer close(elected)
		i.elect(ctx)
	}()
	defer func() { <-elected }()
	if !alone {
		i.reach = &reach{i.store, i.leases.owner}
	}
	var state incident.Watch
	platforms := time.Now() // the start asked them
	for first := true; first || sleep(ctx, lookEvery); first = false {
		if !i.storeWorks(ctx) {
			i.known = nil
			continue
		}
		var seen []incident.Condition
		if time.Since(platforms) >= platformsEvery {
			platforms = time.Now()
			seen = i.unreachable(ctx) // also of who does not lead: the others are to know
		}
		if !i.leads.Load() {
			i.known, state = nil, incident.Watch{}
			continue
		}
		seen = append(seen, i.backup(time.Now()), i.budget(ctx))
		if err := state.Observe(ctx, time.Now(), i, seen...); err != nil && ctx.Err() == nil {
			i.log.WarnContext(ctx, "could not tell the owners about an incident; retrying", "err", err)
		}
	}
}

// elect holds the lease of the replica that tells; alone there is no need for one.
func (i *incidents) elect(ctx context.Context) {
	if i.leads.Load() {
		<-ctx.Done()
		return
	}
	_ = i.leases.run(ctx, "incidents", func(ctx context.Context) error { // fn has no error
		i.leads.Store(true)
		defer i.leads.Store(false)
		<-ctx.Done()
		return nil
	})
}

// storeWorks tells owners, from memory and at most once, that nothing can be stored,
// and once that it can be again. Nothing of it is on record: there is nowhere to
// record it.
func (i *incidents) storeWorks(ctx context.Context) bool {
	var err error
	if i.told || i.store.DoubtsWrites() {
		if err = i.store.CheckWrites(ctx); err == nil {
			err = i.room() // a message needs more of it than that
		}
	}
	switch {
	case err == nil:
		i.led.Store(i.leads.Load())
		if time.Since(i.read) > ownersEvery {
			i.readChats(ctx)
		}
		if i.told {
			i.told = false
			i.direct(ctx, "✔ Resolved: messages can be stored again.")
		}
		return true
	case ctx.Err() != nil || i.told || !i.led.Load():
	default:
		i.told = true
		i.log.ErrorContext(ctx, "nothing can be stored", "reason", fault.Public(err), "err", err)
		i.direct(ctx, notKept(err))
	}
	return false
}

// notKept says what it means for people that what they write is not kept.
func notKept(err error) string {
	what := "⚠ Messages cannot be stored, so nobody gets an answer. "
	if errors.Is(err, store.ErrGone) { // they do get one
		what = "⚠ Messages and answers will be lost. "
	}
	return what + fault.Public(err)
}

// readChats finds the private chats of owners, and keeps those that it knew if that
// fails.
func (i *incidents) readChats(ctx context.Context) {
	list, err := i.people.List(ctx)
	if err != nil {
		return
	}
	var chats []privateChat
	err = i.store.InRead(ctx, func(tx *store.Tx) error {
		for _, p := range people.Owners(list) {
			if p.Overruled || p.Removed {
				continue
			}
			c, err := tx.People().PrivateConversation(ctx, p.Account.Platform, p.Account.ID, time.Now().Add(-privateChatsPast))
			if fault.Is(err, fault.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			chats = append(chats, privateChat{c.ID, c.Key})
		}
		return nil
	})
	if err == nil {
		i.chats, i.read = chats, time.Now()
	}
}

// direct sends a text without a record, at most once to each owner.
func (i *incidents) direct(ctx context.Context, text string) {
	for _, chat := range i.chats {
		n := slices.IndexFunc(i.platforms.adapters, func(a platform.Adapter) bool { return a.Platform() == chat.key.Platform })
		if n < 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		id := messages.DeliveryID(uuid.Must(uuid.NewV7()).String())
		if _, err := i.platforms.adapters[n].Send(ctx, messages.Outbound{Delivery: id, Conversation: chat.key, Text: text}); err != nil {
			i.log.WarnContext(ctx, "could not tell an owner about an incident", "platform", chat.key.Platform, "err", err)
		}
		cancel()
	}
}

// Begin implements incident.Ledger.
func (i *incidents) Begin(ctx context.Context, key, text string) error {
	return i.change(ctx, key, "open", "⚠ "+text)
}

// Resolve implements incident.Ledger.
func (i *incidents) Resolve(ctx context.Context, key, text string) error {
	return i.change(ctx, key, "", "✔ Resolved: "+text)
}

// change records an incident and puts what owners read on its way, in one transaction.
func (i *incidents) change(ctx context.Context, key, state, text string) error {
	if before, known := i.known[key]; known && before == state {
		return nil
	}
	before, err := store.Within(ctx, i.store.InRead, func(tx *store.Tx) (string, error) { return tx.Inbox().Cursor(ctx, "incident/"+key) })
	if err == nil && before != state {
		err = i.record(ctx, key, state, text)
	}
	if err != nil {
		return fmt.Errorf("record an incident: %w", err)
	}
	if i.known == nil {
		i.known = make(map[string]string)
	}
	i.known[key] = state
	return nil
}

func (i *incidents) record(ctx context.Context, key, state, text string) error {
	changed := false
	err := i.store.InTx(ctx, func(tx *store.Tx) error {
		before, err := tx.Inbox().Cursor(ctx, "incident/"+key)
		if changed = err == nil && before != state; !changed {
			return err
		}
		for _, chat := range i.chats {
			if err := outbox.AddNotice(ctx, store.Port{Tx: tx}, chat.conversation, "", text); err != nil {
				return err
			}
		}
		return tx.Inbox().SaveCursor(ctx, "incident/"+key, state)
	})
	if err != nil || !changed {
		return err
	}
	i.log.WarnContext(ctx, "incident", "key", key, "open", state != "", "text", text)
	for _, chat := range i.chats {
		if err := i.core.Ring(ctx, chat.conversation); err != nil {
			i.log.DebugContext(ctx, "a notice waits for the next sweep", "err", err)
		}
	}
	return nil
}

// backup looks at the age of the newest backup; who never made one is not reminded.
func (i *incidents) backup(now time.Time) incident.Condition {
	c := incident.Condition{Key: "backup", Resolved: "there is a new backup."}
	newest, ok := newestBackup(i.backups)
	if !ok {
		return c
	}
	age := now.Sub(newest.Manifest.CreatedAt)
	c.Bad = age > oldBackup
	c.Text = fmt.Sprintf("The newest backup is %d hours old. Run `bot backup create`, or check why the scheduled backup does not run.", int(age.Hours()))
	return c
}

// budget looks at what was spent today.
func (i *incidents) budget(ctx context.Context) incident.Condition {
	c := incident.Condition{Key: "budget/day", Resolved: "the daily budget is below 80% again."}
	b := i.limits()
	if b.DayMicros+b.DayTokens == 0 {
		return c
	}
	sum, err := spentToday(ctx, i.store)
	if err != nil {
		return c
	}
	switch {
	case b.DayMicros > 0 && float64(sum.Micros) >= budgetShare*float64(b.DayMicros):
		c.Bad, c.Text = true, fmt.Sprintf("%s of today's budget of %s is used.", spend.Dollars(sum.Micros), spend.Dollars(b.DayMicros))
	case b.DayTokens > 0 && float64(sum.UnpricedToken) >= budgetShare*float64(b.DayTokens):
		c.Bad, c.Text = true, fmt.Sprintf("%s of today's budget of %s tokens is used.", spend.Tokens(sum.UnpricedToken), spend.Tokens(b.DayTokens))
	}
	if c.Bad {
		c.Text += " At 100%, nobody gets an answer until 00:00 UTC."
	}
	return c
}

// reachable returns why a platform is not connected: it does not answer, or nothing
// comes in from it.
func (pl *platforms) reachable(ctx context.Context, a platform.Adapter) error {
	if err := pl.ask(ctx, a); err != nil {
		return err
	}
	if r, ok := a.(platform.Receiving); ok {
		return r.Receiving()
	}
	return nil
}

// unreachable asks each platform who the bot is, and whether it is heard.
func (i *incidents) unreachable(ctx context.Context) (seen []incident.Condition) {
	for _, a := range i.platforms.adapters {
		if _, ok := a.(platform.Checker); !ok {
			continue
		}
		err := i.platforms.reachable(ctx, a)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			i.platforms.links.failed(a.Platform(), err, time.Now())
		}
		name := string(a.Platform())
		reason, known := i.disconnected(ctx, a, err)
		if !known {
			continue
		}
		seen = append(seen, incident.Condition{
			Key: "platform/" + name, Bad: reason != "", After: awayAfter,
			Text:     fmt.Sprintf("%s has been disconnected for 3 minutes: %s", name, reason),
			Resolved: name + " is connected again.",
		})
	}
	return seen
}

// disconnected returns why the service is not connected to a platform, of which this
// replica has found err, or nothing. known is false while the database does not tell.
func (i *incidents) disconnected(ctx context.Context, a platform.Adapter, err error) (reason string, known bool) {
	if i.reach == nil {
		if err == nil {
			return "", true
		}
		return fault.Public(err), true
	}
	_, fetches := a.(platform.Receiving)
	receives := !fetches || !i.platforms.links.of(a.Platform()).Since.IsZero()
	name := string(a.Platform())
	err = i.reach.note(ctx, name, err, receives, time.Now())
	if err == nil {
		reason, err = i.reach.trouble(ctx, name, time.Now())
	}
	if err != nil && ctx.Err() == nil {
		i.log.WarnContext(ctx, "could not share how a platform is reached", "platform", name, "err", err)
	}
	return reason, err == nil
}
