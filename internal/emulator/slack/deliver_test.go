package slack_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/waittest"
)

// types returns the types of events in the order in which they arrived.
func types(t *testing.T, hits []hit) (out []string) {
	t.Helper()
	for _, h := range hits {
		inner, _ := h.event(t)
		kind, _ := inner["type"].(string)
		if sub, ok := inner["subtype"].(string); ok {
			kind += "/" + sub
		}
		out = append(out, kind)
	}
	return out
}

func TestWhatArrives(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts slack.Options
		do   func(s *slack.Server)
		want []string
	}{
		"mention": {do: func(s *slack.Server) { s.User("U1").In("C1").Mentions("hi") }, want: []string{"app_mention", "message"}},
		"message": {do: func(s *slack.Server) { s.User("U1").In("C1").Says("hi") }, want: []string{"message"}},
		"direct":  {do: func(s *slack.Server) { s.User("U1").Mentions("hi") }, want: []string{"message"}},
		"order": {do: func(s *slack.Server) {
			s.User("U1").In("C1").Delivered(slack.Copy{Type: "message"}, slack.Copy{Type: "app_mention"}, slack.Copy{Type: "message"}).Mentions("hi")
		}, want: []string{"message", "app_mention", "message"}},
		"only app_mention": {
			opts: slack.Options{Events: []string{"app_mention"}},
			do:   func(s *slack.Server) { s.User("U1").In("C1").Mentions("hi"); s.User("U1").Says("hi") }, want: []string{"app_mention"},
		},
		"no scope": {
			opts: slack.Options{Team: slack.Team{Scopes: []string{"app_mentions:read"}}},
			do:   func(s *slack.Server) { s.User("U1").In("C1").Mentions("hi") }, want: []string{"app_mention"},
		},
		"delete": {do: func(s *slack.Server) {
			ann := s.User("U1").In("C1")
			ann.Deletes(ann.Says("hi").TS)
		}, want: []string{"message", "message/message_deleted"}},
		"delete a thread's first": {do: func(s *slack.Server) {
			ann := s.User("U1").In("C1")
			sent := ann.Says("hi")
			ann.InThread(sent.TS).Says("ho")
			ann.Deletes(sent.TS)
		}, want: []string{"message", "message", "message/message_changed"}},
		"join": {do: func(s *slack.Server) { s.User("U1").In("C1").Joins() }, want: []string{"message/channel_join"}},
		"bot":  {do: func(s *slack.Server) { s.User("U9").AsBot("B9").In("C1").Says("hi") }, want: []string{"message"}},
		"file": {do: func(s *slack.Server) { s.User("U1").In("C1").Shares("", slack.File{Name: "a.txt"}) }, want: []string{"message/file_share"}},
		"broadcast": {do: func(s *slack.Server) {
			ann := s.User("U1").In("C1")
			sent := ann.Says("hi")
			ann.InThread(sent.TS).Broadcasts("all")
		}, want: []string{"message", "message/thread_broadcast"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, test.opts)
			r := receive(t, s, nil)
			test.do(s)
			settle(t, s)
			got := types(t, r.all())
			if strings.Contains(strings.Join(test.want, " "), "/") || len(test.want) < 2 {
				// Different gestures are not ordered.
				got, test.want = sorted(got), sorted(test.want)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEcho(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{})
	r := receive(t, s, nil)
	s.AddChannel(slack.Channel{ID: "C1"})
	ts := must(t, s, "chat.postMessage", "channel", "C1", "text", "x")["ts"].(string)
	settle(t, s)
	must(t, s, "chat.update", "channel", "C1", "ts", ts, "text", "y")
	settle(t, s)
	must(t, s, "chat.delete", "channel", "C1", "ts", ts)
	settle(t, s)
	if diff := cmp.Diff([]string{"message", "message/message_changed", "message/message_deleted"}, types(t, r.all())); diff != "" {
		t.Error(diff)
	}
	inner, _ := r.all()[0].event(t)
	if inner["bot_id"] != "BBOT1" || inner["user"] != "UBOT1" || inner["app_id"] != "A1" {
		t.Errorf("own message %v", inner)
	}
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{})
	r := receive(t, s, nil)
	eve := s.User("U7").From("T7").In("C1")
	root := eve.Delivered(
		slack.Copy{Type: "message"}, slack.Copy{Type: "message", NewTS: true}, slack.Copy{Type: "message"}, slack.Copy{Type: "message", NewID: true},
	).Says("hello")
	settle(t, s)
	hits := r.all()
	inner, outer := hits[0].event(t)
	for name, want := range map[string]any{"team_id": "T1", "is_ext_shared_channel": true, "api_app_id": "A1", "type": "event_callback"} {
		if outer[name] != want {
			t.Errorf("%s is %v, want %v", name, outer[name], want)
		}
	}
	for name, want := range map[string]any{"ts": root.TS, "user": "U7", "user_team": "T7", "channel_type": "channel", "text": "hello"} {
		if inner[name] != want {
			t.Errorf("%s is %v, want %v", name, inner[name], want)
		}
	}
	second, secondOuter := hits[1].event(t)
	if second["ts"] == inner["ts"] || second["client_msg_id"] != inner["client_msg_id"] || secondOuter["event_id"] == outer["event_id"] {
		t.Errorf("copy with a new timestamp: %v", second)
	}
	third, thirdOuter := hits[2].event(t)
	if thirdOuter["event_id"] != outer["event_id"] || third["ts"] != inner["ts"] {
		t.Errorf("repetition: %v", thirdOuter)
	}
	if fourth, o := hits[3].event(t); o["event_id"] == outer["event_id"] || fourth["ts"] != inner["ts"] {
		t.Errorf("repetition with another id: %v", o)
	}
	if got := must(t, s, "users.info", "user", "U7")["user"].(map[string]any); got["is_stranger"] != true || got["team_id"] != "T7" {
		t.Errorf("user %v", got)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	fast := slack.Options{Retries: []time.Duration{0, time.Millisecond, time.Millisecond}, AckTimeout: time.Minute, NoEcho: true}
	fail := func(status int) func(int, hit, http.ResponseWriter) {
		return func(_ int, _ hit, w http.ResponseWriter) { w.WriteHeader(status) }
	}
	t.Run("server error", func(t *testing.T) {
		t.Parallel()
		s := start(t, fast)
		r := receive(t, s, func(n int, _ hit, w http.ResponseWriter) {
			if n < 3 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		sent := s.User("U1").Says("x")
		settle(t, s)
		var nums, reasons []string
		for _, h := range r.all() {
			nums = append(nums, h.header.Get("X-Slack-Retry-Num"))
			reasons = append(reasons, h.header.Get("X-Slack-Retry-Reason"))
		}
		if diff := cmp.Diff([]string{"", "1", "2"}, nums); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"", "http_error", "http_error"}, reasons); diff != "" {
			t.Error(diff)
		}
		if d := s.Delivery(sent.Deliveries[0]); !d.Acked || len(d.Attempts) != 3 || d.Attempts[0].Status != 500 {
			t.Errorf("delivery %+v", d)
		}
	})
	t.Run("used up", func(t *testing.T) {
		t.Parallel()
		s := start(t, fast)
		r := receive(t, s, fail(500))
		sent := s.User("U1").Says("x")
		settle(t, s)
		if got := len(r.all()); got != 4 || !cmp.Equal(s.Lost(), sent.Deliveries) {
			t.Errorf("%d attempts, lost %v", got, s.Lost())
		}
	})
	t.Run("wants none", func(t *testing.T) {
		t.Parallel()
		s := start(t, fast)
		r := receive(t, s, func(_ int, _ hit, w http.ResponseWriter) {
			w.Header().Set("X-Slack-No-Retry", "1")
			w.WriteHeader(http.StatusInternalServerError)
		})
		s.User("U1").Says("x")
		settle(t, s)
		if got := len(r.all()); got != 1 {
			t.Errorf("%d attempts", got)
		}
	})
	t.Run("too slow", func(t *testing.T) {
		t.Parallel()
		slow := fast
		slow.AckTimeout = waittest.Scaled(100 * time.Millisecond)
		s := start(t, slow)
		release := make(chan struct{})
		r := receive(t, s, func(n int, _ hit, _ http.ResponseWriter) {
			if n == 1 {
				<-release
			}
		})
		s.User("U1").Says("x")
		settle(t, s)
		close(release)
		if got := r.all()[1].header.Get("X-Slack-Retry-Reason"); got != "http_timeout" {
			t.Errorf("reason %q", got)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		t.Parallel()
		s := start(t, fast)
		s.UseHTTP(slack.Endpoints{Events: "http://127.0.0.1:1/events"})
		sent := s.User("U1").Says("x")
		settle(t, s)
		if d := s.Delivery(sent.Deliveries[0]); !d.Lost || d.Attempts[0].Error != "connection_failed" {
			t.Errorf("delivery %+v", d)
		}
	})
	t.Run("only the retry arrives", func(t *testing.T) {
		t.Parallel()
		s := start(t, fast)
		r := receive(t, s, nil)
		s.User("U1").In("C1").Delivered(slack.Copy{Type: "app_mention", Lost: 4}, slack.Copy{Type: "message", Lost: 2}).Mentions("x")
		settle(t, s)
		hits := r.all()
		if len(hits) != 1 || hits[0].header.Get("X-Slack-Retry-Num") != "2" || len(s.Lost()) != 1 {
			t.Errorf("hits %v, lost %v", hits, s.Lost())
		}
	})
	t.Run("again after the acknowledgement", func(t *testing.T) {
		t.Parallel()
		s := start(t, fast)
		r := receive(t, s, nil)
		sent := s.User("U1").Says("x")
		settle(t, s)
		s.Redeliver(sent.Deliveries[0])
		settle(t, s)
		if hits := r.all(); len(hits) != 2 || string(hits[0].body) != string(hits[1].body) {
			t.Errorf("hits %v", hits)
		}
	})
}

func TestURLVerification(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{})
	r := receive(t, s, func(_ int, h hit, w http.ResponseWriter) {
		var in struct{ Challenge string }
		_ = json.Unmarshal(h.body, &in)
		_, _ = w.Write([]byte(in.Challenge))
	})
	if err := s.VerifyURL(timeout(t)); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	r.answer = nil
	r.mu.Unlock()
	if err := s.VerifyURL(timeout(t)); err == nil {
		t.Error("no challenge, and no error")
	}
}

func TestSlash(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{AckTimeout: waittest.Scaled(200 * time.Millisecond), NoEcho: true})
	hold := make(chan struct{})
	r := receive(t, s, func(n int, _ hit, w http.ResponseWriter) {
		switch n {
		case 1:
			_, _ = w.Write([]byte(`{"response_type":"ephemeral","text":"working"}`))
		case 2:
			_, _ = w.Write([]byte("plain"))
		case 3:
			<-hold
		}
	})
	defer close(hold)
	ann := s.User("U1").In("C1")
	sent := ann.Slash("/agent", "plan x")
	settle(t, s)
	form, err := url.ParseQuery(string(r.all()[0].body))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"command": "/agent", "text": "plan x", "user_id": "U1", "channel_id": "C1", "team_id": "T1",
		"trigger_id": sent.TriggerID, "response_url": sent.ResponseURL, "is_enterprise_install": "false",
	} {
		if got := form.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	ann.Slash("/agent", "")
	settle(t, s)
	ann.Slash("/agent", "slow")
	settle(t, s)
	thread := ann.Says("root")
	if got := ann.InThread(thread.TS).Slash("/agent", "x"); got.Deliveries != nil {
		t.Errorf("a command in a thread was delivered: %v", got)
	}
	var texts []string
	for _, m := range s.Channel("C1").SeenBy("U1") {
		texts = append(texts, m.Plain)
	}
	want := []string{
		"working", "plain", `/agent failed with the error "operation_timeout"`, "/agent is not supported in threads. Sorry!",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}

	post := func(body string) int {
		status, _, err := s.Post(t.Context(), sent.ResponseURL, http.Header{}, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	var got []int
	for range 6 {
		got = append(got, post(`{"response_type":"in_channel","text":"late"}`))
	}
	if diff := cmp.Diff([]int{200, 200, 200, 200, 200, 404}, got); diff != "" {
		t.Error(diff)
	}
	if got := len(s.Channel("C1").FromBot()); got != 5 {
		t.Errorf("%d messages of the bot", got)
	}
}

func TestResponseURLExpires(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := start(t, slack.Options{Now: c.Now})
	sent := s.User("U1").In("C1").Slash("/agent", "")
	c.pass(31 * time.Minute)
	if status, _, err := s.Post(t.Context(), sent.ResponseURL, http.Header{}, []byte(`{"text":"x"}`)); err != nil || status != 404 {
		t.Errorf("%d %v", status, err)
	}
}

func TestButtonsAndModals(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true})
	var reply string
	r := receive(t, s, func(_ int, h hit, w http.ResponseWriter) {
		if h.path == "/interactions" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(reply))
		}
	})
	ann := s.User("U1").In("C1")
	root := ann.Says("root")
	ts := must(t, s, "chat.postMessage", "channel", "C1", "thread_ts", root.TS, "text", "plan",
		"blocks", blocks(t, section("plan"), buttons(button("edit", "v1"), button("stop", "v2"))))["ts"].(string)
	if got := ann.Clicks(ts, "nothing"); got.Deliveries != nil {
		t.Errorf("a click on nothing: %v", got)
	}
	settle(t, s)
	click := ann.Clicks(ts, "edit", "v1")
	settle(t, s)
	hits := r.all()
	payload := hits[len(hits)-1].payload(t)
	action := payload["actions"].([]any)[0].(map[string]any)
	if payload["type"] != "block_actions" || action["action_id"] != "edit" || action["value"] != "v1" || action["block_id"] != "acts" {
		t.Errorf("payload %v", payload)
	}
	if got := payload["container"].(map[string]any); got["message_ts"] != ts || got["thread_ts"] != root.TS {
		t.Errorf("container %v", got)
	}
	modal := blocks(t, m{"type": "input", "block_id": "plan", "label": m{"type": "plain_text", "text": "Plan"},
		"element": m{"type": "plain_text_input", "action_id": "text", "multiline": true, "initial_value": "old"}})
	view := `{"type":"modal","callback_id":"edit","private_metadata":"p1","title":{"type":"plain_text","text":"Edit"},"submit":{"type":"plain_text","text":"Save"},"blocks":` + modal + `}`
	opened := must(t, s, "views.open", "trigger_id", click.TriggerID, "view", view)["view"].(map[string]any)
	if got := call(t, s, "views.open", "trigger_id", click.TriggerID, "view", view); got.code() != "exchanged_trigger_id" {
		t.Errorf("trigger used twice: %v", got)
	}
	id := opened["id"].(string)
	open := s.Views("U1")
	if len(open) != 1 || open[0].Inputs()["text"] != "old" || open[0].PrivateMetadata != "p1" {
		t.Fatalf("views %+v", open)
	}

	reply = `{"response_action":"errors","errors":{"plan":"too short"}}`
	ann.Submits(id, map[string]string{"text": "x"})
	settle(t, s)
	if got := s.Views("U1"); len(got) != 1 {
		t.Errorf("refused, and still open: %v", got)
	}
	reply = ""
	ann.Submits(id, map[string]string{"text": "new plan"})
	settle(t, s)
	hits = r.all()
	payload = hits[len(hits)-1].payload(t)
	values := payload["view"].(map[string]any)["state"].(map[string]any)["values"].(map[string]any)
	if got := values["plan"].(map[string]any)["text"].(map[string]any)["value"]; got != "new plan" {
		t.Errorf("values %v", values)
	}
	if got := s.Views("U1"); len(got) != 0 {
		t.Errorf("still open: %v", got)
	}
	if got := s.User("U2").Submits(id, nil); got.Deliveries != nil {
		t.Errorf("somebody else submitted: %v", got)
	}

	status, _, err := s.Post(t.Context(), click.ResponseURL, http.Header{}, []byte(`{"replace_original":true,"text":"settled"}`))
	if err != nil || status != 200 {
		t.Errorf("%d %v", status, err)
	}
	if got := s.Channel("C1").Message(ts); got.Plain != "settled" || len(got.Buttons()) != 0 {
		t.Errorf("message %+v", got)
	}
}

func TestTriggerExpires(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := start(t, slack.Options{Now: c.Now})
	sent := s.User("U1").In("C1").Slash("/agent", "")
	c.pass(4 * time.Second)
	got := call(t, s, "views.open", "trigger_id", sent.TriggerID, "view",
		`{"type":"modal","title":{"type":"plain_text","text":"T"},"blocks":[{"type":"divider"}]}`)
	if got.code() != "expired_trigger_id" {
		t.Errorf("got %v", got)
	}
}

func TestRawAndUnknown(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{})
	r := receive(t, s, nil)
	s.DeliverRaw(slack.Events, []byte("{broken"))
	settle(t, s)
	s.DeliverEvent(m{"type": "from_the_future", "channel": "C1"}, m{"extra": true})
	settle(t, s)
	hits := r.all()
	if string(hits[0].body) != "{broken" {
		t.Errorf("body %q", hits[0].body)
	}
	if inner, outer := hits[1].event(t); inner["type"] != "from_the_future" || outer["extra"] != true {
		t.Errorf("event %v", outer)
	}
}
