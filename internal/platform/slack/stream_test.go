package slack_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/slack"
	"remote-agent/internal/waittest"
)

// streams switches streaming on.
func streams(_ *emulator.Options, c *slack.Config) { c.Streaming = true }

// sessions gives the workspace agent sessions, with Slack's own Stop.
func sessions(o *emulator.Options, _ *slack.Config) { o.AgentSessions = true }

// answering is a world in which somebody has asked in a channel.
type answering struct {
	*world
	root string
	key  messages.ConversationKey
}

// asked starts a world and asks in it.
func asked(t *testing.T, how transport, change ...func(*emulator.Options, *slack.Config)) answering {
	t.Helper()
	w := newWorld(t, how, change...)
	w.run(t)
	w.eventually(t, w.Runs)
	root := w.settled(t, w.server.User("U1").In("C1").Mentions("why?")).TS
	return answering{w, root, key("T1/C1/" + root)}
}

func newDelivery() messages.DeliveryID {
	return messages.DeliveryID(uuid.Must(uuid.NewV7()).String())
}

// placeholder is what a turn posts when it begins.
func (w answering) placeholder() messages.Outbound {
	return messages.Outbound{Delivery: newDelivery(), Conversation: w.key, ReplyTo: messages.MessageID(w.root), Text: platform.Placeholder}
}

// place posts a placeholder.
func (w answering) place(t *testing.T) messages.Ref {
	t.Helper()
	ref, err := w.Send(t.Context(), w.placeholder())
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	return ref
}

// shown returns the only message of the bot in the thread.
func (w answering) shown(t *testing.T) emulator.Message {
	t.Helper()
	all := w.server.Thread("C1", w.root).FromBot()
	if len(all) != 1 {
		t.Fatalf("the thread shows %d messages: %q", len(all), w.server.Thread("C1", w.root).Texts())
	}
	return all[0]
}

// progress shows a text that is not the last.
func (w answering) progress(t *testing.T, ref messages.Ref, text string) error {
	t.Helper()
	return w.Edit(t.Context(), platform.Edit{Ref: ref, Text: text, Progress: true})
}

// final shows the last text, which must succeed.
func (w answering) final(t *testing.T, ref messages.Ref, text string, buttons ...messages.Button) {
	t.Helper()
	if err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: text, Buttons: buttons}); err != nil {
		t.Errorf("Edit: %v", err)
	}
}

// checkFinal checks that there is one message, which is final.
func (w answering) checkFinal(t *testing.T, text string) emulator.Message {
	t.Helper()
	m := w.shown(t)
	if m.Plain != text || m.Stream == emulator.Streaming {
		t.Errorf("the thread shows %q, %s, want %q", m.Plain, m.Stream, text)
	}
	if len(m.Pings) != 0 {
		t.Errorf("%q notifies %v", m.Plain, m.Pings)
	}
	if v := w.server.Violations(); len(v) != 0 {
		t.Errorf("violations: %+v", v)
	}
	return m
}

func TestAnswersAreStreamed(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, how transport) {
		t.Helper()
		w := asked(t, how, streams)
		ref := w.place(t)
		if m := w.shown(t); m.Stream != emulator.Streaming || messages.MessageID(m.TS) != ref.Message || ref.Conversation != w.key {
			t.Fatalf("the placeholder is %+v", m)
		}
		for _, tc := range [][2]string{
			{platform.Placeholder, ""},
			{"It is", "It is"},
			{"It is red, <@U", "It is red, "}, // what may become a mention waits
			{"It is red, <@U2> and @her", "It is red, <\u200b@U2> and "},
			{"It is red, <@U2> and @here, see\n```go\nx :=", "It is red, <\u200b@U2> and @\u200bhere, see\n```go\nx :="},
			{"It is red, <@U2> and @here, see\n```go\nx := 1\n```", "It is red, <\u200b@U2> and @\u200bhere, see\n```go\nx := 1"},
		} {
			if err := w.progress(t, ref, tc[0]); err != nil {
				t.Fatal(err)
			}
			if got := w.shown(t).Plain; got != tc[1] {
				t.Errorf("after %q people read %q", tc[0], got)
			}
		}
		text := "It is red, <@U2> and @here, see\n```go\nx := 1\n```\nThat is all."
		w.final(t, ref, text, messages.Button{ID: "b-1", Label: "Undo"})
		m := w.shown(t)
		if want := "It is red, <\u200b@U2> and @\u200bhere, see\n```go\nx := 1\n```\nThat is all.\n[Undo]"; m.Plain != want || m.Stream != emulator.StreamDone {
			t.Errorf("the answer is %q, %s", m.Plain, m.Stream)
		}
		if len(m.Buttons()) != 1 || len(m.Pings) != 0 || len(m.MetadataField("delivery")) != 36 || m.UnfurlLinks == nil || *m.UnfurlLinks {
			t.Errorf("the answer is %+v", m)
		}
		if n := w.server.Count("chat.postMessage"); n != 0 || w.server.Count("chat.update") != 1 {
			t.Errorf("%d posts, %d edits", n, w.server.Count("chat.update"))
		}
	})
}

// A stream is opened only where one makes sense and is allowed; else the
// placeholder is a message, with its buttons.
func TestWhereNothingIsStreamed(t *testing.T) {
	t.Parallel()
	stop := []messages.Button{{ID: "b-stop", Label: "Stop", Style: messages.ButtonDanger}}
	for name, tc := range map[string]struct {
		change  []func(*emulator.Options, *slack.Config)
		prepare func(w answering, out *messages.Outbound)
		starts  int // calls of chat.startStream
		buttons int
	}{
		"switched off": {},
		"a final text": {change: []func(*emulator.Options, *slack.Config){streams}, prepare: func(_ answering, out *messages.Outbound) { out.Text = "42" }},
		"nobody asked": {change: []func(*emulator.Options, *slack.Config){streams}, prepare: func(w answering, out *messages.Outbound) {
			out.ReplyTo = ""
			out.Conversation = key("T1/C1/" + w.elsewhere())
		}},
		"no own Stop":     {change: []func(*emulator.Options, *slack.Config){streams}, prepare: func(_ answering, out *messages.Outbound) { out.Buttons = stop }, buttons: 1},
		"no subscription": {change: []func(*emulator.Options, *slack.Config){streams, sessions, func(o *emulator.Options, _ *slack.Config) { o.Events = []string{"app_mention"} }}, prepare: func(_ answering, out *messages.Outbound) { out.Buttons = stop }, buttons: 1},
		"not in channels": {change: []func(*emulator.Options, *slack.Config){streams}, prepare: func(w answering, _ *messages.Outbound) {
			w.server.Inject("chat.startStream", emulator.Refuse("channel_type_not_supported"))
		}, starts: 1},
		"not at all": {change: []func(*emulator.Options, *slack.Config){streams}, prepare: func(w answering, _ *messages.Outbound) {
			w.server.Inject("chat.startStream", emulator.Refuse("unknown_method"))
		}, starts: 1},
		"too often": {change: []func(*emulator.Options, *slack.Config){streams}, prepare: func(w answering, _ *messages.Outbound) {
			w.server.Inject("chat.startStream", emulator.RateLimited(time.Minute))
		}, starts: 1},
		"an outage": {change: []func(*emulator.Options, *slack.Config){streams}, prepare: func(w answering, _ *messages.Outbound) {
			w.server.Inject("chat.startStream", emulator.ServerError(503))
		}, starts: 1},
		"tried once before": {change: []func(*emulator.Options, *slack.Config){streams}, prepare: func(_ answering, out *messages.Outbound) { out.Again = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := asked(t, overHTTP, tc.change...)
			out := w.placeholder()
			if tc.prepare != nil {
				tc.prepare(w, &out)
			}
			ref, err := w.Send(t.Context(), out)
			if err != nil {
				t.Fatal(err)
			}
			m := w.server.Channel("C1").Message(string(ref.Message))
			if m.Stream != "" || len(m.Buttons()) != tc.buttons || w.server.Count("chat.startStream") != tc.starts || m.MetadataField("delivery") != string(out.Delivery) {
				t.Errorf("%d streams were asked for, posted %+v", w.server.Count("chat.startStream"), m)
			}
			// Slack is not asked again so soon.
			if _, err := w.Send(t.Context(), messages.Outbound{Delivery: newDelivery(), Conversation: w.key, Text: platform.Placeholder, Buttons: out.Buttons, Again: out.Again}); err != nil {
				t.Error(err)
			}
			if n := w.server.Count("chat.startStream"); tc.starts > 0 && name != "an outage" && n != tc.starts {
				t.Errorf("%d streams were asked for", n)
			}
			edit := platform.Edit{Ref: ref, Text: "so far", Buttons: stop, Progress: true}
			if err := w.Edit(t.Context(), edit); err != nil {
				t.Error(err)
			}
			if m := w.server.Channel("C1").Message(string(ref.Message)); m.Plain != "so far\n[Stop]" {
				t.Errorf("progress shows %q", m.Plain)
			}
			edit.Text = "so far, and on"
			if err := w.Edit(t.Context(), edit); !fault.Is(err, fault.RateLimited) {
				t.Errorf("at once after another edit: %v", err)
			}
		})
	}
}

// elsewhere returns a thread of which this process knows nothing.
func (w answering) elsewhere() string { return w.server.User("U2").In("C1").Says("root").TS }

// In a direct message nobody has to be named, and a channel that takes no streams
// does not keep them from there. Outside of a thread there are none.
func TestStreamsInDirectMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overSocket, streams)
	w.run(t)
	w.eventually(t, w.Runs)
	w.server.Inject("chat.startStream", emulator.Refuse("channel_type_not_supported"))
	ann := w.server.User("U1")
	inChannel := w.settled(t, ann.In("C1").Mentions("hi"))
	root := w.settled(t, ann.Says("hi"))
	for _, tc := range []struct {
		channel, thread string
		want            emulator.StreamState
	}{{"C1", "/" + inChannel.TS, ""}, {"DU1", "/" + root.TS, emulator.Streaming}, {"DU1", "", ""}} {
		ref, err := w.Send(t.Context(), messages.Outbound{
			Delivery: newDelivery(), Conversation: key("T1/" + tc.channel + tc.thread), Text: platform.Placeholder, Asker: messages.Sender{ID: "U1"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if m := w.server.Channel(tc.channel).Message(string(ref.Message)); m.Stream != tc.want {
			t.Errorf("in %s%s the placeholder is %q, %q", tc.channel, tc.thread, m.Stream, m.Plain)
		}
	}
}

// Slack's own Stop is a stop, once, whether Slack tells in an event or only
// refuses more text.
func TestSlacksOwnStop(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, how transport) {
		t.Helper()
		w := asked(t, how, streams, sessions)
		out := w.placeholder()
		out.Buttons = []messages.Button{{ID: "b-stop", Label: "Stop"}}
		ref, err := w.Send(t.Context(), out)
		if err != nil || w.shown(t).Stream != emulator.Streaming {
			t.Fatalf("Send: %v, %+v", err, w.shown(t))
		}
		if s := w.server.Thread("C1", w.root).Session.Status; s != "processing" {
			t.Errorf("the session is %q", s)
		}
		if err := w.progress(t, ref, "It is "); err != nil {
			t.Fatal(err)
		}
		w.settled(t, w.server.User("U1").In("C1").Stops(w.root))
		if err := w.progress(t, ref, "It is as "); err != nil {
			t.Errorf("after the stop: %v", err)
		}
		stops := map[messages.EventID]int{}
		w.await(t, func() bool {
			stops = map[messages.EventID]int{}
			for _, e := range w.sink.Events() {
				if e.Text == "/stop" && e.Sender.ID == "U1" && e.Conversation == w.key && len(e.Aliases) == 1 {
					stops[e.Aliases[0]]++
				}
			}
			for _, n := range stops {
				return n == 2
			}
			return false
		})
		if len(stops) != 1 {
			t.Errorf("the stop has the names %v", stops)
		}
		w.final(t, ref, "It is as ⏹ stopped.")
		w.checkFinal(t, "It is as ⏹ stopped.")
		if s := w.server.Thread("C1", w.root).Session.Status; s == "processing" {
			t.Errorf("afterwards the session is %q", s)
		}
	})
}

// await waits until the sink has what is looked for.
func (w *world) await(t *testing.T, done func() bool) {
	t.Helper()
	ctx := waittest.Context(t.Context(), t)
	if err := w.sink.Wait(ctx, done); err != nil {
		t.Fatalf("%v: heard %+v", err, w.sink.Events())
	}
}

// What does not go on where the stream stands closes it; then the message is
// edited.
func TestStreamsEndWhereTextChanges(t *testing.T) {
	t.Parallel()
	w := asked(t, overHTTP, streams)
	ref := w.place(t)
	if err := w.progress(t, ref, "◐ go test"); err != nil {
		t.Fatal(err)
	}
	if err := w.progress(t, ref, "✔ go test\n\nIt is red."); err != nil {
		t.Fatal(err)
	}
	if m := w.shown(t); m.Plain != "✔ go test\n\nIt is red." || m.Stream != emulator.StreamDone {
		t.Errorf("shows %q, %s", m.Plain, m.Stream)
	}
	if err := w.progress(t, ref, "✔ go test\n\nIt is red. And"); !fault.Is(err, fault.RateLimited) {
		t.Errorf("the next edit: %v", err)
	}
	w.final(t, ref, "It was red.")
	w.checkFinal(t, "It was red.")
}

// A button that is asked for while a stream is open is shown, unless Slack has its
// own Stop.
func TestButtonsOfOpenStreams(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][]func(*emulator.Options, *slack.Config){"own Stop": {streams, sessions}, "no own Stop": {streams}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := asked(t, overHTTP, change...)
			ref := w.place(t)
			if err := w.progress(t, ref, "It is "); err != nil {
				t.Fatal(err)
			}
			err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: "It is red ", Progress: true, Buttons: []messages.Button{{ID: "b-stop", Label: "Stop"}}})
			if err != nil {
				t.Fatal(err)
			}
			m := w.shown(t)
			if own := name == "own Stop"; own != (m.Stream == emulator.Streaming) || own == (len(m.Buttons()) == 1) || !strings.HasPrefix(m.Plain, "It is red") {
				t.Errorf("shows %q, %s, %v", m.Plain, m.Stream, m.Buttons())
			}
			w.final(t, ref, "It is red.")
			if m := w.checkFinal(t, "It is red."); len(m.Buttons()) != 0 {
				t.Errorf("afterwards there is %v", m.Buttons())
			}
		})
	}
}

// More text than a stream takes is edited in.
func TestLongStreams(t *testing.T) {
	t.Parallel()
	w := asked(t, overHTTP, streams)
	ref := w.place(t)
	text := ""
	for len(text) < slack.MaxText-100 {
		text += strings.Repeat("word ", 500)
		text = text[:min(len(text), slack.MaxText)]
		if err := w.progress(t, ref, text); err != nil {
			t.Fatal(err)
		}
	}
	w.final(t, ref, text)
	if m := w.shown(t); m.Plain != text {
		t.Errorf("%d characters of %d", len(m.Plain), len(text))
	}
}

// When Run ends no stream is left open.
func TestNoStreamOutlivesRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP, streams)
	w.mount(w.Webhook(w.sink))
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = w.Run(ctx, w.sink) })
	a := answering{world: w, root: w.settled(t, w.server.User("U1").In("C1").Mentions("why?")).TS}
	a.key = key("T1/C1/" + a.root)
	w.eventually(t, w.Runs)
	ref := a.place(t)
	if err := a.progress(t, ref, "half a sent"); err != nil {
		t.Fatal(err)
	}
	cancel()
	ended.Wait()
	if m := w.server.Channel("C1").Message(string(ref.Message)); m.Stream != emulator.StreamDone || !strings.HasPrefix(m.Plain, "half a sent") {
		t.Errorf("afterwards: %q, %s", m.Plain, m.Stream)
	}
	if err := a.progress(t, ref, "half a sentence"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// eventually waits until a condition holds.
func (w *world) eventually(t *testing.T, done func() bool) {
	t.Helper()
	late := waittest.Late(t)
	for !done() {
		select {
		case <-late:
			t.Fatal("it never came")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
