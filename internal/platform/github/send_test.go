package github_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/waittest"
)

func bufferedLog(l *logBuffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newDelivery() messages.DeliveryID { return messages.DeliveryID(uuid.Must(uuid.NewV7()).String()) }

// openPull opens a pull request with a comment on a line.
func (w *world) openPull(t *testing.T) (number int, line int64) {
	t.Helper()
	ann := w.person("ann")
	number = ann.OpenPull(emulator.Pull{
		Title: "Add a limiter", Body: "It limits. Closes #1", Head: "limiter",
		Files: []emulator.File{{Path: "limiter.go", Status: "modified", Additions: 2, Deletions: 1, Patch: "@@ -1,2 +1,3 @@\n package limiter\n-var x int\n+var x int64\n+var y int"}},
	}).Number
	return number, ann.ReviewComment(number, "limiter.go", 2, "why 64?").Comment
}

// Whatever breaks after the comment was made, it is there once.
func TestEveryAmbiguousSendIsFound(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]emulator.Fault{
		"connection broken": {End: platformapi.After}, "answer cut": {End: platformapi.Short}, "JSON cut": {End: platformapi.Truncated}, "garbage": {End: platformapi.Garbage},
		"gateway": emulator.ServerErrorAfter(502), "server error": emulator.ServerErrorAfter(500), "timeout": emulator.ServerErrorAfter(504),
	} {
		for _, pat := range []bool{false, true} {
			for _, thread := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s token=%v thread=%v", name, pat, thread), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, setting{pat: pat})
					w.person("ann").OpenIssue("x", "y")
					n, line := w.openPull(t)
					out := messages.Outbound{Delivery: newDelivery(), Conversation: key(inKey + "#" + strconv.Itoa(n)), Text: "hello"}
					operation := emulator.CreateComment
					if thread {
						out.ReplyTo, operation = messages.MessageID("rc:"+strconv.FormatInt(line, 10)), emulator.CreateReviewComment
					}
					w.server.Inject(operation, f)
					if _, err := w.Send(t.Context(), out); !fault.Uncertain(err) {
						t.Fatalf("Send: %v is not uncertain", err)
					}
					out.Again = true
					ref, err := w.Send(t.Context(), out)
					if err != nil {
						t.Fatal(err)
					}
					made := w.server.Issue(repo, n).FromBotComments()
					if len(made) != 1 || made[0].Text() != "hello" || !strings.Contains(string(ref.Message), strconv.FormatInt(made[0].ID, 10)) {
						t.Errorf("%+v, %v", made, ref)
					}
					if thread && made[0].InReplyTo != line {
						t.Errorf("not in the thread: %+v", made[0])
					}
				})
			}
		}
	}
}

// A list may show a comment late.
func TestALateListIsReadTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.person("ann").OpenIssue("x", "y").Number
	out := messages.Outbound{Delivery: newDelivery(), Conversation: key("acme/web#1"), Text: "hello"}
	w.server.SetListLag(0, 1)
	w.server.Inject(emulator.CreateComment, emulator.Fault{End: platformapi.After})
	if _, err := w.Send(t.Context(), out); !fault.Uncertain(err) {
		t.Fatal(err)
	}
	var waited time.Duration
	w.Pauses(func(d time.Duration) { waited += d })
	out.Again = true
	if _, err := w.Send(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	if len(w.server.Issue(repo, n).FromBotComments()) != 1 || waited < 5*time.Second {
		t.Errorf("%v after %v", w.server.Issue(repo, n).Texts(), waited)
	}
	// One that was not made is made, after the second look.
	w.server.SetListLag(0, 0)
	waited = 0
	out.Delivery = newDelivery()
	if _, err := w.Send(t.Context(), out); err != nil || len(w.server.Issue(repo, n).FromBotComments()) != 2 || waited < 5*time.Second {
		t.Errorf("%v, %v after %v", err, w.server.Issue(repo, n).Texts(), waited)
	}
	// If it cannot be told, nothing is posted.
	w.server.Inject(emulator.ListComments, emulator.ServerError(502))
	out.Delivery = newDelivery()
	if _, err := w.Send(t.Context(), out); !fault.Uncertain(err) || len(w.server.Issue(repo, n).FromBotComments()) != 2 {
		t.Errorf("%v, %v", err, w.server.Issue(repo, n).Texts())
	}
}

// Somebody who copies a mark does not keep an answer from being sent.
func TestAMarkOfSomebodyElseCountsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Pauses(func(time.Duration) {})
	n := w.person("ann").OpenIssue("x", "y").Number
	out := messages.Outbound{Delivery: newDelivery(), Conversation: key("acme/web#1"), Text: "hello", Again: true}
	w.person("ann").Comment(n, "x <!-- bot:delivery="+string(out.Delivery)+" -->")
	if _, err := w.Send(t.Context(), out); err != nil || len(w.server.Issue(repo, n).FromBotComments()) != 1 {
		t.Errorf("%v, %v", err, w.server.Issue(repo, n).Texts())
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(t)
	n, line := w.openPull(t)
	asked := w.settled(t, w.person("ann").ReplyToReviewComment(line, "@remote-agent why?"))
	w.await(t, "the question", func(all []messages.Inbound) bool { return len(all) == 1 })
	in := w.last(t)
	if in.Message != messages.MessageID(fmt.Sprintf("rc:%d/%d", asked.Comment, line)) {
		t.Errorf("message %s", in.Message)
	}
	ref, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: in.Conversation, ReplyTo: in.Message, Text: "because"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: "because of that"}); err != nil {
		t.Fatal(err)
	}
	made := w.server.Issue(repo, n).FromBotComments()
	if len(made) != 1 || made[0].InReplyTo != line || made[0].Text() != "because of that" {
		t.Errorf("%+v", made)
	}
	for _, mark := range []platform.Mark{platform.MarkSeen, platform.MarkDone} {
		if err := w.Mark(t.Context(), messages.Ref{Conversation: in.Conversation, Message: in.Message}, mark); err != nil {
			t.Error(err)
		}
	}
	if got := w.server.Issue(repo, n).Comment(asked.Comment).ReactionsOf("remote-agent[bot]"); len(got) != 1 || got[0] != "+1" {
		t.Errorf("reactions %v", got)
	}
	// Where the thread is gone the answer goes below.
	w.person("ann").DeleteComment(line)
	if _, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-2", Conversation: in.Conversation, ReplyTo: in.Message, Text: "still"}); err != nil {
		t.Errorf("Send: %v", err)
	}
	if got := w.server.Issue(repo, n).Comments; len(got) != 1 || got[0].Text() != "still" {
		t.Errorf("%+v", got)
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	for _, pat := range []bool{false, true} {
		w := newWorld(t, setting{pat: pat})
		login := map[bool]string{false: "remote-agent[bot]", true: "helper"}[pat]
		sent := w.person("ann").OpenIssue("x", "y")
		comment := w.person("ann").Comment(sent.Number, "hi").Comment
		w.person("ann").React(comment, "eyes")
		body := messages.Ref{Conversation: key("acme/web#1"), Message: "is:1"}
		ref := messages.Ref{Conversation: key("acme/web#1"), Message: messages.MessageID("ic:" + strconv.FormatInt(comment, 10))}
		for _, tt := range []struct {
			mark platform.Mark
			want string
		}{{platform.MarkSeen, "eyes"}, {platform.MarkQueued, "eyes"}, {platform.MarkDone, "+1"}, {platform.MarkDone, "+1"}, {platform.MarkSeen, "+1 eyes"}, {platform.MarkFailed, "confused"}, {platform.MarkNone, ""}} {
			for _, r := range []messages.Ref{body, ref} {
				if err := w.Mark(t.Context(), r, tt.mark); err != nil {
					t.Fatalf("%s on %s: %v", tt.mark, r.Message, err)
				}
			}
			view := w.server.Issue(repo, 1)
			for _, got := range [][]string{view.ReactionsOf(login), view.Comment(comment).ReactionsOf(login)} {
				if strings.Join(got, " ") != tt.want {
					t.Errorf("after %q: %v, want %s", tt.mark, got, tt.want)
				}
			}
		}
		if !w.server.Issue(repo, 1).Comment(comment).HasReaction("eyes", "ann") {
			t.Error("somebody else's reaction was taken away")
		}
		if err := w.Mark(t.Context(), messages.Ref{Conversation: key("acme/web#1"), Message: "rv:5"}, platform.MarkSeen); err != nil {
			t.Errorf("a review: %v", err)
		}
	}
}

func TestEditAfterARestartKeepsTheMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.person("ann").OpenIssue("x", "y").Number
	ref, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: key("acme/web#1"), Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := github.New(github.Config{AppID: "4711", PrivateKey: w.key, WebhookSecret: secret, APIURL: w.server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.CloseIdle)
	if err := second.Edit(t.Context(), platform.Edit{Ref: ref, Text: "two"}); err != nil {
		t.Fatal(err)
	}
	if c := w.server.Issue(repo, n).FromBotComments()[0]; c.Text() != "two" || !strings.HasSuffix(c.Body, "<!-- bot:delivery=d-1 -->") {
		t.Errorf("%q", c.Body)
	}
	for _, id := range []messages.MessageID{"is:1", "rv:4", "nonsense", "ic:99"} {
		if err := second.Edit(t.Context(), platform.Edit{Ref: messages.Ref{Conversation: ref.Conversation, Message: id}, Text: "x"}); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestPlacesThatTakeNoMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	locked := w.person("ann").OpenIssue("x", "y").Number
	w.server.Inject(emulator.CreateComment, emulator.Refuse(http.StatusForbidden, "Unable to create comment because issue is locked."))
	_, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: key("acme/web#1"), Text: "x"})
	if !fault.Is(err, fault.Gone) || !strings.Contains(fault.Public(err), "locked") || locked != 1 {
		t.Errorf("locked: %v", err)
	}
	_, err = w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: key("acme/web#99"), Text: "x"})
	if !fault.Is(err, fault.Gone) {
		t.Errorf("no such issue: %v", err)
	}
	_, err = w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: key("acme/web#1"), Text: strings.Repeat("x", 70_000)})
	if !fault.Is(err, fault.Invalid) || len(w.server.Calls(emulator.CreateComment)) != 2 {
		t.Errorf("too long: %v", err)
	}
	w.server.AddRepo(emulator.Repo{Name: repo, Archived: true})
	if _, err = w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: key("acme/web#1"), Text: "x"}); !fault.Is(err, fault.Gone) {
		t.Errorf("archived: %v", err)
	}
}

// TestWhatAnOrganizationForbids has GitHub's words for it.
func TestWhatAnOrganizationForbids(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("ann").OpenIssue("x", "y")
	for text, want := range map[string]string{
		"Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization.":                                                            "single sign-on",
		"Although you appear to have the correct authorization credentials, the `acme` organization has an IP allow list enabled, and your IP address is not permitted to access this resource.": "IP allow list",
		"Resource not accessible by integration": "a permission is missing",
	} {
		w.server.Inject(emulator.CreateComment, emulator.Refuse(http.StatusForbidden, text))
		_, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: key("acme/web#1"), Text: "x"})
		if !fault.Is(err, fault.Forbidden) || !strings.Contains(fault.Public(err), want) {
			t.Errorf("%s is %v", text, err)
		}
	}
}

func TestLongestTextFits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.person("ann").OpenIssue("x", "y").Number
	c := w.Capabilities()
	parts := platform.Split(strings.Repeat("wörter 😀 `code` @ann closes #1 and more text\n\n", 1000), c.MaxText, c.Measure)
	for i, p := range parts {
		if _, err := w.Send(t.Context(), messages.Outbound{Delivery: messages.DeliveryID("d-" + strconv.Itoa(i)), Conversation: key("acme/web#1"), Text: p}); err != nil {
			t.Fatal(err)
		}
	}
	if made := w.server.Issue(repo, n).FromBotComments(); len(made) != len(parts) || len(parts) < 2 {
		t.Errorf("%d of %d", len(made), len(parts))
	}
}

func TestProgressNeverWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("ann").OpenIssue("x", "y")
	ref, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: key("acme/web#1"), Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	w.server.Inject(emulator.UpdateComment, emulator.SecondaryLimit(http.StatusTooManyRequests, 30*time.Second))
	begin := time.Now()
	edit := platform.Edit{Ref: ref, Text: "two", Progress: true}
	for range 3 {
		if err := w.Edit(t.Context(), edit); !fault.Is(err, fault.RateLimited) {
			t.Errorf("Edit: %v", err)
		}
	}
	if took := time.Since(begin); waittest.TooLong(took, 5*time.Second) {
		t.Errorf("took %v", took)
	}
	// While GitHub wants silence nothing is asked, and the caller is told how long.
	_, err = w.Send(t.Context(), messages.Outbound{Delivery: "d-2", Conversation: key("acme/web#1"), Text: "x"})
	if after, ok := fault.Retry(err); !ok || after < 25*time.Second || after > 30*time.Second {
		t.Errorf("Send: %v, %v", after, err)
	}
	if v := w.server.Violations(); len(v) != 0 {
		t.Errorf("violations %+v", v)
	}
}

func TestRefusalsOfLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault    emulator.Fault
		min, max time.Duration
	}{
		"403 with a time":    {emulator.SecondaryLimit(http.StatusForbidden, 20*time.Second), 19 * time.Second, 20 * time.Second},
		"429 with a time":    {emulator.SecondaryLimit(http.StatusTooManyRequests, 20*time.Second), 19 * time.Second, 20 * time.Second},
		"403 without a time": {emulator.SecondaryLimit(http.StatusForbidden, 0), 60 * time.Second, 60 * time.Second},
		"429 without a time": {emulator.SecondaryLimit(http.StatusTooManyRequests, 0), 60 * time.Second, 60 * time.Second},
		"primary":            {emulator.PrimaryLimit(time.Now().Add(10 * time.Minute)), 9 * time.Minute, 10 * time.Minute},
	} {
		w := newWorld(t)
		n := w.person("ann").OpenIssue("x", "y").Number
		w.server.Inject(emulator.CreateComment, tt.fault)
		_, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: key("acme/web#1"), Text: "x"})
		if after, ok := fault.Retry(err); !fault.Is(err, fault.RateLimited) || !ok || after < tt.min || after > tt.max {
			t.Errorf("%s: %v, %v", name, after, err)
		}
		if len(w.server.Issue(repo, n).FromBotComments()) != 0 {
			t.Errorf("%s: a comment was made", name)
		}
	}
}

// GitHub's words are no promise, Retry-After is; and what is worth nothing later is
// asked for once.
func TestRefusalsWithATimeOnly(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"message":"Later, please"}`)
	}))
	t.Cleanup(server.Close)
	a, err := github.New(github.Config{Token: "ghp_0123456789abcdef", WebhookSecret: secret, APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	out := messages.Outbound{Delivery: "d", Conversation: key("acme/web#1"), Text: "x", Optional: true}
	_, err = a.Send(t.Context(), out)
	if after, _ := fault.Retry(err); !fault.Is(err, fault.RateLimited) || after != time.Second || posts.Load() != 1 {
		t.Errorf("%d posts: %v", posts.Load(), err)
	}
}

func TestManyAtOnceStayWithinTheLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.person("ann").OpenIssue("x", "y").Number
	var wg sync.WaitGroup
	var mu sync.Mutex
	limited := 0
	for i := range 100 {
		wg.Go(func() {
			_, err := w.Send(t.Context(), messages.Outbound{Delivery: messages.DeliveryID("d-" + strconv.Itoa(i)), Conversation: key("acme/web#1"), Text: "x"})
			mu.Lock()
			defer mu.Unlock()
			if fault.Is(err, fault.RateLimited) {
				limited++
			} else if err != nil {
				t.Error(err)
			}
		})
		if i == 21 {
			break
		}
	}
	wg.Wait()
	if made := len(w.server.Issue(repo, n).FromBotComments()); made+limited != 22 || made < 20 {
		t.Errorf("%d comments, %d to be tried again", made, limited)
	}
	if v := w.server.Violations(); len(v) != 0 {
		t.Errorf("violations %+v", v)
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, pat := range []bool{false, true} {
		w := newWorld(t, setting{pat: pat})
		w.run(t)
		if _, err := w.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.settled(t, w.person("ann").OpenIssue("x", "y"))
		buttons := []messages.Button{{ID: "b-yes", Label: "Approve"}, {ID: "b-no", Label: "Reject"}}
		ref, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: key("acme/web#1"), Text: "- [ ] a task of the plan", Buttons: buttons})
		if err != nil {
			t.Fatal(err)
		}
		comment := w.server.Issue(repo, 1).FromBotComments()[0].ID
		w.settled(t, w.person("ann").TickTask(comment, 1)) // of the text
		if n := len(w.sink.Events()); n != 0 {
			t.Errorf("a task of the text: %d events", n)
		}
		w.settled(t, w.person("boss").TickTask(comment, 2))
		in := w.last(t)
		if in.Kind != messages.KindAction || in.Action != "b-yes" || in.Message != ref.Message || in.Sender.Name != "boss" || in.Conversation.ID != "acme/web#1" {
			t.Errorf("pressed: %+v", in)
		}
		w.settled(t, w.person("boss").TickTask(comment, 2)) // and off again
		if err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: "decided"}); err != nil {
			t.Fatal(err)
		}
		// A comment that somebody else made is no plan, whatever it looks like.
		forged := w.settled(t, w.person("reader").Comment(1, "x\n\n<!-- bot:buttons -->\n- [ ] Approve <!-- bot:button=b-yes -->\n\n<!-- bot:delivery=d-1 -->"))
		w.settled(t, w.person("reader").TickTask(forged.Comment, 1))
		if n := len(w.sink.Events()); n != 1 {
			t.Errorf("%d events: %+v", n, w.sink.Events()[1:])
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, &endless{1 << 30})
	}))
	t.Cleanup(server.Close)
	a, err := github.New(github.Config{Token: "ghp_0123456789abcdef", WebhookSecret: secret, APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	begin := time.Now()
	if _, err := a.Check(t.Context()); !fault.Is(err, fault.Unavailable) || waittest.TooLong(time.Since(begin), 10*time.Second) {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// What has worked is not known to have worked if its answer cannot be read, and a
// list with holes is a list.
func TestAnswersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	answer := `{"id":`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/user":
			_, _ = io.WriteString(w, `{"id":1,"login":"helper"}`)
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `[null,{"id":8},{"id":9,"user":{"id":1},"body":"x\n\n<!-- bot:delivery=d -->"}]`)
		default:
			_, _ = io.WriteString(w, answer)
		}
	}))
	t.Cleanup(server.Close)
	a, err := github.New(github.Config{Token: "ghp_0123456789abcdef", WebhookSecret: secret, APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	a.Pauses(func(time.Duration) {})
	out := messages.Outbound{Delivery: "d", Conversation: key("acme/web#1"), ReplyTo: "rc:5", Text: "x"}
	for _, answer = range []string{`{"id":`, `{"id":"seven"}`, `{}`} {
		if _, err := a.Send(t.Context(), out); !fault.Is(err, fault.Unavailable) || !fault.Uncertain(err) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	out.Again = true
	if ref, err := a.Send(t.Context(), out); err != nil || ref.Message != "ic:9" {
		t.Errorf("found %q: %v", ref.Message, err)
	}
	out.Delivery = "other"
	answer = `{"id":12}`
	if ref, err := a.Send(t.Context(), out); err != nil || ref.Message != "rc:12/5" {
		t.Errorf("made %q: %v", ref.Message, err)
	}
}
