package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator"
)

// Soak is how what a process takes changes while nothing goes wrong.
type Soak struct {
	Turns                             int
	Resident, Goroutines, Descriptors Line
	OfFiles                           Line    // what of Resident are pages of files, as those of the program itself
	BytesPerTurn                      float64 // of SQLite's file; zero if not known
	Log                               int64   // bytes of its write-ahead log at the end, which do not grow with the turns
}

// Line is a figure over time: its values at the start of the measurement and at the
// end, and its slope by least squares.
type Line struct{ First, Last, PerHour float64 }

// settling is the part of a soak that is not judged, five minutes at the most.
func settling(whole time.Duration) time.Duration { return min(5*time.Minute, whole/4) }

type point struct{ hours, resident, ofFiles, goroutines, descriptors float64 }

// soak looks at the first process every second, and asks for its metrics every five, for
// that is work for it too. Seldom looks would meet what it does once a minute always at
// the same moments, and draw a line through those.
func (r *run) soak(ctx context.Context) error {
	b := r.bots[0]
	begin := time.Now()
	before, _ := r.db.sizes()
	profiled := make(chan error, 1)
	go func() { profiled <- b.profile(ctx, settling(r.opts.For)) }()
	var points []point
	var goroutines float64
	for look := 0; emulator.Sleep(ctx, time.Second) == nil; look++ {
		if b.ended() {
			return fmt.Errorf("%s: %w", b.name, b.process.Early())
		}
		resident, ofFiles, descriptors, err := b.figures()
		if err != nil {
			return fmt.Errorf("a soak needs /proc: %w", err)
		}
		if look%5 == 0 {
			if goroutines, err = b.goroutines(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
		if at := time.Since(begin); at > settling(r.opts.For) && err == nil {
			points = append(points, point{at.Hours(), resident / 1e6, ofFiles / 1e6, goroutines, descriptors})
		}
	}
	if err := <-profiled; err != nil {
		return fmt.Errorf("write profiles: %w", err)
	}
	if len(points) < 3 {
		r.skip("soak", "too short: there is nothing to draw a line through")
		return nil
	}
	_, _, turns := r.book.Totals()
	r.report.Soak = &Soak{
		Turns:       turns,
		Resident:    fit(points, func(p point) float64 { return p.resident }),
		OfFiles:     fit(points, func(p point) float64 { return p.ofFiles }),
		Goroutines:  fit(points, func(p point) float64 { return p.goroutines }),
		Descriptors: fit(points, func(p point) float64 { return p.descriptors }),
	}
	if r.db.url == "" && turns > 0 {
		after, log := r.db.sizes()
		r.report.Soak.BytesPerTurn, r.report.Soak.Log = float64(after-before)/float64(turns), log
	}
	return nil
}

// profile writes profiles of a process: of the processor at the start, of the memory
// when it has settled and when ctx ends.
func (b *bot) profile(ctx context.Context, settled time.Duration) error {
	if b.profiles == "" {
		return nil
	}
	dir, to := b.run.opts.Profiles, "http://"+b.profiles+"/debug/pprof/"
	keep := func(ctx context.Context, name, query string) error {
		data, err := get(ctx, to+query)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	begin, back := time.Now(), context.WithoutCancel(ctx)
	if err := keep(ctx, "cpu.out", fmt.Sprintf("profile?seconds=%d", min(15, 1+int(settled.Seconds())))); err != nil {
		return err
	}
	_ = emulator.Sleep(ctx, settled-time.Since(begin)) // or the end
	if err := keep(back, "heap-settled.out", "heap?gc=1"); err != nil {
		return err
	}
	<-ctx.Done()
	return keep(back, "heap-end.out", "heap?gc=1")
}

// get reads all of a page.
func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	return io.ReadAll(resp.Body)
}

// goroutines reads how many there are from the metrics of a process.
func (b *bot) goroutines(ctx context.Context) (float64, error) {
	text, err := get(ctx, "http://"+b.addr+"/metrics")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\ngo_goroutines ")
	value, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(value, 64)
}

// fit draws a line through a figure. Its ends are the means of the first and the last
// tenth of the points.
func fit(points []point, of func(point) float64) Line {
	n, tenth := float64(len(points)), max(1, len(points)/10)
	var x, y, xx, xy float64
	for _, p := range points {
		v := of(p)
		x, y, xx, xy = x+p.hours, y+v, xx+p.hours*p.hours, xy+p.hours*v
	}
	mean := func(some []point) (sum float64) {
		for _, p := range some {
			sum += of(p)
		}
		return sum / float64(len(some))
	}
	return Line{First: mean(points[:tenth]), Last: mean(points[len(points)-tenth:]), PerHour: (n*xy - x*y) / (n*xx - x*x)}
}

func (s *Soak) lines() []string {
	line := func(name, unit string, l Line) string {
		return fmt.Sprintf("  %-16s %8.1f  to %.1f%s, %+.1f an hour", name, l.First, l.Last, unit, l.PerHour)
	}
	lines := []string{
		"", fmt.Sprintf("What the process takes, over %d turns:", s.Turns),
		line("memory", " MB", s.Resident), line("of it, files", " MB", s.OfFiles), line("goroutines", "", s.Goroutines), line("descriptors", "", s.Descriptors),
	}
	if s.BytesPerTurn > 0 {
		lines = append(lines, fmt.Sprintf("  %-16s %8.0f  bytes a turn, besides %.1f MB of write-ahead log, which does not grow with them", "stored", s.BytesPerTurn, float64(s.Log)/1e6))
	}
	return lines
}
