package chaos

import (
	"math"
	"testing"
	"time"
)

// TestDiceRepeatAndAreFair draws the same twice, and about as often as was asked.
func TestDiceRepeatAndAreFair(t *testing.T) {
	t.Parallel()
	const calls, share = 20_000, 0.1
	count := map[fault]int{}
	same := 0
	for n := range calls {
		f := dice(7).fault(share, "sendMessage", n)
		if f != dice(7).fault(share, "sendMessage", n) {
			t.Fatal("a seed does not repeat a run")
		}
		if f != none && f == dice(8).fault(share, "sendMessage", n) {
			same++
		}
		count[f]++
	}
	failed := calls - count[none]
	if math.Abs(float64(failed)-calls*share) > calls*share/10 || same > failed/4 {
		t.Errorf("%d of %d calls fail, %d in the same way with another seed", failed, calls, same)
	}
	for _, f := range faults {
		if n := count[f]; math.Abs(float64(n)-float64(failed)/float64(len(faults))) > float64(failed)/20 {
			t.Errorf("%q comes %d times of %d", f, n, failed)
		}
	}
	if f := dice(7).fault(-1, "sendMessage", 1); f != none {
		t.Errorf("without faults there is %q", f)
	}
}

func TestMomentsComeOnce(t *testing.T) {
	t.Parallel()
	m, n := newMoments(), 0
	m.come(asked) // nobody waits for it
	m.arm(asked, 2, func() { n++ })
	for _, what := range []moment{asked, called, asked, asked} {
		if n == 1 && what == called {
			t.Error("it came too early")
		}
		m.come(what)
	}
	m.arm(asked, 1, func() { n++ })
	m.disarm()
	if m.come(asked); n != 1 {
		t.Errorf("it came %d times", n)
	}
}

// TestASlopeIsFound fits lines through figures that grow, and that do not.
func TestASlopeIsFound(t *testing.T) {
	t.Parallel()
	var points []point
	for i := range 100 {
		h := (time.Duration(i) * 5 * time.Second).Hours()
		points = append(points, point{hours: h, resident: 50 + 12*h, goroutines: 30 + float64(i%2), descriptors: 20})
	}
	if l := fit(points, func(p point) float64 { return p.resident }); math.Abs(l.PerHour-12) > 1e-6 || l.First >= l.Last {
		t.Errorf("12 MB an hour are %+v", l)
	}
	if l := fit(points, func(p point) float64 { return p.descriptors }); math.Abs(l.PerHour) > 1e-6 || l.First != 20 || l.Last != 20 {
		t.Errorf("nothing an hour is %+v", l)
	}
}
