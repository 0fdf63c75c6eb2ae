package journey_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	slackplatform "remote-agent/internal/platform/slack"
	"remote-agent/internal/store"
)

// inProcess answers calls without a network, so that time can be a test's own.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestSixtyAnswersAMinuteInDirectMessages has 20 people in direct messages ask once in
// three seconds each for two minutes, with a workspace that refuses what is beyond Slack's
// limits. Everybody is answered on time, whether the model takes a moment or longer than
// what is shown at once.
func TestSixtyAnswersAMinuteInDirectMessages(t *testing.T) {
	for _, tt := range []struct {
		thinks, late time.Duration
		edits        int // at most, of the 120 answers
	}{
		{300 * time.Millisecond, time.Second, 0},
		{1500 * time.Millisecond, time.Second, 0},
		{2900 * time.Millisecond, 3 * time.Second, 90},
	} {
		t.Run(tt.thinks.String(), func(t *testing.T) {
			orchestratortest.Run(t, func(w *orchestratortest.World) {
				limits := slack.PublishedLimits()
				limits.Enforce = true
				sl := slack.New(slack.Options{
					Team:   slack.Team{ID: "T1", BotToken: "xoxb-1-a", BotUserID: "UBOT", BotID: "BBOT"},
					NoEcho: true, Limits: limits, KeepEdits: -1,
				})
				defer sl.Close()
				w.Configure = func(c *orchestrator.Config, _ *store.Store) {
					a, err := slackplatform.New(slackplatform.Config{
						BotToken: "xoxb-1-a", SigningSecret: "0123456789abcdef0123", Streaming: true, Transport: inProcess{sl.Handler()},
					})
					if err != nil {
						t.Fatal(err)
					}
					c.Adapters = []platform.Adapter{a}
					c.Access[slackplatform.Name] = orchestrator.AccessRule{Everyone: true}
				}
				w.Model.On("question", func(r *orchestratortest.Requested) (messages.Message, error) {
					text := r.Array[len(r.Array)-1].PlainText()
					r.Write("It is ")
					if err := r.Wait(after(tt.thinks)); err != nil {
						return messages.Message{}, err
					}
					return messages.NewText(messages.RoleAssistant, "It is "+text), nil
				})
				p := w.Start()
				const chats, asked = 20, 120
				for i := range chats {
					sl.AddUser(slack.User{ID: fmt.Sprintf("U%d", i)})
					sl.AddChannel(slack.Channel{ID: fmt.Sprintf("D%d", i)})
				}
				for i := range asked {
					dm := fmt.Sprintf("D%d", i%chats)
					err := p.Engine.Accept(context.Background(), messages.Inbound{
						Account: "T1", Event: messages.EventID(fmt.Sprint("e", i)), Kind: messages.KindMessage, Private: true,
						Conversation: messages.ConversationKey{Platform: slackplatform.Name, ID: "T1/" + dm},
						Message:      messages.MessageID(fmt.Sprintf("170000%04d.000001", i)),
						Sender:       messages.Sender{ID: messages.UserID(fmt.Sprintf("U%d", i%chats))},
						Text:         fmt.Sprintf("question %d.", i), SentAt: time.Now(),
					})
					if err != nil {
						t.Fatal(err)
					}
					due := i - int((tt.thinks+tt.late)/time.Second)
					if due >= 0 {
						answeredIn(t, sl, due%chats, due)
					}
					w.Pass(time.Second)
				}
				w.Pass(tt.thinks + tt.late)
				for i := range asked {
					answeredIn(t, sl, i%chats, i)
				}
				edits := 0
				for _, c := range sl.Calls() {
					if c.Method == "chat.update" {
						edits++
					}
				}
				t.Logf("%d edits", edits)
				if edits > tt.edits {
					t.Errorf("%d answers took %d edits, want at most %d", asked, edits, tt.edits)
				}
				for _, v := range sl.Violations() {
					if v.Method != "reactions.add" {
						t.Errorf("%s: %s: %s", v.Method, v.Rule, v.Detail)
					}
				}
			})
		})
	}
}

func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

// answeredIn fails the test if a question has not exactly one answer now.
func answeredIn(t *testing.T, sl *slack.Server, chat, question int) {
	t.Helper()
	want, n := fmt.Sprintf("It is question %d.", question), 0
	var all []string
	for _, m := range sl.Channel(fmt.Sprintf("D%d", chat)).FromBot() {
		all = append(all, m.Plain)
		if m.Plain == want {
			n++
		}
	}
	if n != 1 {
		t.Errorf("question %d has %d answers: %q", question, n, all)
	}
}
