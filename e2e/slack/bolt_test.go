package slack_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"remote-agent/e2e/internal/need"
	"remote-agent/internal/emulator/forged"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/waittest"
)

func start(t *testing.T, opts slack.Options) *slack.Server {
	t.Helper()
	s := slack.New(opts)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func timeout(t *testing.T) context.Context {
	t.Helper()
	return waittest.Context(t.Context(), t)
}

// said is what the app under testdata writes.
type said struct {
	Kind, User, Text string
	Port             int
}

// bolt is an app that runs on Slack's own framework.
type bolt struct {
	t     *testing.T
	lines chan said
}

func startBolt(t *testing.T, s *slack.Server, transport string) *bolt {
	t.Helper()
	node, pkg := need.Node(t), need.Package(t, "@slack/bolt")
	// It ends when its input does, which is after the test's context.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, node, "testdata/bolt.mjs", pkg, transport)
	cmd.Env = append(os.Environ(), "BOLT_TOKEN="+s.BotToken(), "BOLT_APP_TOKEN="+s.AppToken(), "BOLT_API_URL="+s.APIURL(), "BOLT_SIGNING_SECRET="+s.SigningSecret())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := &bolt{t: t, lines: make(chan said, 100)}
	go func() {
		defer close(b.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			var line said
			if json.Unmarshal(scan.Bytes(), &line) == nil {
				b.lines <- line
			}
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("bolt: %v", err)
		}
	})
	return b
}

// next returns what the app says next, which must be of a kind.
func (b *bolt) next(kind string) said {
	b.t.Helper()
	select {
	case line, ok := <-b.lines:
		if !ok || line.Kind != kind {
			b.t.Fatalf("bolt says %+v, want %s", line, kind)
		}
		return line
	case <-time.After(time.Minute):
		b.t.Fatalf("bolt never says %s", kind)
	}
	return said{}
}

// TestBolt lets Slack's own framework work with the emulator: it accepts what the
// emulator signs and nothing else, understands its payloads over both
// transports, and its client understands the Web API.
func TestBolt(t *testing.T) {
	for _, transport := range []string{"http", "socket"} {
		t.Run(transport, func(t *testing.T) {
			s := start(t, slack.Options{NoEcho: true, AckTimeout: 20 * time.Second})
			if transport == "socket" {
				s.UseSocketMode()
			}
			b := startBolt(t, s, transport)
			ready := b.next("ready")
			if transport == "http" {
				base := fmt.Sprintf("http://127.0.0.1:%d", ready.Port)
				s.UseHTTP(slack.Endpoints{Events: base + "/events", Commands: base + "/commands", Interactions: base + "/interactions"})
				checkSignatures(t, s, base+"/events")
			}
			ann := s.User("U1").In("C1")
			root := ann.Delivered(slack.Copy{Type: "app_mention"}).Mentions("do it")
			if got := b.next("mention"); got.User != "U1" || !strings.Contains(got.Text, "do it") {
				t.Errorf("the mention is %+v", got)
			}
			asks, err := s.WaitText(timeout(t), "C1", root.TS, func(text string) bool { return strings.Contains(text, "Shall I?") })
			if err != nil {
				t.Fatal(err)
			}
			ann.InThread(root.TS).Clicks(asks.TS, "yes")
			if got := b.next("action"); got.User != "U1" || got.Text != "v-1" {
				t.Errorf("the press is %+v", got)
			}
			if _, err := s.WaitText(timeout(t), "C1", root.TS, func(text string) bool { return text == "It **was done**." }); err != nil {
				t.Errorf("%v: the thread shows %q", err, s.Thread("C1", root.TS).Texts())
			}
			ann.Slash("/agent", "help me")
			if got := b.next("command"); got.User != "U1" || got.Text != "help me" {
				t.Errorf("the command is %+v", got)
			}
			if _, err := s.WaitEphemeral(timeout(t), "C1", "U1", func(text string) bool { return text == "one moment" }); err != nil {
				t.Errorf("the answer to the command: %v", err)
			}
			var view slack.ViewState
			if err := s.WaitFor(timeout(t), func() bool {
				for _, v := range s.Views("U1") {
					view = v
				}
				return view.ID != ""
			}); err != nil {
				t.Fatal(err)
			}
			ann.Submits(view.ID, map[string]string{"a": "because"})
			if got := b.next("view"); got.User != "U1" || got.Text != "because" {
				t.Errorf("the form is %+v", got)
			}
			if err := s.WaitIdle(timeout(t)); err != nil || len(s.Lost()) > 0 {
				t.Errorf("%v, not acknowledged: %v", err, s.Lost())
			}
		})
	}
}

// checkSignatures sends requests that bolt must refuse, and one that it takes.
// Bolt knows no future, which leaves those out.
func checkSignatures(t *testing.T, s *slack.Server, address string) {
	t.Helper()
	if err := s.VerifyURL(timeout(t)); err != nil {
		t.Errorf("the URL: %v", err)
	}
	body := []byte(`{"type":"url_verification","challenge":"c-1","token":"x"}`)
	for name, header := range forged.Slack(s.SigningSecret(), time.Now(), body) {
		if strings.Contains(name, "future") || strings.Contains(name, "time") || strings.Contains(name, "beyond") || strings.HasPrefix(name, "doubled") {
			continue
		}
		if status, answer, err := s.Post(timeout(t), address, header, body); err != nil || status == http.StatusOK {
			t.Errorf("%s: answered %d %s, %v", name, status, answer, err)
		}
	}
}
