package telegram

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/platformtest"
)

// A conversation whose updates cannot be stored for a fault of ours keeps no other waiting. They
// come again, in order, and one that nothing helps is kept as it is while others pass.
func TestARefusedUpdateHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	takesBad(t, func(sink *platformtest.Sink, take func(...json.RawMessage) ([]string, int64), bad, behind, other json.RawMessage) {
		if heard, confirmed := take(bad, behind, other); !slices.Equal(heard, []string{"other"}) || confirmed != 0 {
			t.Errorf("heard %q, confirmed up to %d", heard, confirmed)
		}
		time.Sleep(time.Hour)
		if _, confirmed := take(bad, behind); confirmed != 0 || len(sink.Kept()) != 0 {
			t.Errorf("it is given up although nothing else passes: %+v", sink.Kept())
		}
		if heard, confirmed := take(other, bad, behind); !slices.Equal(heard, []string{"other", "behind"}) || confirmed != 4 || len(sink.Kept()) != 1 {
			t.Errorf("heard %q, confirmed up to %d, kept %+v", heard, confirmed, sink.Kept())
		}
	})
}

// Webhooks bring updates one by one, and Telegram brings nothing of a chat behind one that it has
// to bring again, for a day.
func TestARefusedWebhookHoldsUpItsChatForMinutes(t *testing.T) {
	t.Parallel()
	takesBad(t, func(sink *platformtest.Sink, take func(...json.RawMessage) ([]string, int64), bad, _, other json.RawMessage) {
		for range 3 {
			if _, confirmed := take(bad); confirmed != 0 || len(sink.Kept()) != 0 {
				t.Errorf("it is given up at once: %+v", sink.Kept())
			}
			take(other)
			time.Sleep(2 * time.Minute)
		}
		if _, confirmed := take(bad); confirmed != 2 || len(sink.Kept()) != 1 {
			t.Errorf("confirmed up to %d, kept %+v", confirmed, sink.Kept())
		}
	})
}

// takesBad runs do, in time that stands still, with what takes updates of which one is refused.
func takesBad(t *testing.T, do func(sink *platformtest.Sink, take func(...json.RawMessage) ([]string, int64), bad, behind, other json.RawMessage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Config{Token: "4711:" + strings.Repeat("x", 35), Surroundings: platform.Surroundings{Observe: func(string) {}}})
		if err != nil {
			t.Fatal(err)
		}
		a.self.Store(&identity{id: 4711, username: "acme_bot"})
		sink := &platformtest.Sink{BeforeAccept: func(events []messages.Inbound) error {
			if slices.ContainsFunc(events, func(in messages.Inbound) bool { return in.Text == "bad" }) {
				return fault.New(fault.Internal, "a row cannot be read")
			}
			return nil
		}}
		take := func(updates ...json.RawMessage) (heard []string, confirmed int64) {
			t.Helper()
			confirmed, _ = a.take(t.Context(), sink, updates)
			for _, in := range sink.Events() {
				heard = append(heard, in.Text)
			}
			return heard, confirmed
		}
		said := func(id, person int, text string) json.RawMessage {
			return json.RawMessage(fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"date":1,"text":%q,"from":{"id":%d,"first_name":"x"},"chat":{"id":%d,"type":"private"}}}`, id, id, text, person, person))
		}
		do(sink, take, said(1, 1, "bad"), said(2, 1, "behind"), said(3, 2, "other"))
	})
}
