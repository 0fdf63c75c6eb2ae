package slack_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/messages"
)

// TestLookupsAfterAKill has answers in direct messages of which a dead process may have
// sent any: each is looked up, within Slack's limits. Those that ten conversations at once
// and as many behind them leave under way are looked up at once.
func TestLookupsAfterAKill(t *testing.T) { // not parallel: it would make others late
	for chats, most := range map[int]time.Duration{20: time.Second, 25: time.Second, 40: 37 * time.Second} {
		for _, sent := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d/Sent=%v", chats, sent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, end := newTimeless(t)
					defer end()
					outs := make([]messages.Outbound, chats)
					for i := range outs {
						in := key(fmt.Sprintf("T1/D%d", i))
						w.server.AddChannel(emulator.Channel{ID: fmt.Sprintf("D%d", i)})
						outs[i] = messages.Outbound{Delivery: newDelivery(), Conversation: in, Text: "The answer."}
						if sent {
							if _, err := w.Send(t.Context(), outs[i]); err != nil {
								t.Fatal(err)
							}
						}
					}
					begin := time.Now()
					var all sync.WaitGroup
					for _, out := range outs {
						out.Again = true
						all.Go(func() {
							if _, err := w.Send(t.Context(), out); err != nil {
								t.Error(err)
							}
						})
					}
					all.Wait()
					took := time.Since(begin)
					if took > most {
						t.Errorf("%d lookups took %v, want at most %v", chats, took, most)
					}
					w.check(t)
				})
			})
		}
	}
}
