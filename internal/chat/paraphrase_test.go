package chat_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/recollect"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// alike embeds every text alike, as a model does with what is nearly the same.
type alike struct{}

func (alike) Model() string { return "alike" }

func (alike) Embed(_ context.Context, texts []string) ([]memory.Vector, error) {
	out := make([]memory.Vector, len(texts))
	for i := range out {
		out[i] = memorytest.Vector("short answers")
	}
	return out, nil
}

func (a alike) EmbedEach(ctx context.Context, texts []string) ([]memory.Vector, error) {
	return a.Embed(ctx, texts)
}

func (d *desk) facts(account string) (list []memory.Memory) {
	d.t.Helper()
	err := d.db.InRead(d.t.Context(), func(tx *store.Tx) (err error) {
		list, err = tx.Memories().List(d.t.Context(), account, 0, 10, time.Now())
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

// By /remember, with embeddings and without: other words make the bot surer, and the
// opposite does not.
func TestRememberingInOtherWords(t *testing.T) {
	t.Parallel()
	for name, embedder := range map[string]recollect.Embedder{"words": nil, "embeddings": alike{}} {
		d := setupMemory(t, func(c *recollect.Config) { c.Embedder, c.Patience = embedder, time.Minute })
		for range 4 {
			if _, err := d.gives("42", "/remember Prefers short answers"); err != nil {
				t.Fatal(err)
			}
		}
		said, err := d.gives("42", "/remember Prefers brief answers")
		list := d.facts("test/42")
		if err != nil || len(list) != 1 || list[0].Confidence != 0.9 || list[0].Text != "Prefers brief answers" || list[0].History[0].Why != "rephrased" {
			t.Errorf("%s: %q, %v, %+v", name, said, err, list)
		}
		said, err = d.gives("42", "/remember Prefers long answers")
		list = d.facts("test/42")
		if err != nil || len(list) != 1 || list[0].Confidence != 0.5 || list[0].History[1].Why != "contradicted" || !strings.Contains(said, "different") {
			t.Errorf("%s: %q, %v, %+v", name, said, err, list)
		}
	}
}

// What the model found counts, for the command and for the tool.
func TestAJudgmentOfTheModelCounts(t *testing.T) {
	t.Parallel()
	relation := memory.Different
	d := setupMemory(t, func(c *recollect.Config) {
		c.Judge = func(_ context.Context, e sessions.Entry, f memory.Fact) memory.Judgment {
			if e.ID != f.RunID || f.Person != "test/42" {
				t.Errorf("judged %+v of %+v", f, e)
			}
			return memory.Judgment{Of: memory.Hash("Prefers short answers"), Relation: relation}
		}
	})
	for _, text := range []string{"Prefers short answers", "Prefers brief answers"} {
		if _, err := d.gives("42", "/remember "+text); err != nil {
			t.Fatal(err)
		}
	}
	if list := d.facts("test/42"); len(list) != 2 {
		t.Errorf("remembered %+v", list)
	}
	relation = memory.Opposite
	if _, err := d.gives("42", "/forget 2"); err != nil {
		t.Fatal(err)
	}
	if said, err := d.gives("42", "/remember Prefers brief answers"); err != nil || !strings.Contains(said, "different") {
		t.Errorf("%q, %v", said, err)
	}
}
