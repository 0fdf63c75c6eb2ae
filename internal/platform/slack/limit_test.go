package slack_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform/slack"
)

// 200 threads want an edit every three seconds for an hour. The calls stay
// within the method's limit in every minute, and none waits for more than twice
// its fair share between two of its turns.
func TestFairSharesOfAMethod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const threads, perMinute = 200, 50
		l := slack.NewLimiter()
		last := make([]time.Time, threads)
		begin := time.Now()
		for i := range last {
			last[i] = begin
		}
		var calls []time.Time
		var longest time.Duration
		for time.Since(begin) < time.Hour {
			for i := range threads {
				if l.Try("chat.update", fmt.Sprint(i)) == nil {
					longest = max(longest, time.Since(last[i]))
					last[i] = time.Now()
					calls = append(calls, time.Now())
				}
			}
			time.Sleep(3 * time.Second)
		}
		for i, at := range last {
			if waited := time.Since(at); waited > longest {
				longest = waited
			}
			if at.Equal(begin) {
				t.Errorf("thread %d never had a turn", i)
			}
		}
		share := threads * time.Minute / perMinute
		if longest > 2*share {
			t.Errorf("one waited %v, a fair share is %v", longest, share)
		}
		for i := range calls {
			if j := i + perMinute; j < len(calls) && calls[j].Sub(calls[i]) < time.Minute {
				t.Fatalf("more than %d calls within %v", perMinute, calls[j].Sub(calls[i]))
			}
		}
		if len(calls) < 60*perMinute/2 {
			t.Errorf("only %d calls in an hour", len(calls))
		}
	})
}

// What is final goes out in the order in which it came, and at the method's
// rate, whatever progress there is to show.
func TestFinalTextsAreNotHeldUpByProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := slack.NewLimiter()
		for i := range 1000 {
			_ = l.Try("chat.update", fmt.Sprint(i))
		}
		begin := time.Now()
		for range 10 {
			if err := l.Wait(t.Context(), "chat.update", ""); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took > 10*time.Minute/50 {
			t.Errorf("ten final texts took %v", took)
		}
	})
}

func TestChannelsDoNotHoldEachOtherUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := slack.NewLimiter()
		begin := time.Now()
		for i := range 500 {
			if err := l.Wait(t.Context(), "chat.postMessage", fmt.Sprint("C", i)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("500 channels took %v", took)
		}
		for range 34 {
			if err := l.Wait(t.Context(), "chat.postMessage", "C1"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took < 30*time.Second || took > 32*time.Second {
			t.Errorf("34 messages in one channel took %v", took)
		}
	})
}

func TestSilenceIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := slack.NewLimiter()
		l.Block("chat.postMessage", "C1", 30*time.Second)
		err := l.Wait(t.Context(), "chat.postMessage", "C1")
		if after, ok := fault.Retry(err); !ok || after != 30*time.Second {
			t.Errorf("Wait: %v, after %v", err, after)
		}
		if err := l.Wait(t.Context(), "chat.postMessage", "C2"); err != nil {
			t.Errorf("another channel: %v", err)
		}
		if err := l.Wait(t.Context(), "chat.update", ""); err != nil {
			t.Errorf("another method: %v", err)
		}
		time.Sleep(28 * time.Second)
		begin := time.Now()
		if err := l.Wait(t.Context(), "chat.postMessage", "C1"); err != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("Wait: %v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Wait(ctx, "chat.update", ""); !fault.Is(err, fault.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	})
}
