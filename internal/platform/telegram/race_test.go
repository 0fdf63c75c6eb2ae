package telegram_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	emulator "remote-agent/internal/emulator/telegram"
)

func TestRaceTmp(t *testing.T) {
	slow := 0
	for range 200 {
		b := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		var polls atomic.Int64
		var began time.Time
		b.server.InjectFunc(func(c emulator.Call) emulator.Fault {
			if c.Method == "getUpdates" && polls.Add(1) == 2 {
				began = time.Now()
				cancel()
			}
			return emulator.Pass()
		})
		b.server.Person(ann).Says("hi")
		if err := b.Run(ctx, b.sink); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 100*time.Millisecond {
			slow++
			t.Log(d, polls.Load())
		}
	}
	t.Log(slow)
}
