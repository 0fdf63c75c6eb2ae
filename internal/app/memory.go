package app

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"remote-agent/internal/assistant"
	"remote-agent/internal/learn"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/embed"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/recollect"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

var (
	_ recollect.Tx = (*store.Tx)(nil)
	_ learn.Tx     = (*store.Tx)(nil)
)

// memoryStorage shows the store through the port of memory.
type memoryStorage struct{ store *store.Store }

// InTx implements recollect.Storage.
func (s memoryStorage) InTx(ctx context.Context, fn func(tx recollect.Tx) error) error {
	return s.store.InTx(ctx, func(tx *store.Tx) error { return fn(tx) })
}

// InRead implements recollect.Storage.
func (s memoryStorage) InRead(ctx context.Context, fn func(tx recollect.Tx) error) error {
	return s.store.InRead(ctx, func(tx *store.Tx) error { return fn(tx) })
}

// learnStorage shows the store through the port of learning.
type learnStorage struct{ store *store.Store }

// InTx implements learn.Storage.
func (s learnStorage) InTx(ctx context.Context, fn func(tx learn.Tx) error) error {
	return s.store.InTx(ctx, func(tx *store.Tx) error { return fn(tx) })
}

// InRead implements learn.Storage.
func (s learnStorage) InRead(ctx context.Context, fn func(tx learn.Tx) error) error {
	return s.store.InRead(ctx, func(tx *store.Tx) error { return fn(tx) })
}

// buildMemory builds what remembers people, unless it is switched off.
func (d *daemon) buildMemory(ctx context.Context) error {
	c := d.config.Memory
	if !c.On {
		return nil
	}
	var err error
	if d.vectors, err = d.store.Vectors(ctx); err != nil {
		return err
	}
	config := recollect.Config{
		Storage: memoryStorage{d.store}, Redact: d.redact.String, Now: d.env.Now, Log: d.log,
		Judge: func(ctx context.Context, entry sessions.Entry, f memory.Fact) memory.Judgment {
			return d.judge.Of(ctx, entry, f)
		},
	}
	if c.Embeds() {
		client, err := embed.New(embed.Config{BaseURL: c.BaseURL, APIKey: c.APIKey.Reveal(), Model: c.Model})
		if err != nil {
			return err
		}
		d.embedder, config.Embedder = client, client
	}
	d.memory = recollect.New(config)
	return nil
}

// buildLearner builds what learns of people by itself, if that is wanted and
// there is a model API to ask.
func (d *daemon) buildLearner(ctx context.Context, tiers map[string]spend.Tier) {
	if d.memory == nil {
		return
	}
	d.buildJudge(tiers["cheap"])
	if !d.config.Memory.Learning {
		return
	}
	model, name := d.learningModel(tiers["cheap"])
	if model == nil {
		d.log.InfoContext(ctx, "automatic memory is off: no model configured", "option", "MEMORY_LEARNING")
		return
	}
	d.learner = learn.New(learn.Config{
		Storage: learnStorage{d.store}, Model: model, Name: name, Budget: d.budget,
		Redact: d.redact.String, Embed: d.memory.Embedding, Judge: d.judge, Now: d.env.Now, Log: d.log,
		Paused: func() bool { return d.core.Halted().Halted() },
	})
}

// buildJudge builds what compares memories, if there is a cheap model to ask.
func (d *daemon) buildJudge(cheap spend.Tier) {
	model := d.models[assistant.Name(cmp.Or(cheap.Provider, d.config.Assistant))]
	if cheap.Model == "" || model == nil {
		return
	}
	d.judge = learn.NewJudge(learn.JudgeConfig{
		Storage: learnStorage{d.store}, Model: model, Name: cheap.Model, Budget: d.budget,
		Redact: d.redact.String, Now: d.env.Now, Log: d.log,
		Paused: func() bool { return d.core.Halted().Halted() },
	})
}

// learningModel returns the model API to ask what can be learned: that of the
// cheap tier, else the default assistant's, else any. The name is of its model,
// empty for the one that it asks by default.
func (d *daemon) learningModel(cheap spend.Tier) (assistant.Model, string) {
	if cheap.Model != "" {
		provider := cmp.Or(cheap.Provider, d.config.Assistant)
		if m := d.models[assistant.Name(provider)]; m != nil {
			return m, cheap.Model
		}
	}
	if m := d.models[assistant.Name(d.config.Assistant)]; m != nil {
		return m, ""
	}
	for _, name := range slices.Sorted(maps.Keys(d.models)) {
		return d.models[name], ""
	}
	return nil, ""
}

// learnerPort is d.learner as an interface that is nil without it.
func (d *daemon) learnerPort() orchestrator.Learner {
	if d.learner == nil {
		return nil
	}
	return d.learner
}

// memoryPort is d.memory as an interface that is nil without it.
func (d *daemon) memoryPort() orchestrator.Memory {
	if d.memory == nil {
		return nil
	}
	return d.memory
}

func (d *daemon) closeMemory() {
	if d.memory != nil {
		d.memory.Close()
	}
	if d.embedder != nil {
		d.embedder.Close()
	}
}
