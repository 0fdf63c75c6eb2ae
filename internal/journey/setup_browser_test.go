package journey_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/waittest"
)

// browses sends a request as the browser does that has signed in, and returns the page
// at which it ends. While the bot restarts it is sent again.
func (w *world) browses(client *http.Client, method, path string, form url.Values) (page string) {
	w.t.Helper()
	waittest.Until(w.t, "the bot answers "+path, func() bool {
		r, err := http.NewRequestWithContext(w.ctx(), method, "http://"+w.env["LISTEN_ADDR"]+path, strings.NewReader(form.Encode()))
		if err != nil {
			w.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := client.Do(r)
		if err != nil {
			return false
		}
		defer response.Body.Close() //nolint:errcheck // only read
		text, err := io.ReadAll(response.Body)
		page = string(text)
		return err == nil && response.StatusCode < http.StatusInternalServerError
	})
	return page
}

// fills fills in the form of a step, and returns what came of it.
func (w *world) fills(client *http.Client, step, way string, fields map[string]string) string {
	w.t.Helper()
	page := w.browses(client, http.MethodGet, "/setup/"+step+"?way="+way, nil)
	at := strings.Index(page, `action="/setup/`+step+`"`)
	if at < 0 {
		w.t.Fatalf("the page of %s has no form:\n%s", step, page)
	}
	form := url.Values{"way": {way}}
	for _, m := range regexp.MustCompile(`name="(token|nonce)" value="([0-9a-f]+)"`).FindAllStringSubmatch(page[at:], 2) {
		form.Set(m[1], m[2])
	}
	for name, value := range fields {
		if !strings.Contains(page, `name="f:`+name+`"`) {
			w.t.Errorf("the page of %s asks for no %s", step, name)
		}
		form.Set("f:"+name, value)
	}
	return w.browses(client, http.MethodPost, "/setup/"+step, form)
}

// TestSetUpInTheBrowser takes somebody from nothing to a bot that answers, by the pages
// alone: wrong values change nothing, and the running bot takes what is right.
func TestSetUpInTheBrowser(t *testing.T) {
	t.Parallel()
	w, _ := setUpWorld(t)
	log, closed := &lockedBuffer{}, closedModel(t)
	w.logs = log
	w.start()
	var printed lockedBuffer
	if err := app.OwnerLink(t.Context(), w.config(), app.Env{Stdout: &printed, Stderr: &printed, Log: slog.New(slog.DiscardHandler), Lookup: os.LookupEnv}); err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`/sign-in\?k=(\S+)`).FindStringSubmatch(printed.String())
	if link == nil {
		t.Fatalf("there is no link: %s", printed.String())
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: new(http.Transport)}
	t.Cleanup(client.CloseIdleConnections)
	w.browses(client, http.MethodPost, "/sign-in", url.Values{"k": {link[1]}})
	var pages strings.Builder
	fills := func(step, way string, fields map[string]string, want ...string) {
		t.Helper()
		page := w.fills(client, step, way, fields)
		pages.WriteString(page)
		if !containsAll(page, want) {
			t.Errorf("the page of %s does not show %q:\n%s", step, want, page)
		}
	}
	if page := w.browses(client, http.MethodGet, "/setup", nil); !containsAll(page, []string{"/setup/model", "/setup/telegram", "/setup/people"}) {
		t.Fatalf("the steps:\n%s", page)
	}
	fills("model", "server", map[string]string{"OPENAI_BASE_URL": "nowhere", "OPENAI_MODEL": "test-model"}, "is not a valid address", "Nothing was changed")
	fills("model", "server", map[string]string{"OPENAI_BASE_URL": closed.URL(), "OPENAI_API_KEY": "sk-wrong-wrong-wrong", "OPENAI_MODEL": "test-model"}, "✖", "Nothing was changed")
	fills("telegram", "token", map[string]string{"TELEGRAM_BOT_TOKEN": "1000:wrong-token-of-nobody"}, "✖", "Nothing was changed")
	if text, err := os.ReadFile(w.envFile); err != nil || string(text) != strangersLines {
		t.Errorf("wrong values have changed the file: %q, %v", text, err)
	}
	fills("model", "server", map[string]string{"OPENAI_BASE_URL": w.ai.URL(), "OPENAI_API_KEY": key, "OPENAI_MODEL": "test-model"}, "Now: openai, test-model.", "[redacted]")
	fills("telegram", "token", map[string]string{"TELEGRAM_BOT_TOKEN": token}, "Now: on, by polling.")
	fills("people", "owner", map[string]string{"account": "telegram/ann"}, "is not a telegram ID")
	fills("people", "owner", map[string]string{"account": "telegram/42"}, "Now: 1 owner")
	w.says(ann, "hello")
	w.seesText(ann, "echo: hello [1 messages]")
	for _, secret := range append(w.config().Secrets(), "sk-wrong-wrong-wrong", "1000:wrong-token-of-nobody") {
		if strings.Contains(pages.String(), secret) || strings.Contains(log.String(), secret) {
			t.Errorf("a secret of %d bytes was shown", len(secret))
		}
	}
}
