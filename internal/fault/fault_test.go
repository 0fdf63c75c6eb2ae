package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	inner := fault.New(fault.RateLimited, "slow down")
	tests := map[string]struct {
		err  error
		want fault.Kind
	}{
		"Nil":          {nil, ""},
		"Foreign":      {errors.New("x"), fault.Internal},
		"Wrapped":      {fmt.Errorf("send: %w", inner), fault.RateLimited},
		"OutermostWin": {fault.Wrap(inner, fault.Exhausted, "ask"), fault.Exhausted},
		"Canceled":     {fmt.Errorf("x: %w", context.Canceled), fault.Canceled},
		"Deadline":     {context.DeadlineExceeded, fault.Unavailable},
	}
	for name, tt := range tests {
		if got := fault.KindOf(tt.err); got != tt.want {
			t.Errorf("%s: KindOf = %q, want %q", name, got, tt.want)
		}
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err   error
		after time.Duration
		ok    bool
	}{
		"RateLimited": {&fault.Error{Kind: fault.RateLimited, RetryAfter: time.Minute}, time.Minute, true},
		"Unavailable": {fmt.Errorf("x: %w", fault.New(fault.Unavailable, "")), 0, true},
		"Deadline":    {context.DeadlineExceeded, 0, true},
		"Uncertain":   {&fault.Error{Kind: fault.Unavailable, Uncertain: true}, 0, false},
		"Invalid":     {fault.New(fault.Invalid, ""), 0, false},
		"Canceled":    {context.Canceled, 0, false},
		"Foreign":     {errors.New("x"), 0, false},
	}
	for name, tt := range tests {
		if after, ok := fault.Retry(tt.err); after != tt.after || ok != tt.ok {
			t.Errorf("%s: Retry = %s, %v, want %s, %v", name, after, ok, tt.after, tt.ok)
		}
	}
}

// TestExplainSaysMoreThanTheKind: what an operator reads names the cause, unless somebody
// wrote a text for people.
func TestExplainSaysMoreThanTheKind(t *testing.T) {
	t.Parallel()
	cause := errors.New("no route to host")
	for want, err := range map[string]error{
		"no route to host": fault.Wrap(cause, fault.Unavailable, "ask the model"),
		"Too long.":        fault.Wrap(fault.New(fault.Invalid, "Too long."), fault.Internal, "send"),
	} {
		got := fault.Explain(err)
		if !strings.Contains(got, want) || strings.HasSuffix(want, ".") != (got == want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestPublicNeverShowsForeignText(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial tcp 10.0.0.1: token abc")
	tests := map[string]struct {
		err  error
		want string
	}{
		"Foreign":       {secret, "Something went wrong in the bot."},
		"Wrapped":       {fault.Wrap(secret, fault.Unavailable, "ask the model"), "The service is not responding right now."},
		"PublicInside":  {fault.Wrap(fault.New(fault.Invalid, "Too long."), fault.Internal, "send"), "Too long."},
		"PublicOutside": {&fault.Error{Kind: fault.Invalid, Public: "No.", Err: secret}, "No."},
	}
	for name, tt := range tests {
		if got := fault.Public(tt.err); got != tt.want {
			t.Errorf("%s: Public = %q, want %q", name, got, tt.want)
		}
	}
}

// An operator reads one sentence: what happened, what kind it is, and the cause.
func TestErrorIsOneSentence(t *testing.T) {
	t.Parallel()
	cause := errors.New("permission denied")
	for want, err := range map[string]*fault.Error{
		"Cannot use /backups (unavailable): permission denied": {Kind: fault.Unavailable, Public: "Cannot use /backups.", Err: cause},
		"unavailable: permission denied":                       {Kind: fault.Unavailable, Err: cause},
		"Cannot use /backups.":                                 {Kind: fault.Unavailable, Public: "Cannot use /backups."},
		"unavailable":                                          {Kind: fault.Unavailable},
	} {
		if err.Error() != want {
			t.Errorf("the error is %q, want %q", err.Error(), want)
		}
	}
	if fault.Uncertain(cause) || fault.Uncertain(nil) || !fault.Uncertain(&fault.Error{Uncertain: true}) {
		t.Error("what may have happened is not told apart")
	}
}
