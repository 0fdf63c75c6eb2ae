package github_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/platform/platformtest"
)

func TestContract(t *testing.T) { // not parallel: it counts goroutines
	for name, pat := range map[string]bool{"app": false, "token": true} {
		t.Run(name, func(t *testing.T) {
			platformtest.Exercise(t, platformtest.Harness{New: func(t *testing.T) platformtest.Rig {
				t.Helper()
				return rig(t, newWorld(t, setting{pat: pat}))
			}})
		})
	}
}

func rig(t *testing.T, w *world) platformtest.Rig {
	t.Helper()
	ann := w.person("ann")
	issue := ann.OpenIssue("It is broken", "no mention").Number
	var mu sync.Mutex
	var open []messages.EventID
	var before emulator.Sent
	inject := func(f emulator.Fault) bool {
		w.server.Inject(emulator.CreateComment, f)
		w.server.Inject(emulator.UpdateComment, f)
		return true
	}
	return platformtest.Rig{
		Adapter:      w.Adapter,
		Kind:         github.Kind(),
		Conversation: key(inKey + "#" + strconv.Itoa(issue)),
		Secrets:      []string{secret, "ghs_", "ghp_", w.key},
		Mount:        w.mount,
		Deliver: func(text string) messages.EventID {
			w.settled(t, before) // GitHub promises no order between gestures
			before = ann.Comment(issue, "@remote-agent "+text)
			id := messages.EventID(before.Deliveries[0])
			mu.Lock()
			defer mu.Unlock()
			open = append(open, id)
			return id
		},
		Redeliver: func() {
			w.settled(t, before)
			mu.Lock()
			defer mu.Unlock()
			for _, id := range open {
				if !w.server.Delivery(string(id)).Acked {
					w.server.Redeliver(string(id))
				}
			}
		},
		Malformed: func() {
			w.server.DeliverRaw("issue_comment", "", []byte(`{"action":"created","issue":[`))
		},
		Acknowledged: func(id messages.EventID) bool { return w.server.Delivery(string(id)).Acked },
		Posts: func() map[messages.MessageID]string {
			posts := map[messages.MessageID]string{}
			for _, c := range w.server.Issue(repo, issue).FromBotComments() {
				posts[messages.MessageID("ic:"+strconv.FormatInt(c.ID, 10))] = c.Text()
			}
			return posts
		},
		Fail: func(f platformtest.Failure) bool {
			w.server.ClearFaults()
			switch f {
			case platformtest.RefusedCredentials:
				// A token that is refused is replaced once.
				w.server.Inject(emulator.CreateComment, emulator.Refuse(http.StatusUnauthorized, "Bad credentials"), emulator.Refuse(http.StatusUnauthorized, "Bad credentials"))
				return true
			case platformtest.RateLimit:
				return inject(emulator.SecondaryLimit(http.StatusForbidden, platformtest.RateLimitWait))
			case platformtest.ServerError:
				return inject(emulator.ServerError(http.StatusServiceUnavailable))
			case platformtest.ChatGone:
				return inject(emulator.Refuse(http.StatusGone, "This issue was deleted"))
			case platformtest.NoAnswer:
				return inject(emulator.Fault{End: platformapi.After})
			case platformtest.MessageGone:
				w.server.Inject(emulator.UpdateComment, emulator.Refuse(http.StatusNotFound, "Not Found"))
				return true
			}
			return false
		},
		Close: w.stop,
	}
}
