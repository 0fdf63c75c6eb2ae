package app

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/config"
	"remote-agent/internal/learn"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/embed"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/recollect"
	"remote-agent/internal/redact"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

var (
	_ recollect.Tx = (*store.Memories)(nil)
	_ learn.Tx     = (*store.Lessons)(nil)
)

// learnStorage shows the store through the port of learning.
func learnStorage(s *store.Store) learn.Storage {
	return store.Through[learn.Tx]{Store: s, As: func(tx *store.Tx) learn.Tx { return tx.Lessons() }}
}

// remembering is what remembers people, and what learns of them by itself.
type remembering struct {
	config config.Memory
	store  *store.Store
	redact *redact.Redactor
	now    func() time.Time // nil: the time
	log    *slog.Logger
	roster *roster
	budget func() spend.Budget
	halted func() bool // nothing is to begin

	service  *recollect.Service // nil with MEMORY=off
	learner  *learn.Learner     // nil if nothing is learned
	judge    *learn.Judge       // nil without a cheap model
	embedder *embed.Client      // nil without an embeddings API
	vectors  store.VectorState  // as it was at the start
}

// build builds what remembers people, unless it is switched off.
func (m *remembering) build(ctx context.Context) error {
	c := m.config
	if !c.On {
		return nil
	}
	var err error
	if m.vectors, err = m.store.Vectors(ctx); err != nil {
		return err
	}
	port := recollect.Config{
		Storage: store.Through[recollect.Tx]{Store: m.store, As: func(tx *store.Tx) recollect.Tx { return tx.Memories() }},
		Redact:  m.redact.String, Now: m.now, Log: m.log,
		Judge: func(ctx context.Context, entry sessions.Entry, f memory.Fact) memory.Judgment {
			return m.judge.Of(ctx, entry, f)
		},
	}
	if c.Embeds() {
		client, err := embed.New(embed.Config{BaseURL: c.BaseURL, APIKey: c.APIKey.Reveal(), Model: c.Model})
		if err != nil {
			return err
		}
		m.embedder, port.Embedder = client, client
	}
	m.service = recollect.New(port)
	return nil
}

// buildLearner builds what learns of people by itself, if that is wanted and
// there is a model API to ask.
func (m *remembering) buildLearner(ctx context.Context, tiers map[string]spend.Tier) {
	if m.service == nil {
		return
	}
	m.buildJudge(tiers["cheap"])
	if !m.config.Learning {
		return
	}
	model, name := m.roster.learning(tiers["cheap"])
	if model == nil {
		m.log.InfoContext(ctx, "automatic memory is off: no model configured", "option", "MEMORY_LEARNING")
		return
	}
	m.learner = learn.New(learn.Config{
		Storage: learnStorage(m.store), Model: model, Name: name, Budget: m.budget,
		Redact: m.redact.String, Embed: m.service.Embedding, Judge: m.judge, Now: m.now, Log: m.log,
		Paused: m.halted,
	})
}

// buildJudge builds what compares memories, if there is a cheap model to ask.
func (m *remembering) buildJudge(cheap spend.Tier) {
	model := m.roster.models[assistant.Name(cmp.Or(cheap.Provider, m.roster.programs.config.Assistant))]
	if cheap.Model == "" || model == nil {
		return
	}
	m.judge = learn.NewJudge(learn.Config{
		Storage: learnStorage(m.store), Model: model, Name: cheap.Model, Budget: m.budget,
		Redact: m.redact.String, Now: m.now, Log: m.log,
		Paused: m.halted,
	})
}

// learning returns the model API to ask what can be learned: that of the
// cheap tier, else the default assistant's, else any. The name is of its model,
// empty for the one that it asks by default.
func (r *roster) learning(cheap spend.Tier) (assistant.Model, string) {
	if cheap.Model != "" {
		provider := cmp.Or(cheap.Provider, r.programs.config.Assistant)
		if m := r.models[assistant.Name(provider)]; m != nil {
			return m, cheap.Model
		}
	}
	if m := r.models[assistant.Name(r.programs.config.Assistant)]; m != nil {
		return m, ""
	}
	for _, name := range slices.Sorted(maps.Keys(r.models)) {
		return r.models[name], ""
	}
	return nil, ""
}

// learnerPort is m.learner as an interface that is nil without it.
func (m *remembering) learnerPort() orchestrator.Learner {
	if m.learner == nil {
		return nil
	}
	return m.learner
}

// port is m.service as an interface that is nil without it.
func (m *remembering) port() orchestrator.Memory {
	if m.service == nil {
		return nil
	}
	return m.service
}

func (m *remembering) close() {
	if m.service != nil {
		m.service.Close()
	}
	if m.embedder != nil {
		m.embedder.Close()
	}
}
