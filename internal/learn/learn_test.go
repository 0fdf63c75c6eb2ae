//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package learn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/commit"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/learn"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// storage shows a store through the port of package learn.
func storage(s *store.Store) learn.Storage {
	return store.Through[learn.Tx]{Store: s, As: func(tx *store.Tx) learn.Tx { return tx.Lessons() }}
}

// model is a model API that answers with a function of what it reads. It keeps
// what it was asked.
type model struct {
	mu     sync.Mutex
	answer func(texts []string) (string, error)
	asked  []string
}

func (m *model) Name() assistant.Name { return "scripted" }
func (m *model) Model() string        { return "gpt-5-mini" }

func (m *model) Complete(ctx context.Context, r assistant.Request) iter.Seq2[assistant.Event, error] {
	return func(yield func(assistant.Event, error) bool) {
		text := r.Array[0].Blocks[0].(messages.Text).Text //nolint:errcheck,forcetypeassert // the learner's form
		m.mu.Lock()
		m.asked = append(m.asked, r.System+"\n"+text)
		answer := m.answer
		m.mu.Unlock()
		var doc struct{ Messages []struct{ Text string } }
		if err := json.Unmarshal([]byte(text), &doc); err != nil || len(r.Array) != 1 || len(r.Tools) > 0 {
			yield(nil, fmt.Errorf("an odd request: %v, %+v", err, r)) //nolint:errorlint // for people
			return
		}
		var texts []string
		for _, one := range doc.Messages {
			texts = append(texts, one.Text)
		}
		said, err := answer(texts)
		if said != "" && err != nil { // it broke off
			yield(assistant.UsageUpdated{Usage: assistant.Usage{InputTokens: 400, OutputTokens: 7}}, nil)
		}
		if err == nil && ctx.Err() != nil {
			err = fault.Wrap(ctx.Err(), fault.Canceled, "ask")
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for piece := range strings.SplitAfterSeq(said, " ") {
			if !yield(assistant.TextDelta{Text: piece}, nil) {
				return
			}
		}
		yield(assistant.Finished{Usage: assistant.Usage{InputTokens: 400, OutputTokens: 50}, Model: "gpt-5-mini"}, nil)
	}
}

func (m *model) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.asked...)
}

// gullible proposes every line that it reads, as a fact and as an event.
func gullible(texts []string) (string, error) {
	var facts, events []learn.Proposal
	for i, text := range texts {
		number := json.Number(strconv.Itoa(i + 1))
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			facts = append(facts, learn.Proposal{Message: number, Quote: line, Fact: line, Category: "preference"})
			events = append(events, learn.Proposal{Message: number, Quote: line, Event: line})
		}
	}
	encoded, err := json.Marshal(map[string]any{"facts": facts, "episodes": events})
	return string(encoded), err
}

// class is a learner on a database, with somebody who talks.
type class struct {
	t *testing.T
	*learn.Learner
	db     *store.Store
	model  *model
	config learn.Config
	events int
	ahead  atomic.Int64 // the clock of a test that uses it: a minute for about half a second of learns
}

func each(t *testing.T, test func(t *testing.T, c *class)) {
	t.Helper()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		c := &class{t: t, db: open(t), model: &model{answer: gullible}}
		c.config = learn.Config{Storage: storage(c.db), Model: c.model, Redact: clean, PerSecond: 1000, Log: storetest.Log(t)}
		c.Learner = learn.New(c.config)
		test(t, c)
	})
}

func (c *class) do(fn func(ctx context.Context, tx *store.Tx) error) {
	c.t.Helper()
	ctx := c.t.Context()
	if err := c.db.InTx(ctx, func(tx *store.Tx) error { return fn(ctx, tx) }); err != nil {
		c.t.Fatal(err)
	}
}

// hears stores a message as the orchestrator does when its turn was answered. It
// reports whether it was noted.
func (c *class) hears(user, chat, text string, change ...func(in *messages.Inbound)) bool {
	c.t.Helper()
	in := said(text)
	c.events++
	in.Event = messages.EventID(fmt.Sprint(c.events))
	in.Sender.ID, in.Conversation.ID = messages.UserID(user), chat
	for _, f := range change {
		f(&in)
	}
	noted := false
	c.do(func(ctx context.Context, tx *store.Tx) error {
		conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, in.Conversation, "scripted")
		if err != nil {
			return err
		}
		e := sessions.Entry{ConversationID: conv.ID, In: in, State: sessions.EntryDone}
		if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
			return err
		}
		if noted = c.Teaches(in); !noted {
			return nil
		}
		return storetest.Apply(ctx, tx, conv.ID, commit.Changes{Lessons: []commit.Lesson{{Entry: e.ID, Account: "test/" + user, Due: time.Now()}}})
	})
	return noted
}

// learns runs the learner until nothing is left to be learned from.
func (c *class) learns(accounts ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute) // only reached when it fails
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for left, n := int64(1), 1; left > 0; n++ {
		if n%25 == 0 {
			c.ahead.Add(int64(time.Minute))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.t.Fatalf("%d messages are left", left)
		}
		c.Noted()
		err := c.db.InRead(ctx, func(tx *store.Tx) error {
			left = 0
			for _, a := range accounts {
				h, err := tx.Persons().Holdings(ctx, a)
				if err != nil {
					return err
				}
				left += h.Lessons
			}
			return nil
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
	cancel()
	<-done
}

func (c *class) known(account string) (list []memory.Memory) {
	c.t.Helper()
	c.do(func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = tx.Memories().List(ctx, account, 0, 1000, time.Now())
		return err
	})
	return list
}

func texts(list []memory.Memory) string {
	var all []string
	for _, m := range list {
		all = append(all, m.Text)
	}
	return strings.Join(all, "\n")
}

func TestWhatAPersonSaysIsLearned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		c.model.answer = func(texts []string) (string, error) {
			return "Sure:\n```json\n" + `{"facts":[{"message":1,"quote":"I prefer short answers","fact":"prefers short answers","category":"preference"}],` +
				`"episodes":[{"message":2,"quote":"I deployed my service","event":"deployed the service"}]}` + "\n```", nil
		}
		if !c.hears("42", "c", "I prefer short answers, please") || !c.hears("42", "c", "Today I deployed my service") || c.hears("42", "c", "ok") {
			t.Fatal("noted the wrong messages")
		}
		c.learns("test/42")
		list := c.known("test/42")
		if len(list) != 2 || len(c.model.requests()) != 1 {
			t.Fatalf("%d requests; learned %+v", len(c.model.requests()), list)
		}
		event, fact := list[0], list[1]
		if fact.Kind != memory.Semantic {
			event, fact = fact, event
		}
		if fact.Text != "prefers short answers" || fact.Category != memory.Preference || fact.Origin != memory.Learned || fact.Confidence != 0.5 {
			t.Errorf("fact %+v", fact)
		}
		if event.Text != "deployed the service" || event.Kind != memory.Episodic || event.Origin != memory.Learned || event.ExpiresAt.IsZero() {
			t.Errorf("event %+v", event)
		}
		c.do(func(ctx context.Context, tx *store.Tx) error {
			sum, err := tx.Spending().SumUsage(ctx, spend.Filter{Actor: "test/42"})
			if sum.InputTokens != 400 || sum.OutputTokens != 50 || sum.Micros == 0 {
				t.Errorf("usage %+v", sum)
			}
			e, err2 := tx.Inbox().Entry(ctx, fact.RunID)
			if err2 != nil || !strings.Contains(e.In.Text, "short answers") {
				t.Errorf("the source is %+v, %v", e.In, err2)
			}
			return err
		})
	})
}

func TestNothingIsLearnedWithoutLeave(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		c.do(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Memories().SetMemoryOn(ctx, "test/off", false); err != nil {
				return err
			}
			return tx.Spending().AddUsage(ctx, spend.Priced(spend.Record{Actor: "test/poor", Assistant: "scripted", Model: "gpt-5", Usage: assistant.Usage{InputTokens: 9e6}}))
		})
		c.config.Budget = func() spend.Budget { return spend.Budget{PersonMicros: 1_000_000} }
		c.Learner = learn.New(c.config)
		c.hears("off", "a", "I prefer short answers")
		c.hears("poor", "b", "I prefer short answers")
		c.learns("test/off", "test/poor")
		if n := len(c.model.requests()); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		c.hears("rich", "b", "I prefer short answers")
		c.learns("test/rich")
		if len(c.known("test/rich")) == 0 || len(c.known("test/off"))+len(c.known("test/poor")) > 0 {
			t.Error("the wrong people were learned of")
		}
	})
}

func TestWhatIsLearnedOfOneMessageIsBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		c.hears("42", "c", "I like tea\nI like cocoa\nI like juice\nI like water\nI like milk")
		c.learns("test/42")
		facts, events := 0, 0
		for _, m := range c.known("test/42") {
			if m.Kind == memory.Semantic {
				facts++
			} else {
				events++
			}
		}
		if facts != 3 || events != 1 {
			t.Errorf("%d facts and %d events", facts, events)
		}
	})
}

// A model that fails is asked again; one that talks nonsense is not.
func TestAModelThatFails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		c.config.Now = func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }
		c.Learner = learn.New(c.config)
		answers := func(answer func([]string) (string, error)) { c.model.answer = answer }
		failures := []error{fault.New(fault.Unavailable, "away"), fault.New(fault.RateLimited, "slow"), &fault.Error{Kind: fault.Unavailable, Uncertain: true}}
		answers(func(texts []string) (string, error) {
			if len(failures) > 0 {
				err := failures[0]
				failures = failures[1:]
				return "", err
			}
			return gullible(texts)
		})
		c.hears("42", "c", "I prefer short answers")
		c.learns("test/42")
		if list := c.known("test/42"); len(list) == 0 {
			t.Error("nothing was learned after the model came back")
		}
		for name, answer := range map[string]func([]string) (string, error){
			"prose":   func([]string) (string, error) { return "I would rather not.", nil },
			"refused": func([]string) (string, error) { return "", fault.New(fault.Unauthorized, "key") },
			"down":    func([]string) (string, error) { return "", fault.New(fault.Unavailable, "away") },
		} {
			answers(answer)
			before := len(c.model.requests())
			c.hears(name, "c", "I prefer short answers")
			c.learns("test/" + name) // it ends
			if n := len(c.model.requests()) - before; n > 5 || n < 1 {
				t.Errorf("%s: asked %d times", name, n)
			}
			if len(c.known("test/"+name)) > 0 {
				t.Errorf("%s: something was learned", name)
			}
		}
	})
}

// What a request used counts for whom it was made, also if its answer broke off and it
// is made again.
func TestAnAnswerThatBreaksOffIsPaidFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		c.config.Now = func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }
		c.Learner = learn.New(c.config)
		broken := false
		c.model.answer = func(texts []string) (string, error) {
			if !broken {
				broken = true
				return "{", fault.New(fault.Unavailable, "cut off")
			}
			return gullible(texts)
		}
		c.hears("42", "c", "I prefer short answers")
		c.learns("test/42")
		c.do(func(ctx context.Context, tx *store.Tx) error {
			sum, err := tx.Spending().SumUsage(ctx, store.UsageFilter{Actor: "test/42"})
			if sum.InputTokens != 800 || sum.OutputTokens != 57 {
				t.Errorf("used %+v, %v; want both requests", sum, err)
			}
			return err
		})
	})
}

// The process dies after the model has answered and before that is stored, or
// after it: whoever is next finds the note, or what was learned, and never both.
func TestACrashNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		c.hears("42", "c", "I prefer short answers")
		dying, die := context.WithCancel(t.Context())
		c.model.answer = func(texts []string) (string, error) {
			die() // the process ends while the model is asked
			return gullible(texts)
		}
		c.Run(dying)
		if len(c.known("test/42")) > 0 {
			t.Fatal("a request that was given up has taught something")
		}
		c.do(func(ctx context.Context, tx *store.Tx) error { // one that had no time to put the note back
			_, err := tx.Lessons().ClaimLessons(ctx, "dead", time.Now(), time.Now().Add(-time.Millisecond), 10)
			return err
		})
		c.model.answer = gullible
		c.Learner = learn.New(c.config)
		c.learns("test/42")
		list := c.known("test/42")
		if len(list) != 2 {
			t.Fatalf("learned %+v", list)
		}
		for _, m := range list {
			if m.Kind == memory.Semantic && m.Confidence != 0.5 {
				t.Errorf("it was learned twice: %+v", m)
			}
		}
	})
}

// What is forgotten while the model is asked stays forgotten.
func TestForgettingWhileLearning(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		forget := map[string]func(ctx context.Context, tx *store.Tx, who string) error{
			"all": func(ctx context.Context, tx *store.Tx, who string) error {
				_, err := tx.Memories().ForgetMemories(ctx, who)
				return err
			},
			"off": func(ctx context.Context, tx *store.Tx, who string) error {
				return tx.Memories().SetMemoryOn(ctx, who, false)
			},
			"person": func(ctx context.Context, tx *store.Tx, who string) error {
				_, err := tx.Persons().ForgetPerson(ctx, who)
				return err
			},
		}
		for name, fn := range forget {
			c.model.answer = func(texts []string) (string, error) {
				c.do(func(ctx context.Context, tx *store.Tx) error { return fn(ctx, tx, "test/"+name) })
				return gullible(texts)
			}
			c.hears(name, "c", "I prefer short answers")
			c.learnsUntilPaid("test/" + name)
			if list := c.known("test/" + name); len(list) > 0 {
				t.Errorf("%s: learned %v", name, texts(list))
			}
		}
	})
}

// learnsUntilPaid runs the learner until what it asked for somebody is paid for, which is
// when it has stored what it learned. No note is left before that of whoever is forgotten.
func (c *class) learnsUntilPaid(account string) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	waittest.Until(c.t, "what was learned", func() (paid bool) {
		c.Noted()
		c.do(func(ctx context.Context, tx *store.Tx) error {
			sum, err := tx.Spending().SumUsage(ctx, store.UsageFilter{Actor: account})
			paid = sum.InputTokens > 0
			return err
		})
		return paid
	})
	cancel()
	<-done
}

// A plain fact is likely about the repository at hand; what is said of a person holds
// everywhere.
func TestWhereWhatIsLearnedHolds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		c.model.answer = func([]string) (string, error) {
			return `{"facts":[{"message":1,"quote":"I deploy the shop on Fridays","fact":"deploys the shop on Fridays","category":"fact"},
				{"message":1,"quote":"I prefer short answers","fact":"prefers short answers","category":"preference"}]}`, nil
		}
		var repo sessions.Codebase
		c.do(func(ctx context.Context, tx *store.Tx) (err error) {
			if repo, err = tx.Registry().Create(ctx, sessions.Codebase{Name: "acme/shop", DefaultCwd: "/srv/shop"}); err != nil {
				return err
			}
			key := said("").Conversation
			key.ID = "c"
			conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, key, "scripted")
			if err != nil {
				return err
			}
			return tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{CodebaseID: &repo.ID})
		})
		c.hears("42", "c", "I deploy the shop on Fridays. I prefer short answers")
		c.learns("test/42")
		list := c.known("test/42")
		if len(list) != 2 {
			t.Fatalf("learned %v", texts(list))
		}
		for _, m := range list {
			if want := map[memory.Category]string{memory.General: repo.ID}[m.Category]; m.Codebase != want {
				t.Errorf("%s holds in %q, want %q", m.Text, m.Codebase, want)
			}
		}
	})
}
