package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// measureFloors measures the relay in the program's place, first one that keeps
// nothing and then one that keeps everything durably. Each has a world of its
// own, so that no update is left for the next.
func (r *run) measureFloors(ctx context.Context) error {
	if len(r.opts.Relay) == 0 {
		return nil
	}
	nothing, err := r.measureFloor(ctx, "keeps nothing", "")
	if err != nil {
		return err
	}
	durable, err := r.measureFloor(ctx, "durable", filepath.Join(r.dir, "journal"))
	r.report.Floors = &Floors{KeepsNothing: nothing, Durable: durable}
	return err
}

func (r *run) measureFloor(ctx context.Context, name, journal string) (Floor, error) {
	w, err := newWorld()
	if err != nil {
		return Floor{}, err
	}
	defer w.close()
	f := &run{opts: r.opts, dir: r.dir, world: w, subject: "floor, " + name + ": "}
	f.opts.Command = r.opts.Relay
	f.opts.Environ = append([]string{envJournal + "=" + journal}, r.opts.Environ...)
	defer func() { f.bot.kill() }()
	began, err := f.startBot(ctx)
	if err != nil {
		return Floor{}, err
	}
	for _, step := range []func(context.Context) error{f.measureOneAtATime, f.measureMany, f.finish} {
		if err := step(ctx); err != nil {
			return Floor{}, fmt.Errorf("%s%w", f.subject, err)
		}
	}
	return Floor{Start: began, OneAtATime: f.report.OneAtATime, AtOnce: f.report.AtOnce, Peak: f.report.Memory.Peak}, nil
}

// compare fills in the ratios when everything has been measured.
func (r *run) compare(context.Context) error {
	if f := r.report.Floors; f != nil {
		r.report.Ratios = &Ratios{KeepsNothing: r.report.ratioTo(f.KeepsNothing), Durable: r.report.ratioTo(f.Durable)}
	}
	return nil
}

func (r Report) ratioTo(f Floor) Ratio {
	return Ratio{
		AddedP50:       quotient(r.OneAtATime.AddedP50, f.OneAtATime.AddedP50),
		AddedP95:       quotient(r.OneAtATime.AddedP95, f.OneAtATime.AddedP95),
		CPUPerTurn:     quotient(r.OneAtATime.CPUPerTurn, f.OneAtATime.CPUPerTurn),
		TurnsPerSecond: quotient(r.AtOnce.TurnsPerSecond, f.AtOnce.TurnsPerSecond),
		CPUAtOnce:      quotient(r.AtOnce.CPUPerTurn, f.AtOnce.CPUPerTurn),
	}
}

// quotient is zero where a figure is not known.
func quotient[T time.Duration | float64](a, b T) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
