// Package learn finds out what people say of themselves and has it remembered.
//
// After a turn its message is noted, in the transaction that stores the answer.
// Later, in the background, a model is asked about what the sender typed, and
// about nothing else: no answer, no quotation, no file, nobody else's words. What
// it proposes is checked against those words and stored under the sender, in the
// transaction that deletes the note: a crash neither loses nor doubles it.
package learn

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// Storage keeps lessons and memories.
type Storage interface {
	// InTx runs fn in one transaction; fn may run more than once.
	InTx(ctx context.Context, fn func(tx Tx) error) error

	// InRead runs fn in a read-only snapshot.
	InRead(ctx context.Context, fn func(tx Tx) error) error
}

// Tx is one transaction of a Storage. Package store implements it and says more
// about each method.
type Tx interface {
	spend.Store

	AddUsage(ctx context.Context, r spend.Record) error
	ClaimLessons(ctx context.Context, claim string, now, until time.Time, limit int) ([]memory.Lesson, error)
	FinishLessons(ctx context.Context, claim string) ([]string, error)
	ReleaseLessons(ctx context.Context, claim string, due time.Time, counts bool) error
	Entry(ctx context.Context, id string) (sessions.Entry, error)
	Conversation(ctx context.Context, id string) (sessions.Conversation, error)
	MemoryOn(ctx context.Context, person string) (bool, error)
	NearFact(ctx context.Context, f memory.Fact) (old memory.Memory, ok bool, err error)
	UpsertFact(ctx context.Context, f memory.Fact) (memory.Outcome, error)
	InsertEpisode(ctx context.Context, e memory.Episode) (memory.Outcome, error)
}

// Config configures a Learner or a Judge.
type Config struct {
	Storage Storage

	// Model is asked, for Name if that is not empty: a cheap model does.
	Model assistant.Model
	Name  string

	Budget func() spend.Budget // what it is now; nil: none

	// Redact takes secrets out of a text; what it changes is neither sent to the
	// model nor stored. Nil takes out nothing.
	Redact func(string) string

	// Embed returns the embedding of a text, or none if that takes too long. It
	// may be nil.
	Embed func(ctx context.Context, text string) memory.Embedding

	// Judge compares what is learned with what is known. Nil leaves that to rules.
	Judge *Judge

	// PerSecond is how many requests this process makes, on average; default 1.
	PerSecond float64

	// Paused reports whether nothing may be asked now; nil never pauses.
	Paused func() bool

	Now func() time.Time // default time.Now
	Log *slog.Logger
}

// Limits of the work in the background.
const (
	workers  = 2                // requests at once, in this process
	batch    = 8                // messages in one request
	every    = 5 * time.Second  // how often notes are looked for that nobody rang for
	pause    = time.Second      // between a message and its request, so that some go together
	patience = 45 * time.Second // for the model
	holdFor  = 2 * time.Minute  // how long a note is kept from others; more than patience
	attempts = 5
)

// Learner learns in the background. It is safe for concurrent use.
type Learner struct {
	config Config
	rate   *rate.Limiter
	wake   chan struct{}
}

func (config Config) withDefaults() Config {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Budget == nil {
		config.Budget = func() spend.Budget { return spend.Budget{} }
	}
	if config.Paused == nil {
		config.Paused = func() bool { return false }
	}
	if config.Redact == nil {
		config.Redact = func(s string) string { return s }
	}
	config.PerSecond = cmp.Or(config.PerSecond, 1)
	if config.Embed == nil {
		config.Embed = func(context.Context, string) memory.Embedding { return memory.Embedding{} }
	}
	return config
}

// New returns a Learner. Run does the work.
func New(config Config) *Learner {
	config = config.withDefaults()
	return &Learner{config: config, rate: rate.NewLimiter(rate.Limit(config.PerSecond), 2*workers), wake: make(chan struct{}, workers)}
}

// Teaches reports whether something might be learned from a message. It does no
// I/O and says no to most.
func (l *Learner) Teaches(in messages.Inbound) bool { return Own(in, l.config.Redact) != "" }

// Noted has Run look for notes soon. It does not block.
func (l *Learner) Noted() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run learns until ctx ends. Several processes may do so at once. A request that
// runs when ctx ends is given up and made again by whoever is next.
func (l *Learner) Run(ctx context.Context) {
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { l.work(ctx) })
	}
	group.Wait()
}

func (l *Learner) work(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		for l.one(ctx) { //nolint:revive // until there is nothing left
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.wake:
			if !sleep(ctx, pause) {
				return
			}
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// job are notes of one person in one conversation that were claimed together.
type job struct {
	claim    string
	account  string
	conv     sessions.Conversation
	texts    []string         // what the person typed
	entries  []sessions.Entry // where
	attempts int
	skip     string // why nothing is learned; empty to go on
}

// one works on some notes. It reports false if none was due, or it failed.
func (l *Learner) one(ctx context.Context) (more bool) {
	if l.config.Paused() || ctx.Err() != nil || l.rate.Wait(ctx) != nil {
		return false
	}
	j, ok, err := l.begin(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.config.Log.WarnContext(ctx, "could not look for what to learn from", "reason", fault.Public(err), "err", err)
		}
		return false
	}
	if !ok {
		return false
	}
	var answer answer
	if j.skip == "" {
		if answer, err = l.ask(ctx, j); err != nil {
			return l.putBack(ctx, j, answer, err)
		}
	}
	if err := l.finish(ctx, j, answer); err != nil {
		return l.putBack(ctx, j, answer, err)
	}
	return true
}

// begin claims notes and reads what they are about.
func (l *Learner) begin(ctx context.Context) (j job, ok bool, err error) {
	claim, now := uuid.NewString(), l.config.Now()
	err = l.config.Storage.InTx(ctx, func(tx Tx) error {
		j, ok = job{claim: claim}, false
		list, err := tx.ClaimLessons(ctx, claim, now, now.Add(holdFor), batch)
		if err != nil || len(list) == 0 {
			return err
		}
		ok, j.account = true, list[0].Account
		if j.conv, err = tx.Conversation(ctx, list[0].ConversationID); err != nil {
			return err
		}
		for _, lesson := range list {
			j.attempts = max(j.attempts, lesson.Attempts)
			e, err := tx.Entry(ctx, lesson.EntryID)
			if fault.Is(err, fault.Internal) || fault.Is(err, fault.NotFound) {
				continue // one that cannot be read must not keep back the others
			}
			if err != nil {
				return err
			}
			if own := Own(e.In, l.config.Redact); own != "" { // its text may be gone since
				j.entries, j.texts = append(j.entries, e), append(j.texts, own)
			}
		}
		j.skip, err = l.mayNot(ctx, tx, j)
		return err
	})
	return j, ok, err
}

// mayNot says why nothing is learned from a job.
func (l *Learner) mayNot(ctx context.Context, tx Tx, j job) (string, error) {
	if len(j.texts) == 0 {
		return "nothing is left of the message", nil
	}
	if j.attempts > attempts {
		return "too many attempts", nil
	}
	if on, err := tx.MemoryOn(ctx, j.account); err != nil || !on {
		return "memory is off", err
	}
	if used, err := l.config.Budget().UsedUp(ctx, tx, j.account, l.config.Now()); err != nil || used != nil {
		return "the daily budget is used up", err
	}
	return "", nil
}

// answer is what the model said, and what that cost.
type answer struct {
	text  string
	usage assistant.Usage
	model string
}

// ask asks the model. It sees what the person typed, and nothing else.
func (l *Learner) ask(ctx context.Context, j job) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := request(j.texts)
	if err != nil {
		return a, err
	}
	r := assistant.Request{
		Conversation: j.conv.ID, Run: j.entries[0].ID, System: system, Model: l.config.Name,
		Array: []messages.Message{messages.NewText(messages.RoleUser, text)},
	}
	a, err = complete(ctx, l.config.Model, r)
	return a, fault.Note(err, "ask what can be learned")
}

// complete asks a model and reads its answer. What was used is there also when it
// fails, as far as it is known.
func complete(ctx context.Context, m assistant.Model, r assistant.Request) (a answer, err error) {
	a.model = cmp.Or(r.Model, m.Model())
	var b strings.Builder
	for event, err := range m.Complete(ctx, r) {
		if err != nil {
			return a, err
		}
		switch e := event.(type) {
		case assistant.TextDelta:
			if b.Len() <= maxAnswer {
				b.WriteString(e.Text)
			}
		case assistant.UsageUpdated:
			a.usage = e.Usage
		case assistant.Finished:
			a.usage = e.Usage
			a.model = cmp.Or(e.Model, a.model)
		case assistant.Resumable, assistant.ThoughtDelta, assistant.PlanUpdated, assistant.Notice, assistant.FileMade, assistant.ToolStarted, assistant.ToolFinished, assistant.MessageDone:
		}
	}
	a.text = b.String()
	return a, nil
}

// finish stores what was learned and deletes the notes.
func (l *Learner) finish(ctx context.Context, j job, a answer) error {
	facts, episodes := l.learned(ctx, j, a)
	var stored int
	err := l.config.Storage.InTx(ctx, func(tx Tx) error {
		stored = 0
		if err := l.charge(ctx, tx, j, a); err != nil {
			return err
		}
		held, err := tx.FinishLessons(ctx, j.claim)
		if err != nil {
			return err
		}
		mine := make(map[string]bool)
		for _, id := range held {
			mine[id] = true
		}
		stored, err = keep(ctx, tx, facts, episodes, mine)
		return err
	})
	if err != nil {
		return fmt.Errorf("store what was learned: %w", err)
	}
	l.config.Log.DebugContext(ctx, "learned", "conversation_id", j.conv.ID, "messages", len(j.texts), "proposed", len(facts)+len(episodes), "stored", stored, "skipped", j.skip)
	return nil
}

// keep stores what was learned from messages whose notes are still there. Somebody
// who switched memory off meanwhile is not taught.
func keep(ctx context.Context, tx Tx, facts []memory.Fact, episodes []memory.Episode, mine map[string]bool) (n int, err error) {
	for _, f := range facts {
		if !mine[f.RunID] {
			continue
		}
		if _, err := tx.UpsertFact(ctx, f); fault.Is(err, fault.Forbidden) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
	for _, e := range episodes {
		if !mine[e.RunID] {
			continue
		}
		if _, err := tx.InsertEpisode(ctx, e); fault.Is(err, fault.Forbidden) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// learned returns what may be stored of an answer.
func (l *Learner) learned(ctx context.Context, j job, a answer) (facts []memory.Fact, episodes []memory.Episode) {
	if a.text == "" {
		return nil, nil
	}
	proposedFacts, proposedEpisodes, err := Parse(a.text)
	if err != nil {
		l.config.Log.InfoContext(ctx, "a model did not answer in the form that was asked for; nothing is learned", "model", a.model, "err", err)
		return nil, nil
	}
	now := l.config.Now()
	l.each(ctx, j, proposedFacts, maxFacts, maxFact, func(p Proposal) string { return p.Fact }, func(p Proposal, e sessions.Entry, text string) {
		category, err := memory.ParseCategory(p.Category)
		if err != nil || category == "" {
			category = memory.General
		}
		f := memory.Fact{
			Scope: memory.Scope{Person: j.account}, RunID: e.ID, Text: text, Category: category, Origin: memory.Learned,
			Embedding: l.config.Embed(ctx, text), Key: "learned:" + e.ID, Now: now,
		}
		if category == memory.General { // as with the tool: likely about the code at hand
			f.Codebase = j.conv.CodebaseID
		}
		f.Judged = l.config.Judge.Of(ctx, e, f)
		facts = append(facts, f)
	})
	l.each(ctx, j, proposedEpisodes, maxEpisodes, maxEvent, func(p Proposal) string { return p.Event }, func(_ Proposal, e sessions.Entry, text string) {
		episodes = append(episodes, memory.Episode{
			Scope: memory.Scope{Person: j.account, Codebase: j.conv.CodebaseID}, RunID: e.ID, Text: text, Origin: memory.Learned,
			Embedding: l.config.Embed(ctx, text), Sources: []string{"learned from a message of " + j.account}, Key: "learned:" + e.ID, Now: now,
		})
	})
	return facts, episodes
}

// each calls take for the proposals that pass, at most most for a message.
func (l *Learner) each(
	ctx context.Context, j job, list []Proposal, most, limit int, text func(Proposal) string, take func(p Proposal, e sessions.Entry, text string),
) {
	taken := make(map[int]int)
	for _, p := range list {
		number, err := strconv.Atoi(p.Message.String())
		at := number - 1
		if err != nil || at < 0 || at >= len(j.texts) || taken[at] == most {
			continue
		}
		clean, why := Check(text(p), p.Quote, j.texts[at], limit, l.config.Redact)
		if why != "" {
			l.config.Log.DebugContext(ctx, "rejected a proposed memory", "entry", j.entries[at].ID, "why", why)
			continue
		}
		taken[at]++
		take(p, j.entries[at], clean)
	}
}

// putBack gives notes back after a failure: to be tried again if that may help,
// else they are dropped. What the attempt cost is recorded: a budget would not notice
// the next ones otherwise. It reports whether there may be other work now.
func (l *Learner) putBack(ctx context.Context, j job, a answer, why error) bool {
	stopped := ctx.Err() != nil
	after, retry := fault.Retry(why)
	if fault.Is(why, fault.Canceled) || fault.Passing(why) {
		retry = true // asking has no effect that could be doubled
	}
	if !stopped {
		l.config.Log.WarnContext(ctx, "could not learn from what was said", "conversation_id", j.conv.ID, "attempt", j.attempts,
			"reason", fault.Public(why), "err", why)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := l.config.Storage.InTx(ctx, func(tx Tx) error {
		if err := l.charge(ctx, tx, j, a); err != nil {
			return err
		}
		switch {
		case stopped:
			return tx.ReleaseLessons(ctx, j.claim, l.config.Now(), false)
		case retry:
			wait := max(after, time.Duration(j.attempts*j.attempts)*15*time.Second)
			return tx.ReleaseLessons(ctx, j.claim, l.config.Now().Add(wait), true)
		}
		_, err := tx.FinishLessons(ctx, j.claim)
		return err
	})
	if err != nil { // the claim runs out
		l.config.Log.WarnContext(ctx, "could not put back what to learn from", "conversation_id", j.conv.ID, "err", err)
		return false
	}
	return !stopped
}
