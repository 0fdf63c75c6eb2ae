package app

import (
	"context"

	"remote-agent/internal/memory/embed"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/recollect"
	"remote-agent/internal/redact"
	"remote-agent/internal/store"
)

var _ recollect.Tx = (*store.Tx)(nil)

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
		Storage: memoryStorage{d.store}, Redact: redact.New(d.config.Secrets()...).String, Log: d.log,
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

// memoryPort is d.memory as an interface that is nil without it.
func (d *daemon) memoryPort() orchestrator.Memory {
	if d.memory == nil {
		return nil
	}
	return d.memory
}

func (d *daemon) memoryCommands() []orchestrator.Command {
	if d.memory == nil {
		return nil
	}
	return d.memory.Commands()
}

func (d *daemon) closeMemory() {
	if d.memory != nil {
		d.memory.Close()
	}
	if d.embedder != nil {
		d.embedder.Close()
	}
}
