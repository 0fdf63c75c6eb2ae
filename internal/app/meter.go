package app

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/metrics"
	"remote-agent/internal/spend"
)

// modelAPI is assistant.Model under a name that is none of its methods.
type modelAPI interface{ assistant.Model }

// meter is a model API whose requests are counted. It hides what else a Model may be, so
// that each of these is passed on below.
type meter struct {
	modelAPI
	metrics *metrics.Metrics // may be nil
	uses    bool             // what is used is counted, too; turns do so themselves
}

var (
	_ assistant.Lister   = (*meter)(nil)
	_ assistant.Switcher = (*meter)(nil)
)

// SetModel implements assistant.Switcher.
func (m *meter) SetModel(name string) {
	if s, ok := m.modelAPI.(assistant.Switcher); ok {
		s.SetModel(name)
	}
}

// Models implements assistant.Lister.
func (m *meter) Models(ctx context.Context) ([]string, error) {
	if l, ok := m.modelAPI.(assistant.Lister); ok {
		return l.Models(ctx)
	}
	return nil, errors.ErrUnsupported
}

// Complete implements assistant.Model.
func (m *meter) Complete(ctx context.Context, r assistant.Request) iter.Seq2[assistant.Event, error] {
	return func(yield func(assistant.Event, error) bool) {
		provider, model := string(m.Name()), cmp.Or(r.Model, m.Model())
		outcome := ""
		defer func() {
			if outcome == "" { // an answer without an end
				outcome = outcomeOf(ctx, &fault.Error{Kind: fault.Unavailable})
			}
			m.metrics.Requested(provider, model, outcome)
		}()
		for event, err := range m.modelAPI.Complete(ctx, r) {
			if e, ok := event.(assistant.Finished); ok {
				outcome = "ok"
				m.used(provider, model, e)
			}
			if e, ok := event.(assistant.UsageUpdated); ok { // of a request that fails
				m.used(provider, model, assistant.Finished(e))
			}
			if err != nil {
				outcome = outcomeOf(ctx, err)
			}
			if !yield(event, err) {
				outcome = cmp.Or(outcome, string(fault.Canceled))
				return
			}
		}
	}
}

// outcomeOf names what became of a request that failed.
func outcomeOf(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return string(fault.Canceled)
	}
	if _, is := errors.AsType[*assistant.OverflowError](err); is {
		return "overflow"
	}
	return string(fault.KindOf(err))
}

func (m *meter) used(provider, model string, f assistant.Finished) {
	if m.uses {
		m.metrics.Use(provider, model, metrics.Used{
			Input: f.Usage.InputTokens, Output: f.Usage.OutputTokens, Cached: f.Usage.CachedTokens,
			Micros: spend.Priced(spend.Record{Model: cmp.Or(f.Model, model), Usage: f.Usage}).Micros,
		})
	}
}

// nameModel names a model in the metrics: as the price list or the operator does. Of those that
// are neither priced nor configured there may be as many as people think of.
func (d *daemon) nameModel(model string) string {
	if name, listed := spend.NameOf(model); listed {
		return name
	}
	for _, a := range d.roster.all {
		if a.Model() == model {
			return model
		}
	}
	for _, tier := range d.live.Load().Tiers {
		if tier.Model == model {
			return model
		}
	}
	return "other"
}
