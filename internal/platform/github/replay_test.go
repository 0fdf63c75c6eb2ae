package github_test

import (
	"slices"
	"testing"

	"remote-agent/internal/messages"
)

// What is signed is the payload: a copy of it is the same gesture under any id of a delivery
// and any kind of event, and no other payload is.
func TestACopyOfAPayloadIsTheSameGesture(t *testing.T) {
	t.Parallel()
	const off, on = "plan\n\n- [ ] Approve <!-- bot:button=b-1 -->\n- [ ] Reject <!-- bot:button=b-2 -->", "plan\n\n- [x] Approve <!-- bot:button=b-1 -->\n- [x] Reject <!-- bot:button=b-2 -->"
	tick := func(to, at string) string {
		return event("edited", object{
			"issue": issueObject(""), "changes": object{"body": object{"from": off}},
			"comment": with(commentObject(to), object{"performed_via_github_app": object{"id": 4711}, "updated_at": at}),
		})
	}
	closed := with(issueObject("x"), object{"closed_at": "2026-11-21T11:00:00Z"})
	pull := object{"pull_request": pullObject("@remote-agent hi", "Acme/Web", 9)}
	handled := []string{"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment"}
	h, all := newHook(t), map[messages.EventID]string{}
	for name, tt := range map[string]struct {
		event, body string
		events      int
	}{
		"opened":                {"issues", event("opened", object{"issue": issueObject("@remote-agent fix it")}), 1},
		"comment":               {"issue_comment", commentBody("@remote-agent hi", ""), 1},
		"pull request":          {"pull_request", event("opened", pull), 1},
		"review":                {"pull_request_review", event("submitted", pull, object{"review": object{"id": 8, "body": "@remote-agent do that", "user": annUser(), "submitted_at": "2026-11-21T10:05:00Z"}}), 1},
		"line":                  {"pull_request_review_comment", event("created", pull, object{"comment": commentObject("@remote-agent why?")}), 1},
		"two buttons":           {"issue_comment", tick(on, "2026-11-21T10:07:00Z"), 2},
		"the same, later":       {"issue_comment", tick(on, "2026-11-21T10:07:01Z"), 2},
		"closed":                {"issues", event("closed", object{"issue": closed}), 1},
		"deleted":               {"issues", event("deleted", object{"issue": issueObject("x")}), 1},
		"deleted after closing": {"issues", event("deleted", object{"issue": closed}), 1},
		"closed without a time": {"issues", event("closed", object{"issue": issueObject("x")}), 1},
		"a comment deleted":     {"issue_comment", event("deleted", object{"issue": closed, "comment": commentObject("x")}), 0},
	} {
		before := len(h.sink.Events())
		h.deliver(t, tt.event, tt.body)
		first := h.sink.Events()[before:]
		if len(first) != tt.events {
			t.Fatalf("%s: %d events", name, len(first))
		}
		for i, in := range first {
			if len(in.Aliases) != 1 {
				t.Errorf("%s, event %d: aliases %q", name, i, in.Aliases)
				continue
			}
			if other, taken := all[in.Aliases[0]]; taken {
				t.Errorf("%s, event %d is taken for %s", name, i, other)
			}
			all[in.Aliases[0]] = name
		}
		for _, kind := range handled {
			before := len(h.sink.Events())
			h.deliver(t, kind, tt.body)
			for i, in := range h.sink.Events()[before:] {
				if i >= len(first) || in.Event == first[i].Event || !slices.Equal(in.Aliases, first[i].Aliases) {
					t.Errorf("%s sent again as %s: %+v", name, kind, in)
				}
			}
		}
	}
	kept := map[string]messages.EventID{}
	for _, raw := range h.sink.Kept() { // who keeps them does so once for each id
		if id, ok := kept[string(raw.Raw)]; ok && id != raw.Event {
			t.Errorf("a copy is kept as another event: %s and %s", id, raw.Event)
		}
		kept[string(raw.Raw)] = raw.Event
	}
}
