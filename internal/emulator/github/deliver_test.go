package github_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"remote-agent/internal/emulator/forged"
	"remote-agent/internal/emulator/github"
	"remote-agent/internal/waittest"
)

// listen gives the App's deliveries to an inbox.
func listen(t *testing.T, w *world, h github.Hook) *inbox {
	t.Helper()
	b := &inbox{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	h.URL = server.URL + "/webhooks/github"
	w.SetHook(h)
	return b
}

func TestDeliveryIsSignedAndComplete(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	b := listen(t, w, github.Hook{Secret: "a secret of twenty"})
	sent := w.ann.OpenIssue("Broken", "@remote-agent look")
	settle(t, w)
	got := b.all()
	if len(got) != 1 || len(sent.Deliveries) != 1 {
		t.Fatalf("%d deliveries, %v", len(got), sent)
	}
	mac := hmac.New(sha256.New, []byte("a secret of twenty"))
	mac.Write(got[0].body)
	h := got[0].header
	if h.Get("X-Hub-Signature-256") != "sha256="+hex.EncodeToString(mac.Sum(nil)) || h.Get("X-Github-Delivery") != sent.Deliveries[0] || h.Get("X-Github-Event") != "issues" {
		t.Errorf("headers %v", h)
	}
	body := got[0].object(t)
	issue, repo := body["issue"].(o), body["repository"].(o)
	if body["action"] != "opened" || issue["body"] != "@remote-agent look" || issue["pull_request"] != nil || body["sender"].(o)["login"] != "ann" ||
		strconv.FormatInt(int64(body["installation"].(o)["id"].(float64)), 10) != w.installationID() || repo["full_name"] != "acme/web" || body["organization"].(o)["login"] != "acme" {
		t.Errorf("body %v", body)
	}
	d := w.Delivery(sent.Deliveries[0])
	if !d.Acked || len(d.Attempts) != 1 || d.Attempts[0].Status != "OK" || d.Attempts[0].StatusCode != http.StatusOK {
		t.Errorf("log %+v", d)
	}
	other := listen(t, w, github.Hook{})
	w.Ping()
	settle(t, w)
	ping := other.all()[0]
	if !strings.Contains(string(ping.body), "zen") || ping.header.Get("X-Hub-Signature-256") != github.Signature(github.DefaultSecret, ping.body) {
		t.Errorf("ping %s", ping.body)
	}
}

func TestEveryGestureTells(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	b := listen(t, w, github.Hook{})
	rita := w.Person("rita").In("acme/web")
	seen := 0
	step := func(name string, sent github.Sent, want ...string) github.Sent {
		t.Helper()
		settle(t, w)
		got := b.events()
		got = got[seen:]
		seen += len(got)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || len(sent.Deliveries) != len(want) {
			t.Errorf("%s (%d deliveries):\n%s", name, len(sent.Deliveries), diff)
		}
		return sent
	}
	step("issue", rita.OpenIssue("a", "- [ ] b"), "issues.opened")
	c := step("comment", rita.Comment(1, "- [ ] do it"), "issue_comment.created")
	step("tick", w.ann.TickTask(c.Comment, 1), "issue_comment.edited")
	ticked := b.all()[len(b.all())-1].object(t)
	if from := ticked["changes"].(o)["body"].(o)["from"]; from != "- [ ] do it" || ticked["comment"].(o)["body"] != "- [x] do it" || ticked["sender"].(o)["login"] != "ann" {
		t.Errorf("tick %v", ticked)
	}
	step("same text", rita.EditComment(c.Comment, "- [x] do it"))
	step("edit", rita.EditIssue(1, "new", "text"), "issues.edited")
	step("label", w.ann.Label(1, "bug"), "issues.labeled")
	step("close", rita.CloseIssue(1), "issues.closed")
	step("delete", rita.DeleteComment(c.Comment), "issue_comment.deleted")
	reacted := step("another", rita.Comment(1, "x"), "issue_comment.created")
	step("reaction", rita.React(reacted.Comment, "eyes"))
	p := step("pull", w.ann.OpenPull(github.Pull{Title: "Fix", Body: "Fixes #1", Head: "fix", Files: files}), "pull_request.opened")
	step("push", w.ann.Push("fix"), "push", "pull_request.synchronize")
	onPull := step("comment on it", rita.Comment(p.Number, "and this?"), "issue_comment.created")
	if marked := b.all()[len(b.all())-1].object(t)["issue"].(o)["pull_request"].(o); !strings.HasSuffix(marked["url"].(string), "/repos/acme/web/pulls/2") || onPull.Number != 2 {
		t.Errorf("marker %v", marked)
	}
	step("review", rita.Review(p.Number, "APPROVE", "good"), "pull_request_review.submitted")
	line := step("line", rita.ReviewComment(p.Number, "a.go", 3, "why?"), "pull_request_review.submitted", "pull_request_review_comment.created")
	step("reply", w.ann.ReplyToReviewComment(line.Comment, "because"), "pull_request_review.submitted", "pull_request_review_comment.created")
	if reply := b.all()[len(b.all())-1].object(t)["comment"].(o); int64(reply["in_reply_to_id"].(float64)) != line.Comment || reply["path"] != "a.go" {
		t.Errorf("reply %v", reply)
	}
	w.AddRepo(github.Repo{Name: "acme/api", NotInstalled: true})
	step("install", w.Install("acme/api"), "installation_repositories.added")
	step("uninstall", w.Uninstall("acme"), "installation.deleted")
	step("afterwards", rita.OpenIssue("b", "b"))
	step("install again", w.Install("acme/web"), "installation.created")
}

func TestOwnWritingComesBack(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	w.ann.OpenIssue("x", "x")
	b := listen(t, w, github.Hook{})
	w.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "mine"}).is(201, "")
	settle(t, w)
	body := b.all()[0].object(t)
	comment := body["comment"].(o)
	if body["sender"].(o)["type"] != "Bot" || body["sender"].(o)["login"] != "remote-agent[bot]" || comment["performed_via_github_app"] == nil {
		t.Errorf("echo %v", body)
	}
	quiet := installed(t, github.Options{App: github.App{Events: []string{"issues"}}})
	if sent := quiet.ann.OpenIssue("x", "x"); len(sent.Deliveries) != 1 {
		t.Error("no event that was subscribed to")
	}
	if sent := quiet.ann.Comment(1, "x"); len(sent.Deliveries) != 0 {
		t.Error("an event that was not subscribed to")
	}
}

func TestLogAndRedelivery(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := installed(t, github.Options{Now: func() time.Time { return now }, AckTimeout: 5 * time.Second})
	b := listen(t, w, github.Hook{})
	b.code = func(n int) int { return []int{500, 202, 200, 200, 200, 200}[n-1] }
	failed := w.ann.OpenIssue("x", "x").Deliveries[0]
	settle(t, w)
	w.ann.Comment(1, "x")
	settle(t, w)
	if diff := cmp.Diff([]string{failed}, w.Lost()); diff != "" || len(b.all()) != 2 {
		t.Errorf("lost %s, %d", diff, len(b.all()))
	}
	app := w.as(w.JWT())
	log := app.call("GET", "/app/hook/deliveries?per_page=1", nil).is(200, "")
	if l := log.list(); l[0]["event"] != "issue_comment" || l[0]["status"] != "OK" {
		t.Errorf("newest %v", l)
	}
	second := app.call("GET", strings.TrimPrefix(linkTo(log, "next"), w.URL()), nil)
	entry := second.list()[0]
	if entry["guid"] != failed || entry["status_code"] != 500.0 || entry["redelivery"] != false || linkTo(second, "next") != "" {
		t.Errorf("second %v", entry)
	}
	path := "/app/hook/deliveries/" + strconv.FormatInt(int64(entry["id"].(float64)), 10)
	app.call("POST", path+"/attempts", nil).is(202, "{}")
	settle(t, w)
	if got := b.all(); len(got) != 3 || got[2].header.Get("X-Github-Delivery") != failed || string(got[2].body) != string(got[0].body) {
		t.Error("not the same again")
	}
	if log := app.call("GET", "/app/hook/deliveries", nil).list(); len(log) != 3 || log[0]["redelivery"] != true || log[0]["guid"] != failed {
		t.Errorf("log %v", log)
	}
	if !w.Delivery(failed).Acked || len(w.Lost()) != 0 {
		t.Error("still lost")
	}
	app.call("POST", "/app/hook/deliveries/1/attempts", nil).is(404, "")
	w.as(w.token).call("GET", "/app/hook/deliveries", nil).is(401, "")
	now = now.Add(73 * time.Hour)
	app.as(w.JWT()).call("POST", path+"/attempts", nil).is(404, "")
}

func TestRepositoryHook(t *testing.T) {
	t.Parallel()
	w := start(t, github.Options{Login: "robo"})
	w.AddRepo(github.Repo{Name: "robo/tool", NotInstalled: true})
	b := &inbox{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	w.AddRepoHook("robo/tool", github.Hook{URL: server.URL})
	w.Person("ann").In("robo/tool").OpenIssue("x", "x")
	settle(t, w)
	body := b.all()[0].object(t)
	if _, of := body["installation"]; of {
		t.Error("an installation where there is none")
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	b := listen(t, w, github.Hook{})
	w.SetNetwork(github.Network{Drop: 0.1, Vanish: 0.1, Double: 0.1, Late: 0.2, LateBy: 20 * time.Millisecond, Seed: 7})
	w.ann.OpenIssue("x", "x")
	var order []string
	for i := range 300 {
		order = append(order, w.ann.Comment(1, fmt.Sprint(i)).Deliveries...)
	}
	settle(t, w)
	seen := map[string]int{}
	var arrived []string
	for _, h := range b.all() {
		guid := h.header.Get("X-Github-Delivery")
		seen[guid]++
		arrived = append(arrived, guid)
	}
	twice := 0
	for _, n := range seen {
		if n == 2 {
			twice++
		}
	}
	logged := map[string]bool{}
	next := "/app/hook/deliveries?per_page=100"
	for next != "" {
		a := w.as(w.JWT()).call("GET", next, nil).is(200, "")
		for _, e := range a.list() {
			logged[e["guid"].(string)] = e["status"] == "OK"
		}
		next = strings.TrimPrefix(linkTo(a, "next"), w.URL())
	}
	lost, vanished := 0, 0
	for _, guid := range w.Lost() {
		good, known := logged[guid]
		switch {
		case seen[guid] > 0 || good:
			t.Errorf("%s is not lost", guid)
		case known:
			lost++
		default:
			vanished++
		}
	}
	for name, n := range map[string]int{"dropped": lost, "vanished": vanished, "doubled": twice} {
		if n < 10 || n > 60 {
			t.Errorf("%d %s of 300", n, name)
		}
	}
	if slices.IsSortedFunc(arrived, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) }) {
		t.Error("nothing was late")
	}
	for _, guid := range w.Lost() {
		w.Redeliver(guid)
	}
	settle(t, w)
	if left := w.Lost(); len(left) != 0 {
		t.Errorf("%d cannot be redelivered", len(left))
	}
}

func TestDeliveriesForTheTestToSend(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{AckTimeout: waittest.Scaled(50 * time.Millisecond)})
	sent := w.ann.OpenIssue("x", "x")
	if err := w.WaitSettled(t.Context(), sent); err != nil || len(w.Delivery(sent.Deliveries[0]).Attempts) != 0 {
		t.Errorf("sent without a hook: %v", err)
	}
	b := &inbox{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	if a, err := w.Send(t.Context(), sent.Deliveries[0], server.URL); err != nil || a.StatusCode != http.StatusOK {
		t.Errorf("%v %v", a, err)
	}
	if _, err := w.Send(t.Context(), "nothing", server.URL); err == nil {
		t.Error("sent nothing")
	}
	raw := w.DeliverRaw("star", "guid-1", []byte(`{"action":"created"}`))
	if a, err := w.Send(t.Context(), raw, server.URL); err != nil || a.Status != "OK" || b.events()[1] != "star.created" {
		t.Errorf("%v %v %v", a, err, b.events())
	}
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(hang) })
	if a, _ := w.Send(t.Context(), raw, slow.URL); a.Status != "timed out" || a.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("slow %+v", a)
	}
	if a, _ := w.Send(t.Context(), raw, "http://127.0.0.1:1"); a.StatusCode != http.StatusBadGateway {
		t.Errorf("nobody there: %+v", a)
	}
}

func TestBadSignatures(t *testing.T) {
	t.Parallel()
	body := []byte(`{"a":1}`)
	bad := forged.GitHub("secret", "issues", "g", body)
	if len(bad) < 20 {
		t.Errorf("only %d", len(bad))
	}
	good := github.Signature("secret", body)
	for name, h := range bad {
		if values := h.Values("X-Hub-Signature-256"); len(values) == 1 && values[0] == good {
			t.Errorf("%s is good", name)
		}
	}
}

func TestOldDeliveriesAreForgotten(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{KeepCalls: 2})
	b := listen(t, w, github.Hook{})
	b.code = func(n int) int {
		if n == 3 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	}
	w.ann.OpenIssue("x", "x")
	settle(t, w)
	for range 5 {
		w.ann.Comment(1, "x")
		settle(t, w)
	}
	if got := w.Deliveries(); len(got) != 4 || len(w.Lost()) != 1 || got[0].GUID != w.Lost()[0] {
		t.Errorf("%d are kept, lost %v", len(got), w.Lost())
	}
	w.call("GET", "/repos/acme/web", nil).is(200, "")
	if got := len(w.Calls()); got != 2 {
		t.Errorf("%d calls are kept", got)
	}
}
