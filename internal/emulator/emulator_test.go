package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/emulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSignalWakesEveryWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s emulator.Signal
		var value atomic.Int64
		done := make(chan error)
		for range 3 {
			go func() { done <- s.Wait(t.Context(), func() bool { return value.Load() == 2 }) }()
		}
		for range 2 {
			synctest.Wait()
			value.Add(1)
			s.Notify()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestSignalWaitReturnsTheCause(t *testing.T) {
	t.Parallel()
	var s emulator.Signal
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := s.Wait(ctx, func() bool { return false }); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := emulator.NewGate()
		done := make(chan error)
		go func() { done <- g.Pass(t.Context()) }()
		<-g.Reached()
		synctest.Wait()
		select {
		case <-done:
			t.Error("passed a closed gate")
		default:
		}
		g.Open()
		g.Open()
		if err := <-done; err != nil {
			t.Error(err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := emulator.NewGate().Pass(canceled); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := emulator.Sleep(t.Context(), time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Errorf("slept %v, %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := emulator.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestLoopbackCanComeBackAtTheSamePlace(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reset" {
			emulator.Reset(w)
		}
		_, _ = io.WriteString(w, "here")
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(url string) error {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	first, err := emulator.Listen(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := get(first.URL()); err != nil {
		t.Error(err)
	}
	if err := get(first.URL() + "/reset"); err == nil {
		t.Error("a reset connection must be an error")
	}
	first.Close()
	first.Close()
	if err := get(first.URL()); err == nil {
		t.Error("a closed server answers")
	}
}

// TestFreeAddrIsGivenToNobodyElse: a program that is away finds its port free when it comes back.
func TestFreeAddrIsGivenToNobodyElse(t *testing.T) {
	t.Parallel()
	addr, err := emulator.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil || !at.IP.IsLoopback() {
		t.Fatalf("%s: %v", addr, err)
	}
	l, err := net.ListenTCP("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skipf("this system does not say which ports it gives out: %v", err)
	}
	var first, last int
	if _, err := fmt.Sscan(string(text), &first, &last); err != nil || at.Port >= first && at.Port <= last {
		t.Errorf("%s is among the ports from %d to %d, which the system gives out: %v", addr, first, last, err)
	}
}
