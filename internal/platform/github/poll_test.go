package github_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/waittest"
)

func polling(c *github.Config) { c.Poll, c.WebhookSecret, c.PollEvery = true, "", 20*time.Millisecond }

// aliasesOf returns what the program tells repeated events by.
func aliasesOf(all []messages.Inbound) []string {
	var out []string
	for _, in := range all {
		out = append(out, string(in.Aliases[0]))
	}
	return out
}

func TestPolling(t *testing.T) {
	t.Parallel()
	for _, pat := range []bool{false, true} {
		t.Run(fmt.Sprint("token ", pat), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setting{bot: polling, pat: pat})
			w.server.SetHook(emulator.Hook{})
			w.run(t)
			ann := w.person("ann")
			n := ann.OpenIssue("It is broken", "@remote-agent fix it").Number
			w.await(t, "an issue", func(all []messages.Inbound) bool { return len(all) == 1 })
			ann.Comment(n, "nobody is meant")
			ann.Comment(n, "@remote-agent /status")
			w.await(t, "a comment", func(all []messages.Inbound) bool { return len(all) == 2 })
			pull, line := w.openPull(t)
			asked := ann.ReplyToReviewComment(line, "@remote-agent why?").Comment
			w.await(t, "a line", func(all []messages.Inbound) bool { return len(all) == 3 })
			ann.Review(pull, "COMMENT", "@remote-agent look again")
			w.await(t, "a review", func(all []messages.Inbound) bool { return len(all) >= 4 })
			ann.CloseIssue(n)
			w.await(t, "the end", func(all []messages.Inbound) bool {
				return slices.ContainsFunc(all, func(in messages.Inbound) bool { return in.Kind == messages.KindClosed })
			})
			all := w.sink.Events()
			first := all[0]
			if first.Text != "fix it" || first.Message != "is:1" || first.Conversation.ID != "acme/web#1" || first.Aliases[0] != "opened:acme/web#1" || len(first.Raw) == 0 ||
				!strings.HasPrefix(first.Reference, "GitHub issue Acme/Web#1: It is broken") || !strings.HasSuffix(first.Repository.URL, "/Acme/Web.git") || first.Repository.Branch != "bot/issue-1" {
				t.Errorf("issue: %+v", first)
			}
			if all[1].Text != "/status" || all[1].Sender.Name != "ann" {
				t.Errorf("comment: %+v", all[1])
			}
			if r := all[2].Repository; all[2].Message != messages.MessageID(fmt.Sprintf("rc:%d/%d", asked, line)) || !r.Existing || r.Branch != "limiter" || r.Head == "" {
				t.Errorf("line: %+v", all[2])
			}
			seen := map[string]bool{}
			for _, a := range aliasesOf(all) {
				if seen[a] {
					t.Errorf("%s came twice: %v", a, aliasesOf(all))
				}
				seen[a] = true
			}
			if v := w.server.Violations(); len(v) != 0 {
				t.Errorf("violations %+v", v)
			}
		})
	}
}

// cursor is what outlives a process.
type cursor struct {
	mu     sync.Mutex
	values map[string]string
}

func (c *cursor) Load(_ context.Context, key string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[key], nil
}

func (c *cursor) Save(_ context.Context, key, value string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(key) > 200 || len(value) > 100 {
		panic("too long")
	}
	c.values[key] = value
	return nil
}

func TestWhatWasSaidWhileAwayIsFound(t *testing.T) {
	t.Parallel()
	store := &cursor{values: map[string]string{}}
	w := newWorld(t, setting{bot: func(c *github.Config) { polling(c); c.Cursor = store }})
	ann := w.person("ann")
	n := ann.OpenIssue("x", "y").Number
	stop := w.run(t)
	ann.Comment(n, "@remote-agent one")
	w.await(t, "one", func(all []messages.Inbound) bool { return len(all) == 1 })
	stop()
	ann.Comment(n, "@remote-agent two")
	second, err := github.New(github.Config{AppID: "4711", PrivateKey: w.key, APIURL: w.server.URL(), Poll: true, PollEvery: 20 * time.Millisecond, Surroundings: platform.Surroundings{Cursor: store, Log: testLog(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.CloseIdle)
	w.Adapter = second
	w.run(t)
	w.await(t, "two", func(all []messages.Inbound) bool {
		return slices.ContainsFunc(all, func(in messages.Inbound) bool { return in.Text == "two" })
	})
	ids := map[messages.EventID]bool{}
	for _, in := range w.sink.Events() {
		ids[in.Event] = true
	}
	if len(ids) != 2 {
		t.Errorf("events %v", ids)
	}
}

// Who closes an issue with a comment says it before it is closed, whichever list shows what.
func TestWhatIsSaidWithAClosingComesBeforeIt(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := &cursor{values: map[string]string{}}
	w := newWorld(t, inTheirTime(c), setting{bot: func(cfg *github.Config) { polling(cfg); cfg.Cursor = store }})
	ann := w.person("ann")
	n := ann.OpenIssue("x", "y").Number
	stop := w.run(t)
	await(t, func() bool { return w.server.Count(emulator.ListCommentsForRepo) > 2 })
	stop()
	c.later(time.Minute)
	ann.Comment(n, "@remote-agent what was it?")
	ann.CloseIssue(n)
	c.later(time.Minute)
	w.run(t)
	w.await(t, "both", func(all []messages.Inbound) bool { return len(all) >= 2 })
	if all := w.sink.Events(); all[0].Text != "what was it?" || all[1].Kind != messages.KindClosed {
		t.Errorf("events %+v", aliasesOf(all))
	}
}

func TestOldWordsDoNotComeBack(t *testing.T) {
	t.Parallel()
	c := newClock() // an hour ago
	store := &cursor{values: map[string]string{}}
	w := newWorld(t, inTheirTime(c), setting{bot: func(cfg *github.Config) { polling(cfg); cfg.Cursor = store }})
	n := w.person("ann").OpenIssue("x", "@remote-agent from before").Number
	old := w.person("ann").Comment(n, "@remote-agent also from before").Comment
	c.later(time.Minute)
	w.run(t)
	await(t, func() bool { return w.server.Count(emulator.ListCommentsForRepo) > 2 })
	c.later(90 * time.Minute)
	w.person("ann").EditComment(old, "@remote-agent edited now")
	w.person("ann").Comment(n, "@remote-agent new")
	w.await(t, "the new one", func(all []messages.Inbound) bool { return len(all) > 0 })
	if all := w.sink.Events(); len(all) != 1 || all[0].Text != "new" {
		t.Errorf("events %+v", all)
	}
}

// Who was away for long answers nobody who has given up waiting: three days back are read.
func TestWhatWasSaidLongAgoIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newClock()
	c.later(-90 * time.Hour)
	store := &cursor{values: map[string]string{"sweep:acme/web:issues": c.now().Add(-time.Hour).UTC().Format(time.RFC3339)}}
	w := newWorld(t, inTheirTime(c), setting{bot: func(cfg *github.Config) { polling(cfg); cfg.Cursor = store }})
	w.person("ann").OpenIssue("x", "@remote-agent long ago")
	c.later(80 * time.Hour)
	w.person("ann").OpenIssue("y", "@remote-agent yesterday")
	c.later(10 * time.Hour)
	w.run(t)
	w.await(t, "the newer one", func(all []messages.Inbound) bool { return len(all) > 0 })
	if all := w.sink.Events(); len(all) != 1 || all[0].Text != "yesterday" {
		t.Errorf("events %+v", all)
	}
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	late := waittest.Late(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-late:
			t.Fatal("still waiting")
		case <-tick.C:
		}
	}
}

// What cannot be stored is read again.
func TestSweepsWaitForTheSink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: polling})
	var mu sync.Mutex
	failures := 3
	w.sink.BeforeAccept = func([]messages.Inbound) error {
		mu.Lock()
		defer mu.Unlock()
		if failures--; failures >= 0 {
			return errAway
		}
		return nil
	}
	w.run(t)
	n := w.person("ann").OpenIssue("x", "y").Number
	for i := range 3 {
		w.person("ann").Comment(n, fmt.Sprint("@remote-agent ", i))
	}
	w.await(t, "all three", func(all []messages.Inbound) bool { return len(all) == 3 })
	for i, in := range w.sink.Events() {
		if in.Text != fmt.Sprint(i) {
			t.Errorf("event %d: %q", i, in.Text)
		}
	}
}

// Credentials that are refused for a while, as in an outage of GitHub, do not end the polling.
func TestPollingGoesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	for _, pat := range []bool{false, true} {
		t.Run(fmt.Sprint("token ", pat), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setting{bot: polling, pat: pat})
			w.run(t)
			const issues = "issues/list-for-repo"
			await(t, func() bool { return w.server.Count(issues) > 1 })
			refused := emulator.Refuse(http.StatusUnauthorized, "Bad credentials")
			w.server.Inject(issues, refused, refused, refused, refused)
			w.person("ann").OpenIssue("x", "@remote-agent hi")
			w.await(t, "the issue", func(all []messages.Inbound) bool { return len(all) == 1 })
		})
	}
}

func TestUnchangedListsCostNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: polling})
	w.person("ann").OpenIssue("x", "y")
	w.run(t)
	unchanged := func() int {
		n := 0
		for _, c := range w.server.Calls(emulator.ListCommentsForRepo, "issues/list-for-repo", emulator.ListReviewCommentsForRepo) {
			if c.Status == 304 {
				n++
			}
		}
		return n
	}
	await(t, func() bool { return unchanged() >= 6 })
}

// A review that comes within the second of the one before leaves the list of pull requests
// as it was: times are whole seconds. So what is that new is looked at again.
func TestTwoReviewsInOneSecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inTheirTime(newClock()), setting{bot: polling})
	w.run(t)
	const issues = "issues/list-for-repo"
	pull, _ := w.openPull(t)
	for i := range 2 {
		w.person("ann").Review(pull, "COMMENT", fmt.Sprint("@remote-agent ", i))
		w.await(t, "a review", func(all []messages.Inbound) bool { return len(all) == i+1 })
		lists := w.server.Count(issues)
		await(t, func() bool { return w.server.Count(issues) > lists+1 })
	}
}

// GitHub leaves out of a page what may not be shown, so a page that is not full may have
// others behind it.
func TestAShortPageMayNotBeTheLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: func(c *github.Config) {
		polling(c)
		to, err := url.Parse(c.APIURL)
		if err != nil {
			t.Fatal(err)
		}
		short := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			query := r.Out.URL.Query()
			query.Set("per_page", "1")
			r.Out.URL.RawQuery = query.Encode()
		}})
		t.Cleanup(short.Close)
		c.APIURL = short.URL
	}})
	w.server.AddRepo(emulator.Repo{Name: "Acme/Zoo", Collaborators: map[string]emulator.Permission{"ann": emulator.Write}})
	n := w.person("ann").OpenIssue("x", "@remote-agent 0").Number
	for i := range 3 {
		w.person("ann").Comment(n, fmt.Sprint("@remote-agent ", i+1))
	}
	w.server.Person("ann").In("Acme/Zoo").OpenIssue("x", "@remote-agent elsewhere")
	w.run(t)
	w.await(t, "all five", func(all []messages.Inbound) bool { return len(all) == 5 })
	out := messages.Outbound{Delivery: newDelivery(), Conversation: key("acme/web#1"), Text: "hello"}
	made, err := w.Send(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	out.Again = true
	if again, err := w.Send(t.Context(), out); err != nil || again != made {
		t.Errorf("it is sent again: %+v, %v; first %+v", again, err, made)
	}
}

// What is edited while a list is read goes to its end, and what stood behind it moves up: over
// the border of a page.
func TestAListThatChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := &cursor{values: map[string]string{"sweep:acme/web:comments": c.now().UTC().Format(time.RFC3339)}}
	var first int64
	var once sync.Once
	var w *world
	w = newWorld(t, inTheirTime(c), setting{bot: func(cfg *github.Config) {
		polling(cfg)
		cfg.Cursor = store
		to, err := url.Parse(cfg.APIURL)
		if err != nil {
			t.Fatal(err)
		}
		short := httptest.NewServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(to)
				query := r.Out.URL.Query()
				query.Set("per_page", "2")
				r.Out.URL.RawQuery = query.Encode()
			},
			ModifyResponse: func(resp *http.Response) error {
				if strings.HasSuffix(resp.Request.URL.Path, "/issues/comments") {
					once.Do(func() { w.person("ann").EditComment(first, "@remote-agent 0, edited") })
				}
				return nil
			},
		})
		t.Cleanup(short.Close)
		cfg.APIURL = short.URL
	}})
	n := w.person("ann").OpenIssue("x", "y").Number
	const many = 6
	for i := range many {
		c.later(time.Minute)
		if made := w.person("ann").Comment(n, fmt.Sprint("@remote-agent ", i)).Comment; i == 0 {
			first = made
		}
	}
	c.later(time.Minute)
	w.run(t)
	w.await(t, "all comments", func(all []messages.Inbound) bool {
		found := map[string]bool{}
		for _, a := range aliasesOf(all) {
			found[a] = true
		}
		return len(found) == many
	})
}

// An owner whose limit is used up keeps nobody else waiting: each installation has its own.
func TestALimitIsOneOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: polling})
	w.server.AddRepo(emulator.Repo{Name: "Zoo/Lions", Collaborators: map[string]emulator.Permission{"ann": emulator.Write}})
	const issues = "issues/list-for-repo"
	w.server.Inject(issues, emulator.SecondaryLimit(http.StatusForbidden, time.Hour))
	w.run(t)
	await(t, func() bool { return w.Headroom().Silent == 1 })
	w.person("ann").OpenIssue("x", "@remote-agent one")
	w.server.Person("ann").In("Zoo/Lions").OpenIssue("x", "@remote-agent another")
	w.await(t, "one of them", func(all []messages.Inbound) bool { return len(all) == 1 })
}

// An owner whose repositories GitHub does not list keeps nobody else waiting.
func TestAnInstallationThatFailsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusBadGateway} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setting{bot: polling})
			w.server.AddRepo(emulator.Repo{Name: "Zoo/Lions", Collaborators: map[string]emulator.Permission{"ann": emulator.Write}})
			var once sync.Once
			var first string // the one that is asked for first
			w.server.InjectFunc(func(c emulator.Call) emulator.Fault {
				if c.Operation != emulator.CreateInstallationToken {
					return emulator.Fault{}
				}
				if once.Do(func() { first = c.Path }); c.Path == first {
					return emulator.Refuse(status, "no")
				}
				return emulator.Fault{}
			})
			w.run(t)
			w.person("ann").OpenIssue("x", "@remote-agent one")
			w.server.Person("ann").In("Zoo/Lions").OpenIssue("x", "@remote-agent another")
			w.await(t, "one of them", func(all []messages.Inbound) bool { return len(all) == 1 })
		})
	}
}

// A transferred issue has a new number and the date of the old one. It was answered where it was,
// also if nothing happened for longer in the repository that it comes to.
func TestATransferredIssueIsNotNew(t *testing.T) {
	t.Parallel()
	c := newClock()
	before := c.now().Add(-time.Hour).UTC()
	store := &cursor{values: map[string]string{
		"sweep:acme/web:issues": before.Add(-time.Hour).Format(time.RFC3339), "sweep:acme/web:comments": before.Add(-time.Hour).Format(time.RFC3339),
	}}
	w := newWorld(t, inTheirTime(c), setting{bot: func(cfg *github.Config) {
		polling(cfg)
		cfg.Cursor = store
		cfg.APIURL = rewriting(t, cfg.APIURL, "/repos/acme/web/issues", func(i map[string]any) { i["created_at"] = before.Format(time.RFC3339) })
	}})
	w.run(t)
	const issues = "issues/list-for-repo"
	await(t, func() bool { return w.server.Count(issues) > 1 })
	n := w.person("ann").OpenIssue("It came from elsewhere", "@remote-agent fix it").Number
	lists := w.server.Count(issues)
	await(t, func() bool { return w.server.Count(issues) > lists+2 })
	w.person("ann").Comment(n, "@remote-agent fix it here")
	w.await(t, "the comment", func(all []messages.Inbound) bool { return len(all) > 0 })
	if all := w.sink.Events(); len(all) != 1 || all[0].Text != "fix it here" {
		t.Errorf("events %+v", aliasesOf(all))
	}
}

// TestWordsThatSomebodyElseChanged are not taken for their author's: REST shows them under the
// author's name.
func TestWordsThatSomebodyElseChanged(t *testing.T) {
	t.Parallel()
	editors := map[string]string{
		"theirs": `{"lastEditedAt":"2026-11-21T10:00:00Z","editor":{"login":"boss"}}`, "gone": `{"lastEditedAt":"2026-11-21T10:00:00Z","editor":null}`,
		"mine": `{"lastEditedAt":"2026-11-21T10:00:00Z","editor":{"login":"Ann"}}`, "unchanged": `{"lastEditedAt":null,"editor":null}`,
	}
	// What fails has the status of success (docs.github.com, Rate limits and query limits).
	editors["theirs, later"], editors["mine, later"] = editors["theirs"], editors["mine"]
	var failures sync.Map
	failures.Store("theirs, later", `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded for installation ID 5."}]}`)
	failures.Store("mine, later", `{"data":null,"errors":[{"message":"Something went wrong while executing your query."}]}`)
	w := newWorld(t, setting{bot: func(cfg *github.Config) {
		polling(cfg)
		change := func(v map[string]any) {
			body, _ := v["body"].(string)
			_, v["node_id"], _ = strings.Cut(body, "hears ")
			v["created_at"] = time.Now().Add(-5 * time.Second).UTC().Format(time.RFC3339)
		}
		to, err := url.Parse(rewriting(t, rewriting(t, cfg.APIURL, "/repos/acme/web/issues", change), "/repos/acme/web/issues/comments", change))
		if err != nil {
			t.Fatal(err)
		}
		next := httputil.NewSingleHostReverseProxy(to)
		front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/graphql" {
				http.StripPrefix("/api/v3", next).ServeHTTP(rw, r)
				return
			}
			asked := struct{ Variables struct{ ID string } }{}
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.Method != http.MethodPost || r.Header.Get("Authorization") == "" {
				t.Errorf("asked with %s: %v", r.Method, err)
			}
			rw.Header().Set("Content-Type", "application/json")
			if why, failed := failures.LoadAndDelete(asked.Variables.ID); failed {
				_, _ = rw.Write([]byte(why.(string)))
				return
			}
			switch asked.Variables.ID {
			case "forbidden":
				http.Error(rw, `{"message":"Resource not accessible by personal access token"}`, http.StatusForbidden)
				return
			case "invalid":
				http.Error(rw, `{"message":"Problems parsing JSON"}`, http.StatusBadRequest)
				return
			case "hidden":
				_, _ = rw.Write([]byte(`{"data":{"node":null},"errors":[{"type":"FORBIDDEN","message":"Resource not accessible by integration"}]}`))
				return
			case "no GraphQL":
				http.NotFound(rw, r)
				return
			}
			_, _ = rw.Write([]byte(`{"data":{"node":` + cmp.Or(editors[asked.Variables.ID], "null") + `}}`))
		}))
		t.Cleanup(front.Close)
		cfg.APIURL = front.URL + "/api/v3"
	}})
	ann := w.person("ann")
	w.run(t)
	const issues = "issues/list-for-repo"
	await(t, func() bool { return w.server.Count(issues) > 1 })
	for _, body := range []string{"theirs", "mine"} {
		ann.OpenIssue("x", "@remote-agent hears "+body)
	}
	n := ann.OpenIssue("x", "y").Number
	for _, body := range []string{"theirs, later", "mine, later", "theirs", "gone", "mine", "unchanged", "forbidden", "invalid", "hidden", "unknown", "no GraphQL"} {
		ann.Comment(n, "@remote-agent hears "+body)
	}
	w.await(t, "the last comment, and the issue", func(all []messages.Inbound) bool {
		return len(all) > 4 && slices.ContainsFunc(all, func(in messages.Inbound) bool { return in.Text == "hears no GraphQL" })
	})
	var heard []string
	for _, in := range w.sink.Events() {
		heard = append(heard, in.Text)
	}
	slices.Sort(heard)
	if want := []string{"hears mine", "hears mine", "hears mine, later", "hears no GraphQL", "hears unchanged"}; !slices.Equal(heard, want) {
		t.Errorf("it hears %q, want %q", heard, want)
	}
}

// rewriting is a GitHub in front of another one that changes each element of a list.
func rewriting(t *testing.T, api, path string, change func(map[string]any)) string {
	t.Helper()
	to, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(resp *http.Response) error {
		body, err := io.ReadAll(resp.Body)
		if all := []map[string]any{}; resp.Request.URL.Path == path && json.Unmarshal(body, &all) == nil {
			for _, v := range all {
				change(v)
			}
			body, err = json.Marshal(all)
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return err
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL
}

// A comment on a line is dated to when it was begun, also if its review was submitted much later.
func TestCommentsOfADraftAreFound(t *testing.T) {
	t.Parallel()
	c := newClock()
	begun := c.now().UTC().Format(time.RFC3339)
	store := &cursor{values: map[string]string{}}
	w := newWorld(t, inTheirTime(c), setting{bot: func(cfg *github.Config) {
		polling(cfg)
		cfg.Cursor = store
		cfg.APIURL = rewriting(t, cfg.APIURL, "/repos/acme/web/pulls/comments", func(c map[string]any) { c["created_at"] = begun })
	}})
	pull, _ := w.openPull(t)
	old := w.person("ann").ReviewComment(pull, "limiter.go", 2, "@remote-agent old").Comment
	c.later(30 * time.Minute)
	store.values["sweep:acme/web:lines"] = c.now().UTC().Format(time.RFC3339)
	c.later(10 * time.Minute)
	w.person("ann").EditComment(old, "@remote-agent old, edited")
	w.person("ann").ReviewComment(pull, "limiter.go", 2, "@remote-agent new")
	c.later(time.Minute)
	w.run(t)
	w.await(t, "the new one", func(all []messages.Inbound) bool { return len(all) > 0 })
	if all := w.sink.Events(); len(all) != 1 || all[0].Text != "new" || c.now().Sub(all[0].SentAt) > 2*time.Minute {
		t.Errorf("events %+v", aliasesOf(all))
	}
}

// Reviews are not listed for a repository, so a sweep reads those of some pull requests
// only. The next one goes on behind them.
func TestReviewsOfManyPullRequestsAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: func(c *github.Config) {
		polling(c)
		c.PollEvery = 4 * time.Second // what is new is read again for 3 s, which soon takes all that GitHub's limit allows
	}})
	ann := w.person("ann")
	const many = 25
	for i := range many {
		n := ann.OpenPull(emulator.Pull{Title: "x", Head: fmt.Sprint("b", i)}).Number
		ann.Review(n, "COMMENT", fmt.Sprint("@remote-agent ", i))
		if i%2 == 0 {
			ann.CloseIssue(n)
		}
	}
	w.run(t)
	w.await(t, "all reviews", func(all []messages.Inbound) bool {
		found := map[messages.ConversationKey]bool{}
		for _, in := range all {
			if in.Kind == messages.KindMessage {
				found[in.Conversation] = true
			}
		}
		return len(found) == many
	})
}

// A repository that was renamed is read under its old name, to which GitHub leads, but its
// webhooks bear the new one. An operator is told, once.
func TestARenamedRepositoryIsTold(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	w := newWorld(t, setting{bot: func(c *github.Config) {
		c.Repositories, c.SweepEvery, c.Log = []string{"acme/old"}, 20*time.Millisecond, slog.New(slog.NewTextHandler(log, nil))
		api, err := url.Parse(c.APIURL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(api)
		front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if rest, old := strings.CutPrefix(r.URL.Path, "/repos/acme/old"); old {
				r.URL.Path = "/repos/" + repo + rest
				http.Redirect(rw, r, r.URL.String(), http.StatusMovedPermanently)
				return
			}
			proxy.ServeHTTP(rw, r)
		}))
		t.Cleanup(front.Close)
		c.APIURL = front.URL
	}})
	w.run(t)
	n := w.person("ann").OpenIssue("x", "@remote-agent first").Number
	w.person("ann").Comment(n, "@remote-agent second")
	w.await(t, "what sweeps find", func(all []messages.Inbound) bool { return len(all) == 2 })
	if told := strings.Count(log.String(), "has another name"); told != 1 || !strings.Contains(log.String(), "now=Acme/Web") {
		t.Errorf("it was told %d times: %s", told, log.String())
	}
	for _, in := range w.sink.Events() { // git follows no redirect
		if in.Conversation.ID != "acme/old#1" || !strings.HasSuffix(in.Repository.URL, "/Acme/Web.git") {
			t.Errorf("%s works on %s", in.Conversation.ID, in.Repository.URL)
		}
	}
}

// With a token GitHub shows all repositories of a person. Lost webhooks are looked for in those
// that were pushed to last, and an operator is told, once.
func TestManyRepositoriesOfATokenAreTold(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	w := newWorld(t, setting{pat: true, bot: func(c *github.Config) {
		c.SweepEvery, c.Log = 20*time.Millisecond, slog.New(slog.NewTextHandler(log, nil))
	}})
	for i := range 100 {
		w.server.AddRepo(emulator.Repo{Name: fmt.Sprint("acme/other", i), Collaborators: map[string]emulator.Permission{"helper": emulator.Write}})
	}
	w.run(t)
	await(t, func() bool { return w.server.Count("repos/list-for-authenticated-user") > 1 })
	if told := strings.Count(log.String(), "more repositories than are looked at"); told != 1 || !strings.Contains(log.String(), "GITHUB_REPOSITORIES") {
		t.Errorf("it was told %d times: %s", told, log.String())
	}
}

// GitHub lists the reviews of a pull request from the first one on, and each comment on a line
// that is not part of one makes another.
func TestTheNewestOfManyReviewsIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: polling})
	w.server.SetHook(emulator.Hook{})
	n, _ := w.openPull(t)
	ann := w.person("ann")
	for range 520 {
		ann.Review(n, "COMMENT", "fine")
	}
	w.run(t)
	await(t, func() bool { return w.server.Count("issues/list-for-repo") > 1 })
	ann.Review(n, "COMMENT", "@remote-agent look again")
	w.await(t, "the review", func(all []messages.Inbound) bool { return len(all) == 1 })
}

// A pull request whose reviews GitHub does not show, for a permission that is missing or because
// it is gone, does not hold up what came after it.
func TestReviewsThatCannotBeReadHoldNothingUp(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]emulator.Fault{"forbidden": emulator.NotAccessible(), "gone": emulator.Refuse(http.StatusNotFound, "Not Found")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setting{bot: polling})
			w.server.Inject("pulls/list-reviews", slices.Repeat([]emulator.Fault{f}, 1000)...)
			w.run(t)
			const issues = "issues/list-for-repo"
			await(t, func() bool { return w.server.Count(issues) > 1 })
			w.openPull(t)
			w.person("ann").OpenIssue("x", "@remote-agent fix it")
			lists := w.server.Count(issues)
			await(t, func() bool { return w.server.Count(issues) > lists+2 })
			if all := w.sink.Events(); len(all) != 1 || all[0].Text != "fix it" {
				t.Errorf("events %+v", aliasesOf(all))
			}
		})
	}
}

// A tenth of the deliveries is lost, a tenth doubled: all are heard, each with
// one alias.
func TestNothingIsMissedWithWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: func(c *github.Config) { c.SweepEvery = 200 * time.Millisecond }})
	w.server.SetNetwork(emulator.Network{Seed: 7, Drop: 0.2, Vanish: 0.2, Double: 0.2})
	w.run(t)
	ann := w.person("ann")
	n := ann.OpenIssue("x", "y").Number
	want := map[string]bool{}
	for i := range 25 {
		want["comment:"+fmt.Sprint(ann.Comment(n, fmt.Sprint("@remote-agent ", i)).Comment)] = true
	}
	w.await(t, "all comments", func(all []messages.Inbound) bool {
		found := map[string]bool{}
		for _, a := range aliasesOf(all) {
			found[a] = true
		}
		return len(found) == len(want)
	})
	for _, a := range aliasesOf(w.sink.Events()) {
		if !want[a] {
			t.Errorf("unexpected %s", a)
		}
	}
}

func TestFailedDeliveriesAreAskedForAgain(t *testing.T) {
	t.Parallel()
	store := &cursor{values: map[string]string{"deliveries": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}}
	w := newWorld(t, setting{bot: func(c *github.Config) { c.Cursor = store }})
	ann := w.person("ann")
	opened := w.settled(t, ann.OpenIssue("x", "y")) // before the bot runs: answered with 503
	sent := w.settled(t, ann.Comment(opened.Number, "@remote-agent hi"))
	if w.server.Delivery(sent.Deliveries[0]).Acked {
		t.Fatal("nobody was there")
	}
	w.run(t)
	w.await(t, "the comment", func(all []messages.Inbound) bool { return len(all) == 1 })
	if in := w.last(t); string(in.Event) != sent.Deliveries[0] || in.Text != "hi" {
		t.Errorf("%+v", in)
	}
	// The next look finds nothing to do.
	await(t, func() bool {
		return w.server.Delivery(opened.Deliveries[0]).Acked && w.server.Delivery(sent.Deliveries[0]).Acked
	})
	before := w.server.Count(emulator.RedeliverDelivery)
	second, err := github.New(github.Config{AppID: "4711", PrivateKey: w.key, APIURL: w.server.URL(), WebhookSecret: secret, Surroundings: platform.Surroundings{Cursor: store}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.CloseIdle)
	lists := w.server.Count(emulator.ListDeliveries)
	w.Adapter = second
	stop := w.run(t)
	await(t, func() bool {
		return w.server.Count(emulator.ListDeliveries) > lists && w.server.Count(emulator.ListCommentsForRepo) > 1
	})
	stop()
	if n := w.server.Count(emulator.RedeliverDelivery); n != before {
		t.Errorf("asked %d times more", n-before)
	}
}

// A delivery that GitHub does not repeat holds up no newer one.
func TestADeliveryThatCannotBeRepeatedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	store := &cursor{values: map[string]string{"deliveries": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}}
	var refused string
	w := newWorld(t, setting{bot: func(c *github.Config) {
		c.Cursor = store
		to, err := url.Parse(c.APIURL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/attempts") && refused == "" {
				refused = r.URL.Path
			}
			if r.URL.Path == refused {
				http.Error(rw, `{"message":"Validation Failed"}`, http.StatusUnprocessableEntity)
				return
			}
			proxy.ServeHTTP(rw, r)
		}))
		t.Cleanup(front.Close)
		c.APIURL = front.URL
	}})
	ann := w.person("ann")
	opened := w.settled(t, ann.OpenIssue("x", "y")) // before the bot runs: answered with 503
	sent := w.settled(t, ann.Comment(opened.Number, "hi"))
	w.run(t)
	await(t, func() bool { return w.server.Delivery(sent.Deliveries[0]).Acked })
}

// A delivery that fails each time is given up: what a sweep finds is stored without it.
func TestADeliveryIsAskedForSomeTimesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: func(c *github.Config) { c.SweepEvery = 20 * time.Millisecond }})
	w.run(t)
	w.hook.Store(nil) // nobody is there
	w.settled(t, w.person("ann").OpenIssue("x", "nobody is meant"))
	await(t, func() bool { return w.server.Count(emulator.RedeliverDelivery) >= 5 })
	lists := w.server.Count(emulator.ListDeliveries)
	await(t, func() bool { return w.server.Count(emulator.ListDeliveries) > lists+3 })
	if n := w.server.Count(emulator.RedeliverDelivery); n != 5 {
		t.Errorf("asked %d times, want 5", n)
	}
}

var errAway = errors.New("the database is away")

// TestManyRepositoriesAreSwept: GitHub shows an installation's in pages of a hundred.
func TestManyRepositoriesAreSwept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{server: func(o *emulator.Options) { o.Limits = emulator.NoLimits() }})
	for n := range 1100 {
		w.server.AddRepo(emulator.Repo{Name: fmt.Sprintf("Acme/r%d", n)})
	}
	if n, err := w.Swept(t.Context()); n != 1101 || err != nil {
		t.Errorf("%d repositories are swept, want 1101: %v", n, err)
	}
}
