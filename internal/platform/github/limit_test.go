package github_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
	"remote-agent/internal/platform/github"
)

// However often it is asked, no window has more than what is published.
func TestLimiterKeepsThePublishedLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := github.NewLimiter()
		var at []time.Time
		for end := time.Now().Add(3 * time.Hour); time.Now().Before(end); {
			if err := l.WaitFor(t.Context(), http.MethodPost); fault.Is(err, fault.RateLimited) {
				after, _ := fault.Retry(err)
				time.Sleep(after)
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Now())
		}
		for window, most := range map[time.Duration]int{time.Minute: 80, time.Hour: 500} {
			from := 0
			for i, x := range at {
				for x.Sub(at[from]) >= window {
					from++
				}
				if n := i - from + 1; n > most {
					t.Fatalf("%d calls within %v", n, window)
				}
			}
		}
		if len(at) < 1100 {
			t.Errorf("only %d calls in three hours", len(at))
		}
	})
}

func TestLimiterPoints(t *testing.T) {
	t.Parallel()
	for method, most := range map[string]int{http.MethodGet: 900, http.MethodPatch: 180} {
		synctest.Test(t, func(t *testing.T) {
			l := github.NewLimiter()
			n := 0
			for end := time.Now().Add(time.Minute); time.Now().Before(end); n++ {
				if err := l.WaitFor(t.Context(), method); err != nil {
					t.Fatal(err)
				}
			}
			if n > most || n < most*3/4 {
				t.Errorf("%d times %s in a minute", n, method)
			}
		})
	}
}

// TestServerWithoutLimits has a server of GitHub Enterprise tell whether it has any limits.
// What it refuses all the same is heard.
func TestServerWithoutLimits(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]bool{"limits": false, "none": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, pat := range []bool{false, true} {
				w := newWorld(t, setting{pat: pat, server: func(o *emulator.Options) {
					if free {
						o.Limits = emulator.NoLimits()
					}
				}})
				w.person("ann").OpenIssue("x", "y")
				out := messages.Outbound{Delivery: newDelivery(), Conversation: key(inKey + "#1"), Text: "hello"}
				if _, err := w.Send(t.Context(), out); err != nil {
					t.Fatal(err)
				}
				before := w.Headroom().Left
				out.Delivery = newDelivery()
				if _, err := w.Send(t.Context(), out); err != nil {
					t.Fatal(err)
				}
				if left := w.Headroom().Left; free != (left >= before) {
					t.Errorf("%v of the limits are left, before %v", left, before)
				}
				w.server.Inject(emulator.CreateComment, emulator.SecondaryLimit(http.StatusForbidden, time.Minute))
				out.Delivery = newDelivery()
				if _, err := w.Send(t.Context(), out); !fault.Is(err, fault.RateLimited) || w.Headroom().Silent != 1 {
					t.Errorf("a send that is refused: %v; silences %d", err, w.Headroom().Silent)
				}
			}
		})
	}
}

// TestLimitsThatLookLikeMistakes: some calls are refused with 422 where others are with 403. The
// answer in a thread of lines stays one.
func TestLimitsThatLookLikeMistakes(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]emulator.Fault{
		"code": emulator.TooQuick("abuse", ""), "message": emulator.TooQuick("custom", "was submitted too quickly"),
	} {
		w := newWorld(t)
		w.run(t)
		n, line := w.openPull(t)
		w.server.Inject(emulator.CreateReviewComment, refusal)
		out := messages.Outbound{
			Delivery: newDelivery(), Conversation: key(fmt.Sprint(inKey, "#", n)), ReplyTo: messages.MessageID(fmt.Sprint("rc:", line)), Text: "hello",
		}
		if ref, err := w.Send(t.Context(), out); !fault.Is(err, fault.RateLimited) || exchange.RetryAfter(err) != time.Minute || w.Headroom().Silent != 1 {
			t.Errorf("%s: %+v, %v; silences %d", name, ref, err, w.Headroom().Silent)
		}
	}
}

// TestAnIssueThatIsTooNew: for a moment GitHub may not find an issue that it has told of.
func TestAnIssueThatIsTooNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("ann").OpenIssue("x", "y")
	w.server.Inject(emulator.CreateComment, emulator.NotYet())
	out := messages.Outbound{Delivery: newDelivery(), Conversation: key(inKey + "#1"), Text: "hello"}
	_, err := w.Send(t.Context(), out)
	if _, again := fault.Retry(err); !again || !fault.Is(err, fault.Unavailable) {
		t.Errorf("it is not tried again: %v", err)
	}
}

// heard is what other processes were told by GitHub.
type heard struct{ silent atomic.Bool }

func (*heard) Local(time.Duration) bool                                     { return false }
func (*heard) CountsAlone(func() []platform.Usage)                          {}
func (*heard) Silence(context.Context, string, string, time.Duration) error { return nil }
func (h *heard) Take(context.Context, platform.Claim) (time.Duration, error) {
	if h.silent.Load() {
		return 0, exchange.Limited(time.Minute)
	}
	return 0, nil
}

// TestOthersAreHeardWithoutLimits: a silence that GitHub demanded of another process holds
// also where there are no limits.
func TestOthersAreHeardWithoutLimits(t *testing.T) {
	t.Parallel()
	others := &heard{}
	w := newWorld(t, setting{
		server: func(o *emulator.Options) { o.Limits = emulator.NoLimits() },
		bot:    func(c *github.Config) { c.Limits = others },
	})
	w.person("ann").OpenIssue("x", "y")
	for _, silent := range []bool{false, true} {
		others.silent.Store(silent)
		out := messages.Outbound{Delivery: newDelivery(), Conversation: key(inKey + "#1"), Text: "hello"}
		if _, err := w.Send(t.Context(), out); fault.Is(err, fault.RateLimited) != silent || !silent && err != nil {
			t.Errorf("a send while others were told to be silent (%v): %v", silent, err)
		}
	}
}
