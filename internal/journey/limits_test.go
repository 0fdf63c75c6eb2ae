package journey_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/store/storetest"
)

// TestReplicasStayWithinOneLimit has three replicas answer 60 people at once, each
// with few conversations at a time. Telegram counts what they send together. No other
// journey runs meanwhile: what waits for a processor is sent on time and counted late.
func TestReplicasStayWithinOneLimit(t *testing.T) { //nolint:paralleltest // see above
	const people, rate = 60, 20
	w := newWorld(t, storetest.PostgresURL(t))
	w.with(map[string]string{
		"TELEGRAM_ALLOWED_USER_IDS": "*", "TELEGRAM_SEND_RATE": fmt.Sprint(rate), "TELEGRAM_CHAT_SEND_RATE": "0",
		"MAX_CONCURRENT_CONVERSATIONS": "20", "TELEGRAM_STREAMING_MODE": "batch",
	})
	w.ai.Script(func(openai.Request) openai.Response { return openai.Text("The answer.") })
	w.start()
	w.replica().start()
	w.replica().start()
	for i := range int64(people) {
		w.says(1000+i, "a question")
	}
	for i := range int64(people) {
		w.seesText(1000+i, "The answer.")
	}
	var counted []time.Time
	for _, method := range []string{"sendMessage", "editMessageText", "sendChatAction"} {
		for _, c := range w.tg.Calls(method) {
			counted = append(counted, c.At)
		}
	}
	slices.SortFunc(counted, time.Time.Compare)
	most := 0
	for i, from := range counted {
		n := 0
		for _, at := range counted[i:] {
			if at.Sub(from) < 2*time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	t.Logf("%d calls, at most %d in two seconds", len(counted), most)
	if len(counted) < 2*people || most > 2*rate+rate/2 { // a busy machine delivers unevenly
		t.Errorf("%d calls, at most %d in two seconds, want %d and at most %d", len(counted), most, 2*people, 2*rate)
	}
}
