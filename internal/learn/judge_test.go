//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package learn_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/learn"
	"remote-agent/internal/memory"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// knows has Ann's first message say a fact, and returns the entry of that message.
func (c *class) knows(text string) (e sessions.Entry) {
	c.t.Helper()
	c.hears("42", "c", "I prefer short answers, please")
	c.do(func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.Lessons().ClaimLessons(ctx, "claim", time.Now(), time.Now().Add(time.Minute), 1)
		if err != nil || len(list) != 1 {
			c.t.Fatal(list, err)
		}
		if e, err = tx.Inbox().Entry(ctx, list[0].EntryID); err != nil {
			return err
		}
		_, err = tx.Memories().UpsertFact(ctx, stated(e, text))
		return err
	})
	return e
}

func stated(e sessions.Entry, text string) memory.Fact {
	return memory.Fact{Scope: memory.Scope{Person: "test/42"}, RunID: e.ID, Text: text, Origin: memory.ByPerson}
}

func TestAModelComparesWhatIsRemembered(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		judge := learn.NewJudge(learn.Config{Storage: storage(c.db), Model: c.model, Name: "cheap", Redact: clean, Log: storetest.Log(t)})
		e := c.knows("Prefers short answers")
		for _, tt := range []struct {
			says, text string
			want       memory.Relation
			asked      bool
		}{
			{"Opposite.", "Prefers brief answers", memory.Opposite, true}, // against what the rules say
			{"different", "Prefers brief answers", memory.Different, true},
			{"I think that they are opposite", "Prefers brief answers", "", true},
			{"opposite", "prefers SHORT answers.", "", false}, // the same text
			{"opposite", "Lives in Berlin", "", false},        // nothing like it is there
		} {
			c.model.answer = func([]string) (string, error) { return tt.says, nil }
			before := len(c.model.requests())
			got := judge.Of(t.Context(), e, stated(e, tt.text))
			asked := c.model.requests()[before:]
			if got.Relation != tt.want || (got.Of == memory.Hash("Prefers short answers")) != (tt.want != "") || (len(asked) == 1) != tt.asked {
				t.Errorf("%q said %q: %+v, asked %q", tt.text, tt.says, got, asked)
			}
			if tt.asked && !strings.HasSuffix(asked[0], "\n"+`{"new":"`+tt.text+`","old":"Prefers short answers"}`) {
				t.Errorf("the model saw %q", asked[0])
			}
		}
		c.model.answer = func([]string) (string, error) { return "", fault.New(fault.Unavailable, "away") }
		if got := judge.Of(t.Context(), e, stated(e, "Prefers brief answers")); got != (memory.Judgment{}) {
			t.Errorf("a model that is away: %+v", got)
		}
		c.do(func(ctx context.Context, tx *store.Tx) error {
			sum, err := tx.Spending().SumUsage(ctx, spend.Filter{Actor: "test/42"})
			if sum.InputTokens != 3*400 {
				t.Errorf("usage %+v", sum)
			}
			return err
		})
		var none *learn.Judge
		if got := none.Of(t.Context(), e, stated(e, "Prefers brief answers")); got != (memory.Judgment{}) {
			t.Errorf("without a model: %+v", got)
		}
	})
}

func TestAJudgeKeepsToTheBudgetAndToSecrets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		config := learn.Config{Storage: storage(c.db), Model: c.model, Log: storetest.Log(t)}
		c.model.answer = func([]string) (string, error) { return "opposite", nil }
		e := c.knows("Prefers short answers")
		config.Budget = func() spend.Budget { return spend.Budget{PersonTokens: 10} }
		c.do(func(ctx context.Context, tx *store.Tx) error {
			return tx.Spending().AddUsage(ctx, spend.Record{Actor: "test/42", Assistant: "scripted", Usage: assistant.Usage{InputTokens: 20}, At: time.Now()})
		})
		poor := learn.NewJudge(config)
		config.Budget, config.Paused = nil, func() bool { return true }
		halted := learn.NewJudge(config)
		config.Paused, config.Redact = nil, func(s string) string { return strings.ReplaceAll(s, "brief", "***") }
		discreet := learn.NewJudge(config)
		config.Redact = nil
		for name, judge := range map[string]*learn.Judge{"poor": poor, "halted": halted, "discreet": discreet} {
			if got := judge.Of(t.Context(), e, stated(e, "Prefers brief answers")); got != (memory.Judgment{}) || len(c.model.requests()) > 0 {
				t.Errorf("%s: %+v, %q", name, got, c.model.requests())
			}
		}
		if got := learn.NewJudge(config).Of(t.Context(), e, stated(e, "Prefers brief answers")); got.Relation != memory.Opposite {
			t.Errorf("with a budget: %+v", got)
		}
	})
}

// What is learned is compared by the model, too: what it calls different is kept
// beside what is there.
func TestWhatIsLearnedIsCompared(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *class) {
		c.knows("prefers brief answers")
		c.config.Judge = learn.NewJudge(learn.Config{Storage: storage(c.db), Model: c.model, Log: storetest.Log(t)})
		c.Learner = learn.New(c.config)
		c.model.answer = func(texts []string) (string, error) {
			if len(texts) == 0 {
				return "different", nil
			}
			return `{"facts":[{"message":1,"quote":"I prefer short answers","fact":"prefers short answers","category":"preference"}]}`, nil
		}
		c.hears("42", "c", "As I said, I prefer short answers")
		c.do(func(ctx context.Context, tx *store.Tx) error {
			return tx.Lessons().ReleaseLessons(ctx, "claim", time.Now(), false)
		})
		c.learns("test/42")
		if got := texts(c.known("test/42")); !strings.Contains(got, "prefers brief answers") || !strings.Contains(got, "prefers short answers") {
			t.Errorf("remembered: %q", got)
		}
	})
}
