package github_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/platformapi"
)

func TestPagesAndTags(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 5000, time.UTC)
	w := installed(t, github.Options{Now: func() time.Time { return now }})
	w.ann.OpenIssue("x", "x")
	for i := range 7 {
		now = now.Add(time.Minute)
		w.ann.Comment(1, fmt.Sprint("c", i))
	}
	next := "/repos/acme/web/issues/1/comments?per_page=3"
	var got []string
	for n := 0; next != "" && n < 10; n++ {
		a := w.call("GET", next, nil).is(200, "")
		for _, c := range a.list() {
			got = append(got, c["body"].(string))
		}
		next = linkTo(a, "next")
		next = strings.TrimPrefix(next, w.URL())
	}
	if fmt.Sprint(got) != "[c0 c1 c2 c3 c4 c5 c6]" {
		t.Errorf("comments %v", got)
	}
	since := now.Add(-time.Minute).UTC().Format(time.RFC3339)
	if list := w.call("GET", "/repos/acme/web/issues/comments?since="+since, nil).list(); len(list) != 2 || list[0]["body"] != "c5" {
		t.Errorf("since %v", list)
	}
	list := w.call("GET", "/repos/acme/web/issues/comments?sort=updated&direction=desc&per_page=1", nil)
	if got := list.list(); len(got) != 1 || got[0]["body"] != "c6" || linkTo(list, "last") == "" {
		t.Errorf("sorted %v", got)
	}
	first := w.call("GET", "/repos/acme/web/issues/1", nil).is(200, "")
	tag := first.header.Get("ETag")
	same := w.call("GET", "/repos/acme/web/issues/1", nil, "If-None-Match", tag).is(304, "")
	if len(same.body) != 0 || same.header.Get("X-RateLimit-Limit") != "5000" {
		t.Errorf("304 with %v %s", same.header, same.body)
	}
	if again := w.call("GET", "/repos/acme/web/issues/1", nil, "If-None-Match", tag).is(304, ""); again.header.Get("X-RateLimit-Used") != same.header.Get("X-RateLimit-Used") {
		t.Errorf("304 cost something: %v, %v", same.header, again.header)
	}
	w.ann.Comment(1, "new")
	w.call("GET", "/repos/acme/web/issues/1", nil, "If-None-Match", tag).is(200, "")
}

func linkTo(a answer, rel string) string {
	for part := range strings.SplitSeq(a.header.Get("Link"), ", ") {
		if address, name, ok := strings.Cut(part, ">; rel="); ok && name == strconv.Quote(rel) {
			return strings.TrimPrefix(address, "<")
		}
	}
	return ""
}

func TestListLag(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := installed(t, github.Options{Now: func() time.Time { return now }})
	w.ann.OpenIssue("x", "x")
	w.SetListLag(0, 2)
	id := w.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "fresh"}).is(201, "").id()
	for i, want := range []int{0, 0, 1, 1} {
		if got := w.call("GET", "/repos/acme/web/issues/1/comments", nil).list(); len(got) != want {
			t.Errorf("list %d shows %d", i, len(got))
		}
	}
	w.call("GET", "/repos/acme/web/issues/comments/"+id, nil).is(200, "fresh")
	w.SetListLag(5*time.Second, 0)
	now = now.Add(6 * time.Second)
	w.ann.Comment(1, "later")
	if got := w.call("GET", "/repos/acme/web/issues/1/comments", nil).list(); len(got) != 1 {
		t.Errorf("too early: %v", got)
	}
	now = now.Add(5 * time.Second)
	if got := w.call("GET", "/repos/acme/web/issues/1/comments", nil).list(); len(got) != 2 {
		t.Errorf("too late: %v", got)
	}
	w.SetListLag(0, 0)
	now = now.Add(-time.Minute)
	if got := w.call("GET", "/repos/acme/web/issues/1/comments", nil).list(); len(got) != 2 {
		t.Errorf("after the clock was set back: %v", got)
	}
}

func TestSecondaryLimit(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := installed(t, github.Options{Now: func() time.Time { return now }, TokenLifetime: 3 * time.Hour})
	w.ann.OpenIssue("x", "x")
	post := func() answer { return w.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "x"}) }
	for range 80 {
		post().is(201, "")
	}
	a := post().is(403, "secondary rate limit")
	if a.header.Get("Retry-After") != "60" || !strings.Contains(string(a.body), "secondary-rate-limits") || len(w.Violations()) != 0 {
		t.Errorf("%v %v", a.header, w.Violations())
	}
	w.call("GET", "/repos/acme/web/issues/1", nil).is(200, "")
	if got := w.Violations(); len(got) != 1 {
		t.Errorf("violations %v", got)
	}
	made := 80
	for range 10 {
		now = now.Add(61 * time.Second)
		for range 80 {
			if a := post(); a.status == http.StatusCreated {
				made++
			} else {
				a.is(403, "secondary")
			}
		}
	}
	if made != 500 {
		t.Errorf("%d in an hour", made)
	}
}

func TestOtherLimits(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{Limits: &github.Limits{PerHour: 5, ContentPerMinute: 1}})
	w.ann.OpenIssue("x", "x")
	w.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "x"}).is(201, "")
	w.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "x"}).is(403, "secondary")
	w.call("GET", "/repos/acme/web", nil).is(200, "")
	w.call("GET", "/repos/acme/web", nil).is(200, "")
	w.call("GET", "/repos/acme/web", nil).is(200, "")
	a := w.call("GET", "/repos/acme/web", nil).is(403, "API rate limit exceeded")
	if a.header.Get("X-RateLimit-Remaining") != "0" || a.header.Get("X-RateLimit-Reset") == "" {
		t.Errorf("headers %v", a.header)
	}
	points := installed(t, github.Options{Limits: &github.Limits{PointsPerMinute: 7}})
	points.ann.OpenIssue("x", "x")
	points.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "x"}).is(201, "")
	points.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "x"}).is(403, "secondary")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault   github.Fault
		status  int // zero: no answer
		part    string
		applied bool
		broken  bool // the body does not come whole
	}{
		"refused":         {github.Refuse(418, "teapot"), 418, "teapot", false, false},
		"forbidden":       {github.NotAccessible(), 403, "not accessible", false, false},
		"429":             {github.SecondaryLimit(429, 3*time.Second), 429, "secondary", false, false},
		"primary":         {github.PrimaryLimit(time.Now().Add(time.Hour)), 403, "API rate limit", false, false},
		"502":             {github.ServerError(502), 502, "<html>", false, false},
		"500 after":       {github.ServerErrorAfter(500), 500, "<html>", true, false},
		"dropped after":   {github.Fault{End: platformapi.After}, 0, "", true, false},
		"cut":             {github.Fault{End: platformapi.Short}, 201, "", true, true},
		"half JSON":       {github.Fault{End: platformapi.Truncated}, 201, "{", true, false},
		"garbage":         {github.Fault{End: platformapi.Garbage}, 200, "<html>", true, false},
		"delay, then 503": {github.ServerError(503).After(time.Millisecond), 503, "", false, false},
		"pass":            {github.Fault{}, 201, "body", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := installed(t, github.Options{})
			w.ann.OpenIssue("x", "x")
			w.Inject(github.CreateComment, test.fault)
			a, err := w.try("POST", "/repos/acme/web/issues/1/comments", o{"body": "body"})
			switch {
			case test.broken || test.status == 0:
				if err == nil {
					t.Error("a broken answer came whole")
				}
			default:
				a.is(test.status, test.part)
			}
			if got := len(w.Issue("acme/web", 1).Comments) == 1; got != test.applied || w.QueuedFaults(github.CreateComment) != 0 {
				t.Errorf("applied: %v", got)
			}
			w.call("GET", "/repos/acme/web/issues/1", nil).is(200, "")
			if calls := w.Calls(github.CreateComment); len(calls) != 1 || string(calls[0].Body["body"]) != `"body"` || w.Count(github.CreateComment) != 1 {
				t.Errorf("calls %v", calls)
			}
		})
	}
}

func TestHoldAndInjectFunc(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	w.ann.OpenIssue("x", "x")
	before := emulator.NewGate()
	w.Inject(github.AnyOperation, github.Fault{Gate: before})
	done := make(chan answer)
	go func() {
		a, _ := w.try("POST", "/repos/acme/web/issues/1/comments", o{"body": "x"})
		done <- a
	}()
	<-before.Reached()
	if len(w.Issue("acme/web", 1).Comments) != 0 {
		t.Error("too early")
	}
	before.Open()
	if a := <-done; a.status != 201 {
		t.Errorf("answer %d", a.status)
	}
	w.InjectFunc(func(c github.Call) github.Fault {
		if c.Operation == github.GetRepo {
			return github.ServerError(500)
		}
		return github.Fault{}
	})
	w.call("GET", "/repos/acme/web", nil).is(500, "")
	w.ClearFaults()
	w.call("GET", "/repos/acme/web", nil).is(200, "")
}
