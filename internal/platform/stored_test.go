package platform_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// refusing is a sink that answers to events with err.
type refusing struct {
	err  error
	kept []messages.RawEvent
}

func (r *refusing) Accept(context.Context, ...messages.Inbound) error { return r.err }

func (r *refusing) Keep(_ context.Context, e messages.RawEvent) error {
	r.kept = append(r.kept, e)
	return nil
}

func TestStore(t *testing.T) {
	t.Parallel()
	down := errors.New("the database is away")
	one := []messages.Inbound{{Event: "e1"}}
	for name, tt := range map[string]struct {
		events []messages.Inbound
		reason string
		accept error
		want   error
		kept   string // the beginning of the reason
	}{
		"taken":            {events: one},
		"not stored":       {events: one, accept: down, want: down},
		"refused for good": {events: one, accept: fault.New(fault.Invalid, strings.Repeat("long ", 100)), kept: "refused: long"},
		"not understood":   {reason: "not JSON", kept: "not JSON"},
		"nothing":          {},
	} {
		sink := &refusing{err: tt.accept}
		kept, err := platform.Store(t.Context(), sink, "p", "", platform.Meaning{Events: tt.events, Raw: []byte("raw"), Reason: tt.reason})
		if !errors.Is(err, tt.want) || kept != (tt.kept != "") || len(sink.kept) > 0 != kept {
			t.Errorf("%s: kept %v, %v, %v", name, kept, sink.kept, err)
			continue
		}
		if !kept {
			continue
		}
		e := sink.kept[0]
		if !strings.HasPrefix(e.Reason, tt.kept) || len(e.Reason) > 200 || string(e.Raw) != "raw" || len(tt.events) > 0 && e.Event != "e1" {
			t.Errorf("%s: kept %+v", name, e)
		}
	}
}

func TestSelfAsksOnce(t *testing.T) {
	t.Parallel()
	me := platform.NewSelf[string]()
	asked := 0
	ask := func(context.Context) (string, error) {
		asked++
		if asked == 1 {
			return "", errors.New("away")
		}
		name := "bot"
		me.Store(&name)
		return name, nil
	}
	if _, err := me.Get(t.Context(), ask); err == nil || me.Load() != nil {
		t.Error("a failure is remembered")
	}
	for range 2 {
		if got, err := me.Get(t.Context(), ask); got != "bot" || err != nil {
			t.Errorf("it is %q, %v", got, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	canceled, cancel := context.WithCancel(t.Context())
	other, busy, release, done := platform.NewSelf[string](), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = other.Get(t.Context(), func(context.Context) (string, error) {
			close(busy)
			<-release
			return "", errors.New("too late")
		})
	}()
	<-busy
	cancel()
	if _, err := other.Get(canceled, ask); err == nil {
		t.Error("somebody who waits is not told of the end")
	}
	close(release)
	<-done
}
