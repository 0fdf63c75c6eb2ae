package github_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	servers "remote-agent/internal/emulator"
	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/github"
)

func (w *world) request(login string) messages.Inbound {
	u := w.server.UserOf(login)
	return messages.Inbound{Conversation: key("acme/web#1"), Sender: messages.Sender{ID: messages.UserID(strconv.FormatInt(u.ID, 10)), Name: login}}
}

func TestWhoMayUseTheBot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.AddUser(emulator.User{Login: "spoof", Association: "OWNER"})
	for login, want := range map[string]bool{"ann": true, "boss": true, "mia": true, "reader": false, "triager": false, "stranger": false, "spoof": false, "other[bot]": false} {
		if got, err := w.Admits(t.Context(), w.request(login)); got != want || err != nil {
			t.Errorf("%s: %v, %v", login, got, err)
		}
	}
	for name, in := range map[string]messages.Inbound{
		"no sender": {Conversation: key("acme/web#1")}, "a bot": {Conversation: key("acme/web#1"), Sender: messages.Sender{ID: "1000", Name: "ann", Bot: true}},
		"no name": {Conversation: key("acme/web#1"), Sender: messages.Sender{ID: w.request("ann").Sender.ID}}, "a path": {Conversation: key("acme/web#1"), Sender: messages.Sender{ID: w.request("ann").Sender.ID, Name: "../../x"}},
		"another's number": {Conversation: key("acme/web#1"), Sender: messages.Sender{ID: w.request("reader").Sender.ID, Name: "ann"}},
	} {
		if got, err := w.Admits(t.Context(), in); got || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := w.Admits(t.Context(), messages.Inbound{Conversation: key("x"), Sender: w.request("ann").Sender}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a conversation that is none: %v", err)
	}
}

func TestAnyErrorIsANo(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]emulator.Fault{
		"not found": emulator.Refuse(http.StatusNotFound, "Not Found"), "forbidden": emulator.NotAccessible(), "server": emulator.ServerError(500), "bad gateway": emulator.ServerError(502),
		"garbage": {End: platformapi.Garbage}, "cut": {End: platformapi.Short}, "half": {End: platformapi.Truncated}, "no answer": {End: platformapi.After}, "limit": emulator.SecondaryLimit(429, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.server.Inject(emulator.GetPermission, f, f, f) // what only reads is tried again by the transport
			got, err := w.Admits(t.Context(), w.request("ann"))
			if got || (err == nil) != (name == "not found") {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestAYesIsRememberedForSecondsOnly(t *testing.T) {
	t.Parallel()
	remembering := func(c *github.Config) { c.PermissionTTL = time.Hour }
	w := newWorld(t, setting{bot: remembering})
	ann, reader := w.request("ann"), w.request("reader")
	for range 3 {
		if ok, err := w.Admits(t.Context(), ann); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, _ := w.Admits(t.Context(), reader); ok {
			t.Fatal("a reader")
		}
	}
	if n := w.server.Count(emulator.GetPermission); n != 4 {
		t.Errorf("%d calls, want one for the yes and each for the no", n)
	}
	// Without a memory each is asked for, and what was taken away is gone at once.
	w = newWorld(t)
	if ok, _ := w.Admits(t.Context(), w.request("ann")); !ok {
		t.Fatal("not admitted")
	}
	w.server.SetPermission(repo, "ann", emulator.Read)
	if ok, err := w.Admits(t.Context(), w.request("ann")); ok || err != nil {
		t.Errorf("after it was taken away: %v, %v", ok, err)
	}
	// A name that somebody else has taken over is not the one who had it.
	boss := w.request("boss")
	w.server.RenameUser("boss", "old-boss")
	w.server.SetPermission(repo, "boss", emulator.Admin)
	if ok, err := w.Admits(t.Context(), boss); ok || err != nil {
		t.Errorf("a name that was taken over: %v, %v", ok, err)
	}
}

func TestAllowedLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: func(c *github.Config) { c.Allowed = []string{"Ann", "77"} }})
	w.server.AddUser(emulator.User{ID: 77, Login: "mia"})
	in := w.request("ann")
	if ok, err := w.Admits(t.Context(), in); ok || !fault.Is(err, fault.Unavailable) {
		t.Errorf("before the names are known: %v, %v", ok, err)
	}
	if _, err := w.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for login, want := range map[string]bool{"ann": true, "mia": true, "boss": false, "reader": false} {
		if ok, err := w.Admits(t.Context(), w.request(login)); ok != want || err != nil {
			t.Errorf("%s: %v, %v", login, ok, err)
		}
	}
	w.server.RenameUser("ann", "ann2")
	moved := in
	moved.Sender.Name = "ann2"
	if ok, err := w.Admits(t.Context(), moved); !ok || err != nil {
		t.Errorf("after a rename: %v, %v", ok, err)
	}
}

func TestStartFailsForANameThatIsNobodys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nobody-has-this", "Acme"} {
		w := newWorld(t, setting{bot: func(c *github.Config) { c.Allowed = []string{name} }})
		if err := w.Run(t.Context(), w.sink); !fault.Is(err, fault.Invalid) || !contains(fault.Public(err), "GITHUB_ALLOWED_LOGINS", name) {
			t.Errorf("%s: Run: %v", name, err)
		}
	}
}

func contains(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(strings.ToLower(s), strings.ToLower(p)) {
			return false
		}
	}
	return true
}

func TestConcurrentCallsShareOneToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	errs := make(chan error)
	for i := range 20 {
		go func() {
			_, err := w.Admits(t.Context(), w.request([]string{"ann", "boss"}[i%2]))
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := w.server.Count(emulator.CreateInstallationToken); n != 1 {
		t.Errorf("%d tokens were made", n)
	}
}

// waiting tells when somebody begins to wait with it.
type waiting struct {
	context.Context
	begun func()
}

func (w waiting) Done() <-chan struct{} {
	w.begun()
	return w.Context.Done()
}

// TestOneRequestForAMessageAndItsTurn: a message that has arrived is asked about while its turn
// begins. What one of them gives up, the other one asks itself.
func TestOneRequestForAMessageAndItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, givesUp := range map[string]bool{"both wait": false, "the first gives up": true} {
		before := w.server.Count(emulator.GetPermission)
		gate := servers.NewGate()
		defer gate.Open()
		w.server.Inject(emulator.GetPermission, emulator.Fault{Gate: gate})
		first, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		told := make(chan error, 2)
		ask := func(ctx context.Context, canceled bool) {
			ok, err := w.Admits(ctx, w.request("ann"))
			if ok == canceled || canceled != fault.Is(err, fault.Canceled) {
				err = fmt.Errorf("admitted %t: %w", ok, err)
			} else {
				err = nil
			}
			told <- err
		}
		go ask(first, givesUp)
		<-gate.Reached()
		begun := make(chan struct{})
		go ask(waiting{t.Context(), sync.OnceFunc(func() { close(begun) })}, false)
		<-begun
		if givesUp {
			giveUp()
		} else {
			gate.Open()
		}
		for range 2 {
			if err := <-told; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := w.server.Count(emulator.GetPermission) - before; n != 1 {
			t.Errorf("%s: GitHub answered %d times, want once", name, n)
		}
	}
}

// What one newcomer writes before GitHub has told who may is taken, however much it is, as where
// it comes after a downtime: it is one newcomer.
func TestOneNewcomerCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 100 {
		if got := w.Screen(w.request("ann")); got != platform.ScreenAsk {
			t.Fatalf("message %d is %v", i, got)
		}
	}
	if got := w.Screen(w.request("boss")); got != platform.ScreenAsk {
		t.Errorf("somebody else is %v", got)
	}
	if ok, err := w.Admits(t.Context(), w.request("reader")); ok || err != nil {
		t.Fatal(ok, err)
	}
	asked := 0
	for range 100 {
		if w.Screen(w.request("reader")) == platform.ScreenAsk {
			asked++
		}
	}
	if asked > 25 {
		t.Errorf("who may not is asked about %d times", asked)
	}
}

// A flood of people who were never admitted is asked about up to a bound; who was
// admitted, or is shown as a member, always is.
func TestFinding4FewNewcomersAreAskedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, reader := w.request("ann"), w.request("reader")
	for _, in := range []messages.Inbound{ann, reader} {
		if got := w.Screen(in); got != platform.ScreenAsk {
			t.Fatalf("in quiet times %s is %v", in.Sender.Name, got)
		}
		if _, err := w.Admits(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	asked, busy := 0, 0
	for i := range 200 {
		in := reader
		in.Sender.ID = messages.UserID(strconv.Itoa(900_000 + i))
		switch w.Screen(in) {
		case platform.ScreenAsk:
			asked++
		case platform.ScreenBusy:
			busy++
		case platform.ScreenDenied:
			t.Fatal("nobody said no of a newcomer")
		}
	}
	if asked > 30 || busy < 150 {
		t.Errorf("%d of 200 newcomers are asked about, %d are not", asked, busy)
	}
	if got := w.Screen(reader); got != platform.ScreenDenied {
		t.Errorf("who was just denied is %v", got)
	}
	member := reader
	member.Sender.ID, member.Sender.Member = "999999", true
	for name, in := range map[string]messages.Inbound{"who was admitted": ann, "a member": member} {
		if got := w.Screen(in); got != platform.ScreenAsk {
			t.Errorf("%s is %v in a flood", name, got)
		}
	}
}
