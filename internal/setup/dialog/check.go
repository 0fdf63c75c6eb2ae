package dialog

import (
	"context"
	"slices"

	"remote-agent/internal/doctor"
	"remote-agent/internal/setup"
)

// Check shows how each step stands, or the one that is named, and runs its checks. It
// asks for nothing. sound is false if one failed.
func (d *Dialog) Check(ctx context.Context, only string) (sound bool, err error) {
	steps := d.Service.Steps(ctx)
	if only != "" {
		s, err := d.find(ctx, only)
		if err != nil {
			return false, err
		}
		steps = []setup.Step{s}
	}
	d.overview(ctx, steps)
	sound = true
	for _, s := range steps {
		state := d.Service.State(ctx, s)
		for _, v := range state.Values {
			if v.Set || v.Pinned {
				d.say("  %s = %s (%s)\n", v.Name, v.Text, v.Origin)
			}
		}
		if !state.On {
			continue
		}
		out := d.Service.Prove(ctx, setup.Way{Proof: setup.Proof{Areas: areas(s)}})
		d.show(out)
		for _, f := range out.Findings {
			sound = sound && f.Status != doctor.Fail
		}
	}
	return sound, ctx.Err()
}

// areas are what proves any way of a step: which one was gone is not known any more.
func areas(s setup.Step) (all []string) {
	for _, w := range s.Ways {
		for _, a := range w.Proof.Areas {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}
