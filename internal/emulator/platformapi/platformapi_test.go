package platformapi_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refusal is how the platform of these tests refuses.
type refusal struct{ status int }

type (
	fault = platformapi.Fault[refusal]
	core  = platformapi.Core[string, refusal]
)

const answer = `{"ok":"yes"}`

// world is a platform whose calls are paths and count what they do.
type world struct {
	*core

	client *http.Client
	done   chan string // calls that were carried out
	logged chan string // how calls ended
}

func setup(t *testing.T, keep int) *world {
	t.Helper()
	w := &world{client: &http.Client{Transport: &http.Transport{}}, done: make(chan string, 20), logged: make(chan string, 20)}
	w.core = platformapi.New[refusal](platformapi.Config[string]{
		Name: "test", KeepCalls: keep, Canonical: strings.ToLower,
		NameOf:  func(c string) string { return c },
		Faults:  func(c string) []string { return []string{strings.ToLower(c), "*"} },
		Handler: func() http.Handler { return http.HandlerFunc(w.serve) },
	})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		w.client.CloseIdleConnections()
	})
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	call := r.URL.Path[1:]
	w.Answer(r.Context(), rw, call, platformapi.Exchange[refusal]{
		Do: func() (*platformapi.Reply, *refusal) {
			w.done <- call
			return &platformapi.Reply{Body: []byte(answer)}, nil
		},
		Log: func(refused *refusal, faulty, dropped bool) {
			outcome := "fine"
			switch {
			case dropped:
				outcome = "dropped"
			case refused != nil:
				outcome = "refused"
			case faulty:
				outcome = "faulty"
			}
			w.logged <- outcome
			w.Log(call)
		},
		Refuse: func(rw http.ResponseWriter, e *refusal) { platformapi.WritePage(rw, e.status, "no") },
	})
}

// call makes a call and returns the status, or 0 without one, and whether the
// answer came whole.
func (w *world) call(ctx context.Context, t *testing.T, name string) (status int, body string, whole bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL()+"/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return 0, "", false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err == nil
}

func TestHowAnswersGetLost(t *testing.T) {
	t.Parallel()
	w := setup(t, 0)
	for _, tt := range []struct {
		name   string
		fault  fault
		status int
		body   string
		whole  bool
		done   bool
		logged string
	}{
		{"none", fault{}, 200, answer, true, true, "fine"},
		{"refused", fault{Refuse: &refusal{429}}, 429, "<html><body>no</body></html>", true, false, "refused"},
		{"refused afterwards", fault{Instead: &refusal{500}}, 500, "<html><body>no</body></html>", true, true, "faulty"},
		{"dropped before", fault{End: platformapi.Before}, 0, "", false, false, "dropped"},
		{"dropped after", fault{End: platformapi.After}, 0, "", false, true, "faulty"},
		{"half an answer", fault{End: platformapi.Short}, 200, answer[:len(answer)/2], false, true, "faulty"},
		{"half of the JSON", fault{End: platformapi.Truncated}, 200, answer[:len(answer)/2], true, true, "faulty"},
		{"garbage", fault{End: platformapi.Garbage}, 200, "<html><body>Something went wrong</body></html>", true, true, "faulty"},
		{"late", fault{}.After(time.Millisecond), 200, answer, true, true, "fine"},
	} {
		w.Inject("Method", tt.fault)
		status, body, whole := w.call(waittest.Context(t.Context(), t), t, "method")
		if status != tt.status || body != tt.body || whole != tt.whole {
			t.Errorf("%s: %d %q, whole %v", tt.name, status, body, whole)
		}
		if got := <-w.logged; got != tt.logged {
			t.Errorf("%s: logged as %s", tt.name, got)
		}
		if done := len(w.done) == 1; done != tt.done {
			t.Errorf("%s: carried out %v", tt.name, done)
		}
		for len(w.done) > 0 {
			<-w.done
		}
	}
}

func TestWhichFaultIsDue(t *testing.T) {
	t.Parallel()
	w := setup(t, 2)
	ctx := waittest.Context(t.Context(), t)
	w.Inject("a", fault{Refuse: &refusal{401}}, fault{Refuse: &refusal{402}})
	w.Inject("*", fault{Refuse: &refusal{403}})
	w.InjectFunc(func(call string) fault {
		if call == "b" {
			return fault{Refuse: &refusal{404}}
		}
		return fault{}
	})
	if n := w.QueuedFaults("A"); n != 2 {
		t.Errorf("%d faults are queued", n)
	}
	var got []int
	for _, name := range []string{"a", "b", "A", "a", "b"} {
		status, _, _ := w.call(ctx, t, name)
		got = append(got, status)
	}
	w.ClearFaults()
	status, _, _ := w.call(ctx, t, "b")
	if got = append(got, status); !slices.Equal(got, []int{401, 403, 402, 200, 404, 200}) {
		t.Errorf("the answers are %v", got)
	}
	if w.Count("a") != 3 || !slices.Equal(w.Calls(), []string{"b", "b"}) || len(w.Calls("a")) != 0 {
		t.Errorf("%d calls of a, of which there are left %v", w.Count("a"), w.Calls())
	}
}

func TestCloseEndsWhatWaits(t *testing.T) {
	t.Parallel()
	w := setup(t, 0)
	gate := emulator.NewGate()
	w.Inject("held", fault{Gate: gate})
	w.Inject("stalled", fault{Stall: emulator.NewGate()})
	answered := make(chan int, 2)
	for _, name := range []string{"held", "stalled"} {
		go func() {
			status, _, _ := w.call(t.Context(), t, name)
			answered <- status
		}()
	}
	<-gate.Reached()
	if got := <-w.done; got != "stalled" {
		t.Errorf("%s was carried out", got)
	}
	ended := false
	w.Go(func() {
		<-w.Context().Done()
		ended = true
	})
	w.Close()
	if !ended || !w.Closed() || w.Enter() != nil {
		t.Error("Close does not wait, or lets something begin")
	}
	w.Go(func() { t.Error("a task began after Close") })
	if a, b := <-answered, <-answered; a != 0 || b != 0 {
		t.Errorf("answered %d and %d", a, b)
	}
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	w := setup(t, 0)
	ctx := waittest.Context(t.Context(), t)
	status, body, err := w.Post(ctx, w.URL()+"/x", nil, []byte("{}"))
	if status != 200 || string(body) != answer || err != nil {
		t.Errorf("%d %s %v", status, body, err)
	}
	w.Inject("x", fault{End: platformapi.Short})
	resp, body, err := w.Submit(ctx, w.URL()+"/x", nil, nil)
	if resp == nil || resp.StatusCode != http.StatusOK || len(body) != len(answer)/2 || err == nil {
		t.Errorf("half an answer: %v %s %v", resp, body, err)
	}
	if resp, _, err := w.Submit(ctx, "http://127.0.0.1:1/", nil, nil); resp != nil || err == nil {
		t.Errorf("nobody there: %v %v", resp, err)
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	type delivery struct {
		id   string
		done bool
	}
	var list platformapi.Deliveries[delivery]
	for _, d := range []*delivery{{"a", true}, {"b", true}, {"c", false}, {"d", true}} {
		list.Add(d.id, d)
	}
	forget := func(keep int) string {
		list.Forget(keep, func(d *delivery) (string, bool) { return d.id, d.done })
		return strings.Join(platformapi.Views(&list, func(d *delivery) string { return d.id }), "")
	}
	for _, step := range []struct {
		keep int
		left string
	}{{0, "abcd"}, {3, "bcd"}, {-1, "cd"}} {
		if left := forget(step.keep); left != step.left {
			t.Errorf("with %d there are left %s", step.keep, left)
		}
	}
	open := list.Which(func(d *delivery) string {
		if d.done {
			return ""
		}
		return d.id
	})
	if list.Get("a") != nil || list.Get("c") == nil || !slices.Equal(open, []string{"c"}) {
		t.Errorf("open are %v", open)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	if err := platformapi.AddJSON(got, []byte(`{"text":"a\n","n":1,"list":["x"],"none":null}`)); err != nil {
		t.Fatal(err)
	}
	if platformapi.AddJSON(got, []byte(`[1]`)) == nil {
		t.Error("a list is no object")
	}
	platformapi.AddForm(got, map[string][]string{"n": {"2", "3"}, "empty": {}})
	if len(got) != 3 || got["text"] != "a\n" || got["n"] != "2" || got["list"] != `["x"]` {
		t.Errorf("the arguments are %q", got)
	}
}
