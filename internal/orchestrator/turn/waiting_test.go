package turn

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// limited runs test with a limit of a minute and tells when it ended the turn:
// after how long, or zero if it did not.
func limited(t *testing.T, test func(l *turnLimit)) (ended time.Duration, times int) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		begin := time.Now()
		var at atomic.Int64
		var n atomic.Int64
		l := newTurnLimit(time.Minute, func() {
			n.Add(1)
			at.CompareAndSwap(0, int64(time.Since(begin)))
		})
		test(l)
		time.Sleep(24 * time.Hour)
		l.stop()
		synctest.Wait()
		ended, times = time.Duration(at.Load()), int(n.Load())
	})
	return ended, times
}

func TestTurnLimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		test func(l *turnLimit)
		want time.Duration
	}{
		"EndsTheTurn":         {func(*turnLimit) {}, time.Minute},
		"NotOneThatIsOver":    {func(l *turnLimit) { time.Sleep(59 * time.Second); l.stop() }, 0},
		"StoppedTwice":        {func(l *turnLimit) { l.stop(); l.stop() }, 0},
		"WaitingDoesNotCount": {func(l *turnLimit) { resume := l.pause(); time.Sleep(time.Hour); resume() }, time.Hour + time.Minute},
		"WorkBeforeAndAfterDoes": {func(l *turnLimit) {
			time.Sleep(40 * time.Second)
			resume := l.pause()
			time.Sleep(time.Hour)
			resume()
		}, time.Hour + time.Minute},
		"ManyShortWaits": {func(l *turnLimit) {
			for range 10 {
				time.Sleep(5 * time.Second)
				resume := l.pause()
				time.Sleep(5 * time.Second)
				resume()
			}
		}, 100*time.Second + 10*time.Second},
		"TwoQuestionsAtOnce": {func(l *turnLimit) {
			first := l.pause()
			time.Sleep(10 * time.Minute)
			second := l.pause()
			first()
			time.Sleep(10 * time.Minute) // the second one still waits
			second()
		}, 21 * time.Minute},
		"ResumedTwice": {func(l *turnLimit) {
			first := l.pause()
			second := l.pause()
			first()
			first()
			time.Sleep(10 * time.Minute)
			second()
		}, 11 * time.Minute},
		"NeverResumed":       {func(l *turnLimit) { l.pause() }, 0},
		"ResumedAfterTheEnd": {func(l *turnLimit) { resume := l.pause(); l.stop(); resume() }, 0},
		"AskedAfterTheEnd":   {func(l *turnLimit) { l.stop(); l.pause()() }, 0},
		"AskedAtTheLastMoment": {func(l *turnLimit) {
			time.Sleep(time.Minute - 1)
			resume := l.pause()
			time.Sleep(time.Hour)
			resume()
		}, time.Hour + time.Minute - 1 + time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended, times := limited(t, tt.test)
			if ended != tt.want || times != min(int(tt.want), 1) {
				t.Errorf("ended %d times, after %s, want after %s", times, ended, tt.want)
			}
		})
	}
}

func TestTurnLimitWithManyQuestions(t *testing.T) {
	t.Parallel()
	ended, times := limited(t, func(l *turnLimit) {
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second / 10)
				resume := l.pause()
				time.Sleep(time.Hour)
				resume()
			})
		}
		all.Wait()
	})
	// The first asks at once and the last has its answer 4.9 seconds later.
	if want := time.Hour + 4900*time.Millisecond + time.Minute; ended != want || times != 1 {
		t.Errorf("ended %d times, after %s, want %s", times, ended, want)
	}
}

func TestDecidedWakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d decided
		d.tell(7) // nobody waits
		var woken atomic.Int64
		for _, number := range []int64{7, 7, 8} {
			told := d.on(number)
			go func() {
				<-told
				woken.Add(number)
			}()
		}
		synctest.Wait()
		if n := woken.Load(); n != 0 {
			t.Fatalf("somebody was woken before anything was decided: %d", n)
		}
		d.tell(7)
		synctest.Wait()
		if n := woken.Load(); n != 14 {
			t.Errorf("woken: %d, want both that wait for 7 and nobody else", n)
		}
		d.tell(7)
		d.tell(8)
		synctest.Wait()
		if n := woken.Load(); n != 22 {
			t.Errorf("woken: %d, want all", n)
		}
		if len(d.waiting) != 0 {
			t.Errorf("%d are remembered although nobody waits", len(d.waiting))
		}
	})
}

// TestDecidedTellsWhatComesAfterTheQuestion is the order in which a decision is
// waited for: ask for the channel, look into the database, wait. Whatever is
// told after the first is not missed, and what was told before it wakes nobody.
func TestDecidedTellsWhatComesAfterTheQuestion(t *testing.T) {
	t.Parallel()
	var d decided
	d.tell(1)
	told := d.on(1)
	select {
	case <-told:
		t.Error("an old decision woke somebody")
	default:
	}
	d.tell(1)
	select {
	case <-told:
	default:
		t.Error("a decision between the look and the wait was missed")
	}
	if again := d.on(1); again == told {
		t.Error("the next wait begins with a channel that is closed")
	}
	d.forget(1)
	d.forget(1)
	d.tell(1)
	if len(d.waiting) != 0 {
		t.Errorf("%d are remembered", len(d.waiting))
	}
}

func TestDecidedAtOnce(t *testing.T) {
	t.Parallel()
	var d decided
	var all sync.WaitGroup
	for i := range 60 {
		number := int64(i % 3)
		told := d.on(number)
		all.Go(func() { <-told })
		all.Go(func() {
			d.tell(number)
			d.on(100 + number)
			d.forget(100 + number)
		})
	}
	all.Wait()
	if len(d.waiting) != 0 {
		t.Errorf("%d are remembered although nobody waits", len(d.waiting))
	}
}
