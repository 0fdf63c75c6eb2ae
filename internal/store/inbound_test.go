package store

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/messages"
)

// drawEvent draws any event, of few values, so that columns often have the same ones.
func drawEvent(t *rapid.T) messages.Inbound {
	in := rapid.MakeCustom[messages.Inbound](rapid.MakeConfig{
		Types: map[reflect.Type]*rapid.Generator[any]{
			reflect.TypeFor[time.Time]():       rapid.Custom(func(t *rapid.T) any { return time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "ms")).UTC() }),
			reflect.TypeFor[json.RawMessage](): rapid.Just[any](json.RawMessage(nil)),
		},
		Kinds: map[reflect.Kind]*rapid.Generator[any]{
			reflect.String: rapid.Custom(func(t *rapid.T) any {
				return rapid.SampledFrom([]string{"", "a", "7", `"`, "{}", "é\n<"}).Draw(t, "text")
			}),
		},
	}).Draw(t, "event")
	return in
}

// viaJSON returns what is left of an event in its whole JSON.
func viaJSON(t *rapid.T, in messages.Inbound) (whole []byte, out messages.Inbound) {
	whole, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(whole, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return whole, out
}

func TestAnEventComesBackAsItWasStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in, of := drawEvent(t), drawEvent(t)
		if rapid.Bool().Draw(t, "its own row") {
			of = in
		}
		row := storedEvent{platform: of.Conversation.Platform, account: of.Account, event: of.Event, message: of.Message}
		if err := row.encode(in); err != nil {
			t.Fatal(err)
		}
		whole, want := viaJSON(t, in)
		got, part, err := row.decode()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%s (-want +got): %v\n%s", row.data, err, diff)
		}
		if same := of.Conversation.Platform == in.Conversation.Platform; part != same {
			t.Fatalf("%s: columns have a part: %v, want %v", row.data, part, same)
		}
		var before messages.Inbound // as a version reads it that does not look at the columns
		if err := json.Unmarshal([]byte(row.data), &before); (err == nil) == part {
			t.Fatalf("%s is read without its columns as %+v: %v", row.data, before, err)
		}

		row.data = string(whole) // as such a version stored it
		got, part, err = row.decode()
		if diff := cmp.Diff(want, got); diff != "" || part || err != nil {
			t.Fatalf("%s (-want +got): %v, %v\n%s", row.data, part, err, diff)
		}
	})
}

func TestAPlainEventTakesLittleRoom(t *testing.T) {
	t.Parallel()
	in := messages.Inbound{
		Account: "7000000001", Event: "423456789", Kind: messages.KindMessage, Conversation: messages.ConversationKey{Platform: "telegram", ID: "42"},
		Message: "1042", Sender: messages.Sender{ID: "42", Name: "Ann"}, Private: true, Text: "hello", SentAt: time.Unix(1795407486, 0).UTC(),
	}
	row := storedEvent{platform: "telegram", account: in.Account, event: in.Event, message: in.Message}
	if err := row.encode(in); err != nil || len(row.data) > 145 {
		t.Errorf("%d bytes, %v: %s", len(row.data), err, row.data)
	}
}
