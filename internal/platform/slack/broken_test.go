package slack_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator/platformapi"
	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/slack"
)

// Whatever goes wrong while a stream grows, people read the final text once.
func TestStreamsThatBreak(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"chat.appendStream", "chat.stopStream", "chat.update"} {
		for name, f := range map[string]emulator.Fault{
			"connection broken": {End: platformapi.After}, "broken before": {End: platformapi.Before}, "answer cut": {End: platformapi.Short}, "garbage": {End: platformapi.Garbage},
			"internal error after": emulator.FailAfter("internal_error"), "internal error": emulator.Refuse("internal_error"),
			"server error after": emulator.ServerErrorAfter(500), "gateway": emulator.ServerError(502), "rate limit": emulator.RateLimited(time.Second),
			"ended by slack": emulator.Refuse("message_not_in_streaming_state"), "stopped": emulator.Refuse("stopped_by_user"),
			"too long": emulator.Refuse("msg_too_long"), "bad metadata": emulator.Refuse("invalid_metadata_schema"), "something new": emulator.Refuse("something_new"),
		} {
			t.Run(method+"/"+name, func(t *testing.T) {
				t.Parallel()
				if method == "chat.update" && (strings.HasPrefix(name, "stopped") || strings.HasPrefix(name, "ended") || name == "too long" || name == "something new" || name == "bad metadata") {
					t.Skip("no answer of that method")
				}
				w := asked(t, overHTTP, streams)
				ref := w.place(t)
				if method == "chat.appendStream" {
					w.server.Inject(method, emulator.Fault{}, f)
				} else {
					w.server.Inject(method, f)
				}
				for _, text := range []string{"one ", "one two ", "one two three "} {
					_ = w.progress(t, ref, text) // best effort
				}
				text := "one two three four"
				err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: text})
				for try := 0; err != nil && try < 3; try++ {
					if _, again := fault.Retry(err); !again {
						t.Fatalf("the final text: %v", err)
					}
					err = w.Edit(t.Context(), platform.Edit{Ref: ref, Text: text})
				}
				if err != nil {
					t.Fatal(err)
				}
				w.checkFinal(t, text)
			})
		}
	}
}

// What may have been appended is not appended once more: there would be no telling.
func TestAnAppendInDoubtIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := asked(t, overHTTP, streams)
	ref := w.place(t)
	w.server.Inject("chat.appendStream", emulator.Fault{}, emulator.Fault{End: platformapi.After})
	for _, text := range []string{"one ", "one two ", "one two three ", "one two three four "} {
		_ = w.progress(t, ref, text) // best effort
	}
	if n := w.server.Count("chat.appendStream"); n != 2 {
		t.Errorf("appended %d times, and the second one was in doubt", n)
	}
}

// Nothing is appended to a message that was taken back.
func TestAStreamThatIsTakenBackIsOver(t *testing.T) {
	t.Parallel()
	w := asked(t, overHTTP, streams)
	ref := w.place(t)
	if err := w.Delete(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if err := w.progress(t, ref, "one "); !fault.Is(err, fault.NotFound) {
		t.Errorf("progress of what is gone: %v", err)
	}
	if n := w.server.Count("chat.appendStream") + w.server.Count("chat.stopStream"); n != 0 {
		t.Errorf("%d calls for a stream that is gone", n)
	}
}

// A stream whose opening is in doubt is found without metadata, by this process
// and by another one, and by nobody after it was closed.
func TestEveryAmbiguousStreamIsFound(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]emulator.Fault{
		"connection broken": {End: platformapi.After}, "garbage": {End: platformapi.Garbage}, "JSON cut": {End: platformapi.Truncated},
		"internal error": emulator.FailAfter("internal_error"), "gateway": emulator.ServerErrorAfter(502),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := asked(t, overHTTP, streams)
			w.server.Inject("chat.startStream", f)
			out := w.placeholder()
			if _, err := w.Send(t.Context(), out); !fault.Uncertain(err) {
				t.Fatalf("Send: %v is not uncertain", err)
			}
			// Another delivery of the same conversation that is in doubt is not it.
			other := out
			other.Delivery, other.Text, other.Again, other.ReplyTo = newDelivery(), "a word between", true, ""
			second := w.another(t)
			out.Again = true
			ref, err := second.Send(t.Context(), out)
			if m := w.shown(t); err != nil || messages.MessageID(m.TS) != ref.Message || m.Stream != emulator.Streaming {
				t.Fatalf("found %+v, %v, want %+v", ref, err, m)
			}
			if err := second.Edit(t.Context(), platform.Edit{Ref: ref, Text: "forty-two"}); err != nil {
				t.Fatal(err)
			}
			if m := w.checkFinal(t, "forty-two"); m.MetadataField("delivery") != string(out.Delivery) {
				t.Errorf("the answer belongs to %s", m.Metadata)
			}
			if ref, err := w.Send(t.Context(), other); err != nil || len(w.server.Thread("C1", w.root).FromBot()) != 2 {
				t.Errorf("another delivery: %+v, %v", ref, err)
			}
		})
	}
}

// another returns a second adapter of the same app, as another process has it.
func (w answering) another(t *testing.T) *slack.Adapter {
	t.Helper()
	a, err := slack.New(slack.Config{BotToken: botToken, SigningSecret: secret, APIURL: w.server.APIURL(), Streaming: true, Surroundings: platform.Surroundings{Log: testLog(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	return a
}

// What another process left open is closed by whoever has more to show, and
// claimed, so that nobody takes it for the stream of a later delivery.
func TestStreamsOfAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(w answering, ref messages.Ref){
		"open":     func(answering, messages.Ref) {},
		"ended":    func(w answering, ref messages.Ref) { w.server.KillStream("C1", string(ref.Message)) },
		"stopping": func(w answering, _ messages.Ref) { w.server.Inject("chat.stopStream", emulator.ServerErrorAfter(500)) },
	} {
		for _, written := range []string{"", "so far "} {
			t.Run(name+written, func(t *testing.T) {
				t.Parallel()
				w := asked(t, overHTTP, streams)
				ref := w.place(t)
				if written != "" {
					if err := w.progress(t, ref, written); err != nil {
						t.Fatal(err)
					}
				}
				leave(w, ref)
				second := w.another(t)
				_ = second.Edit(t.Context(), platform.Edit{Ref: ref, Text: "⏳ again", Progress: true})
				err := second.Edit(t.Context(), platform.Edit{Ref: ref, Text: "done"})
				if err != nil {
					err = second.Edit(t.Context(), platform.Edit{Ref: ref, Text: "done"})
				}
				if err != nil {
					t.Fatal(err)
				}
				if m := w.checkFinal(t, "done"); m.MetadataField("delivery") == "" {
					t.Error("nobody claims the message")
				}
				out := w.placeholder()
				out.Again = true
				if later, err := second.Send(t.Context(), out); err != nil || later == ref {
					t.Errorf("a later delivery: %+v, %v", later, err)
				}
			})
		}
	}
}
