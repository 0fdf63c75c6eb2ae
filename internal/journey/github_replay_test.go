package journey_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"remote-agent/internal/emulator/openai"
)

// TestGitHubReplaysChangeNothing: neither the id of a delivery nor the kind of its event is
// signed, so whoever has got hold of payloads can send them again under others. GitHub's own
// redelivery has the same id and changes nothing, either.
func TestGitHubReplaysChangeNothing(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		h := w.withGitHub(sumRepo, "webhook")
		h.start()
		gina := h.Person("gina").In(ghRepo)
		w.ai.Enqueue(openai.Text("First answer."))
		issue := gina.OpenIssue("A question", "@remote-agent what?").Number
		h.sees(issue, "First answer.")
		w.ai.Enqueue(openai.Text("Second answer."))
		gina.Comment(issue, "@remote-agent and then?")
		h.sees(issue, "Second answer.")
		w.ai.Enqueue(openai.Text("1. Think."))
		gina.Comment(issue, "@remote-agent /plan think")
		plan := h.sees(issue, "Think.", "Approve and run")
		gina.TickTask(plan.ID, 2)
		gina.TickTask(plan.ID, 2) // taken back
		gina.TickTask(plan.ID, 2) // and pressed once more
		gina.CloseIssue(gina.OpenIssue("Another", "nobody is asked").Number)
		if err := h.WaitIdle(w.ctx()); err != nil {
			t.Fatal(err)
		}
		h.settles()

		state := func() string {
			return fmt.Sprint(w.rows("SELECT count(*), count(conversation_id) FROM inbound_events WHERE state <> 'raw'"), len(h.Issue(ghRepo, issue).FromBotComments()), len(w.ai.Requests()))
		}
		before, sent := state(), h.Deliveries()
		for range 2 {
			for _, d := range sent {
				h.Redeliver(d.GUID)
				for _, event := range []string{"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "installation"} {
					h.DeliverRaw(event, uuid.NewString(), d.Payload)
				}
			}
			if err := h.WaitIdle(w.ctx()); err != nil {
				t.Fatal(err)
			}
			h.settles()
		}
		if after := state(); after != before {
			t.Errorf("the replays change the inbox, the comments and the requests from %s to %s", before, after)
		}
		if kept := len(w.rows("SELECT id FROM inbound_events WHERE state = 'raw'")); kept > len(sent) {
			t.Errorf("%d payloads are kept of %d that GitHub sent", kept, len(sent))
		}
		for _, d := range h.Deliveries() {
			if !d.Acked {
				t.Errorf("the delivery of %s was not acknowledged", d.Event)
			}
		}
	})
}
