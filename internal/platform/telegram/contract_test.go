package telegram_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/emulator/platformapi"
	emulator "remote-agent/internal/emulator/telegram"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/platform/telegram"
)

const (
	token  = "4711:AAHsecretsecretsecretsecretsecretsec"
	ann    = int64(42)
	secret = "a-webhook-secret-of-some-length"
)

// bundle is an adapter with the emulator that it talks to.
type bundle struct {
	*telegram.Adapter
	server *emulator.Server
	sink   *platformtest.Sink
}

func setup(t *testing.T, change ...func(*telegram.Config)) bundle {
	t.Helper()
	server := emulator.New(emulator.Options{Token: token, BotUsername: "acme_bot", WebhookBackoff: func(int) time.Duration { return time.Millisecond }})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg := telegram.Config{Token: token, APIURL: server.URL(), Surroundings: platform.Surroundings{Log: testLog(t)}}
	for _, c := range change {
		c(&cfg)
	}
	a, err := telegram.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	return bundle{Adapter: a, server: server, sink: &platformtest.Sink{}}
}

func key(id int64) messages.ConversationKey {
	return messages.ConversationKey{Platform: telegram.Name, ID: strconv.FormatInt(id, 10)}
}

func TestContractPolling(t *testing.T) {
	platformtest.Exercise(t, platformtest.Harness{New: func(t *testing.T) platformtest.Rig {
		t.Helper()
		return rig(t, setup(t))
	}})
}

func TestContractWebhook(t *testing.T) {
	platformtest.Exercise(t, platformtest.Harness{New: func(t *testing.T) platformtest.Rig {
		t.Helper()
		var handler atomic.Pointer[http.Handler]
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := handler.Load(); h != nil {
				(*h).ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		t.Cleanup(front.Close)
		r := rig(t, setup(t, func(c *telegram.Config) {
			c.Webhook, c.WebhookSecret, c.PublicURL = true, secret, front.URL
		}))
		r.Mount = func(h http.Handler) { handler.Store(&h) }
		r.Secrets = append(r.Secrets, secret)
		closeServer := r.Close
		r.Close = func() { closeServer(); front.Close() }
		return r
	}})
}

func rig(t *testing.T, b bundle) platformtest.Rig {
	t.Helper()
	person := b.server.Person(ann)
	b.server.AddUser(emulator.User{ID: ann, FirstName: "Ann"})
	b.server.AddChat(emulator.Chat{ID: ann, Type: emulator.Private})
	id := func(n int64) messages.EventID { return messages.EventID(strconv.FormatInt(n, 10)) }
	return platformtest.Rig{
		Adapter:      b.Adapter,
		Kind:         telegram.Kind(),
		Conversation: key(ann),
		Secrets:      []string{token, "AAHsecret"},
		Deliver:      func(text string) messages.EventID { return id(person.Says(text).UpdateID) },
		Malformed: func() {
			b.server.DeliverRaw(ann, func(id int64) string {
				return `{"update_id":` + strconv.FormatInt(id, 10) + `,"message":[]}`
			})
		},
		Acknowledged: func(e messages.EventID) bool {
			n, _ := strconv.ParseInt(string(e), 10, 64)
			return b.server.Acknowledged(n)
		},
		Posts: func() map[messages.MessageID]string {
			posts := map[messages.MessageID]string{}
			for _, m := range b.server.ChatView(ann).FromBot() {
				posts[messages.MessageID(strconv.Itoa(m.ID))] = m.Text
			}
			return posts
		},
		Fail: func(f platformtest.Failure) bool {
			b.server.ClearFaults()
			switch f {
			case platformtest.RefusedCredentials:
				b.server.Inject(emulator.AnyMethod, emulator.Refuse(401, "Unauthorized"))
			case platformtest.RateLimit:
				b.server.Inject(emulator.AnyMethod, emulator.FloodWait(platformtest.RateLimitWait))
			case platformtest.ServerError:
				b.server.Inject(emulator.AnyMethod, emulator.ServerError(502))
			case platformtest.ChatGone:
				b.server.Inject(emulator.AnyMethod, emulator.Refuse(403, "Forbidden: bot was blocked by the user"))
			case platformtest.MessageGone:
				b.server.Inject(emulator.AnyMethod, emulator.Refuse(400, "Bad Request: message to edit not found"))
			case platformtest.NoAnswer:
				b.server.Inject(emulator.AnyMethod, emulator.Fault{End: platformapi.After})
			default:
				return false
			}
			return true
		},
		Close: b.server.Close,
	}
}

var _ platform.Sink = (*platformtest.Sink)(nil)

// A mark that a chat does not allow is told from one on a message that is gone, for which
// nothing takes its place.
func TestMarksThatAreRefused(t *testing.T) {
	t.Parallel()
	for refusal, kind := range map[string]fault.Kind{
		"Bad Request: REACTION_INVALID":                          fault.Invalid,
		"Bad Request: not enough rights to react to the message": fault.Forbidden,
		"Bad Request: message to react not found":                fault.NotFound,
		"Bad Request: MESSAGE_ID_INVALID":                        fault.NotFound,
		"Too Many Requests: retry after 5":                       fault.RateLimited,
		"Bad Request: chat not found":                            fault.Gone,
	} {
		b := open(t)
		code := 400
		if kind == fault.RateLimited {
			code = 429
		}
		b.server.Inject("setMessageReaction", emulator.Refuse(code, refusal))
		err := b.Mark(t.Context(), messages.Ref{Conversation: key(42), Message: "5"}, platform.MarkQueued)
		if fault.KindOf(err) != kind {
			t.Errorf("%q is %q: %v", refusal, fault.KindOf(err), err)
		}
	}
}
