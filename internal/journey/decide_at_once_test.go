package journey_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

var signInKey = regexp.MustCompile(`/sign-in\?k=([^\s)"]+)`)

// surfs returns a browser that is signed in with a link in a text.
func (w *world) surfs(link string) *http.Client {
	w.t.Helper()
	key := signInKey.FindStringSubmatch(link)
	if key == nil {
		w.t.Fatalf("there is no link: %s", link)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: new(http.Transport)}
	w.t.Cleanup(client.CloseIdleConnections)
	w.browses(client, http.MethodPost, "/sign-in", url.Values{"k": {key[1]}})
	return client
}

// ownerSurfs is the browser of whoever is at the machine.
func (w *world) ownerSurfs() *http.Client {
	w.t.Helper()
	var printed lockedBuffer
	if err := app.OwnerLink(w.ctx(), w.config(), app.Env{Stdout: &printed, Stderr: &printed, Log: slog.New(slog.DiscardHandler), Lookup: os.LookupEnv}); err != nil {
		w.t.Fatal(err)
	}
	return w.surfs(printed.String())
}

// TestTwoPeopleDecideAtOnce has two browsers send a decision on the same plan at the same
// moment, again and again: each time one of them wins, and the other one reads what was
// decided, and by whom.
func TestTwoPeopleDecideAtOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"PUBLIC_URL": "http://" + freePort(t)})
		w.env["LISTEN_ADDR"] = strings.TrimPrefix(w.env["PUBLIC_URL"], "http://")
		w.start()
		w.says(ann, "/web")
		texts := w.sees(ann, "/web", func(texts []string) bool { return signInKey.MatchString(strings.Join(texts, " ")) })
		browsers := map[string]*http.Client{"console/local": w.ownerSurfs(), "telegram/42": w.surfs(strings.Join(texts, " "))}
		for round := range 6 {
			w.ai.Enqueue(openai.Text(fmt.Sprintf("1. Idea number %d.", round)))
			w.says(ann, "/plan something")
			w.seesText(ann, fmt.Sprintf("Idea number %d.", round))
			waittest.Until(t, "the plan, whose text streams before it is one", func() bool {
				return w.rows("SELECT count(*) FROM plans WHERE number = " + fmt.Sprint(round+1))[0] == "1"
			})
			name := fmt.Sprintf("p-%d", round+1)
			decision := map[bool]string{true: "approve", false: "reject"}[round%2 == 0] // what was approved can still be rejected
			forms := make(map[string]url.Values)
			for who, client := range browsers {
				page := w.browses(client, http.MethodGet, "/approvals/"+name, nil)
				forms[who] = formOf(t, page, "/decide")
				forms[who].Set("decision", decision)
			}
			pages := make(map[string]string)
			var mu sync.Mutex
			var both sync.WaitGroup
			begin := make(chan struct{})
			for who, client := range browsers {
				both.Go(func() {
					<-begin
					page := w.browses(client, http.MethodPost, "/decide", forms[who])
					mu.Lock()
					defer mu.Unlock()
					pages[who] = page
				})
			}
			close(begin)
			both.Wait()
			row := w.rows("SELECT state, decided_by FROM plans WHERE number = " + fmt.Sprint(round+1))
			winner := map[bool]string{true: "console/local", false: "telegram/42"}[strings.Contains(row[0], "console/local")]
			for who, page := range pages {
				state, _, _ := strings.Cut(row[0], " | ")
				want := "Plan " + name + " (version 1) is already " + state + " by " + winner
				if who == winner {
					want = "ed plan " + name
				}
				if !strings.Contains(page, want) || who == winner && strings.Contains(page, "is already") {
					t.Errorf("round %d, %s: the row is %s, and the page does not say %q:\n%s", round, who, row, want, page)
				}
			}
		}
	})
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z0-9]+)" value="([^"]*)"`)

// formOf reads the first form of a page that leads somewhere.
func formOf(t *testing.T, page, action string) url.Values {
	t.Helper()
	_, form, found := strings.Cut(page, `action="`+action+`"`)
	if !found {
		t.Fatalf("there is no form to %s:\n%s", action, page)
	}
	form, _, _ = strings.Cut(form, "</form>")
	values := make(url.Values)
	for _, m := range hiddenField.FindAllStringSubmatch(form, -1) {
		values.Set(m[1], m[2])
	}
	return values
}
