package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/platform/platformtest"
)

// TestAClosingWaitsForItsComment: who closes an issue with a comment says it before, whichever
// webhook comes first. A closing that is heard of late waits for nothing.
func TestAClosingWaitsForItsComment(t *testing.T) {
	t.Parallel()
	key := testPEM()
	synctest.Test(t, func(t *testing.T) {
		a, err := github.New(github.Config{AppID: "4711", PrivateKey: key, WebhookSecret: secret})
		if err != nil {
			t.Fatal(err)
		}
		h := &hook{Adapter: a, sink: &platformtest.Sink{}}
		h.Handler = a.Webhook(h.sink)
		at := time.Now().UTC().Format(time.RFC3339)
		const frame = `{"action":%q,"repository":{"id":1,"full_name":"acme/web"},"sender":{"id":7,"login":"ann","type":"User"},"issue":{"number":3,"state":"closed","closed_at":%q}%s}`
		closing := fmt.Sprintf(frame, "closed", at, "")
		first := h.request("issues", closing)
		var both sync.WaitGroup
		both.Go(func() {
			if code := h.serve(first); code != http.StatusAccepted {
				t.Errorf("answered %d", code)
			}
		})
		time.Sleep(time.Second)
		h.deliver(t, "issue_comment", fmt.Sprintf(frame, "created", at, fmt.Sprintf(`,"comment":{"id":9,"body":"@remote-agent why?","user":{"id":7,"login":"ann","type":"User"},"created_at":%q}`, at)))
		both.Wait()
		begun := time.Now()
		h.deliver(t, "issues", strings.ReplaceAll(closing, at, begun.Add(-time.Minute).UTC().Format(time.RFC3339)))
		if late := time.Since(begun); late > 0 {
			t.Errorf("a closing of a minute ago waited for %v", late)
		}
		if all := h.sink.Events(); len(all) != 3 || all[0].Text != "why?" || all[1].Kind != messages.KindClosed {
			t.Errorf("events %q", aliasesOf(all))
		}
	})
}
